"""The parameters of a tool -> its result, from the root as it is now.

The order of every question: the bound is read, the parameters are checked, then paths, then files.
A question that meets a file which changes under it is put again, to a new look at the root; what
keeps changing is met less strictly at last. An index that fails is given up, and the files answer.

Nothing here knows JSON beyond the parameters: results are the contracts' values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sessionindex.access import Policy
from sessionindex.catalog import Catalog
from sessionindex.contracts import searching
from sessionindex.contracts.search_sessions import Question, SearchResult
from sessionindex.errors import (
    IndexFolderError,
    IndexUnusable,
    ParameterError,
    SessionFileError,
    SessionIndexError,
)
from sessionindex.files import Changed
from sessionindex.ordering import Key
from sessionindex.present import Present
from sessionindex.selection import select
from sessionindex.wire import search as wire

if TYPE_CHECKING:
    from sessionindex.contracts.list_sessions import ListResult
    from sessionindex.contracts.session_entries import EntriesResult

ATTEMPTS: Final = 6
"""How often a question is put before files that keep changing are an error."""

BeforeScan = Callable[[int, SessionIndexError | None], bool]
"""Asked before a search reads files: bytes that the index does not cover or whose coverage had to
be checked, and why it covers nothing where that is so. An answer of True says that the index was
refreshed meanwhile."""


def search(
    present: Present,
    params: Any,
    brute: bool,
    before_scan: BeforeScan | None,
    *,
    paged: bool = True,
) -> SearchResult:
    """search_sessions; without `limit` and `count` in the parameters, everything and exact.

    Where nobody goes on from a page, `paged` false spares its cursor: most of that is imports.
    """
    policy = present.policy()
    question, cursor = wire.question_of(params)
    whole = question  # as it is asked on every page
    if cursor is not None:
        from sessionindex import pages  # here and below: most searches need none

        body = pages.decode(cursor, "search_sessions", _digest(present, whole))
        after = wire.place(body) if body else None
        if after is None:
            raise ParameterError(wire.CURSOR_REFUSED)
        question = question._replace(after=after)
    if question.session_paths is not None:
        paths = tuple([present.confined(path, policy) for path in question.session_paths])
        question = question._replace(session_paths=paths)
    result, last = _answer(present, question, policy, brute, before_scan)
    if last is not None and paged:
        from sessionindex import pages

        token = pages.encode("search_sessions", _digest(present, whole), {"after": list(last)})
        result = result._replace(next_cursor=token)
    return result


def _digest(present: Present, question: Question) -> str:
    asked = question._replace(limit=None, exact=True, after=None)
    from sessionindex import pages

    return pages.digest((present.root.path, asked))


def _answer(
    present: Present,
    question: Question,
    policy: Policy,
    brute: bool,
    before_scan: BeforeScan | None,
) -> tuple[SearchResult, Key | None]:
    for attempt in range(ATTEMPTS):
        reader = None if brute else present.reader()
        try:
            now = present.catalog(policy, reader)
            if not brute and before_scan is not None:
                asking, before_scan = before_scan, None  # asked once
                if asking(now.unknown, present.damage()):
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
            strict = attempt < ATTEMPTS - 2  # a root that changes under every look
            return searching.search(question, now, chosen, reader, strict=strict)
        except Changed:
            continue
        except (IndexUnusable, IndexFolderError) as error:
            present.give_up(error)
    raise SessionIndexError("the session files change faster than they can be read")


def listing(present: Present, params: Any, brute: bool) -> ListResult:
    """list_sessions."""
    from sessionindex.contracts.list_sessions import list_sessions
    from sessionindex.wire import listing as wire

    policy = present.policy()
    asked = wire.question_of(params)
    return list_sessions(asked, catalog_of(present, policy, brute), present.current())


def catalog_of(present: Present, policy: Policy, brute: bool) -> Catalog:
    """The headers of what is there now; an index that fails meanwhile is given up."""
    for _ in range(ATTEMPTS):
        try:
            reader = None if brute else present.reader()
            return present.catalog(policy, reader, headers_only=True)
        except (IndexUnusable, IndexFolderError) as error:
            present.give_up(error)
    return present.catalog(policy, None)


def entries(present: Present, params: Any, brute: bool) -> EntriesResult:
    """session_entries."""
    from sessionindex.contracts.session_entries import session_entries
    from sessionindex.wire import entries as wire

    policy = present.policy()
    question = wire.question_of(params)
    for attempt in range(ATTEMPTS):
        found = present.addressed(question.path, policy)
        reader = None if brute else present.reader()
        try:
            return session_entries(question, found, reader, strict=attempt < ATTEMPTS - 2)
        except Changed:
            continue
        except (IndexUnusable, IndexFolderError) as error:
            present.give_up(error)
        except OSError as error:
            from sessionindex import address

            raise address.unreadable(error, question.path) from error
    reason = f"the file changes faster than it can be read: {question.path}"
    raise SessionFileError(reason, question.path)
