"""Answers in so many bytes, for clients whose window is small: pages of whole rows.

Only the MCP server offers this, for the three tools whose answers have no bound of their own. Their
parameters gain `maxBytes`, for the whole answer as compact JSON in UTF-8, and where they have none
a `cursor`; `raw` comes only where `includeRaw` asks for it. Apart from that, parameters, rows and
errors are the contract's.

- A page that would pass holds fewer rows, and `nextCursor` resumes after the last of them. `limit`
  bounds all pages of a listing together, as it does there; of a search it is the rows of a page.
- Cursors belong to the tool, the root and the parameters, of which only `maxBytes` and `includeRaw`
  may change. That of `session_entries` names a line and its bytes: rewritten, it is refused. That
  of `list_sessions` names a place in the order asked for, whatever came or went meanwhile.
- One row that alone is longer is shortened: its text (`textTruncated`), its raw line left out
  (`rawOmitted`), its last delegated runs left out and counted (`omittedSubagentSessions`).
- Warnings take a quarter at most, the rest is counted (`omittedWarnings`); those of a listing are
  of all of it and come with its first page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sessionindex import SessionIndex, pages
from sessionindex.errors import ParameterError
from sessionindex.text import compact_json, spelled
from sessionindex.timestamps import instant_ms
from sessionindex.wire import answer_schemas as answers
from sessionindex.wire import schemas
from sessionindex.wire.entries import answer_of
from sessionindex.wire.output import dumps
from sessionindex.wire.schemas import Tool
from sessionindex.wire.shapes import flag, string

DEFAULT: Final = 20_000
LEAST: Final = 2_000
MOST: Final = 1_000_000
REFUSED: Final = "Invalid or stale {} cursor for this question."

_LEAST_ROW: Final = 80  # no entry is written in fewer bytes
_DEEPEST: Final = 100  # JSON readers of clients give up at 128 levels, or at 200
_DEEPEST_RUN: Final = _DEEPEST // 2  # two levels each

Row = dict[str, Any]


def answer(index: SessionIndex, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What one of the tools of ANSWERS says, in so many bytes; raises as `SessionIndex.call`."""
    most = _bytes(params.get("maxBytes", DEFAULT))
    rest = {name: value for name, value in params.items() if name != "maxBytes"}
    return ANSWERS[tool](index, rest, most)


def _bytes(value: Any) -> int:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not LEAST <= value <= MOST or value != value // 1:
        shown = spelled(value)
        raise ParameterError(f"maxBytes must be an integer from {LEAST} to {MOST}: {shown}")
    return int(value)


# --- pages ---------------------------------------------------------------------------------------


def _size(value: Any) -> int:
    return len(dumps(value))


def _page(
    rows: Sequence[Row],
    build: Callable[[Sequence[Row]], dict[str, Any]],
    shorten: Callable[[Row, int], Row],
    most: int,
) -> dict[str, Any]:
    """The answer with as many of the rows, from the first, as fit; one at least.

    `build` makes an answer of rows, `shorten` a row of so many bytes.
    """
    count = _fitting(rows, most)
    while count > 1 and _size(build(rows[:count])) > most:
        count -= 1
    made = build(rows[:count])
    over = _size(made) - most
    if count == 1 and over > 0:
        made = build([shorten(rows[0], _size(rows[0]) - over)])
    return made


def _fitting(rows: Sequence[Row], room: int) -> int:
    """How many rows fit, but one at least where there is one."""
    for count, row in enumerate(rows):
        room -= _size(row) + 1
        if room < 0:
            return max(count, 1)
    return len(rows)


def _warned(warnings: Sequence[Row], most: int) -> dict[str, Any]:
    """The warnings of an answer, in a quarter of it."""
    count = _fitting(warnings, most // 4)
    if count == len(warnings):
        return {"warnings": warnings}
    return {"warnings": warnings[:count], "omittedWarnings": len(warnings) - count}


class _Cursor:
    """The cursors of one listing: bound to its tool, its root and its parameters."""

    def __init__(self, index: SessionIndex, tool: str, params: Mapping[str, Any]) -> None:
        """Takes `cursor` for itself; raises ParameterError where it is not of this listing."""
        self.params = {name: value for name, value in params.items() if name != "cursor"}
        self._tool = tool
        spelling = compact_json(dict(sorted(self.params.items())))
        self._question = pages.digest((index.root.path, spelling))
        self.place: dict[str, Any] | None = None
        self.given = 0
        """Rows on the pages before."""
        if "cursor" in params:
            body = pages.decode(string("cursor", params["cursor"]), tool, self._question)
            if body is None or type(body.get("given")) is not int:
                raise self.refused()
            self.place, self.given = body, body["given"]

    def refused(self) -> ParameterError:
        return ParameterError(REFUSED.format(self._tool))

    def write(self, count: int, **place: Any) -> str:
        """The cursor after `count` rows more."""
        return pages.encode(self._tool, self._question, {"given": self.given + count, **place})

    def left(self, most: int | None = None) -> dict[str, Any]:
        """The parameters with what is left of their limit, and `most` rows at most."""
        if "limit" not in self.params:
            return self.params | ({} if most is None else {"limit": most})
        limit = self.params["limit"]
        if not isinstance(limit, int | float) or limit < 1 or limit != limit // 1:
            return self.params  # for the contract to refuse
        rest = max(0, int(limit) - self.given)
        return self.params | {"limit": rest if most is None else min(rest, most)}


# --- search_sessions -----------------------------------------------------------------------------


def _search(index: SessionIndex, params: dict[str, Any], most: int) -> dict[str, Any]:
    """Cut by asking again for fewer: the cursor is the contract's own."""
    whole = index.call("search_sessions", params)
    whole |= _warned(whole["warnings"], most)
    made, hits = whole, whole["hits"]
    count = min(_fitting(hits, most - _size(whole | {"hits": []})), len(hits) - 1)
    while count >= 1 and _size(made) > most:
        again = index.call("search_sessions", params | {"limit": count, "count": "page"})
        kept = {name: again[name] for name in ("hits", "hasMore", "nextCursor")}
        made = whole | kept
        count -= 1
    return made


# --- list_sessions -------------------------------------------------------------------------------


def _list(index: SessionIndex, params: dict[str, Any], most: int) -> dict[str, Any]:
    cursor = _Cursor(index, "list_sessions", params)
    asked = dict(cursor.params)
    if cursor.place is not None:
        asked.pop("limit", None)
    whole = index.call("list_sessions", asked)
    rows: list[Row] = whole["sessions"]
    warnings = _warned(whole["warnings"], most)
    if cursor.place is not None:
        rows, warnings = _following(rows, cursor), {"warnings": []}

    def build(chosen: Sequence[Row]) -> dict[str, Any]:
        more = len(chosen) < len(rows)
        last = {name: chosen[-1][name] for name in _KEPT} if more else {}
        token = cursor.write(len(chosen), after=last) if more else None
        return {"sessions": list(chosen), **warnings, "nextCursor": token}

    return _page([_shallow(row) for row in rows], build, _without_runs, most)


_KEPT: Final = ("timestamp", "path", "cwd", "id")
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "timestamp": ("timestamp", "path"),
    "cwd": ("cwd", "timestamp", "path"),
    "path": ("path",),
    "id": ("id", "timestamp", "path"),
}


def _following(rows: Sequence[Row], cursor: _Cursor) -> list[Row]:
    """The rows after the place of the cursor, in their order, and as many as the limit leaves."""
    names = _KEYS[cursor.params.get("sortBy", "timestamp")]
    last = (cursor.place or {}).get("after")
    if not isinstance(last, dict) or not all(isinstance(last.get(name), str) for name in _KEPT):
        raise cursor.refused()
    here = _key(last, names)
    if cursor.params.get("sortDirection") == "desc":
        found = [row for row in rows if _key(row, names) < here]
    else:
        found = [row for row in rows if _key(row, names) > here]
    return found[: cursor.left().get("limit")]


def _key(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(
        (instant_ms(row[name]) or 0) if name == "timestamp" else row[name] for name in names
    )


def _runs(row: Row) -> Iterator[tuple[int, Row]]:
    """A session and the runs below it, each with its depth; there may be hundreds of levels."""
    todo = [(0, row)]
    while todo:
        depth, one = todo.pop()
        yield depth, one
        todo += [(depth + 1, child) for child in one["subagentSessions"]]


def _shallow(row: Row) -> Row:
    """The row without runs that are nested deeper than a client can read."""
    if max(depth for depth, _ in _runs(row)) <= _DEEPEST_RUN:
        return row
    return _without_runs(row, 0)


def _without_runs(row: Row, room: int) -> Row:
    """The row with as many of its runs, each with all below it, as fit."""
    children: list[Row] = row["subagentSessions"]
    short = row | {"subagentSessions": [], "omittedSubagentSessions": 0}
    room -= _size(short) + 9  # digits of the number
    count = 0
    while count < len(children) and (room := room - _size(children[count]) - 1) >= 0:
        count += 1
    omitted = sum(sum(1 for _ in _runs(child)) for child in children[count:])
    omitted += row.get("omittedSubagentSessions", 0)
    return short | {
        "subagentSessions": children[:count],
        "omittedSubagentSessions": omitted,
    }


# --- session_entries -----------------------------------------------------------------------------


def _entries(index: SessionIndex, params: dict[str, Any], most: int) -> dict[str, Any]:
    with_raw = flag("includeRaw", params.pop("includeRaw", False))
    cursor = _Cursor(index, "session_entries", params)
    first = cursor.place is None
    # More rows than these cannot be on a page, so no more are read.
    asked = cursor.left(most // _LEAST_ROW)
    if cursor.place is not None:
        # The last row again, to see that it still is what it was.
        again = {"startLineNo": cursor.place.get("line"), "limit": asked["limit"] + 1}
        asked = asked | again
    result = index.entries_answer(asked)
    if cursor.place is not None:
        if not result.rows or cursor.place.get("bytes") != _digest(result.rows[0].line):
            raise cursor.refused()
        result = replace(result, rows=result.rows[1:])
    whole = answer_of(result)
    warnings = _warned(whole["warnings"], most) if first else {"warnings": []}
    rows = [_bare(row, with_raw) for row in whole["entries"]]

    def build(chosen: Sequence[Row]) -> dict[str, Any]:
        token = None
        if len(chosen) < len(rows):
            last = result.rows[len(chosen) - 1]
            token = cursor.write(len(chosen), line=last.entry.line_no, bytes=_digest(last.line))
        return {"entries": list(chosen), **warnings, "nextCursor": token}

    return _page(rows, build, _cut, most)


def _digest(line: bytes) -> str:
    return pages.digest((line,))


def _bare(row: Row, with_raw: bool) -> Row:
    if with_raw and _depth(row["raw"]) <= _DEEPEST:
        return row
    bare = {name: value for name, value in row.items() if name != "raw"}
    return bare | ({"rawOmitted": True} if with_raw else {})


def _depth(value: Any) -> int:
    deepest, todo = 0, [(1, value)]
    while todo:
        depth, one = todo.pop()
        deepest = max(deepest, depth)
        members = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        todo += [(depth + 1, member) for member in members]
    return deepest


def _cut(row: Row, room: int) -> Row:
    """The row without its raw line and, where that is not enough, with only some of its text."""
    if "raw" in row:
        row = _bare(row, False) | {"rawOmitted": True}
    text = row["text"]
    if text is None or _size(row) <= room:
        return row
    short = row | {"text": "", "textTruncated": True}
    room -= _size(short)
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(text[:middle]) - 2 <= room else (low, middle - 1)
    return short | {"text": text[:low]}


# --- what clients are told -----------------------------------------------------------------------

ANSWERS: Final = {"search_sessions": _search, "list_sessions": _list, "session_entries": _entries}

_MAX_BYTES: Final = schemas.whole(
    "Bytes of the answer; what does not fit comes with the next page.", LEAST, MOST, default=DEFAULT
)
_CURSOR: Final = schemas.text("nextCursor of the page before; everything else as it was.")
_RAW: Final = schemas.flag("Also the whole line of the file of each entry (long).")
_OMITTED: Final = {"omittedWarnings": answers.COUNT}


def offered(tool: Tool) -> Tool:
    """The tool with the parameters and the answer that it has here."""
    if tool.name not in ANSWERS:
        return tool
    more = {"cursor": _CURSOR} | ({"includeRaw": _RAW} if tool.name == "session_entries" else {})
    more = tool.parameters["properties"] | more | {"maxBytes": _MAX_BYTES}
    return replace(
        tool, parameters=tool.parameters | {"properties": more}, result=_result(tool.result)
    )


def _result(schema: answers.Schema) -> answers.Schema:
    properties = schema["properties"] | {"nextCursor": answers.CURSOR} | _OMITTED
    if "entries" in properties:
        told = answers.ENTRY["properties"] | {"textTruncated": answers.FLAG}
        told |= {"rawOmitted": answers.FLAG}
        entry = answers.giving(told, "raw", "textTruncated", "rawOmitted")
        properties["entries"] = answers.listed(entry)
    required = [*schema["required"], "nextCursor"]
    return schema | {"properties": properties, "required": list(dict.fromkeys(required))}
