"""What Pi builds from a session file, and whether a trimmed one gives the same.

`seen` walks a file as Pi's session manager does, on purpose without a word from `plan`: the branch
of the last entry, its newest compaction, the entries that this keeps, edits applied, and each
message as Pi makes it. The context is told as the SHA-256 of its JSON, in Pi's own spelling, so
that it can be compared with what Pi itself says; the messages are never held together.

`differences` compares a file with its trimmed copy: session, leaf, name, context, system prompts,
what a resume reads (is there a thinking level, the last model change), labels of what is left,
extension records (none lost, none gained, in order), and that no parent is missing that was there.
Pure: `read` gives the value of a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sessionindex import jsonline
from sessionindex.timestamps import instant_ms
from sessionindex.trim.outline import (
    ASSISTANT,
    COMPACTION,
    EDIT,
    ENTRY,
    EXTENSION,
    INFO,
    LABEL,
    MODEL,
    SYSTEM,
    THINKING,
    Outline,
)

Read = Callable[[int], Any]
"""The value of a row of the file that is looked at."""

_MAY_BE_EMPTY: Final = {"system": "", "user": [], "assistant": [], "toolResult": []}
_EDITABLE: Final = frozenset({"user", "assistant", "toolResult", "custom"})
_ABSENT: Final = object()


class Unseen(Exception):
    """Pi could not build a context from this file; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What Pi makes of a file; ids are tokens, `rows` those of the entries of the context."""

    session_id: str
    leaf: int
    name: str | None
    context: str
    messages: int
    ids: tuple[int, ...]
    model: dict[str, Any] | None
    thinking: Any
    chosen: tuple[Any, Any] | None
    has_thinking: bool
    system: str
    tools: tuple[str, ...]
    visible: tuple[int, ...]
    extensions: tuple[int, ...]


def seen(outline: Outline, read: Read) -> Seen:
    """What Pi makes of a file. Raises Unseen."""
    places = outline.places()
    leaf = outline.leaf()
    if leaf is None or not outline.ids[leaf] or places[outline.ids[leaf]] != leaf:
        raise Unseen("the last entry is no leaf")
    path = outline.path(places, leaf)
    model, chosen, thinking, has_thinking = _settings(outline, path, read)
    rows, boundary = _context(outline, path)
    spoken = _Spoken()
    spoken.begin()
    for message in _messages(outline, rows, read):
        spoken.add(message)
    return Seen(
        str(outline.head.get("id")),
        outline.ids[leaf],
        _name(outline, read),
        spoken.end(thinking, model),
        spoken.count,
        tuple(outline.ids[row] for row in rows),
        model,
        thinking,
        chosen,
        has_thinking,
        spoken.system.hexdigest(),
        tuple(spoken.tools),
        tuple(outline.ids[row] for row in path[boundary:]),
        tuple(outline.ids[row] for row in path if outline.flags[row] & EXTENSION),
    )


def _settings(
    outline: Outline, path: list[int], read: Read
) -> tuple[dict[str, Any] | None, tuple[Any, Any] | None, Any, bool]:
    """Model, last model change, thinking level: of the whole path, the hidden part included."""
    model: dict[str, Any] | None = None
    chosen: tuple[Any, Any] | None = None
    setter = _last(outline, path, MODEL | ASSISTANT)
    if setter is not None:
        value = read(setter)
        if outline.flags[setter] & ASSISTANT:
            message = value["message"]
            model = _named(provider=message.get("provider"), modelId=message.get("model"))
        else:
            model = _named(provider=value.get("provider"), modelId=value.get("modelId"))
    change = _last(outline, path, MODEL)
    if change is not None:
        value = read(change)
        chosen = (value.get("provider"), value.get("modelId"))
    level = _last(outline, path, THINKING)
    thinking = "off" if level is None else read(level).get("thinkingLevel")
    return model, chosen, thinking, level is not None


def _named(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _last(outline: Outline, path: list[int], flags: int) -> int | None:
    return next((row for row in reversed(path) if outline.flags[row] & flags), None)


def _name(outline: Outline, read: Read) -> str | None:
    """The last session name of the whole file, whatever its branch."""
    for row in range(len(outline) - 1, -1, -1):
        if outline.flags[row] & INFO:
            name = read(row).get("name")
            return name if isinstance(name, str) else None
    return None


# --- the context ---------------------------------------------------------------------------------


def _context(outline: Outline, path: list[int]) -> tuple[list[int], int]:
    """The rows that Pi shows the model, in its order, and where they begin on the path."""
    newest = next(
        (n for n in range(len(path) - 1, -1, -1) if outline.flags[path[n]] & COMPACTION), None
    )
    if newest is None:
        return path, 0
    kept: list[int] = []
    wanted = outline.targets[path[newest]]
    boundary = newest
    for place in range(newest):
        if boundary < newest or (wanted and outline.ids[path[place]] == wanted):
            boundary = min(boundary, place)
            if not outline.flags[path[place]] & SYSTEM:
                kept.append(path[place])
    return [path[newest], *kept, *path[newest + 1 :]], boundary


def _messages(outline: Outline, rows: list[int], read: Read) -> Iterator[dict[str, Any]]:
    edits = {outline.targets[row]: row for row in rows if outline.flags[row] & EDIT}
    for place, row in enumerate(rows):
        flags = outline.flags[row]
        if flags & COMPACTION and place:
            continue  # an older one within what the newest keeps
        value = read(row)
        if not isinstance(value, dict):
            continue
        edit = edits.get(outline.ids[row])
        yield from _projected(value, read(edit) if edit is not None else None)


def _projected(value: dict[str, Any], edit: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    for message in _told(value):
        if edit is None:
            yield message
            continue
        replacement = edit.get("replacement", _ABSENT)
        if replacement is None:
            return
        if not isinstance(replacement, dict):
            raise Unseen("a context edit has no replacement")
        yield _edited(message, replacement)


def _edited(message: dict[str, Any], replacement: dict[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    if role not in _EDITABLE:
        return message
    content = replacement.get("content", _ABSENT)
    if content is _ABSENT:
        return {name: held for name, held in message.items() if name != "content"}
    if role in ("assistant", "toolResult") and isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return {**message, "content": content}


def _told(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that an entry stands for, each with its fields in Pi's order."""
    kind = value.get("type")
    when = _instant(value.get("timestamp"))
    if kind == "message":
        message = value["message"]
        empty = _MAY_BE_EMPTY.get(message.get("role") or "")
        if empty is not None and message.get("content") is None:
            message = {**message, "content": empty}
        return [message]
    if kind == "custom_message":
        content = value.get("content")
        told = {"content": [] if content is None else content}
        named, more = _members(value, "customType"), _members(value, "display", "details")
        return [{"role": "custom", **named, **told, **more, "timestamp": when}]
    if kind == "branch_summary" and value.get("summary"):
        held = _members(value, "summary", "fromId")
        return [{"role": "branchSummary", **held, "timestamp": when}]
    if kind == "compaction":
        held = _members(value, "summary", "tokensBefore")
        summary = {"role": "compactionSummary", **held, "timestamp": when}
        system = value.get("systemMessage")
        return [system, summary] if isinstance(system, dict) else [summary]
    return []


def _members(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def _instant(stamp: Any) -> int | None:
    return instant_ms(stamp) if isinstance(stamp, str) else None


class _Spoken:
    """Messages as they pass: the digest of their JSON, and what their system prompts add up to."""

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self.system = hashlib.sha256()
        self.tools: dict[str, None] = {}
        self.count = 0

    def begin(self) -> None:
        self._whole.update(b'{"messages":[')

    def add(self, message: dict[str, Any]) -> None:
        spelled = jsonline.compact(message).encode("utf-8", "surrogatepass")
        self._whole.update(b"," + spelled if self.count else spelled)
        self.count += 1
        if message.get("role") == "system":
            self.system.update(spelled)
            for tool in _tools(message, "toolsRemoved"):
                self.tools.pop(tool, None)
            for tool in _tools(message, "toolsAdded"):
                self.tools[tool] = None

    def end(self, thinking: Any, model: dict[str, Any] | None) -> str:
        level = jsonline.compact(thinking).encode()
        named = jsonline.compact(model).encode()
        self._whole.update(b'],"thinkingLevel":' + level + b',"model":' + named + b"}")
        return self._whole.hexdigest()


def _tools(message: dict[str, Any], field: str) -> list[str]:
    found = message.get(field)
    tools = found if isinstance(found, list) else ()
    names = [tool.get("name") for tool in tools if isinstance(tool, dict)]
    return [name for name in names if isinstance(name, str)]


# --- before and after ----------------------------------------------------------------------------

_COMPARED: Final = {
    "session_id": "session",
    "leaf": "leaf",
    "name": "session name",
    "context": "messages",
    "ids": "entries of the context",
    "model": "model",
    "chosen": "last model change",
    "thinking": "thinking level",
    "has_thinking": "thinking level",
    "system": "system prompts",
    "tools": "tools",
    "visible": "entries after the boundary",
}


def differences(
    before: Outline, read_before: Read, after: Outline, read_after: Read, *, grown: bool = False
) -> list[str]:
    """What Pi would see differently in the trimmed file: names of things, none quoted.

    `grown`: the second file is the whole one that the first was trimmed from.
    """
    one, other = seen(before, read_before), seen(after, read_after)
    found = [
        name for field, name in _COMPARED.items() if getattr(one, field) != getattr(other, field)
    ]
    small, large = (before, after) if grown else (after, before)
    reads = (read_before, read_after) if grown else (read_after, read_before)
    if one.extensions != other.extensions:
        found.append("extension records of the branch")
    if not grown and _extensions(before) != _extensions(after):
        found.append("extension records")
    if not _is_whole(small, large):
        found.append("parents")
    if not grown and _labels(small, reads[0]) != _labels(large, reads[1], small):
        found.append("labels")
    return list(dict.fromkeys(found))


def _extensions(outline: Outline) -> list[int]:
    pairs = zip(outline.ids, outline.flags, strict=True)
    return [ident for ident, flags in pairs if flags & EXTENSION]


def _is_whole(small: Outline, large: Outline) -> bool:
    """Whether every id is there once, and no parent is missing that was not missing before."""
    ids = [ident for ident in small.ids if ident]
    there = set(ids)
    unknown = there - {0}
    missing = {parent for parent in small.parents if parent} - there
    for ident in large.ids:
        unknown.discard(ident)
        if ident in missing:
            return False
    return len(there) == len(ids) and not unknown


def _labels(outline: Outline, read: Read, of: Outline | None = None) -> dict[int, str]:
    """The label of each entry that is in `of` (else in the file itself)."""
    there = set((of or outline).ids)
    found: dict[int, str] = {}
    for row, flags in enumerate(outline.flags):
        target = outline.targets[row]
        if flags & LABEL and flags & ENTRY and target in there:
            label = read(row).get("label")
            if label:
                found[target] = str(label)
            else:
                found.pop(target, None)
    return found
