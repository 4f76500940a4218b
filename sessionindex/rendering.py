"""An entry in the words of the recovery tools: as search sees it, as a label, as it is read.

Text as search sees it, its blocks joined by line breaks: what is said, then each call (its name,
its arguments as compact JSON), then `tool_result name#id`. Thinking, images, details of results,
system sections, shell commands and extension data are not in it.

A rendered entry is a heading and what it holds; kinds that are not known are shown as the JSON of
their own fields. Lengths are characters. Where a result of the web tools was delivered in a
compact form, its structured details, which nobody else kept, are rendered with it.
"""

from __future__ import annotations

from typing import Any, Final

from sessionindex import signals
from sessionindex.fold import folded
from sessionindex.snippet import first_match
from sessionindex.text import BLANKS, compact_json, is_blank, number, preview, squeeze

LABEL: Final = 120
SNIPPET: Final = 360
_JSON: Final = 8000
_NAME: Final = 200
_LARGEST: Final = 1 << 63
_CUT: Final = "\n…[truncated]"
_CUT_ROOM: Final = 20
_WEB: Final = frozenset({"web_search", "web_fetch"})
_COMPACT: Final = "web-recoverable-compact"
_FRAME: Final = frozenset({"id", "parentId", "timestamp", "type"})

Value = dict[str, Any]


def truncate(text: str, limit: int) -> str:
    """The text, or its beginning and a line that says that more was there."""
    return text if len(text) <= limit else text[: limit - _CUT_ROOM] + _CUT


def short(name: str, limit: int = _NAME) -> str:
    """A name for a title or a message: a longer one than any real name is cut."""
    return name if len(name) <= limit else name[: limit - 1] + "…"


def timestamp(value: Value) -> str | int | float | None:
    """The stored timestamp where it is a string or a number."""
    stamp = value.get("timestamp")
    if isinstance(stamp, str):
        return short(stamp)
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or abs(stamp) > _LARGEST:
        return None
    return stamp


# --- for search and labels -----------------------------------------------------------------------


def search_text(value: Value) -> str:
    """The text of an entry as search sees it."""
    parts = [signals.words(value)]
    for call in signals.calls(value):
        parts.append(call.name)
        if "arguments" in call.block:
            parts.append(compact_json(call.block["arguments"]))
    if signals.role(value) == "toolResult":
        parts.append(_result(value))
    return "\n".join(part for part in parts if part)


def _result(value: Value) -> str:
    name, answers = signals.tool(value), signals.answered(value)
    return f"tool_result {name or 'unknown'}#{answers or 'unknown'}"


def label(value: Value) -> str:
    """What a section that begins with this entry is called."""
    kind = value["type"]
    if kind in signals.SUMMARIES:
        head = "Compaction" if kind == "compaction" else "Branch summary"
        return f"{head}: {preview(signals.words(value), LABEL) or short(value['id'])}"
    if signals.role(value) == "user":
        return preview(search_text(value), LABEL) or "User message"
    return preview(search_text(value), LABEL) or f"{short(kind)} {short(value['id'])}"


def snippet(text: str, query: str, case_sensitive: bool) -> str | None:
    """A window around the first match; None where there is none.

    The window is laid around the place in the lower-cased text, as the contract's facts have it,
    unless characters that grow in lower case move the match out of it.
    """
    needle = folded(query, case_sensitive)
    place = folded(text, case_sensitive).find(needle)
    if place < 0:
        return None
    start = max(0, place - (SNIPPET - len(needle)) // 2)
    end = min(len(text), start + SNIPPET)
    true = first_match(text, (query,), case_sensitive)
    if true is not None and (true[1] <= start or true[0] >= end):
        start = max(0, true[0] - (SNIPPET - len(needle)) // 2)
        end = min(len(text), start + SNIPPET)
    shown = squeeze(text[start:end])
    return f"{'…' if start > 0 else ''}{shown}{'…' if end < len(text) else ''}"


# --- for reading ---------------------------------------------------------------------------------


def rendered(value: Value) -> str:
    """A whole entry: its heading, and what it holds."""
    kind = value["type"]
    if signals.message(value) is not None:
        lines = _message(value)
    elif kind == "compaction":
        lines = [signals.words(value), *_named(value, "firstKeptEntryId"), *_tokens(value)]
    elif kind == "branch_summary":
        lines = [signals.words(value), *_named(value, "fromId")]
    elif kind == "custom_message":
        lines = [signals.words(value)]
    else:
        own = {name: held for name, held in value.items() if name not in _FRAME}
        lines = [truncate(compact_json(own), _JSON)] if own else []
    return "\n".join((heading(value), *lines))


def heading(value: Value) -> str:
    """`[id] timestamp type role`, without what is missing."""
    stamp = timestamp(value)
    if isinstance(stamp, int | float):
        stamp = number(stamp) if stamp else None
    parts = (f"[{value['id']}]", stamp, value["type"], signals.role(value))
    return " ".join(part for part in parts if part)


def _message(value: Value) -> list[str]:
    said = signals.words(value)
    lines = [said] if said else []
    for call in signals.calls(value):
        given = compact_json(call.block["arguments"]) if "arguments" in call.block else "undefined"
        lines.append(f"tool_call {call.name}#{call.id} {given}")
    held = signals.message(value) or {}
    if held.get("role") == "toolResult":
        lines.append(_result(value) + (" error" if held.get("isError") is True else ""))
        lines += _recoverable(held)
    return lines


def _recoverable(held: Value) -> list[str]:
    """The details of a web result of which the model saw a compact form only."""
    name, details = held.get("toolName"), held.get("details")
    if not (isinstance(name, str) and name.lower() in _WEB and isinstance(details, dict)):
        return []
    gateway = details.get("contextGateway")
    if not isinstance(gateway, dict) or gateway.get("representation") != _COMPACT:
        return []
    return ["recoverable_raw_details:", compact_json(details)]


def _named(value: Value, field: str) -> list[str]:
    held = value.get(field)
    return [f"{field}: {held}"] if isinstance(held, str) else []


def _tokens(value: Value) -> list[str]:
    held = value.get("tokensBefore")
    if isinstance(held, bool) or not isinstance(held, int | float):
        return []
    return [f"tokensBefore: {number(held)}"]


def trimmed(query: str, limit: int) -> str:
    """A query as it is asked: without white space around it, cut to `limit` characters."""
    return query.strip(BLANKS)[:limit]


def said(value: Value, limit: int) -> str | None:
    """What an entry says, on one line of at most `limit` characters; None where that is nothing."""
    words = signals.words(value)
    return None if is_blank(words) else preview(words, limit)
