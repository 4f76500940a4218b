"""The contracts' JSON <-> frozen values: names, shapes, spelling.

Everything a caller sends is checked here, once, before anything is opened: unknown names first,
then shapes, then what a value means, each with a fixed message. Nothing is coerced, but for a
whole number written with a fraction of zero. Inside, no function doubts its arguments.

Python is snake_case, JSON camelCase: this is the only module that turns one into the other.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import orjson

from sessionindex.contracts.search_sessions import Hit, Question, SearchResult
from sessionindex.errors import ParameterError
from sessionindex.model import DEFAULT_KINDS, KINDS, Entry, Kind
from sessionindex.ordering import Key
from sessionindex.status import Status
from sessionindex.text import compact_json, spelled
from sessionindex.timestamps import window

Shape = Callable[[str, Any], Any]

# --- shapes --------------------------------------------------------------------------------------


def strings(name: str, value: Any) -> tuple[str, ...]:
    """One or more non-empty strings."""
    if (
        not isinstance(value, list | tuple)
        or not value
        or not all(isinstance(item, str) and item for item in value)
    ):
        raise ParameterError(f"{name} must be a list of non-empty strings")
    return tuple(value)


def choice(*words: str) -> Shape:
    """One of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ParameterError(f"{name} must be one of {', '.join(words)}")
        return value

    return check


def choices(*words: str) -> Shape:
    """One or more of these words."""

    def check(name: str, value: Any) -> tuple[str, ...]:
        for word in strings(name, value):
            choice(*words)(name, word)
        return tuple(value)

    return check


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be true or false")
    return value


def positive(name: str, value: Any) -> int:
    """A whole number from 1 on; 3.0 is one."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or value < 1 or value != value // 1:
        raise ParameterError(f"{name} must be a positive integer: {spelled(value)}")
    return int(value)


def anything(name: str, value: Any) -> Any:
    """For values whose meaning is checked in the facts' own words later."""
    return value


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be a string")
    return value


def shaped(params: Any, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """The parameters of a call, each of a known name and of its shape."""
    if not isinstance(params, Mapping):
        raise ParameterError("parameters must be an object")
    for name in params:
        if name not in shapes:
            raise ParameterError(f"unknown parameter: {spelled(name)}")
    return {name: shapes[name](name, params[name]) for name in shapes if name in params}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def dumps(value: Any, *, pretty: bool = False) -> bytes:
    """JSON for output; what a terminal could take for a command is written as an escape."""
    try:
        option = orjson.OPT_INDENT_2 if pretty else None
        data = orjson.dumps(value, default=_fragment, option=option)
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        data = compact_json(value).encode("utf-8")
    if data.isascii() and b"\x7f" not in data:
        return data
    text = data.decode("utf-8", "replace")
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8")


def _fragment(value: Any) -> Any:
    if isinstance(value, Raw):
        return orjson.Fragment(value)
    raise TypeError


# DEL and C1 (a terminal may take them for ESC [), and marks that turn the text's direction.
_CONTROLS: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


# --- search_sessions -----------------------------------------------------------------------------

CURSOR_REFUSED: Final = "Invalid or stale search_sessions cursor for this question."

SEARCH_SHAPES: Final[dict[str, Shape]] = {
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
    "cursor": string,
}


def search_question(params: Any) -> tuple[Question, str | None]:
    """The question of a search_sessions call, and its cursor, still to be opened.

    `limit` and `count` are as given: where they are missing, no limit and an exact count. The
    paths in it are the caller's. Raises ParameterError.
    """
    given = shaped(params, SEARCH_SHAPES)
    if "terms" not in given:
        raise ParameterError("terms must be a list of non-empty strings")
    bounds = window(given.get("startTimestamp"), given.get("endTimestamp"))
    for path in given.get("sessionPaths", ()):
        if not os.path.isabs(path):
            raise ParameterError(f"sessionPaths must be absolute paths: {path}")
    roles = given.get("messageRoles")
    kinds = set(given.get("in", DEFAULT_KINDS))
    if roles and "system" in roles:
        kinds.add("system")
    question = Question(
        terms=given["terms"],
        mode=given.get("match", "any"),
        case_sensitive=given.get("caseSensitive", False),
        kinds=cast(tuple[Kind, ...], tuple(kind for kind in KINDS if kind in kinds)),
        cwds=given.get("cwds"),
        cwd_match=given.get("cwdMatch", "exact"),
        projects=given.get("projects"),
        session_paths=given.get("sessionPaths"),
        types=given.get("types"),
        roles=roles,
        window=bounds,
        include_current=given.get("includeCurrentSession", False),
        include_subagents=given.get("includeSubagents", True),
        unique=given.get("unique", False),
        order=given.get("order", "newest"),
        limit=given.get("limit"),
        exact=given.get("count", "exact") == "exact",
        after=None,
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


class Raw(bytes):
    """A JSON value that is written as these bytes of a file."""


def entry_row(entry: Entry, text: str | None, line: bytes) -> dict[str, Any]:
    """An entry as a row of session_entries; `raw` is the file's own bytes."""
    return {
        "lineNo": entry.line_no,
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
        "type": entry.type,
        "messageRole": entry.role,
        "text": text,
        "raw": Raw(line.strip(b" \t\r\n")),
    }


def status_answer(status: Status) -> dict[str, Any]:
    """A Status as JSON; instants as ISO 8601."""
    writer = status.writer
    return {
        "root": status.root,
        "layout": status.layout,
        "indexDir": status.index_dir,
        "sessions": status.sessions,
        "entries": status.entries,
        "bytes": status.bytes,
        "indexBytes": status.index_bytes,
        "format": status.format,
        "fresh": status.fresh,
        "behind": status.behind,
        "stale": status.stale,
        "new": status.new,
        "pendingBytes": status.pending_bytes,
        "lastRefresh": iso(status.last_refresh),
        "problems": dict(status.problems),
        "writer": writer and {"pid": writer.pid, "since": iso(writer.since), "kind": writer.kind},
        "damage": status.damage,
    }


def iso(instant: int | None) -> str | None:
    """Milliseconds as an ISO 8601 instant in UTC."""
    if instant is None:
        return None
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(instant // 1000))
    return f"{stamp}.{instant % 1000:03}Z"


def search_answer(result: SearchResult) -> dict[str, Any]:
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
