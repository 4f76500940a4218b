"""search_sessions on the wire: its parameters, its place in a cursor, its answer.

The order of the checks is that of all contracts: unknown names, shapes, then meaning (bounds, then
paths). A cursor is opened by the library, which knows what question it must belong to; here is only
what one holds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, cast

from sessionindex.contracts.search_sessions import Hit, Question, SearchResult
from sessionindex.errors import ParameterError
from sessionindex.model import DEFAULT_KINDS, KINDS, Kind
from sessionindex.ordering import Key
from sessionindex.wire.shapes import (
    Shape,
    anything,
    bounds,
    choice,
    choices,
    filled,
    flag,
    positive,
    shaped,
    string,
    strings,
)

CURSOR_REFUSED: Final = "Invalid or stale search_sessions cursor for this question."

SHAPES: Final[dict[str, Shape]] = {
    "terms": strings,
    "match": choice("any", "all", "session"),
    "caseSensitive": flag,
    "in": choices(*KINDS),
    "cwds": strings,
    "cwdMatch": choice("exact", "sibling-prefix"),
    "projects": strings,
    "sessionPaths": strings,
    "types": strings,
    "messageRoles": strings,
    "startTimestamp": anything,
    "endTimestamp": anything,
    "includeCurrentSession": flag,
    "includeSubagents": flag,
    "unique": flag,
    "order": choice("newest", "oldest", "path"),
    "limit": positive,
    "count": choice("page", "exact"),
    "branch": choice("active", "abandoned", "any"),
    "compacted": choice("hidden", "visible", "any"),
    "tools": strings,
    "errors": flag,
    "touched": filled,
    "cursor": string,
}


def question_of(params: Any) -> tuple[Question, str | None]:
    """The question of a search_sessions call, and its cursor, still to be opened.

    `limit` and `count` are as given: where they are missing, no limit and an exact count. The
    paths in it are the caller's. Raises ParameterError.
    """
    given = shaped(params, SHAPES)
    asked = {name: value for name in ("branch", "compacted") if (value := given.get(name)) != "any"}
    if "terms" not in given and not any(
        (*asked.values(), *map(given.get, ("tools", "errors", "touched")))
    ):
        raise ParameterError("terms must be a list of non-empty strings")
    span = bounds(given)
    for path in given.get("sessionPaths", ()):
        if not os.path.isabs(path):
            raise ParameterError(f"sessionPaths must be absolute paths: {path}")
    roles = given.get("messageRoles")
    kinds = set(given.get("in", DEFAULT_KINDS))
    if roles and "system" in roles:
        kinds.add("system")
    question = Question(
        terms=given.get("terms", ()),
        mode=given.get("match", "any") if "terms" in given else "any",
        case_sensitive=given.get("caseSensitive", False),
        kinds=cast(tuple[Kind, ...], tuple(kind for kind in KINDS if kind in kinds)),
        cwds=given.get("cwds"),
        cwd_match=given.get("cwdMatch", "exact"),
        projects=given.get("projects"),
        session_paths=given.get("sessionPaths"),
        types=given.get("types"),
        roles=roles,
        window=span,
        include_current=given.get("includeCurrentSession", False),
        include_subagents=given.get("includeSubagents", True),
        unique=given.get("unique", False),
        order=given.get("order", "newest"),
        limit=given.get("limit"),
        exact=given.get("count", "exact") == "exact",
        after=None,
        branch=asked.get("branch"),
        compacted=asked.get("compacted"),
        tools=given.get("tools"),
        errors=given.get("errors", False),
        touched=given.get("touched"),
    )
    return question, given.get("cursor")


def place(body: Mapping[str, Any]) -> Key | None:
    """The key that a cursor holds, or None."""
    found = body.get("after")
    if not (isinstance(found, list) and len(found) == 3):
        return None
    instant, path, line_no = found
    if not (isinstance(instant, int) and isinstance(path, str) and isinstance(line_no, int)):
        return None
    if not path.isascii() and path != path.encode("utf-8", "replace").decode("utf-8"):
        return None
    return instant, path, line_no


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "sessionPath": hit.session_path,
        "sessionId": hit.session_id,
        "cwd": hit.cwd,
        "sessionTimestamp": hit.session_timestamp,
        "lineNo": hit.line_no,
        "entryId": hit.entry_id,
        "timestamp": hit.timestamp,
        "type": hit.type,
        "messageRole": hit.message_role,
        "kind": hit.kind,
        "snippet": hit.snippet,
        "matches": [list(span) for span in hit.matches],
    }


def answer_of(result: SearchResult) -> dict[str, Any]:
    """A SearchResult as the contract's JSON."""
    coverage = result.coverage
    return {
        "hits": [_hit(hit) for hit in result.hits],
        "total": result.total,
        "sessions": result.sessions,
        "hasMore": result.has_more,
        "nextCursor": result.next_cursor,
        "coverage": {
            "files": coverage.files,
            "fresh": coverage.fresh,
            "behind": coverage.behind,
            "stale": coverage.stale,
            "new": coverage.new,
            "scannedBytes": coverage.scanned_bytes,
            "skipped": coverage.skipped,
        },
        "warnings": [{"path": one.path, "reason": one.reason} for one in result.warnings],
    }
