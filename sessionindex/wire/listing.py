"""list_sessions on the wire: its parameters and its answer.

Unknown names first, then shapes, then what the bounds mean and the limit, in the order of the
contract: startTimestamp, endTimestamp, a range that ends before it starts, limit. All of it before
anything is walked.
"""

from __future__ import annotations

from typing import Any, Final

from sessionindex.contracts.list_sessions import Listing, ListResult, SessionRow
from sessionindex.wire.shapes import (
    Shape,
    anything,
    bounds,
    choice,
    flag,
    positive,
    shaped,
    strings,
)

SHAPES: Final[dict[str, Shape]] = {
    "cwds": strings,
    "cwdMatch": choice("exact", "sibling-prefix"),
    "includeCurrentSession": flag,
    "startTimestamp": anything,
    "endTimestamp": anything,
    "sortBy": choice("timestamp", "cwd", "path", "id"),
    "sortDirection": choice("asc", "desc"),
    "limit": anything,
}


def question_of(params: Any) -> Listing:
    """The checked question of a list_sessions call; raises ParameterError."""
    given = shaped(params, SHAPES)
    span = bounds(given)
    return Listing(
        cwds=given.get("cwds"),
        cwd_match=given.get("cwdMatch", "exact"),
        include_current=given.get("includeCurrentSession", False),
        window=span,
        sort_by=given.get("sortBy", "timestamp"),
        descending=given.get("sortDirection") == "desc",
        limit=positive("limit", given["limit"]) if "limit" in given else None,
    )


def answer_of(result: ListResult) -> dict[str, Any]:
    """A ListResult as the contract's JSON."""
    return {
        "sessions": [_session(row) for row in result.sessions],
        "warnings": [{"path": one.path, "reason": one.reason} for one in result.warnings],
    }


def _session(row: SessionRow) -> dict[str, Any]:
    launched: list[dict[str, Any]] = []
    answer: dict[str, Any] = {
        "id": row.id,
        "path": row.path,
        "timestamp": row.timestamp,
        "cwd": row.cwd,
        "subagentSessions": launched,
    }
    if row.parent_session_path is not None:
        answer["parentSessionPath"] = row.parent_session_path
    for child in row.children:  # no comprehension: one frame a level, and there may be hundreds
        launched.append(_session(child))
    return answer
