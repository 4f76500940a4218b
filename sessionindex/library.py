"""SessionIndex: one object for a sessions root, one method for each operation.

A SessionIndex owns the open index and nothing else: settings, bound, current session and the tree
are read anew for every call. It never refreshes by itself and never needs a writer: what the index
does not cover is read from the files. It is safe to use from several threads; `refresh` takes the
one writer lock of the root.

Order of a call: the bound is read, then parameters are checked, then paths, then files.
Every operation takes `brute=True`: the answer from the files alone, without the index.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final

from sessionindex import catalog, ingest, pages, wire
from sessionindex import layout as _layout
from sessionindex import settings as _settings
from sessionindex.access import Policy
from sessionindex.catalog import Catalog
from sessionindex.contracts import search_sessions
from sessionindex.contracts.search_sessions import Question, SearchResult
from sessionindex.errors import (
    AccessDenied,
    IndexUnusable,
    ParameterError,
    SessionFileError,
    SessionIndexError,
)
from sessionindex.files import Changed
from sessionindex.index.reader import Reader
from sessionindex.index.schema import FORMAT
from sessionindex.index.store import Holder, Store
from sessionindex.ingest import Progress, RefreshReport
from sessionindex.selection import named_path, select

_ATTEMPTS: Final = 4
_TOOL_LIMIT: Final = 50


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a root and its index now; `pending_bytes` are not covered by the index.

    `damage` says why an index that is there cannot be used, or is None.
    """

    root: str
    layout: str
    index_dir: str
    sessions: int
    entries: int
    bytes: int
    index_bytes: int
    format: str
    fresh: int
    behind: int
    stale: int
    new: int
    pending_bytes: int
    writer: Holder | None
    damage: str | None


class SessionIndex:
    """An exact search index over one root of Pi sessions; also a context manager."""

    def __init__(
        self,
        sessions_root: str | os.PathLike[str] | None = None,
        *,
        layout: str | None = None,
        index_dir: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        current_session: str | os.PathLike[str] | None = None,
    ) -> None:
        """Nothing is read or made yet; raises ParameterError for a layout that is none."""
        if layout not in (None, "projects", "flat"):
            raise ParameterError("layout must be one of projects, flat")
        given = None if sessions_root is None else os.fspath(sessions_root)
        self._root = _settings.find_root(given)
        self._layout = layout
        home = _settings.index_home(None if index_dir is None else os.fspath(index_dir))
        self._store = Store(home, self._root.path)
        self._given_settings = settings
        self._given_current = None if current_session is None else os.fspath(current_session)
        self._lock = threading.Lock()
        self._reader: tuple[object, Reader] | None = None
        self._damage: IndexUnusable | None = None

    def __enter__(self) -> SessionIndex:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the open index; a later call opens it again."""
        with self._lock:
            self._reader = None

    # --- search ----------------------------------------------------------------------------------

    def search(self, *terms: str, brute: bool = False, **filters: Any) -> SearchResult:
        """The entries that hold these literals; filters are those of `search_sessions`.

        Names are snake_case (`case_sensitive`, `start_timestamp`, …), `kinds` is the contract's
        `in`. No limit and an exact count unless asked otherwise. Raises ParameterError,
        PolicyError, AccessDenied, SessionFileError.
        """
        params: dict[str, Any] = {"terms": list(terms)}
        for name, value in filters.items():
            if value is not None:
                params["in" if name == "kinds" else wire.camel(name)] = value
        return self._search(params, brute)

    def call(self, tool: str, params: Any, *, brute: bool = False) -> dict[str, Any]:
        """A tool by its name, with the contract's JSON in and out, as dicts."""
        if tool != "search_sessions":
            raise ParameterError(f"unknown tool: {tool}")
        if isinstance(params, Mapping):
            params = {"limit": _TOOL_LIMIT, "count": "page", **params}
        return wire.search_answer(self._search(params, brute))

    def _search(self, params: Any, brute: bool) -> SearchResult:
        policy = self._policy()
        question, cursor = wire.search_question(params)
        digest = self._digest(question)
        if cursor:
            body = pages.decode(cursor, "search_sessions", digest)
            after = wire.place(body) if body else None
            if after is None:
                raise ParameterError(wire.CURSOR_REFUSED)
            question = replace(question, after=after)
        if question.session_paths is not None:
            paths = tuple(self._confined(path, policy) for path in question.session_paths)
            question = replace(question, session_paths=paths)
        result, last = self._answer(question, policy, brute)
        if last is not None:
            token = pages.encode("search_sessions", digest, {"after": list(last)})
            result = replace(result, next_cursor=token)
        return result

    def _answer(self, question: Question, policy: Policy, brute: bool) -> tuple[SearchResult, Any]:
        for attempt in range(_ATTEMPTS):
            # A root that changes under every look is read from the files at last.
            reader = None if brute or attempt == _ATTEMPTS - 1 else self._open_reader()
            try:
                now = self._catalog(policy, reader)
                self._check_named(question, now, policy)
                current = None if question.include_current else self._current()
                chosen = select(
                    now,
                    cwds=question.cwds,
                    cwd_match=question.cwd_match,
                    projects=question.projects,
                    session_paths=question.session_paths,
                    include_subagents=question.include_subagents,
                    current=current,
                )
                return search_sessions.search(question, now, chosen, reader)
            except Changed:
                continue
            except IndexUnusable as error:
                self._give_up(error)
        raise SessionIndexError("the session files change faster than they can be read")

    def _digest(self, question: Question) -> str:
        asked = replace(question, limit=None, exact=True, after=None)
        return pages.digest((self._root.path, asked))

    def _confined(self, path: str, policy: Policy) -> str:
        """A named session file as the catalog spells it."""
        try:
            inside = named_path(self._root.path, path)
        except (OSError, ValueError):
            inside = None
        if inside is None:
            raise SessionFileError(f"sessionPath is not under the sessions root: {path}", path)
        return inside

    def _check_named(self, question: Question, now: Catalog, policy: Policy) -> None:
        known = {file.path for file in now.files}
        for path in question.session_paths or ():
            if path in known:
                continue
            if policy.is_bound:
                raise AccessDenied
            reason = (
                "not a session of this root" if os.path.exists(path) else "ENOENT: no such file"
            )
            raise SessionFileError(f"could not read session file: {reason}: {path}", path)

    # --- the index -------------------------------------------------------------------------------

    def refresh(
        self,
        paths: Sequence[str] | None = None,
        progress: Progress | None = None,
        *,
        rebuild: bool = False,
    ) -> RefreshReport:
        """Bring the index up to the files (of `paths`, or all); `rebuild` makes it anew beside.

        `progress` is called with bytes done and bytes in all. Raises IndexLocked where another
        writer works, IndexFolderError where the folder is not ours or cannot be written.
        """
        with self._lock:
            fresh = rebuild or self._damage is not None
        report = ingest.refresh(
            self._store,
            self._root.path,
            flat=self._is_flat(),
            kind="rebuild" if rebuild else "refresh",
            fresh=fresh,
            paths=None if paths is None else [os.path.abspath(path) for path in paths],
            progress=progress,
        )
        with self._lock:
            self._damage = None
        return report

    def status(self) -> Status:
        """What is there and how much of it the index covers, within the access bound."""
        policy = self._policy()
        damage, reader = None, None
        try:
            reader = self._checked_reader()
        except IndexUnusable as error:
            damage = str(error) if error.damaged else None
        now = self._catalog(policy, reader)
        count = dict.fromkeys(("fresh", "behind", "stale", "new"), 0)
        for file in now.files:
            count[file.verdict] += 1
        return Status(
            self._root.path,
            "flat" if self._is_flat() else "projects",
            self._store.folder,
            len(now.files),
            sum(file.record.entries for file in now.files if file.record),
            sum(file.found.identity.size for file in now.files),
            self._store.size(),
            FORMAT,
            count["fresh"],
            count["behind"],
            count["stale"],
            count["new"],
            sum(file.uncovered for file in now.files),
            self._store.holder(),
            damage,
        )

    def damage(self) -> IndexUnusable | None:
        """Why there is no index to read from now; None where there is one."""
        try:
            self._checked_reader()
        except IndexUnusable as error:
            return error
        return None

    @property
    def root(self) -> _settings.Root:
        """The sessions root, and where it came from."""
        return self._root

    def _open_reader(self) -> Reader | None:
        try:
            return self._checked_reader()
        except SessionIndexError:
            return None  # the files alone answer; `damage` and `status` say why

    def _checked_reader(self) -> Reader:
        with self._lock:
            if self._damage is not None:
                raise self._damage
            state = self._store.state()
            if self._reader is None or self._reader[0] != state or state is None:
                self._reader = None
                self._reader = (state, Reader(self._store.open()))
            return self._reader[1]

    def _give_up(self, error: IndexUnusable) -> None:
        """Remember that the index cannot be read: the next refresh begins anew."""
        with self._lock:
            self._damage, self._reader = error, None

    # --- now -------------------------------------------------------------------------------------

    def _policy(self) -> Policy:
        return _settings.read(self._given_settings).policy()

    def _current(self) -> str | None:
        return _settings.current_session(self._given_current)

    def _is_flat(self) -> bool:
        if self._layout is not None:
            return self._layout == "flat"
        if self._root.flat is not None:
            return self._root.flat
        return _layout.is_flat(self._root.path)

    def _catalog(self, policy: Policy, reader: Reader | None) -> Catalog:
        records = reader.records() if reader else {}
        return catalog.take(self._root.path, flat=self._is_flat(), policy=policy, records=records)
