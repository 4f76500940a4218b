"""session_search: a literal in the entries of one session, in reading order.

One match for each entry whose text (`rendering.search_text`) holds the query, without case unless
asked otherwise. Every entry that may match is read, so the total is exact; lines are rejected by
their bytes before they are parsed, and somebody who knows which rows can match at all (an index)
says so (`OpenSession.candidates`). Memory is a batch of lines and a page of matches.

The needles that candidates are asked for are the query without its line breaks: the blocks of an
entry are joined by them, and each needle stands within one block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sessionindex import rendering, signals
from sessionindex.errors import CallRefused
from sessionindex.fold import folded, told
from sessionindex.model import Kind
from sessionindex.rawtest import RawTest
from sessionindex.scope import (
    SECTION,
    Cursors,
    Place,
    Scope,
    Selection,
    filled,
    largest,
    place_in,
    select,
)
from sessionindex.session import OpenSession

TOOL: Final = "session_search"
MAX_QUERY: Final = 500
NO_QUERY: Final = "Search query must not be empty."
INVALID: Final = "Invalid or stale session_search cursor for this scope/query."
CHANGED: Final = "The session changed and the search cursor no longer resolves on this branch."
_KINDS: Final[tuple[Kind, ...]] = ("text", "tools", "system")


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """`query` as the caller gave it."""

    scope: Scope
    leaf: int | None
    query: str
    case_sensitive: bool
    limit: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class SessionMatch:
    """An entry that holds the query; `role` is None for what is no message."""

    entry_id: str
    section_id: str
    type: str
    role: str | None
    timestamp: str | int | float | None
    snippet: str


@dataclass(frozen=True, slots=True)
class SessionMatches:
    """A page of matches; `total` counts those of all pages."""

    scope: Scope
    query: str
    case_sensitive: bool
    total: int
    matches: tuple[SessionMatch, ...]
    has_more: bool
    next_cursor: str | None


def session_search(
    view: OpenSession,
    question: SearchQuestion,
    fits: Callable[[SessionMatches], bool] = lambda _: True,
) -> SessionMatches:
    """The page; raises CallRefused, NothingFound, Changed."""
    scope, sensitive = question.scope, question.case_sensitive
    selection = filled(select(view.outline, scope, question.leaf))
    query = rendering.trimmed(question.query, MAX_QUERY)
    if not query:
        raise CallRefused(NO_QUERY, scope=scope, query="", match_count=0)
    cursors = Cursors(TOOL, view, scope, query, sensitive)
    after = _after(selection, question, query, cursors)
    found = _Found(view, selection, query, sensitive)
    found.look(after, question.limit)
    if after >= 0 and not found.has_before:
        raise _refused(CHANGED, scope, query)
    matches = found.told()
    whole = SessionMatches(scope, query, sensitive, found.total, (), False, None)

    def page(count: int) -> SessionMatches:
        more = count < found.following
        cursor = cursors.write(after=selection.place(found.page[count - 1][0])) if more else None
        return replace(whole, matches=tuple(matches[:count]), has_more=more, next_cursor=cursor)

    return largest(page, len(matches), fits)


def _refused(message: str, scope: Scope, query: str) -> CallRefused:
    return CallRefused(message, scope=scope, query=query, cursor_valid=False)


def _after(selection: Selection, question: SearchQuestion, query: str, cursors: Cursors) -> int:
    """The position after which the page begins; -1 for the first page."""
    if not question.cursor:
        return -1
    body = cursors.read(question.cursor)
    place: Place | None = place_in(body, "after") if body else None
    if place is None:
        raise _refused(INVALID, question.scope, query)
    position = selection.find(place)
    if position is None:
        raise _refused(CHANGED, question.scope, query)
    return position


class _Found:
    """What a search finds: all matches counted, those of the page kept."""

    def __init__(
        self, view: OpenSession, selection: Selection, query: str, sensitive: bool
    ) -> None:
        self._view = view
        self._selection = selection
        self._query = query
        self._needle = folded(query, sensitive)
        self._sensitive = sensitive
        self.has_before = False
        """Whether the entry after which the page begins still matches."""
        self.total = 0
        self.following = 0
        self.page: list[tuple[int, SessionMatch]] = []

    def look(self, after: int, limit: int) -> None:
        """Read whatever may match; keep the first `limit` matches past the position `after`."""
        needles = [part for part in self._query.split("\n") if part]
        rows = self._selection.rows
        positions: Sequence[int] = range(len(rows))
        known = self._view.candidates(needles, _KINDS)
        if known is not None:
            positions = [position for position in positions if rows[position] in known]
        test = RawTest(needles, case_sensitive=self._sensitive, kinds=_KINDS, every=True)
        asked = iter(positions)
        for row, value in self._view.read((rows[position] for position in positions), test):
            position = next(place for place in asked if rows[place] == row)
            if self._needle not in folded(rendering.search_text(value), self._sensitive):
                continue
            self.total += 1
            if position == after:
                self.has_before = True
            elif position > after:
                self.following += 1
                if len(self.page) < limit:
                    self.page.append((position, self._match(position, value)))

    def told(self) -> list[SessionMatch]:
        """The matches of the page, with the ids of their sections."""
        ids = self._view.outline.ids
        openers = [self._selection.opener(position) for position, _ in self.page]
        unknown = sorted({row for row in openers if told(ids[row]) is None})
        names = {row: value["id"] for row, value in self._view.read(unknown)}
        return [
            replace(match, section_id=SECTION + (told(ids[row]) or names[row]))
            for (_, match), row in zip(self.page, openers, strict=True)
        ]

    def _match(self, position: int, value: dict[str, Any]) -> SessionMatch:
        shown = rendering.snippet(rendering.search_text(value), self._query, self._sensitive)
        return SessionMatch(
            value["id"],
            "",
            value["type"],
            signals.role(value),
            rendering.timestamp(value),
            shown or "",
        )
