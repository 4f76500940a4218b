"""Bytes -> lines with a place, and a line -> its JSON value: one reader for every path.

Lines end at LF and nowhere else; a CR before it is JSON's own blank space; U+2028, U+0085 and a
lone CR end nothing. The last line may be torn (no LF yet): it is delivered with `complete` false,
and a caller can start again at its offset when the rest has come.

Values: Python's own reader is the rule. NaN, Infinity and comments are invalid, nesting has a
limit, integers are exact at any size, a decimal beyond a double is None, a lone surrogate escape
is itself, and bytes that are no UTF-8 become U+FFFD. orjson gives the same values several times
as fast, but for lines that it refuses though JavaScript reads them and for whole numbers of 19
digits or more, which it would round: those stay with the rule. Its import costs what it saves on
three megabytes, so it comes in only when about that much was read, and a short command never waits
for it.

Not here: what the value means (`header`, `entry`), and reading files (`files`).
"""

from __future__ import annotations

import json
import re
import sys
from _thread import allocate_lock  # `threading` would be a fiftieth of a short search
from collections.abc import Callable, Iterator
from typing import Any, Final

from sessionindex.model import Line
from sessionindex.text import compact_json, is_blank

MAX_DEPTH: Final = 1024
"""Arrays and objects inside each other; deeper is invalid JSON to this project."""


class Unreadable(ValueError):
    """A line that is no JSON; `reason` is the contract's text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def split(block: bytes, line_no: int, offset: int, *, complete: bool = True) -> Iterator[Line]:
    """The lines of a block of whole lines, the first of them at `offset` of its file.

    A block that is a torn last line comes with `complete` false, and so does its line.
    """
    start = 0
    while start < len(block):
        end = block.find(b"\n", start)
        if end < 0:
            end = len(block)
        yield Line(line_no, offset + start, block[start:end], complete)
        line_no += 1
        start = end + 1


def value(data: bytes, *, first: bool = False) -> Any:
    """The JSON value of a line; `first` strips the byte order mark that line 1 may carry.

    Raises Unreadable with `line is blank` or `line is not valid JSON: …`.
    """
    if first and data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if not _has_long_number(data):
        try:
            return _read(data)
        except json.JSONDecodeError:  # orjson's too: perhaps JavaScript reads it all the same
            pass
    return _by_the_rule(data)


def strict(data: bytes) -> Any:
    """The JSON value of a cursor, or of a small file of our own or tantivy's; raises ValueError.

    Nothing in it is mended, and no number in it is large: bytes that are no UTF-8 and integers
    beyond 64 bits are no JSON here.
    """
    return _exact(data.decode("utf-8"), _STRICT)


def compact(value: Any) -> str:
    """A JSON value without decimals in it, as JSON.stringify writes it."""
    try:
        return _write(value).decode()
    except (TypeError, ValueError, RecursionError):  # lone surrogates, large numbers, great depth
        return compact_json(value)


# --- orjson, once it pays ------------------------------------------------------------------------

ENOUGH: Final = 2 << 20
"""Bytes that are read by the rule before orjson is imported."""

_seen = 0


def _first(data: bytes) -> Any:
    """Read by the rule while that is little; then give way to orjson."""
    global _seen, _read, _write
    _seen += len(data)  # threads may lose a count: then orjson comes a little later
    if _seen <= ENOUGH:
        return _by_the_rule(data)
    import orjson

    _read, _write = orjson.loads, orjson.dumps
    return _read(data)


def _written(value: Any) -> bytes:
    """What orjson.dumps gives, where both give anything."""
    return _WRITER.encode(value).encode("utf-8")


_WRITER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)
_read: Callable[[bytes], Any] = _first
_write: Callable[[Any], bytes] = _written


# --- the rule ------------------------------------------------------------------------------------


_LONG: Final = b"0" * 19
_BEFORE_NUMBER: Final = frozenset(b":,[ \t\r\n+-eE")
_IN_STRING: Final = rb'[^\\]\\":'
_DIGITS: Final = bytes(48 if 48 <= c <= 57 else 32 for c in range(256))


def _has_long_number(data: bytes) -> bool:
    """Whether 19 digits stand in a row where they can be a number's, and not of its fraction."""
    digits = data.translate(_DIGITS)
    start = digits.find(_LONG)
    while start >= 0:
        before = data[max(0, start - 4) : start]
        # An escaped quote before the colon: a log in a string, with its nanoseconds.
        if not before or (before[-1] in _BEFORE_NUMBER and not re.fullmatch(_IN_STRING, before)):
            return True
        end = digits.find(b" ", start)
        start = digits.find(_LONG, end) if end >= 0 else -1
    return False


def _by_the_rule(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    if is_blank(text):
        raise Unreadable("line is blank")
    return _exact(text)


def _refuse(word: str) -> None:
    raise ValueError(word)


def _integer(digits: str) -> int:
    """An integer of any length (Python's own conversion stops at 4,300 digits)."""
    if len(digits) <= 4000:
        return int(digits)
    sign, digits = (-1, digits[1:]) if digits[0] == "-" else (1, digits)
    whole = 0
    for start in range(0, len(digits), 4000):
        block = digits[start : start + 4000]
        whole = whole * 10 ** len(block) + int(block)
    return sign * whole


def _decimal(digits: str) -> float | None:
    number = float(digits)
    return None if number in (float("inf"), float("-inf")) else number


def _word(digits: str) -> int:
    number = _integer(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError(digits)
    return number


_READER: Final = json.JSONDecoder(
    parse_int=_integer, parse_float=_decimal, parse_constant=_refuse, strict=True
)
_STRICT: Final = json.JSONDecoder(
    parse_int=_word, parse_float=_decimal, parse_constant=_refuse, strict=True
)
INVALID: Final = "line is not valid JSON: it cannot be parsed"
TOO_DEEP: Final = f"line is not valid JSON: nested deeper than {MAX_DEPTH} levels"
_STRUCTURE: Final = r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]'  # compiled where it is used


def _exact(text: str, reader: json.JSONDecoder = _READER) -> Any:
    """The value by the standard library's reader."""
    depth = deepest = 0
    # Few brackets cannot be deep, and counting them is what is fast.
    shallow = text.count("[") + text.count("{") <= MAX_DEPTH
    for found in () if shallow else re.finditer(_STRUCTURE, text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    if deepest > MAX_DEPTH:
        raise Unreadable(TOO_DEEP)
    text = text.strip("\t\r\n ")
    try:
        return reader.decode(text)
    except RecursionError:
        return _deep(text, reader)
    except ValueError as error:
        raise Unreadable(INVALID) from error


_RAISING: Final = allocate_lock()


def _deep(text: str, reader: json.JSONDecoder) -> Any:
    """The value of a line nested deeper than the interpreter's stack allows as it is set.

    The depth is known to be bounded, so the limit is raised for this one line.
    """
    with _RAISING:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + 2 * MAX_DEPTH)
        try:
            return reader.decode(text)
        except ValueError as error:
            raise Unreadable(INVALID) from error
        finally:
            sys.setrecursionlimit(before)
