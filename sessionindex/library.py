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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from sessionindex import conversation, pages, status
from sessionindex.access import Policy
from sessionindex.catalog import Catalog
from sessionindex.contracts import search_sessions
from sessionindex.contracts.search_sessions import Question, SearchResult
from sessionindex.conversation import Spoken
from sessionindex.errors import (
    IndexFolderError,
    IndexUnusable,
    NotFound,
    ParameterError,
    PolicyError,
    SessionFileError,
    SessionIndexError,
)
from sessionindex.files import Changed, identity, spoken
from sessionindex.ordering import Key
from sessionindex.present import Present
from sessionindex.selection import select
from sessionindex.settings import Root
from sessionindex.status import Status
from sessionindex.wire import search as wire
from sessionindex.wire.shapes import camel

if TYPE_CHECKING:
    from sessionindex.check import CheckReport
    from sessionindex.ingest import Progress, RefreshReport

_ATTEMPTS: Final = 6
_TOOL_LIMIT: Final = 50


BeforeScan = Callable[[int, SessionIndexError | None], bool]
"""Asked before a search reads files: bytes that the index does not cover or whose coverage had to
be checked, and why it covers nothing where that is so. An answer of True says that the index was
refreshed meanwhile."""


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
        self._present = Present(
            None if sessions_root is None else os.fspath(sessions_root),
            None if layout is None else layout == "flat",
            None if index_dir is None else os.fspath(index_dir),
            settings,
            None if current_session is None else os.fspath(current_session),
        )
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

    # --- search ----------------------------------------------------------------------------------

    def search(self, *terms: str, brute: bool = False, **filters: Any) -> SearchResult:
        """The entries that hold these literals; filters are those of `search_sessions`.

        Names are snake_case (`case_sensitive`, `start_timestamp`, …), `kinds` is the contract's
        `in`. No limit and an exact count unless asked otherwise. Raises ParameterError,
        PolicyError, AccessDenied, SessionFileError.
        """
        params: dict[str, Any] = {"terms": list(terms)}
        for name, value in filters.items():
            spelled = "in" if name == "kinds" else camel(name)
            if spelled in params or name in ("in", "terms"):
                raise ParameterError(f"unknown parameter: {name}")
            if value is not None:
                params[spelled] = value
        return self._search(params, brute)

    def call(self, tool: str, params: Any, *, brute: bool = False) -> dict[str, Any]:
        """A tool by its name, with the contract's JSON in and out, as dicts."""
        if tool != "search_sessions":
            raise ParameterError(f"unknown tool: {tool}")
        return wire.answer_of(self.answer(params, brute=brute))

    def answer(self, params: Any, *, brute: bool = False) -> SearchResult:
        """`search` with the contract's parameters, and its defaults: 50 hits, no exact count."""
        if isinstance(params, Mapping):
            params = {"limit": _TOOL_LIMIT, "count": "page", **params}
        return self._search(params, brute)

    def _search(self, params: Any, brute: bool) -> SearchResult:
        policy = self._present.policy()
        question, cursor = wire.question_of(params)
        asked = question
        if cursor is not None:
            body = pages.decode(cursor, "search_sessions", self._digest(asked))
            after = wire.place(body) if body else None
            if after is None:
                raise ParameterError(wire.CURSOR_REFUSED)
            question = replace(question, after=after)
        if question.session_paths is not None:
            paths = tuple(map(self._present.confined, question.session_paths))
            question = replace(question, session_paths=paths)
        result, last = self._answer(question, policy, brute)
        if last is not None:
            place = {"after": list(last)}
            token = pages.encode("search_sessions", self._digest(asked), place)
            result = replace(result, next_cursor=token)
        return result

    def _answer(
        self, question: Question, policy: Policy, brute: bool
    ) -> tuple[SearchResult, Key | None]:
        present = self._present
        asked = brute  # whether whoever wants to refresh before files are scanned was asked
        for attempt in range(_ATTEMPTS):
            reader = None if brute else present.reader()
            try:
                now = present.catalog(policy, reader)
                if not asked:
                    asked = True
                    if self._refreshed_before(now):
                        reader = present.reader()
                        now = present.catalog(policy, reader)
                for path in question.session_paths or ():
                    present.known(path, now, policy)
                chosen = select(
                    now,
                    cwds=question.cwds,
                    cwd_match=question.cwd_match,
                    projects=question.projects,
                    session_paths=question.session_paths,
                    include_subagents=question.include_subagents,
                    current=None if question.include_current else present.current(),
                )
                strict = attempt < _ATTEMPTS - 2  # a root that changes under every look
                return search_sessions.search(question, now, chosen, reader, strict=strict)
            except Changed:
                continue
            except (IndexUnusable, IndexFolderError) as error:
                present.give_up(error)
        raise SessionIndexError("the session files change faster than they can be read")

    def _refreshed_before(self, now: Catalog) -> bool:
        """Whether whoever wants to refresh before files are scanned has done so."""
        if self.before_scan is None:
            return False
        uncovered = sum(file.uncovered + file.checked for file in now.files)
        return self.before_scan(uncovered, self._present.damage())

    def _digest(self, question: Question) -> str:
        asked = replace(question, limit=None, exact=True, after=None)
        return pages.digest((self.root.path, asked))

    # --- one session -----------------------------------------------------------------------------

    def around(self, session: str, line_no: int, count: int) -> tuple[str, tuple[Spoken, ...]]:
        """A session's path, and the entry on a line of it with `count` entries on either side.

        `session` is a path, an id, or a beginning of an id that is unique. Straight from the file.
        Raises NotFound where the line holds no entry, SessionFileError, AccessDenied.
        """
        if count < 0:
            raise ParameterError("count must not be negative")
        policy = self._present.policy()
        for _ in range(_ATTEMPTS):
            now = self._present.catalog(policy, self._present.reader())
            found = self._present.find(session, now, policy)
            try:
                stretches = conversation.around(
                    found.path, found.identity, found.session.version, [line_no], count
                )
            except Changed:
                continue
            except OSError as error:
                reason = f"could not read session file: {spoken(error)}: {found.path}"
                raise SessionFileError(reason, found.path) from error
            if line_no not in stretches:
                raise NotFound(f"no entry on line {line_no} of {found.path}")
            return found.path, stretches[line_no]
        raise SessionFileError(f"the file changes faster than it can be read: {session}", session)

    def context(
        self, result: SearchResult, count: int
    ) -> dict[tuple[str, int], tuple[Spoken, ...]]:
        """By path and line, each hit of a page between its neighbours; gone ones are left out."""
        lines: dict[str, list[int]] = {}
        for hit in result.hits:
            lines.setdefault(hit.session_path, []).append(hit.line_no)
        found = {}
        for path, line_nos in lines.items():
            try:
                listed = identity(os.lstat(path))
                stretches = conversation.around(path, listed, 2, line_nos, count)
            except (Changed, OSError):
                continue
            found.update({(path, number): spoken for number, spoken in stretches.items()})
        return found

    def headings(self, result: SearchResult) -> dict[str, str]:
        """How each session with a hit on the page begins: the first words of its user."""
        words = {}
        for path in {hit.session_path for hit in result.hits}:
            try:
                listed = identity(os.lstat(path))
            except OSError:
                continue
            found = conversation.first_words(path, listed, 2)
            if found:
                words[path] = found
        return words

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
        report = ingest.refresh(
            self._present.store,
            self.root.path,
            flat=self._present.is_flat(),
            policy=self._shown(),
            kind="rebuild" if rebuild else "refresh",
            fresh=rebuild or self._present.is_given_up,
            paths=None if paths is None else [self._present.spelled(path) for path in paths],
            progress=progress,
        )
        self._present.give_up(None)
        return report

    def check(self, sample: int | None = None, repair: bool = False) -> CheckReport:
        """Prove that the index is what the files say: differences, and their repair.

        Every file is parsed anew; the grams of `sample` lines are looked up, of all where it is
        None. `repair` makes a new generation where anything differs or deleted entries are still
        on disk, and checks that. Only what the access bound shows is looked at. Raises
        IndexUnusable where there is no index (with `repair`, it is made), IndexLocked.
        """
        from sessionindex import check

        present, repaired = self._present, False
        while True:
            policy = present.policy()
            try:
                reader = present.checked_reader()
                now = present.catalog(policy, reader)
                dead, _ = present.store.dead()
                whole = not policy.is_bound
                told = dead if whole else 0  # deletions may be of sessions that the bound hides
                report = check.check(now, reader, sample=sample, whole=whole, dead=told)
                rotten = tuple(
                    check.Difference(path, None, "its bytes are not those that were written")
                    for path in present.store.corrupt()
                )
                report = replace(report, differences=rotten + report.differences)
            except IndexUnusable as error:
                if not repair or repaired:
                    raise
                present.give_up(error)
            else:
                if repaired or not repair or not (report.differences or dead):
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
        return status.take(self._present)
