"""One scope of a session: the entries that count, in reading order, and their sections.

`active` is the branch from the leaf to the root, read from the root; `all` is every entry in the
order of the file. Entries that other extensions keep for themselves (control entries) are left out
after the branch was walked and the leaves were counted.

A *position* counts in the selection, a *row* in the outline. A `Place` names an entry so that a
later call finds it again: the number of its line and the token of its id; where that line no longer
carries that entry, or the selection no longer has it, there is nothing to go on from.

`Cursors` writes and reads the cursors of one question about one session.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeVar

from sessionindex import pages, tree
from sessionindex.errors import NothingFound
from sessionindex.session import OpenSession, Outline
from sessionindex.signals import CONTROL, IGNORED, STARTS

Scope = Literal["active", "all"]
Page = TypeVar("Page")

MAX_CURSOR: Final = 2000
SECTION: Final = "section:"

EMPTY: Final = (
    "No raw session entries are available for scope {}. The session may be new, ephemeral, or"
    " unavailable in this context."
)


class Place(NamedTuple):
    """An entry, to be found again: its line, and the token of its id."""

    line_no: int
    entry: int


@dataclass(frozen=True, slots=True)
class Selection:
    """The entries of a scope: `rows` by position, `starts` where sections begin."""

    scope: Scope
    outline: Outline
    rows: Sequence[int]
    starts: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def span(self, number: int) -> tuple[int, int]:
        """First position of a section, and the one after its last."""
        return tree.span(self.starts, number, len(self.rows))

    def opener(self, position: int) -> int:
        """The row of the entry that begins the section of a position."""
        return self.rows[self.starts[tree.section_at(self.starts, position)]]

    def place(self, position: int) -> Place:
        """The place of the entry at a position."""
        row = self.rows[position]
        return Place(self.outline.line_nos[row], self.outline.ids[row])

    def find(self, place: Place | None) -> int | None:
        """The position of the entry that a place means; None where it is not here any more."""
        if place is None:
            return None
        outline = self.outline
        row = bisect_left(outline.line_nos, place.line_no)
        if row == len(outline) or outline.line_nos[row] != place.line_no:
            return None
        if outline.ids[row] != place.entry or row not in self.rows:
            return None
        return self.rows.index(row)

    def with_id(self, number: int) -> int | None:
        """The first position of an entry with this id, by its token."""
        ids = self.outline.ids
        return next((at for at, row in enumerate(self.rows) if ids[row] == number), None)

    def section_with_id(self, number: int) -> int | None:
        """The number of the first section that an entry with this id begins."""
        ids, rows = self.outline.ids, self.rows
        return next((n for n, at in enumerate(self.starts) if ids[rows[at]] == number), None)


def select(outline: Outline, scope: Scope, leaf: int | None) -> Selection:
    """The selection of a scope; `leaf` None is the last entry of the file, 0 is no entry."""
    shapes = outline.shapes
    rows: Sequence[int] = range(len(outline))
    if scope == "active":
        rows = tree.branch(outline.ids, outline.parents, outline.leaf if leaf is None else leaf)
    rows = [row for row in rows if not shapes[row] & (CONTROL | IGNORED)]
    starts = tree.section_starts(bool(shapes[row] & STARTS) for row in rows)
    return Selection(scope, outline, rows, starts)


def filled(selection: Selection) -> Selection:
    """The selection; raises NothingFound with the contract's text where it is empty."""
    if not selection.rows:
        scope = selection.scope
        raise NothingFound(EMPTY.format(scope), scope=scope, entry_count=0)
    return selection


class Cursors:
    """The cursors of one question: bound to the tool, to the session and to what was asked."""

    def __init__(self, tool: str, view: OpenSession, *asked: Any) -> None:
        self._tool = tool
        outline = view.outline
        self._question = pages.digest((outline.session_id, outline.path, *asked))

    def write(self, offset: int = 0, **places: Place | None) -> str:
        """A cursor that holds these places, and an offset into the first of them."""
        held = {name: None if place is None else list(place) for name, place in places.items()}
        return pages.encode(self._tool, self._question, {**held, "offset": offset})

    def read(self, cursor: str) -> Mapping[str, Any] | None:
        """What was written; None for a cursor that is garbled, too long, or somebody else's."""
        if len(cursor) > MAX_CURSOR:
            return None
        return pages.decode(cursor, self._tool, self._question)


def place_in(body: Mapping[str, Any], name: str) -> Place | None:
    """The place that a cursor holds under a name."""
    found = body.get(name)
    if not (isinstance(found, list) and len(found) == 2):
        return None
    line_no, entry = found
    # `type`, because True is an int to isinstance.
    return Place(line_no, entry) if type(line_no) is type(entry) is int else None


def largest(page: Callable[[int], Page], count: int, fits: Callable[[Page], bool]) -> Page:
    """The page of the most items, up to `count`, that fits; of one where none does."""
    found = page(count)
    while count > 1 and not fits(found):
        count -= 1
        found = page(count)
    return found
