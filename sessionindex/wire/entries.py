"""session_entries on the wire: its parameters and its rows.

Shapes come first (filters are lists of strings), then the contract's own order: line bounds,
timestamps, search, limit, and the path last. A row's `raw` is either the parsed value (for callers
in Python) or the file's own bytes (for everything that is printed).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from sessionindex.contracts.session_entries import EntriesResult, Question
from sessionindex.errors import ParameterError
from sessionindex.model import Entry
from sessionindex.text import spelled
from sessionindex.wire.output import Raw
from sessionindex.wire.shapes import Shape, anything, bounds, flag, positive, shaped, strings


def _search(name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ParameterError(f"{name} must be an object")
    for inner in value:
        if inner not in ("terms", "caseSensitive"):
            raise ParameterError(f"unknown parameter: {name}.{spelled(inner)}")
    if "caseSensitive" in value:
        flag(f"{name}.caseSensitive", value["caseSensitive"])
    return value


SHAPES: Final[dict[str, Shape]] = {
    "sessionPath": anything,
    "startLineNo": anything,
    "endLineNo": anything,
    "ids": strings,
    "parentIds": strings,
    "startTimestamp": anything,
    "endTimestamp": anything,
    "types": strings,
    "messageRoles": strings,
    "search": _search,
    "limit": anything,
}


def question_of(params: Any) -> Question:
    """The question of a session_entries call; raises ParameterError."""
    given = shaped(params, SHAPES)
    start, end = _number("startLineNo", given), _number("endLineNo", given)
    if start is not None and end is not None and end < start:
        raise ParameterError(f"endLineNo {spelled(end)} is before startLineNo {spelled(start)}")
    span = bounds(given)
    search = given.get("search", {})
    terms = _terms(search.get("terms", ())) if "search" in given else ()
    limit = _number("limit", given)
    path = given.get("sessionPath")
    if not isinstance(path, str) or not path:
        raise ParameterError("sessionPath must be a non-empty string")
    if not os.path.isabs(path):
        raise ParameterError(f"sessionPath must be an absolute path: {path}")
    return Question(
        path,
        start,
        end,
        _set(given.get("ids")),
        _set(given.get("parentIds")),
        span,
        _set(given.get("types")),
        _set(given.get("messageRoles")),
        terms,
        search.get("caseSensitive", False),
        limit,
    )


def _number(name: str, given: Mapping[str, Any]) -> int | None:
    return positive(name, given[name]) if name in given else None


def _set(names: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _terms(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ParameterError("search.terms must hold at least one term")
    for index, term in enumerate(value):
        if not isinstance(term, str) or not term:
            raise ParameterError(f"search.terms[{index}] must be a non-empty string")
    return tuple(value)


def answer_of(result: EntriesResult, *, own_bytes: bool = False) -> dict[str, Any]:
    """An EntriesResult as the contract's JSON; `own_bytes` for output that is written."""
    return {
        "entries": [
            entry_row(row.entry, row.text, Raw(row.line.strip(BLANK)) if own_bytes else None)
            for row in result.rows
        ],
        "warnings": [
            {"lineNo": one.line_no, "code": one.code, "reason": one.reason}
            for one in result.problems
        ],
    }


BLANK: Final = b" \t\r\n"
"""What may stand around a JSON value on its line."""


def entry_row(entry: Entry, text: str | None, raw: Raw | None) -> dict[str, Any]:
    """An entry as a row of session_entries; `raw` None is its parsed value."""
    return {
        "lineNo": entry.line_no,
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
        "type": entry.type,
        "messageRole": entry.role,
        "text": text,
        "raw": entry.value if raw is None else raw,
    }
