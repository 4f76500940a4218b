"""What an entry says to the recovery tools, as numbers: small enough for columns of an index.

`Traits` holds everything that recovery counts and compares: the role, whether a section starts
here, calls and the result that answers one, errors, files. Ids and paths are tokens
(`fold.token`), so nothing here quotes a session. What is shown to a caller is read from the line
again, by the functions that give the strings: their order is that of the tokens.

`pack` turns traits into two columns, `unpack` back:

    shape   an integer below 2**63: role, flags, and how many calls there are
    facts   bytes: three counts, then 8 bytes for each token; b"" where there are none

Nothing is guessed: what has an odd shape counts as absent. Roles beyond the known ones share one
code, and their names are in their lines only.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

from sessionindex.fold import token
from sessionindex.text import BLANKS, is_blank
from sessionindex.touched import Touched, by_call, by_summary

DURABLE: Final = 2
"""From this version of a session on entries have ids of their own."""

ROLES: Final = (
    "user",
    "assistant",
    "toolResult",
    "system",
    "bashExecution",
    "custom",
    "branchSummary",
    "compactionSummary",
)
OTHER_ROLE: Final = 255
_CODES: Final = {role: code for code, role in enumerate(ROLES, 1)}
USER: Final = _CODES["user"]
_TOLD: Final = frozenset(("user", "assistant", "toolResult", "custom", "system"))
_CONTROLS: Final = frozenset({"dcp-journal", "dcp-nudge"})
SUMMARIES: Final = frozenset({"compaction", "branch_summary"})


class Call(NamedTuple):
    """A tool call of an entry: `block` is the whole of it."""

    id: str
    name: str
    block: dict[str, Any]


class Traits(NamedTuple):
    """An entry in numbers.

    `result` is the token of the call that a tool result answers, `kept` that of the first entry
    that a compaction keeps; 0 for none.
    """

    role: int = 0
    is_control: bool = False
    starts_section: bool = False
    has_text: bool = False
    is_result: bool = False
    is_error: bool = False
    is_compaction: bool = False
    is_branch_summary: bool = False
    is_ignored: bool = False
    result: int = 0
    calls: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    modified: tuple[int, ...] = ()
    kept: int = 0


_NOTHING: Final = Traits()


# --- the strings -------------------------------------------------------------------------------


def is_entry(value: Any) -> bool:
    """Whether a parsed line stands in the tree: it has an id of its own and is no header."""
    if not isinstance(value, dict):
        return False
    name = value.get("id")
    return isinstance(name, str) and bool(name) and value.get("type") != "session"


def message(value: dict[str, Any]) -> dict[str, Any] | None:
    """The message of a message entry; None where the entry is none, or has no object for one."""
    held = value.get("message") if value.get("type") == "message" else None
    return held if isinstance(held, dict) else None


def role(value: dict[str, Any]) -> str | None:
    """Who speaks, for messages."""
    held = message(value)
    return _role(held) if held is not None else None


def _role(held: dict[str, Any]) -> str | None:
    found = held.get("role")
    return found if isinstance(found, str) and found else None


def words(value: dict[str, Any]) -> str:
    """What is said: the text of a message, or the summary; "" where nothing is."""
    kind = value["type"]
    if kind in SUMMARIES:
        summary = value.get("summary")
        return summary if isinstance(summary, str) else ""
    held = value if kind == "custom_message" else message(value)
    return _content(held.get("content")) if held is not None else ""


def _content(content: Any) -> str:
    """A string, or the text blocks of an array joined by line breaks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"]
        for block in content
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    )


def _says(content: Any) -> bool:
    """Whether `_content` is more than blanks, without joining anything."""
    if isinstance(content, str):
        return not is_blank(content)
    return isinstance(content, list) and any(
        isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(said := block.get("text"), str)
        and not is_blank(said)
        for block in content
    )


def calls(value: dict[str, Any]) -> tuple[Call, ...]:
    """The tool calls of a message that have an id and a name."""
    held = message(value)
    return _calls(held.get("content")) if held is not None else ()


def _calls(content: Any) -> tuple[Call, ...]:
    if not isinstance(content, list):
        return ()
    return tuple(
        Call(block["id"], block["name"], block)
        for block in content
        if isinstance(block, dict)
        and block.get("type") == "toolCall"
        and isinstance(block.get("id"), str)
        and isinstance(block.get("name"), str)
    )


def is_untold(value: dict[str, Any], found: Traits) -> bool:
    """Whether an entry may hold words that none of the kinds of search holds.

    Those of a message are told by its role; recovery reads the content and the calls of any.
    """
    held = message(value)
    if held is None:
        return False
    spoken = held.get("role")
    return (bool(found.calls) and spoken != "assistant") or (found.has_text and spoken not in _TOLD)


def answered(value: dict[str, Any]) -> str | None:
    """The id of the call that a tool result answers."""
    return _of_result(value, "toolCallId")


def tool(value: dict[str, Any]) -> str | None:
    """The name of the tool whose result this is."""
    return _of_result(value, "toolName")


def _of_result(value: dict[str, Any], field: str) -> str | None:
    held = message(value)
    if held is None or held.get("role") != "toolResult":
        return None
    found = held.get(field)
    return found if isinstance(found, str) else None


def touched(value: dict[str, Any]) -> Touched:
    """The files that the calls of an entry, or the details of a summary, name."""
    if value["type"] in SUMMARIES:
        return by_summary(value.get("details"))
    return _touched(calls(value))


def _touched(called: tuple[Call, ...]) -> Touched:
    found = [by_call(call.name, call.block.get("arguments")) for call in called]
    if len(found) < 2:
        return found[0] if found else Touched()
    return Touched(
        tuple(dict.fromkeys(path for one in found for path in one.reads)),
        tuple(dict.fromkeys(path for one in found for path in one.modified)),
    )


# --- the numbers -------------------------------------------------------------------------------


def traits(value: dict[str, Any]) -> Traits:
    """The traits of an entry (a value that `is_entry` admits).

    One without a type is a link of the tree and nothing else.
    """
    kind = value.get("type")
    if not isinstance(kind, str) or not kind:
        return Traits(is_ignored=True)
    if kind == "message":
        held = message(value)
        return _of_message(held) if held is not None else _NOTHING
    if kind == "custom":
        name = value.get("customType")
        return Traits(is_control=isinstance(name, str) and name in _CONTROLS)
    has_text = not is_blank(words(value))
    if kind not in SUMMARIES:
        return Traits(has_text=has_text) if has_text else _NOTHING
    files = touched(value)
    return Traits(
        starts_section=True,
        has_text=has_text,
        is_compaction=kind == "compaction",
        is_branch_summary=kind != "compaction",
        reads=tuple(map(token, files.reads)),
        modified=tuple(map(token, files.modified)),
        kept=_kept(value) if kind == "compaction" else 0,
    )


def _kept(value: dict[str, Any]) -> int:
    first = value.get("firstKeptEntryId")
    return token(first) if isinstance(first, str) and first else 0


def _of_message(held: dict[str, Any]) -> Traits:
    content, spoken = held.get("content"), _role(held)
    is_result = spoken == "toolResult"
    answers = held.get("toolCallId") if is_result else None
    called = _calls(content)
    files = _touched(called) if called else Touched()
    return Traits(
        _CODES.get(spoken, OTHER_ROLE) if spoken is not None else 0,
        False,
        spoken == "user",
        _says(content),
        is_result,
        is_result and held.get("isError") is True,
        False,
        False,
        False,
        token(answers) if isinstance(answers, str) else 0,
        tuple([token(call.id) for call in called]),
        tuple(map(token, files.reads)),
        tuple(map(token, files.modified)),
    )


_COUNTS: Final = struct.Struct("<III")
_CALLS_AT: Final = 24
_FLAGS: Final = (
    "is_control",
    "starts_section",
    "has_text",
    "is_result",
    "is_error",
    "is_compaction",
    "is_branch_summary",
    "is_ignored",
)


ROLE: Final = 0xFF
"""The bits of a shape that are the role; those below are flags of their own."""
CONTROL: Final = 1 << 8 + _FLAGS.index("is_control")
STARTS: Final = 1 << 8 + _FLAGS.index("starts_section")
COMPACTION: Final = 1 << 8 + _FLAGS.index("is_compaction")
IGNORED: Final = 1 << 8 + _FLAGS.index("is_ignored")
FACTS: Final = 1 << 8 + len(_FLAGS)
"""Whether there are tokens in the second column."""

_BITS: Final = tuple((1 + place, 1 << 8 + place) for place in range(len(_FLAGS)))


def shape(found: Traits) -> int:
    """The first column: what needs no tokens."""
    bits = found.role | len(found.calls) << _CALLS_AT
    for place, bit in _BITS:
        if found[place]:
            bits |= bit
    return bits


def pack(found: Traits) -> tuple[int, bytes]:
    """The two columns of an entry."""
    # No result of a call is a compaction: they share a place.
    tokens = (found.result or found.kept, *found.calls, *found.reads, *found.modified)
    if len(tokens) == 1 and not tokens[0]:
        return shape(found), b""
    counts = _COUNTS.pack(len(found.calls), len(found.reads), len(found.modified))
    return shape(found) | FACTS, counts + struct.pack(f"<{len(tokens)}Q", *tokens)


def unpack(bits: int, facts: bytes) -> Traits:
    """The traits that were packed."""
    flags = (bool(bits >> place & 1) for place in range(8, 8 + len(_FLAGS)))
    found = Traits._make((bits & ROLE, *flags, *_NOTHING[1 + len(_FLAGS) :]))
    if not facts:
        return found
    counts = _COUNTS.unpack_from(facts)
    first, *tokens = struct.unpack_from(f"<{1 + sum(counts)}Q", facts, _COUNTS.size)
    reads_at, modified_at = counts[0], counts[0] + counts[1]
    return found._replace(
        result=0 if found.is_compaction else first,
        kept=first if found.is_compaction else 0,
        calls=tuple(tokens[:reads_at]),
        reads=tuple(tokens[reads_at:modified_at]),
        modified=tuple(tokens[modified_at:]),
    )


class Tip:
    """What Pi takes from the lines of a file in their order: the leaf, and the session's name.

    `leaf` is the token of the last entry line, 0 where that line has no id.
    """

    def __init__(self, version: int, leaf: int = 0, name: str | None = None) -> None:
        self.leaf = leaf
        self.name = name
        self._durable = version >= DURABLE

    def pass_by(self, value: Any) -> bool:
        """Take the value of a line into account; whether it is an entry of the tree."""
        if not isinstance(value, dict):
            if value or value == []:  # what JavaScript takes for false is no line to Pi
                self.leaf = 0
            return False
        kind = value.get("type")
        if kind == "session":
            return False  # ignored by Pi as well
        if kind == "session_info":
            name = value.get("name")
            self.name = (name.strip(BLANKS) or None) if isinstance(name, str) else None
        if not self._durable or not is_entry(value):
            self.leaf = 0
            return False
        self.leaf = token(value["id"])
        return True
