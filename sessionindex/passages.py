"""Passages of sessions as a person reads them, as methods of SessionIndex.

Straight from the files, for whoever has a `Present`: the entries around one, or around each hit of
a page, and the first words of a session, by which people know it. An entry that was asked for by
name has to be there; around hits, what went meanwhile is left out, because the page is an answer
already. How entries are read and what counts as a neighbour is for `conversation`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sessionindex.errors import NotFound, ParameterError, SessionFileError
from sessionindex.files import Changed, identity, spoken

if TYPE_CHECKING:
    from sessionindex.contracts.search_sessions import SearchResult
    from sessionindex.conversation import Spoken
    from sessionindex.present import Present


class Passages:
    """A part of SessionIndex."""

    _present: Present

    def around(self, session: str, line_no: int, count: int) -> tuple[str, tuple[Spoken, ...]]:
        """A session's path, and the entry on a line of it with `count` entries on either side.

        `session` is a path, an id, or a beginning of an id that is unique. Straight from the file.
        Raises NotFound where the line holds no entry, SessionFileError, AccessDenied.
        """
        from sessionindex import asking, conversation

        if count < 0:
            raise ParameterError("count must not be negative")
        policy = self._present.policy()
        for _ in range(asking.ATTEMPTS):
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
        from sessionindex import conversation

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
            found = self.first_words(path)
            if found:
                words[path] = found
        return words

    def first_words(self, path: str) -> str | None:
        """How a session of an answer begins: the first words of its user; None without any."""
        from sessionindex import conversation

        try:
            listed = identity(os.lstat(path))
        except OSError:
            return None
        return conversation.first_words(path, listed, 2)
