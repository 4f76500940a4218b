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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from sessionindex import access, settings
from sessionindex.access import Policy
from sessionindex.errors import (
    IndexUnusable,
    ParameterError,
    PolicyError,
    SessionIndexError,
)
from sessionindex.passages import Passages
from sessionindex.present import Present, is_path
from sessionindex.settings import Root
from sessionindex.tools import RECOVERY, RecoveryTools
from sessionindex.trimming import Trimming
from sessionindex.wire.shapes import arguments

if TYPE_CHECKING:
    from sessionindex.asking import BeforeScan
    from sessionindex.check import CheckReport
    from sessionindex.contracts.list_sessions import ListResult
    from sessionindex.contracts.search_sessions import SearchResult
    from sessionindex.contracts.session_entries import EntriesResult
    from sessionindex.execution import Progress
    from sessionindex.ingest import Ingest, RefreshReport
    from sessionindex.status import Status

_TOOL_LIMIT: Final = 50


class SessionIndex(Passages, RecoveryTools, Trimming):
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
        self._present = Present(
            None if sessions_root is None else os.fspath(sessions_root),
            None if layout is None else layout == "flat",
            None if index_dir is None else os.fspath(index_dir),
            settings,
            None if current_session is None else os.fspath(current_session),
        )
        self._settings = settings
        self.before_scan: BeforeScan | None = None

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
        self._present.give_up(None)

    @property
    def root(self) -> Root:
        """The sessions root, and where it came from."""
        return self._present.root

    @property
    def current_session(self) -> str | None:
        """The running session's file, absolute, or None."""
        return self._present.current()

    @property
    def index_folder(self) -> str:
        """Where the index of this root is, or would be."""
        return self._present.store.folder

    def seen_by(
        self,
        *,
        settings: Mapping[str, Any] | None = None,
        current_session: str | None = None,
        projects: Sequence[str] | None = None,
    ) -> SessionIndex:
        """The same open index for another caller: cheap, and what is None stays as it is here.

        `projects` are base names that have to admit a session as well as the bound. Closing one
        closes all, which does no harm. Raises ParameterError.
        """
        try:
            within = None if projects is None else access.names(projects)
        except PolicyError as error:
            raise ParameterError("projects must be base names of working directories") from error
        import copy  # a search of its own process needs none

        view = copy.copy(self)
        view._present = self._present.seen_by(settings, current_session, within)
        if settings is not None:
            view._settings = settings
        return view

    def look_ahead(self) -> None:
        """Begin to look at the root, in a child process, for a question that comes next.

        Only for a process that asks one question, has one thread, and something to import or to do
        before: it spares that question some of its time, and changes no answer. Raises nothing.
        """
        self._present.look_ahead()

    # --- search ----------------------------------------------------------------------------------

    def search(self, *terms: str, brute: bool = False, **filters: Any) -> SearchResult:
        """The entries that hold these literals; filters are those of `search_sessions`.

        Names are snake_case (`case_sensitive`, `start_timestamp`, …), `kinds` is the contract's
        `in`. No limit and an exact count unless asked otherwise. Raises ParameterError,
        PolicyError, AccessDenied, SessionFileError.
        """
        params = arguments(filters, **({"terms": list(terms)} if terms else {}))
        from sessionindex import asking  # here and below: `look_ahead` is not to wait for it

        return asking.search(self._present, params, brute, self.before_scan)

    def call(
        self,
        tool: str,
        params: Any,
        *,
        session: str | None = None,
        leaf_id: str | None = None,
        tool_call_id: str | None = None,
        brute: bool = False,
    ) -> dict[str, Any]:
        """A tool by its name, with the contract's JSON in and out, as dicts.

        `session` (default: the current one), `leaf_id` and `tool_call_id` are for the recovery
        tools, which never take them from the parameters.
        """
        match tool:
            case "search_sessions":
                from sessionindex.wire import search

                return search.answer_of(self.answer(params, brute=brute))
            case "list_sessions":
                from sessionindex import asking
                from sessionindex.wire import listing

                return listing.answer_of(asking.listing(self._present, params, brute))
            case "session_entries":
                from sessionindex.wire import entries

                return entries.answer_of(self.entries_answer(params, brute=brute))
            case "mark_steering":
                from sessionindex.wire import steering

                return steering.answer(params, settings.read(self._settings).effective)
            case _ if tool in RECOVERY:
                return self.recovered(tool, params, session, leaf_id, tool_call_id, brute=brute)
            case _:
                raise ParameterError(f"unknown tool: {tool}")

    def written(self, tool: str, params: Any, **how: Any) -> dict[str, Any]:
        """`call` for output: each `raw` is the file's own bytes, which only `wire` can write."""
        if tool != "session_entries":
            return self.call(tool, params, **how)
        from sessionindex.wire import entries

        result = self.entries_answer(params, brute=how.get("brute", False))
        return entries.answer_of(result, own_bytes=True)

    def answer(self, params: Any, *, brute: bool = False, cursor: bool = True) -> SearchResult:
        """`search` with the contract's parameters, and its defaults: 50 hits, no exact count.

        Without `cursor` no next page is prepared: `next_cursor` is None though there be one.
        """
        from sessionindex import asking

        if isinstance(params, Mapping):
            params = {"limit": _TOOL_LIMIT, "count": "page", **params}
        return asking.search(self._present, params, brute, self.before_scan, paged=cursor)

    # --- listing ---------------------------------------------------------------------------------

    def list_sessions(self, *, brute: bool = False, **filters: Any) -> ListResult:
        """The sessions that there are; filters are those of the contract, in snake_case.

        Raises ParameterError, PolicyError.
        """
        from sessionindex import asking

        return asking.listing(self._present, arguments(filters), brute)

    # --- one session -----------------------------------------------------------------------------

    def session_entries(self, path: str, *, brute: bool = False, **filters: Any) -> EntriesResult:
        """The entries of one session file, in the order of the file.

        `path` is absolute; filters are those of the contract in snake_case (`start_line_no`,
        `parent_ids`, `message_roles`, `search` as a mapping, …). Raises ParameterError,
        PolicyError, AccessDenied, SessionFileError.
        """
        named = os.fspath(path) if isinstance(path, os.PathLike) else path
        return self.entries_answer(arguments(filters, sessionPath=named), brute=brute)

    def path_of(self, session: str | None) -> str:
        """The path of a session by its path, its id, or a beginning of its id that is unique.

        None is the current session. Ids are looked up among the sessions that the bound admits.
        """
        if session is None:
            current = self._present.current()
            if current is None:
                raise ParameterError("no session named, and none is running (PI_SESSION_FILE)")
            return current
        if is_path(session):
            return os.path.abspath(session)
        from sessionindex import asking

        policy = self._present.policy()
        return self._present.find(
            session, asking.catalog_of(self._present, policy, False), policy
        ).path

    def entries_answer(self, params: Any, *, brute: bool = False) -> EntriesResult:
        """`session_entries` with the contract's parameters."""
        from sessionindex import asking

        return asking.entries(self._present, params, brute)

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
        from sessionindex import ingest  # reading needs none of it

        if isinstance(paths, str):
            raise ParameterError("paths must be a list of paths")
        report, known = ingest.refresh(
            self._present.store,
            self.root.path,
            flat=self._present.is_flat(),
            policy=self._shown(),
            kind="rebuild" if rebuild else "refresh",
            fresh=rebuild or self._present.is_given_up,
            paths=None if paths is None else [self._present.spelled(path) for path in paths],
            progress=progress,
            known=self._present.snapshot(),
        )
        self._present.renew(known)
        return report

    @contextmanager
    def keeping(self, kind: str) -> Iterator[Ingest]:
        """The writer lock, held: refreshing again and again, by path, for a background indexer.

        `kind` is what others are told. Raises IndexLocked and IndexFolderError.
        """
        from sessionindex.ingest import Ingest

        present = self._present
        with present.store.held(kind):
            yield Ingest(present.store, self.root.path, present.is_flat, self._shown())

    def check(self, sample: int | None = None, repair: bool = False) -> CheckReport:
        """Prove that the index is what the files say: differences, and their repair.

        Every file is parsed anew; the grams of `sample` lines are looked up, of all where it is
        None. `repair` makes a new generation where anything differs or deleted entries are still
        on disk, and checks that. Only what the access bound shows is looked at. Raises
        IndexUnusable where there is no index (with `repair`, it is made), IndexLocked.
        """
        from dataclasses import replace

        from sessionindex import check

        if repair:
            self.clear_trims()
        present, repaired = self._present, False
        while True:
            try:
                report = check.look(present, sample)
            except IndexUnusable as error:
                if not repair or repaired:
                    raise
                present.give_up(error)
            else:
                if repaired or not repair or not (report.differences or present.store.dead()[0]):
                    return replace(report, repaired=repaired)
            self.refresh(rebuild=True)
            repaired = True

    def _shown(self) -> Policy:
        """What a refresh may tell of: nothing where the bound cannot be read."""
        try:
            return self._present.policy()
        except PolicyError:
            return Policy(())

    def damage(self) -> SessionIndexError | None:
        """Why there is no index to read from now; None where there is one."""
        return self._present.damage()

    def status(self) -> Status:
        """What is there and how much of it the index covers, within the access bound."""
        from sessionindex import status

        return status.take(self._present)
