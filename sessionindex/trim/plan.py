"""Numbers of a session's lines -> what a trim would keep, or why there is nothing to do, or not.

P is the active path (from the last entry to the root), C the newest compaction on it, B the first
entry that C keeps. Kept are:

- P[B..leaf], and every branch that hangs off it;
- extension records wherever they hang (but the rendering of tool calls that go);
- of the path before B the last model, thinking level, and the assistant's message where that is
  what names the model last; the last session name of the whole file; labels of what is kept;
- lines that are no entries, and entries without an id: nobody can say what they belong to.

The rest goes. A kept entry whose parent goes hangs on its nearest kept ancestor, or on nothing.
What could make the result differ is refused, with its reason, before anything is touched: links
that are broken where they are seen, ids that repeat, circles, a tool's result without its call.
Pure: knows neither files nor text.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Final

from sessionindex import header
from sessionindex.trim.outline import (
    ASSISTANT,
    BROKEN,
    CHECKPOINT,
    COMPACTION,
    ENTRY,
    EXTENSION,
    INFO,
    LABEL,
    MODEL,
    RESULT,
    THINKING,
    VERSION,
    Outline,
)

NO_PARENT: Final = -1
_UNKNOWN: Final = -2


class Refusal(Exception):
    """A file that must not be trimmed; the message is the reason."""


class Nothing(Exception):
    """A file in which there is nothing to trim; the message says why."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """How much of one kind goes."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Which rows stay, which of them hang on another row then, and what goes.

    `kept` has one byte for each row. `relinked` names the new parent's row, NO_PARENT for none.
    """

    kept: bytes
    relinked: dict[int, int]
    dropped: dict[str, Dropped]

    def drops(self, row: int) -> bool:
        """Whether a row of the file that was planned for goes."""
        return row < len(self.kept) and not self.kept[row]


def plan(outline: Outline) -> Plan:
    """The plan for a file; raises Refusal and Nothing."""
    places = sound(outline)
    path, boundary, newest = _marked(outline, places)
    kept = _kept(outline, places, path, boundary)
    if all(kept):
        raise Nothing("nothing is hidden from the model: there is nothing to drop")
    _refers_to_nothing_gone(outline, places, kept, path[newest])
    _pairs_stay_whole(outline, places, kept)
    return Plan(
        bytes(kept),
        _relinked(outline, places, kept),
        _dropped(outline, kept),
    )


def sound(outline: Outline) -> dict[int, int]:
    """Refuse what neither Pi nor a trim can walk through safely; where each id stands."""
    if outline.odd:
        raise Refusal(outline.odd)
    version = header.version_of(outline.head)
    if version < VERSION:
        raise Refusal(f"session version {version or 'unknown'} is too old: open it once in Pi")
    if version > VERSION:
        raise Refusal(f"session version {version} is newer than this trimmer knows")
    places = outline.places()
    if len(places) != sum(1 for ident in outline.ids if ident):
        raise Refusal("an entry id stands on several lines")
    if any(flags & BROKEN for flags in outline.flags):
        raise Refusal("a message entry has no message: Pi cannot build a context")
    _no_circles(outline, places)
    return places


def _no_circles(outline: Outline, places: dict[int, int]) -> None:
    done = bytearray(len(outline))
    for start in range(len(outline)):
        walk: list[int] = []
        row: int | None = start
        while row is not None and not done[row]:
            done[row] = 2  # on this walk
            walk.append(row)
            row = places.get(outline.parents[row]) if outline.parents[row] else None
        if row is not None and done[row] == 2:
            raise Refusal("entries are each other's parents in a circle")
        for row in walk:
            done[row] = 1


def _marked(outline: Outline, places: dict[int, int]) -> tuple[list[int], int, int]:
    """The path, and the places of B and C on it."""
    leaf = outline.leaf()
    if leaf is None:
        raise Nothing("the session has no entries")
    if not outline.ids[leaf]:
        raise Refusal("the last entry has no id: Pi has no leaf to go on from")
    path = outline.path(places, leaf)
    root = path[0]
    orphaned = bool(outline.parents[root])  # its parent is not there
    newest = _last(outline, path, COMPACTION)
    if newest is None:
        if orphaned:
            raise Refusal(_VISIBLE)
        raise Nothing("no compaction on the active branch")
    wanted = outline.targets[path[newest]]
    found = [place for place in range(newest + 1) if outline.ids[path[place]] == wanted]
    if not wanted or not found:
        raise Refusal(
            "the first entry that the newest compaction keeps is not before it on its branch"
        )
    if orphaned and found[0] == 0:
        raise Refusal(_VISIBLE)
    if orphaned and not outline.flags[path[newest]] & CHECKPOINT:
        raise Refusal(
            "a parent is missing in the hidden part, and the compaction holds no system message"
        )
    return path, found[0], newest


_VISIBLE: Final = "a parent is missing in the part that the model sees"


def _last(outline: Outline, path: list[int], flag: int, end: int | None = None) -> int | None:
    """The place of the last entry of the path, before `end`, that has a flag."""
    for place in range((len(path) if end is None else end) - 1, -1, -1):
        if outline.flags[path[place]] & flag:
            return place
    return None


# --- what stays ----------------------------------------------------------------------------------


def _kept(outline: Outline, places: dict[int, int], path: list[int], boundary: int) -> bytearray:
    kept = _seen(outline, places, path, boundary)
    for row, flags in enumerate(outline.flags):
        if flags & EXTENSION or not outline.ids[row] or not flags & ENTRY:
            kept[row] = 1
    for flag in (MODEL, THINKING):
        place = _last(outline, path, flag, boundary)
        if place is not None:
            kept[path[place]] = 1
    setter = _last(outline, path, MODEL | ASSISTANT)
    if setter is not None and outline.flags[path[setter]] & ASSISTANT:
        kept[path[setter]] = 1
    names = [row for row, flags in enumerate(outline.flags) if flags & INFO]
    if names:
        kept[names[-1]] = 1
    _keep_labels(outline, places, kept)
    return kept


def _seen(outline: Outline, places: dict[int, int], path: list[int], boundary: int) -> bytearray:
    """P[B..leaf] and what hangs off it, wherever it stands in the file."""
    answer = bytearray(len(outline))  # 0 not known yet, 1 hangs off it, 2 does not
    for place, passed in enumerate(path):
        answer[passed] = 1 if place >= boundary else 2
    for start in range(len(outline)):
        walk = []
        row: int | None = start
        while row is not None and not answer[row]:
            walk.append(row)
            row = places.get(outline.parents[row]) if outline.parents[row] else None
        found = 2 if row is None else answer[row]
        for passed in walk:
            answer[passed] = found
    return answer.translate(_ONE_ONLY)


_ONE_ONLY: Final = bytes(1 if byte == 1 else 0 for byte in range(256))


def _keep_labels(outline: Outline, places: dict[int, int], kept: bytearray) -> None:
    labels = [row for row, flags in enumerate(outline.flags) if flags & LABEL and not kept[row]]
    grown = True
    while grown:  # a label may be the target of another
        grown = False
        rest = []
        for row in labels:
            target = places.get(outline.targets[row])
            if target is not None and kept[target]:
                kept[row] = grown = True
            else:
                rest.append(row)
        labels = rest


def _relinked(outline: Outline, places: dict[int, int], kept: bytearray) -> dict[int, int]:
    """The new parent of each kept entry whose parent goes."""
    nearest = array("q", [_UNKNOWN]) * len(outline)  # of rows that go: their nearest kept ancestor
    relinked = {}
    for start in range(len(outline)):
        parent = places.get(outline.parents[start]) if outline.parents[start] else None
        if not kept[start] or parent is None or kept[parent]:
            continue
        walk = array("q")
        row: int | None = parent
        while row is not None and not kept[row] and nearest[row] == _UNKNOWN:
            walk.append(row)
            row = places.get(outline.parents[row]) if outline.parents[row] else None
        found = NO_PARENT if row is None else row if kept[row] else nearest[row]
        for passed in walk:
            nearest[passed] = found
        relinked[start] = found
    return relinked


def _dropped(outline: Outline, kept: bytearray) -> dict[str, Dropped]:
    entries: dict[str, int] = {}
    size: dict[str, int] = {}
    for row in range(len(outline)):
        if kept[row]:
            continue
        kind = outline.kind(row)
        entries[kind] = entries.get(kind, 0) + 1
        size[kind] = size.get(kind, 0) + outline.lengths[row] + 1
    return {kind: Dropped(entries[kind], size[kind]) for kind in sorted(entries)}


# --- what is refused -----------------------------------------------------------------------------


def _refers_to_nothing_gone(
    outline: Outline, places: dict[int, int], kept: bytearray, newest: int
) -> None:
    """After C nothing may hang on what goes: somebody went back there, and may again."""
    for row in range(newest + 1, len(outline)):
        links = [outline.parents[row]]
        if outline.flags[row] & COMPACTION:
            links.append(outline.targets[row])
        for link in links:
            target = places.get(link) if link else None
            if target is not None and not kept[target]:
                raise Refusal("a line after the compaction refers to dropped history")


def _pairs_stay_whole(outline: Outline, places: dict[int, int], kept: bytearray) -> None:
    """A result goes where its call goes; the call is that of the nearest ancestor that has it."""
    callers: dict[int, list[int]] = {}
    for call, row in zip(outline.calls, outline.calling, strict=True):
        callers.setdefault(call, []).append(row)
    for row, flags in enumerate(outline.flags):
        rows = callers.get(outline.targets[row]) if flags & RESULT else None
        if not rows:
            continue
        caller = rows[0] if len(rows) == 1 else _caller(outline, places, row, set(rows))
        if caller is not None and bool(kept[caller]) != bool(kept[row]):
            raise Refusal("a tool call and its result would be separated")


def _caller(outline: Outline, places: dict[int, int], row: int, rows: set[int]) -> int | None:
    found: int | None = row
    while found is not None and found not in rows:
        found = places.get(outline.parents[found]) if outline.parents[found] else None
    return found
