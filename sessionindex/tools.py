"""The four recovery tools as methods, for whoever has a `Present`.

What they do is in `recovery`; it is loaded when one of them is first used, because a search needs
none of it. `session` is a path, an id or a beginning of one that is unique, or None for the current
session; `leaf_id` None is the last entry of the file. The other arguments are the parameters of the
contract, in its own spelling.

They raise what the package raises; where a tool has only a text to say (nothing found, a cursor
that is refused), that is a NothingFound or a CallRefused, and the answer of `recovered`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sessionindex.contracts.overview import Overview
    from sessionindex.contracts.read_section import Reading
    from sessionindex.contracts.recovery_context import RecoveryContext
    from sessionindex.contracts.session_search import SessionMatches
    from sessionindex.present import Present
    from sessionindex.recovery import Recovery

RECOVERY: Final = frozenset(
    f"session_{name}" for name in ("overview", "read_section", "search", "recovery_context")
)
"""The names of the tools."""


def _asked(present: Present, *what: str | None, brute: bool) -> Recovery:
    from sessionindex.recovery import Recovery

    return Recovery(present, *what, brute=brute)


class RecoveryTools:
    """A part of SessionIndex."""

    _present: Present

    def recovered(
        self,
        tool: str,
        params: Any,
        session: str | None,
        leaf_id: str | None,
        tool_call_id: str | None,
        *,
        brute: bool,
    ) -> dict[str, Any]:
        """One of the four by its name, with the contract's JSON in and out."""
        return _asked(self._present, session, leaf_id, tool_call_id, brute=brute).call(tool, params)

    def overview(
        self,
        session: str | None = None,
        *,
        leaf_id: str | None = None,
        brute: bool = False,
        **params: Any,
    ) -> Overview:
        """`session_overview` of a session (default: the current one): a page of its sections."""
        return _asked(self._present, session, leaf_id, brute=brute).overview(params)

    def read_section(
        self,
        session: str | None = None,
        *,
        leaf_id: str | None = None,
        brute: bool = False,
        **params: Any,
    ) -> Reading:
        """`session_read_section` of a session: entries as they are read."""
        return _asked(self._present, session, leaf_id, brute=brute).read_section(params)

    def session_search(
        self,
        session: str | None = None,
        query: str = "",
        *,
        leaf_id: str | None = None,
        brute: bool = False,
        **params: Any,
    ) -> SessionMatches:
        """`session_search` in one session: a page of matches."""
        asked = _asked(self._present, session, leaf_id, brute=brute)
        return asked.search({"query": query, **params})

    def recovery_context(
        self,
        session: str | None = None,
        *,
        leaf_id: str | None = None,
        tool_call_id: str | None = None,
        brute: bool = False,
        **params: Any,
    ) -> RecoveryContext:
        """`session_recovery_context` of a session: what can be proved about it."""
        asked = _asked(self._present, session, leaf_id, tool_call_id, brute=brute)
        return asked.context(params)
