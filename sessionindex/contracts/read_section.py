"""session_read_section: entries of a session as they are read, a page at a time.

A section is read by its id, or everything from one entry on. A page is made of pieces: the rendered
entry from an offset on, at most `max_body_chars` of it. It ends where a piece does not finish its
entry, where `max_entries` are in it, or before a piece that would pass what an answer may hold; the
cursor goes on with the character after the last.

A cursor names the entry and, where a section is read, the entry that it begins with. A section that
grew meanwhile is read to its new end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sessionindex import rendering
from sessionindex.errors import CallRefused, NothingFound
from sessionindex.fold import token
from sessionindex.scope import (
    SECTION,
    Cursors,
    Place,
    Scope,
    Selection,
    filled,
    place_in,
    select,
)
from sessionindex.session import OpenSession

TOOL: Final = "session_read_section"
ONE_OF: Final = "Pass exactly one of section_id or entry_id, or continue with cursor."
INVALID: Final = "Invalid or stale session_read_section cursor for this scope."
NO_SECTION: Final = (
    "Section {} was not found in scope {}. Run session_overview with the same scope to refresh"
    " section IDs."
)
NO_ENTRY: Final = "Entry {} was not found in scope {}."
MAX_TEXT: Final = 29_000
_GLUE: Final = 2


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """With a cursor the two ids do not count; "" is no id."""

    scope: Scope
    leaf: int | None
    section_id: str | None
    entry_id: str | None
    cursor: str | None
    max_entries: int
    max_body_chars: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A page: a title, and the pieces of entries under it; `entry_count` is of the whole.

    `entry_id` is where the page begins, but on the first page of a section.
    """

    scope: Scope
    section_id: str | None
    entry_id: str | None
    entry_count: int
    title: str
    pieces: tuple[str, ...]
    has_more: bool
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a page begins: positions from `first` to `end`, the first from `offset` on."""

    opener: int | None
    size: int
    first: int
    end: int
    offset: int


def read_section(view: OpenSession, question: ReadQuestion) -> Reading:
    """The page; raises CallRefused, NothingFound, Changed."""
    scope = question.scope
    cursors = Cursors(TOOL, view, scope)
    cursor = None
    if not question.cursor:
        if bool(question.section_id) == bool(question.entry_id):
            raise CallRefused(ONE_OF, scope=scope, found=False)
    else:
        cursor = _read(cursors, question.cursor)
        if cursor is None:
            raise _invalid(scope)
    selection = filled(select(view.outline, scope, question.leaf))
    start = _resumed(selection, cursor) if cursor else _begun(selection, question)
    return _page(view, selection, question, start, cursors)


_Cursor = tuple[Place, Place | None, int]


def _read(cursors: Cursors, cursor: str) -> _Cursor | None:
    """Entry, beginning of its section and offset of a cursor."""
    body = cursors.read(cursor)
    if body is None:
        return None
    at, offset = place_in(body, "at"), body.get("offset")
    section = place_in(body, "section")
    if at is None or type(offset) is not int or offset < 0:
        return None
    if section is None and body.get("section") is not None:
        return None
    return at, section, offset


def _invalid(scope: Scope) -> CallRefused:
    return CallRefused(INVALID, scope=scope, cursor_valid=False, source_available=False)


def _begun(selection: Selection, question: ReadQuestion) -> _Start:
    """Where a first page begins."""
    scope, size = selection.scope, len(selection)
    if question.section_id:
        named = question.section_id
        number = None
        if named.startswith(SECTION):
            number = selection.section_with_id(token(named.removeprefix(SECTION)))
        if number is None:
            raise NothingFound(
                NO_SECTION.format(rendering.short(named), scope),
                scope=scope,
                section_id=named,
                found=False,
                source_available=False,
            )
        first, end = selection.span(number)
        return _Start(first, end - first, first, end, 0)
    named = question.entry_id or ""
    position = selection.with_id(token(named))
    if position is None:
        raise NothingFound(
            NO_ENTRY.format(rendering.short(named), scope),
            scope=scope,
            entry_id=named,
            found=False,
            source_available=False,
        )
    return _Start(None, size, position, size, 0)


def _resumed(selection: Selection, cursor: _Cursor) -> _Start:
    """Where a later page begins; what the cursor names must still be where it was."""
    at, section, offset = cursor
    position = selection.find(at)
    if position is None:
        raise _invalid(selection.scope)
    if section is None:
        return _Start(None, len(selection), position, len(selection), offset)
    opener = selection.find(section)
    if opener is None or opener not in selection.starts:
        raise _invalid(selection.scope)
    first, end = selection.span(selection.starts.index(opener))
    if not first <= position < end:
        raise _invalid(selection.scope)
    return _Start(first, end - first, position, end, offset)


def _page(
    view: OpenSession,
    selection: Selection,
    question: ReadQuestion,
    start: _Start,
    cursors: Cursors,
) -> Reading:
    section_id = section = None
    title = ""
    if start.opener is not None:
        value = view.one(selection.rows[start.opener])
        section_id, section = SECTION + value["id"], selection.place(start.opener)
        title = f"Section {SECTION}{rendering.short(value['id'])}: {rendering.label(value)}"
    last = min(start.end, start.first + question.max_entries)
    position, offset = start.first, start.offset
    entry_id = ""
    pieces: list[str] = []
    used = 0
    for _, value in view.read(selection.rows[start.first : last]):
        entry_id = entry_id or value["id"]
        title = title or f"Entry {rendering.short(entry_id)}"
        piece, rest = _piece(value, offset, question.max_body_chars)
        used += len(piece) + _GLUE
        if pieces and len(title) + used > MAX_TEXT:
            break
        pieces.append(piece)
        if rest is not None:
            offset = rest
            break
        position, offset = position + 1, 0
    cursor = None
    if position < start.end:
        cursor = cursors.write(offset, at=selection.place(position), section=section)
    return Reading(
        selection.scope,
        section_id,
        None if question.section_id and not question.cursor else entry_id,
        start.size,
        title,
        tuple(pieces),
        cursor is not None,
        cursor,
    )


def _piece(value: dict[str, Any], offset: int, size: int) -> tuple[str, int | None]:
    """A piece of a rendered entry, and where the next one begins if it is not finished."""
    whole = rendering.rendered(value)
    piece = whole[offset : offset + size]
    rest = offset + size if offset + size < len(whole) else None
    if offset:
        piece = f"[{rendering.short(value['id'])}] continuation @{offset}\n{piece}"
    return piece, rest
