"""The four recovery tools over one session of a root: which file, and one look at it.

The session comes from outside the parameters: a path, an id, or nothing for the current session.
Any session but the current one has to lie in the root and within the access bound; where nothing is
bound, a file that listing cannot reach can still be named by its path. The current session's own
history is exempt, wherever it lies: its owner asks. Without a current session, or before it has a
file, the answer is the normal explaining one.

Order of a call: the bound, the parameters, the path, the file. A file that does more than grow
while it is read is read again; after some attempts only the lines that are shown must stand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from sessionindex import address, session
from sessionindex.access import Policy
from sessionindex.asking import ATTEMPTS
from sessionindex.contracts import overview, read_section, recovery_context, session_search
from sessionindex.contracts.overview import Overview
from sessionindex.contracts.read_section import Reading
from sessionindex.contracts.recovery_context import RecoveryContext
from sessionindex.contracts.session_search import SessionMatches
from sessionindex.errors import IndexFolderError, IndexUnusable, SessionFileError, Told
from sessionindex.files import Changed
from sessionindex.present import Present, is_path
from sessionindex.session import NoSession, OpenSession
from sessionindex.wire import recovery as wire

Result = TypeVar("Result")


class Recovery:
    """The tools, of one session as it is asked for by one call."""

    def __init__(
        self,
        present: Present,
        named: str | os.PathLike[str] | None,
        leaf_id: str | None = None,
        tool_call_id: str | None = None,
        *,
        brute: bool = False,
    ) -> None:
        """Raises PolicyError; the session is looked for when a question is put to it."""
        self._present = present
        self._leaf_id = leaf_id
        self._tool_call_id = tool_call_id
        self._brute = brute
        self._named = None if named is None else os.fspath(named)
        self._is_current = self._means_current()
        self._policy = Policy(None) if self._is_current else present.policy()

    def overview(self, params: Any, *, bounded: bool = False) -> Overview:
        """session_overview; `bounded` as the tool answers, in so many characters."""
        question = wire.overview_question(params, self._leaf_id)
        fits = wire.fits_overview if bounded else _anything
        return self._asked(lambda view: overview.overview(view, question, fits))

    def read_section(self, params: Any) -> Reading:
        """session_read_section."""
        question = wire.read_question(params, self._leaf_id)
        return self._asked(lambda view: read_section.read_section(view, question))

    def search(self, params: Any, *, bounded: bool = False) -> SessionMatches:
        """session_search; `bounded` as the tool answers."""
        question = wire.search_question(params, self._leaf_id)
        fits = wire.fits_matches if bounded else _anything
        return self._asked(lambda view: session_search.session_search(view, question, fits))

    def context(self, params: Any, *, bounded: bool = False) -> RecoveryContext:
        """session_recovery_context; `bounded` as the tool answers."""
        question = wire.context_question(params, self._leaf_id, self._tool_call_id)
        fits = wire.fits_context if bounded else _anything
        return self._asked(lambda view: recovery_context.recovery_context(view, question, fits))

    def call(self, tool: str, params: Any) -> wire.Answer:
        """A tool of TOOLS, with the contract's JSON in and out; what it refuses is an answer."""
        try:
            return TOOLS[tool](self, params)
        except Told as said:
            return wire.told_answer(said)

    # --- the session -----------------------------------------------------------------------------

    def _means_current(self) -> bool:
        if self._named is None:
            return True
        current = self._present.current()
        if current is None or not is_path(self._named):
            return False
        return self._present.spelled(_absolute(self._named)) == self._present.spelled(current)

    def _path(self) -> str | None:
        """The file that is meant; None where there is no current session."""
        present, named = self._present, self._named
        if self._is_current or named is None:
            return present.current()
        path = _absolute(named)
        if not is_path(named):
            now = present.catalog(self._policy, None if self._brute else present.reader())
            path = present.find(named, now, self._policy).path
        return present.addressed(path, self._policy).path  # one spelling, for cursors

    def _asked(self, ask: Callable[[OpenSession], Result]) -> Result:
        """The answer of one consistent look at the file."""
        for attempt in range(ATTEMPTS):
            path = self._path()
            if path is None:
                return ask(OpenSession(session.nothing(""), None))
            try:
                with self._opened(path, strict=attempt < ATTEMPTS - 2) as view:
                    return ask(view)
            except Changed:
                pass
            except (IndexUnusable, IndexFolderError) as error:
                self._present.give_up(error)
            except FileNotFoundError:
                if self._is_current:  # Pi writes it with the first message
                    return ask(OpenSession(session.nothing(path), None))
            except OSError as error:
                raise address.unreadable(error, path) from error
            except NoSession as error:
                raise SessionFileError(f"not a Pi session file: {error.reason}", path) from error
        raise SessionFileError(f"the file changes faster than it can be read: {path}", path or "")

    def _opened(self, path: str, *, strict: bool) -> AbstractContextManager[OpenSession]:
        present = self._present
        reader = None if self._brute else present.reader()
        return session.opened(path, reader=reader, spelled=present.spelled(path), strict=strict)


def _anything(_: object) -> bool:
    return True


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the working directory is gone
        return path


TOOLS: Final[dict[str, Callable[[Recovery, Any], wire.Answer]]] = {
    overview.TOOL: lambda one, params: wire.overview_answer(one.overview(params, bounded=True)),
    read_section.TOOL: lambda one, params: wire.reading_answer(one.read_section(params)),
    session_search.TOOL: lambda one, params: wire.matches_answer(one.search(params, bounded=True)),
    recovery_context.TOOL: lambda one, params: wire.context_answer(
        one.context(params, bounded=True)
    ),
}
