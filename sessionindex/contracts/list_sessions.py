"""list_sessions: which sessions there are, each with the runs that it delegated.

Everything comes from the catalog: the header of a file that the index covers from there, of any
other from the file. Nothing is read here, so time follows the number of files, not their size.

Order of operations, which is what makes "the newest previous session" mean that:

    exclude  the current session, wherever it hangs, with all that it launched
    filter   top-level sessions, by directory and by the timestamp of their header
    order    top-level sessions, by one field, then timestamp, then path
    limit    top-level sessions

Delegated runs are never filtered, ordered or counted: a session comes with all of its own, by
timestamp, then path. Strings are ordered by code point. Warnings are those of the whole walk,
whatever was excluded or filtered. What a session was forked from (`parent_session_path`) is the
header's text and has nothing to do with who launched it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sessionindex.catalog import Catalog, File
from sessionindex.layout import Found
from sessionindex.model import PathWarning, Session
from sessionindex.selection import CwdMatch, in_directories, without_current
from sessionindex.timestamps import Window, instant_ms

SortBy = Literal["timestamp", "cwd", "path", "id"]


@dataclass(frozen=True, slots=True)
class Listing:
    """The checked parameters; None does not filter, `limit` None is no limit."""

    cwds: tuple[str, ...] | None
    cwd_match: CwdMatch
    include_current: bool
    window: Window
    sort_by: SortBy
    descending: bool
    limit: int | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session and the runs that it launched; `parent_session_path` is what it was forked from."""

    id: str
    path: str
    timestamp: str
    cwd: str
    parent_session_path: str | None
    children: tuple[SessionRow, ...]


@dataclass(frozen=True, slots=True)
class ListResult:
    """The sessions asked for, and what could not be read in the whole root."""

    sessions: tuple[SessionRow, ...]
    warnings: tuple[PathWarning, ...]


_Child = tuple[tuple[int, str], SessionRow]
"""A delegated run, after its place among those of the same launcher."""


def list_sessions(asked: Listing, catalog: Catalog, current: str | None) -> ListResult:
    """The sessions of a root; `current` is the running session's file, as text, or None."""
    files = tuple(without_current(catalog.files, None if asked.include_current else current))
    tops = [file[0] for file in files if file[0][4] is None]
    if asked.cwds is not None:
        cwds, match = asked.cwds, asked.cwd_match
        tops = [found for found in tops if in_directories(found.session.cwd, cwds, match)]
    if not asked.window.is_open:
        tops = [found for found in tops if asked.window.holds(_instant(found.session))]
    tops.sort(key=_KEYS[asked.sort_by], reverse=asked.descending)
    chosen = tops[: asked.limit]
    children = _children(files, {found[0] for found in chosen})
    rows = tuple([_row(found, children.get(found[0])) for found in chosen])
    return ListResult(rows, catalog.warnings)


def _children(files: Sequence[File], owners: set[str]) -> dict[str, list[_Child]]:
    """By the path of what launched them, the rows of delegated runs, each with its place.

    In a catalog a session stands before everything in its container. Backwards, then, each run
    finds its own runs made, however deep they hang.
    """
    made: dict[str, list[_Child]] = {}
    for file in reversed(files):
        found = file[0]
        path, _, session, owner, parent = found
        if parent is not None and owner in owners:
            row = _row(found, made.pop(path, None))
            made.setdefault(parent, []).append(((_instant(session), path), row))
    return made


def _row(found: Found, children: list[_Child] | None) -> SessionRow:
    path, _, session, _, _ = found
    launched: tuple[SessionRow, ...] = ()
    if children:
        children.sort(key=_place)
        launched = tuple([row for _, row in children])
    parent = session.parent_session
    return SessionRow(session.id, path, session.timestamp, session.cwd, parent, launched)


def _place(child: _Child) -> tuple[int, str]:
    return child[0]


def _instant(session: Session) -> int:
    """When a session began; without a zone, by the host's zone at the time of the question."""
    if session.timestamp.endswith("Z"):
        return session.timestamp_ms
    now = instant_ms(session.timestamp)
    return session.timestamp_ms if now is None else now


_KEYS: Final[dict[SortBy, Callable[[Found], Any]]] = {
    "timestamp": lambda found: (_instant(found.session), found.path),
    "cwd": lambda found: (found.session.cwd, _instant(found.session), found.path),
    "path": lambda found: found.path,
    "id": lambda found: (found.session.id, _instant(found.session), found.path),
}
