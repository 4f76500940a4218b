"""The four recovery tools on the wire: their parameters, and their answers.

Parameters are checked as everywhere, but for the numeric limits: what is no finite number is the
default, and numbers are rounded down and kept within their bounds, as the contract's facts say.
The session, the leaf and the executing call are never parameters: they come from outside.

An answer is `content` (an object, or text) and `details`. No object is longer than `MAX_CHARS` as
compact JSON: the `fits_…` functions say so to whoever makes the page, so nothing is ever cut into
broken JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from sessionindex.contracts.overview import Overview, OverviewQuestion, SectionSummary
from sessionindex.contracts.read_section import Reading, ReadQuestion
from sessionindex.contracts.recovery_context import (
    Action,
    RecoveryContext,
    RecoveryQuestion,
    Request,
)
from sessionindex.contracts.session_search import SearchQuestion, SessionMatch, SessionMatches
from sessionindex.errors import ParameterError, Told
from sessionindex.fold import token
from sessionindex.jsonline import compact
from sessionindex.rendering import short
from sessionindex.wire.shapes import Shape, camel, choice, flag, shaped, string

MAX_CHARS: Final = 30_000
_LONG: Final = 1_000
_MORE: Final = "… more available; continue with next_cursor: "

Answer = dict[str, Any]


# --- parameters ----------------------------------------------------------------------------------


def _amount(default: int, most: int, least: int = 1) -> Shape:
    """A limit: rounded down and clamped; the default for what is no finite number."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return default
        try:
            number = float(value)
        except OverflowError:
            return default
        return max(least, min(most, math.floor(number))) if math.isfinite(number) else default

    return check


_SCOPE: Final = choice("active", "all")
_OVERVIEW: Final[dict[str, Shape]] = {
    "scope": _SCOPE,
    "max_sections": _amount(20, 100),
    "cursor": string,
}
_READ: Final[dict[str, Shape]] = {
    "section_id": string,
    "entry_id": string,
    "scope": _SCOPE,
    "max_entries": _amount(20, 50),
    "max_body_chars": _amount(2000, 8000, 100),
    "cursor": string,
}
_SEARCH: Final[dict[str, Shape]] = {
    "query": string,
    "scope": _SCOPE,
    "case_sensitive": flag,
    "limit": _amount(20, 50),
    "cursor": string,
}
_CONTEXT: Final[dict[str, Shape]] = {"scope": _SCOPE, "recent_error_limit": _amount(5, 20)}


def _leaf(leaf_id: str | None) -> int | None:
    """The token of a leaf; "" is the place before the first entry."""
    return None if leaf_id is None else token(leaf_id) if leaf_id else 0


def overview_question(params: Any, leaf_id: str | None) -> OverviewQuestion:
    """The question of a session_overview call; raises ParameterError."""
    given = shaped(params, _OVERVIEW)
    return OverviewQuestion(
        given.get("scope", "active"),
        _leaf(leaf_id),
        given.get("max_sections", 20),
        given.get("cursor"),
    )


def read_question(params: Any, leaf_id: str | None) -> ReadQuestion:
    """The question of a session_read_section call; raises ParameterError."""
    given = shaped(params, _READ)
    return ReadQuestion(
        given.get("scope", "active"),
        _leaf(leaf_id),
        given.get("section_id"),
        given.get("entry_id"),
        given.get("cursor"),
        given.get("max_entries", 20),
        given.get("max_body_chars", 2000),
    )


def search_question(params: Any, leaf_id: str | None) -> SearchQuestion:
    """The question of a session_search call; raises ParameterError."""
    given = shaped(params, _SEARCH)
    if "query" not in given:
        raise ParameterError("query must be a string")
    return SearchQuestion(
        given.get("scope", "active"),
        _leaf(leaf_id),
        given["query"],
        given.get("case_sensitive", False),
        given.get("limit", 20),
        given.get("cursor"),
    )


def context_question(
    params: Any, leaf_id: str | None, tool_call_id: str | None
) -> RecoveryQuestion:
    """The question of a session_recovery_context call; raises ParameterError."""
    given = shaped(params, _CONTEXT)
    return RecoveryQuestion(
        given.get("scope", "active"),
        _leaf(leaf_id),
        given.get("recent_error_limit", 5),
        token(tool_call_id) if tool_call_id else 0,
    )


# --- answers -------------------------------------------------------------------------------------


def told_answer(said: Told) -> Answer:
    """The answer of a tool that has none but a text."""
    return {
        "content": str(said),
        "details": {camel(name): value for name, value in said.details.items()},
    }


def _details(**found: Any) -> dict[str, Any]:
    return {camel(name): value for name, value in found.items() if value is not None}


def _fits(payload: Callable[[Any], Any]) -> Callable[[Any], bool]:
    return lambda result: len(compact(payload(result))) <= MAX_CHARS


def _section(section: SectionSummary) -> dict[str, Any]:
    return {
        "id": section.id,
        "label": section.label,
        "startEntryId": section.start_entry_id,
        "endEntryId": section.end_entry_id,
        "entryCount": section.entry_count,
        "roles": {short(role): count for role, count in section.roles},
        "toolCalls": section.tool_calls,
        "toolResults": section.tool_results,
        "errors": section.errors,
        "readFileCount": section.read_file_count,
        "modifiedFileCount": section.modified_file_count,
    }


def _overview(result: Overview) -> dict[str, Any]:
    return {
        "scope": result.scope,
        "session": {
            "id": result.session_id,
            "name": None if result.name is None else short(result.name, _LONG),
            "persisted": True,
            "hasParentSession": result.has_parent_session,
        },
        "counts": {
            "selectedEntries": result.selected_entries,
            "activeEntries": result.active_entries,
            "allEntries": result.all_entries,
            "sections": result.section_count,
            "compactions": result.compactions,
            "leaves": result.leaves,
            "otherBranches": result.other_branches,
        },
        "sections": [_section(section) for section in result.sections],
        "hasMore": result.has_more,
        "nextCursor": result.next_cursor,
    }


def overview_answer(result: Overview) -> Answer:
    details = _details(
        scope=result.scope,
        entry_count=result.selected_entries,
        section_count=result.section_count,
        returned_sections=len(result.sections),
        has_more=result.has_more,
        next_cursor=result.next_cursor,
    )
    return {"content": _overview(result), "details": details}


def reading_answer(result: Reading) -> Answer:
    parts = [result.title, *result.pieces]
    if result.next_cursor is not None:
        parts.append(_MORE + result.next_cursor)
    details = _details(
        scope=result.scope,
        section_id=result.section_id,
        entry_id=result.entry_id,
        entry_count=result.entry_count,
        rendered_count=len(result.pieces),
        found=True,
        source_available=True,
        has_more=result.has_more,
        truncated=result.has_more,
        next_cursor=result.next_cursor,
    )
    return {"content": "\n\n".join(parts), "details": details}


def _match(match: SessionMatch) -> dict[str, Any]:
    role = {} if match.role is None else {"role": short(match.role)}
    return {
        "entryId": match.entry_id,
        "sectionId": match.section_id,
        "type": short(match.type),
        **role,
        "timestamp": match.timestamp,
        "snippet": match.snippet,
    }


def _matches(result: SessionMatches) -> dict[str, Any]:
    return {
        "scope": result.scope,
        "query": result.query,
        "caseSensitive": result.case_sensitive,
        "totalMatches": result.total,
        "returnedMatches": len(result.matches),
        "hasMore": result.has_more,
        "nextCursor": result.next_cursor,
        "matches": [_match(match) for match in result.matches],
    }


def matches_answer(result: SessionMatches) -> Answer:
    details = _details(
        scope=result.scope,
        query=result.query,
        match_count=result.total,
        returned_count=len(result.matches),
        has_more=result.has_more,
        truncated=result.has_more,
        next_cursor=result.next_cursor,
    )
    return {"content": _matches(result), "details": details}


def _request(request: Request | None) -> dict[str, Any] | None:
    if request is None:
        return None
    return {"entryId": request.entry_id, "sectionId": request.section_id, "text": request.text}


def _action(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    told: dict[str, Any] = {"entryId": action.entry_id, "type": short(action.type)}
    if action.role is not None:
        told["role"] = short(action.role)
    if action.preview is not None:
        told["preview"] = action.preview
    if action.calls:
        told["toolCalls"] = [{"id": name, "name": tool} for name, tool in action.calls]
    return told


def _context(result: RecoveryContext) -> dict[str, Any]:
    return {
        "scope": result.scope,
        "originalUserRequest": _request(result.original_user_request),
        "latestUserInstruction": _request(result.latest_user_instruction),
        "readFiles": list(result.read_files),
        "modifiedFiles": list(result.modified_files),
        "omittedReadFiles": result.omitted_read_files,
        "omittedModifiedFiles": result.omitted_modified_files,
        "recentErrors": [
            {
                "entryId": error.entry_id,
                "sectionId": error.section_id,
                "toolCallId": error.tool_call_id,
                "toolName": error.tool_name,
                "message": error.message,
            }
            for error in result.recent_errors
        ],
        "pendingToolCalls": [
            {
                "id": call.id,
                "name": call.name,
                "entryId": call.entry_id,
                "sectionId": call.section_id,
            }
            for call in result.pending_tool_calls
        ],
        "omittedPendingToolCalls": result.omitted_pending_tool_calls,
        "lastMeaningfulAction": _action(result.last_meaningful_action),
        "compactionCount": result.compaction_count,
        "entryCount": result.entry_count,
        "sectionCount": result.section_count,
    }


def context_answer(result: RecoveryContext) -> Answer:
    details = _details(
        scope=result.scope,
        entry_count=result.entry_count,
        section_count=result.section_count,
        recent_error_count=len(result.recent_errors),
        pending_tool_call_count=len(result.pending_tool_calls),
    )
    return {"content": _context(result), "details": details}


fits_overview: Final = _fits(_overview)
fits_matches: Final = _fits(_matches)
fits_context: Final = _fits(_context)
