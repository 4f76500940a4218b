"""A parsed line -> Entry or Problem, and the one table that says where each kind of text is.

The minimum shape is the contract's: an object with a non-empty `type` that is not `session`, and a
readable timestamp; `id` and `parentId` count where they are non-empty strings and the file's
version gives durable ones (2 and later).

Kinds of text (a hit names the first that matched):

- `text`: what a person reads: the contract's text of an entry, but for the two below;
- `tools`: calls (name, arguments as compact JSON) and results (`tool_result name#id`), and each
  argument string decoded where JSON would escape it, so that code is found as it was written;
- `shell`: commands typed by the user and their output;
- `thinking`: the model's visible reasoning;
- `details`: structured results and extension data, as compact JSON and decoded strings;
- `system`: system prompts.

The text of a kind is its blocks joined by line breaks. Images and signatures are never in it:
of `details`, base64 of image objects and signature fields are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from sessionindex import jsonline, timestamps
from sessionindex.model import Entry, Kind, Line, Problem
from sessionindex.text import compact_json

INVALID_JSON: Final = "invalid_json"
INVALID_ENTRY: Final = "invalid_entry"


REASONS: Final = (
    (INVALID_JSON, "line is blank"),
    (INVALID_JSON, jsonline.INVALID),
    (INVALID_JSON, jsonline.TOO_DEEP),
    (INVALID_ENTRY, "line is not a JSON object"),
    (INVALID_ENTRY, "entry has no type"),
    (INVALID_ENTRY, "a session header belongs on line 1, not line {line_no}"),
    (INVALID_ENTRY, "entry has no readable timestamp"),
)
"""Every reason why a line is no entry, in an order that the index may keep as numbers."""


def problem(line_no: int, number: int) -> Problem:
    """The problem of a line by the number of its reason."""
    code, reason = REASONS[number]
    return Problem(line_no, code, reason.format(line_no=line_no))


def reason_number(found: Problem) -> int:
    """The number of a problem's reason."""
    spelled = found.reason.replace(f"not line {found.line_no}", "not line {line_no}")
    return REASONS.index((found.code, spelled))


def parse(line: Line, version: int) -> Entry | Problem:
    """The entry of a line after the header, of a file whose header has this version."""
    try:
        value = jsonline.value(line.data)
    except jsonline.Unreadable as error:
        return Problem(line.line_no, INVALID_JSON, error.reason)
    return understand(value, line.line_no, version)


def understand(value: Any, line_no: int, version: int) -> Entry | Problem:
    """The entry that a parsed value is, with the contract's checks in their order."""
    if not isinstance(value, dict):
        return problem(line_no, 3)
    kind = value.get("type")
    if not isinstance(kind, str) or not kind:
        return problem(line_no, 4)
    if kind == "session":
        return problem(line_no, 5)
    stamp = value.get("timestamp")
    moment = timestamps.stored(stamp) if isinstance(stamp, str) else None
    if not isinstance(stamp, str) or moment is None:
        return problem(line_no, 6)
    durable = version >= 2
    return Entry(
        line_no,
        _name(value.get("id")) if durable else None,
        _name(value.get("parentId")) if durable else None,
        stamp,
        moment[0],
        moment[1],
        kind,
        _role(value) if kind == "message" else None,
        value,
    )


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _role(value: dict[str, Any]) -> str | None:
    message = value.get("message")
    return _name(message.get("role")) if isinstance(message, dict) else None


# --- the contract's text -----------------------------------------------------------------------


def content(value: Any) -> str | None:
    """A string, or the text blocks of an array joined by line breaks; None where nothing is."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        texts = [
            block["text"]
            for block in value
            if isinstance(block, dict) and block.get("type") == "text" and _name(block.get("text"))
        ]
        return "\n".join(texts) if texts else None
    return None


def _array_index(name: str) -> int | None:
    """JavaScript keeps keys that are array indexes first, in ascending order."""
    if len(name) > 10 or not (name.isascii() and name.isdigit()) or (name[0] == "0" != name):
        return None
    index = int(name)
    return index if index <= 4294967294 else None


def _system(message: dict[str, Any]) -> str | None:
    texts = [content(message.get("content"))]
    sections = message.get("sections")
    if isinstance(sections, dict):
        indexed = sorted(
            (index, text)
            for name, text in sections.items()
            if (index := _array_index(name)) is not None and _name(text)
        )
        texts += [text for _, text in indexed]
        texts += [text for name, text in sections.items() if _array_index(name) is None]
    found = [text for text in texts if isinstance(text, str) and text]
    return "\n\n".join(found) if found else None


def _content_of(message: dict[str, Any]) -> str | None:
    return content(message.get("content"))


def _field(name: str) -> Callable[[dict[str, Any]], str | None]:
    return lambda value: _name(value.get(name))


_OF_ROLE: Final[dict[str, Callable[[dict[str, Any]], str | None]]] = {
    "user": _content_of,
    "assistant": _content_of,
    "toolResult": _content_of,
    "custom": _content_of,
    "system": _system,
    "bashExecution": _field("command"),
    "branchSummary": _field("summary"),
    "compactionSummary": _field("summary"),
}


def _replacement(value: dict[str, Any]) -> str | None:
    replacement = value.get("replacement")
    return content(replacement.get("content")) if isinstance(replacement, dict) else None


_OF_TYPE: Final[dict[str, Callable[[dict[str, Any]], str | None]]] = {
    "custom_message": _content_of,
    "compaction": _field("summary"),
    "branch_summary": _field("summary"),
    "context_edit": _replacement,
    "session_info": _field("name"),
    "usage": _field("note"),
    "label": _field("label"),
}


def text(entry: Entry) -> str | None:
    """The contract's `text` of an entry; None where it has none."""
    if entry.type == "message":
        reader = _OF_ROLE.get(entry.role or "")
        return reader(entry.value["message"]) if reader else None
    reader = _OF_TYPE.get(entry.type)
    return reader(entry.value) if reader else None


# --- the kinds of search -----------------------------------------------------------------------

_ESCAPED: Final = '["\\\\\x00-\x1f\ud800-\udfff]'  # compiled at its first use
_SIGNATURES: Final = frozenset({"thinkingSignature", "textSignature", "thoughtSignature"})


Blocks = tuple[list[str], list[str]]
"""Blocks of text, then strings that stand in one of them as JSON and are text as they are too."""


def is_escaped(string: str) -> bool:
    """Whether JSON shows a string otherwise than it is; the fast tests first."""
    if "\n" in string or '"' in string or "\\" in string:
        return True
    return not string.isprintable() and re.search(_ESCAPED, string) is not None


def json_blocks(value: Any) -> Blocks:
    """A JSON value as compact JSON, and the strings in it that JSON does not show as they are."""
    decoded: list[str] = []
    has_decimals = False
    todo = [value]
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is str:
            if is_escaped(item):
                decoded.append(item)
        elif kind is dict:
            todo.extend(reversed(item.values()))
        elif kind is list:
            todo.extend(reversed(item))
        elif kind is float:
            has_decimals = True
    # orjson spells all but decimals as JavaScript does.
    return [compact_json(value) if has_decimals else jsonline.compact(value)], decoded


def _blocks(entry: Entry, kind: str) -> Iterator[dict[str, Any]]:
    """The content blocks of one type of an assistant's message."""
    if entry.role == "assistant":
        blocks = entry.value["message"].get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("type") == kind:
                yield block


def calls(entry: Entry) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls of an entry: the name of each, and its whole block."""
    blocks = _blocks(entry, "toolCall")
    return [(block["name"], block) for block in blocks if isinstance(block.get("name"), str)]


def _tools(entry: Entry) -> Blocks:
    if entry.role == "toolResult":
        message = entry.value["message"]
        name = _name(message.get("toolName")) or "unknown"
        return [f"tool_result {name}#{_name(message.get('toolCallId')) or 'unknown'}"], []
    texts: list[str] = []
    decoded: list[str] = []
    for name, call in calls(entry):
        texts.append(name)
        if "arguments" in call:
            spelled, strings = json_blocks(call["arguments"])
            texts += spelled
            decoded += strings
    return texts, decoded


def _shell(entry: Entry) -> Blocks:
    if entry.role != "bashExecution":
        return [], []
    message = entry.value["message"]
    return [found for name in ("command", "output") if (found := _name(message.get(name)))], []


def _thinking(entry: Entry) -> Blocks:
    blocks = _blocks(entry, "thinking")
    return [found for block in blocks if (found := _name(block.get("thinking")))], []


def _without_payload(value: Any) -> Any:
    """The value without base64 of images and without signatures; a copy where it has any."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if item.get("type") == "image" or not _SIGNATURES.isdisjoint(item):
                return _stripped(value)
            todo += [member for member in item.values() if isinstance(member, dict | list)]
        elif isinstance(item, list):
            todo += [member for member in item if isinstance(member, dict | list)]
    return value


def _stripped(value: Any) -> Any:
    top: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(top, 0)]
    while todo:
        holder, place = todo.pop()
        item = holder[place]
        if isinstance(item, dict):
            image = item.get("type") == "image"
            holder[place] = copy = {
                name: member
                for name, member in item.items()
                if name not in _SIGNATURES and not (image and name == "data")
            }
            todo += [(copy, name) for name, m in copy.items() if isinstance(m, dict | list)]
        elif isinstance(item, list):
            holder[place] = row = list(item)
            todo += [(row, index) for index, m in enumerate(row) if isinstance(m, dict | list)]
    return top[0]


def structured(entry: Entry) -> Any:
    """The structured data of an entry, without images and signatures; None where it has none."""
    value = entry.value
    if entry.type == "message":
        held = value["message"].get("details") if isinstance(value.get("message"), dict) else None
    else:
        held = value.get("data") if entry.type == "custom" else value.get("details")
    return None if held is None else _without_payload(held)


def _details(entry: Entry) -> Blocks:
    held = structured(entry)
    return ([], []) if held is None else json_blocks(held)


def _plain(entry: Entry) -> Blocks:
    if entry.role in ("system", "bashExecution"):
        return [], []
    found = text(entry)
    return ([found] if found else []), []


def _prompts(entry: Entry) -> Blocks:
    found = text(entry) if entry.role == "system" else None
    return ([found] if found else []), []


_BLOCKS_OF: Final[dict[Kind, Callable[[Entry], Blocks]]] = {
    "text": _plain,
    "tools": _tools,
    "shell": _shell,
    "thinking": _thinking,
    "details": _details,
    "system": _prompts,
}


_KINDS_OF_ROLE: Final[dict[str, tuple[Kind, ...]]] = {
    "user": ("text", "details"),
    "assistant": ("text", "tools", "thinking", "details"),
    "toolResult": ("text", "tools", "details"),
    "bashExecution": ("shell", "details"),
    "system": ("details", "system"),
}


def kinds(entry: Entry) -> tuple[Kind, ...]:
    """The kinds of text that an entry can have at all."""
    return _KINDS_OF_ROLE.get(entry.role or "", ("text", "details"))


def blocks_of(entry: Entry, kind: Kind) -> Blocks:
    """The blocks of text of one kind."""
    return _BLOCKS_OF[kind](entry)


def searchable(entry: Entry, kind: Kind) -> str:
    """The text of one kind, its blocks joined by line breaks; "" where the entry has none."""
    blocks, decoded = _BLOCKS_OF[kind](entry)
    return blocks[0] if len(blocks) == 1 and not decoded else "\n".join(blocks + decoded)
