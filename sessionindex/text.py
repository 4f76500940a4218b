"""What JavaScript does to text in the contracts, said once for Python.

The contracts were written for JavaScript; where they speak of white space, previews or JSON they
mean its rules, which differ from Python's in small ways that golden answers show:

- white space is `\\s`: with U+FEFF and NBSP, without U+0085 and U+001C..1F;
- JSON has no blanks, writes everything raw but quotes, backslashes, control characters and lone
  surrogates, and spells numbers as JavaScript does (1.0 is `1`, 1e-7 stays `1e-7`).

Two rules are ours: lengths count code points, so nothing is cut inside a character, and integers
stay exact at any size. Key order is the file's. Nothing here recurses, so depth is no danger.
"""

from __future__ import annotations

import math
import re
from json.encoder import encode_basestring
from typing import Any, Final

WHITE: Final = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_SPACES = f"[{WHITE}]+"  # compiled where it is used, and kept by `re`: not by every start
_SURROGATE = "[\ud800-\udfff]"
BLANKS: Final = WHITE.replace("\u2000-\u200a", "".join(map(chr, range(0x2000, 0x200B))))
"""Every white-space character, for `str.strip`."""


def squeeze(text: str) -> str:
    """The text with each run of white space made one blank, and none at its ends."""
    return re.sub(_SPACES, " ", text).strip(" ")


def is_blank(text: str) -> bool:
    """Whether nothing but JavaScript white space is there."""
    return not (text[:40].strip(BLANKS) or text.strip(BLANKS))  # the first spares a copy


def preview(text: str, limit: int) -> str:
    """The squeezed text, cut to `limit` characters with a closing ellipsis where it is longer."""
    short = squeeze(text)
    return short if len(short) <= limit else short[: limit - 1] + "…"


def number(value: int | float) -> str:
    """A JSON number as JavaScript spells it; integers exact, what is no number `null`."""
    if isinstance(value, int):
        return _digits(value)
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """ECMAScript's Number::toString for the significant digits and the place of the point."""
    if 0 < point <= 21:
        if len(digits) <= point:
            return digits + "0" * (point - len(digits))
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    head = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{head}e{'+' if power > 0 else '-'}{abs(power)}"


def _digits(value: int) -> str:
    """Decimal digits of an integer of any size (Python's own limit is 4,300 digits)."""
    if value.bit_length() < 13_000:
        return str(value)
    sign, rest, blocks = ("-" if value < 0 else ""), abs(value), []
    while rest:
        rest, block = divmod(rest, 10**4000)
        blocks.append(str(block).rjust(4000, "0"))
    return sign + "".join(reversed(blocks)).lstrip("0")


def quoted(text: str) -> str:
    """A string as JSON.stringify writes it."""
    body = encode_basestring(text)
    if not body.isascii() and re.search(_SURROGATE, body):
        body = re.sub(_SURROGATE, lambda found: f"\\u{ord(found[0]):04x}", body)
    return body


def spelled(value: object) -> str:
    """A JSON value as JavaScript's String() writes it, for messages that quote a parameter."""
    if value is None:
        return "null"
    # An array is its items joined by commas, and so are the arrays in it: the leaves in order,
    # collected without recursion because the depth is the caller's choice.
    leaves = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list | tuple) and item:
            pending.extend(reversed(item))
        else:
            leaves.append(_spelled_leaf(item))
    return ",".join(leaves)


def _spelled_leaf(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        try:
            double = float(value)  # JavaScript has no other numbers
        except OverflowError:
            double = math.inf if value > 0 else -math.inf
        if math.isinf(double):
            return "Infinity" if double > 0 else "-Infinity"
        return "NaN" if math.isnan(double) else number(double)
    # Inside an array null is empty, as an empty array is.
    return "" if value is None or isinstance(value, list | tuple) else "[object Object]"


_WORDS = {None: "null", True: "true", False: "false"}


def scalar(value: Any) -> str:
    """A JSON value that is neither an object nor an array."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, bytes):  # JSON already
        return value.decode("utf-8", "replace")
    return number(value)


def compact_json(value: Any) -> str:
    """A JSON value without blanks, as JSON.stringify writes it, in the key order of the file."""
    if not isinstance(value, dict | list):
        return scalar(value)
    parts: list[str] = []
    todo: list[Any] = [value]  # values to write, and _Raw pieces of punctuation between them
    while todo:
        item = todo.pop()
        if isinstance(item, _Raw):
            parts.append(item)
        elif isinstance(item, dict):
            todo.append(_CLOSE_OBJECT)
            for position, (name, member) in enumerate(reversed(item.items())):
                todo.append(member)
                comma = "," if position < len(item) - 1 else ""
                todo.append(_Raw(f"{comma}{quoted(name)}:"))
            todo.append(_OPEN_OBJECT)
        elif isinstance(item, list):
            todo.append(_CLOSE_ARRAY)
            for position, member in enumerate(reversed(item)):
                todo.append(member)
                if position < len(item) - 1:
                    todo.append(_COMMA)
            todo.append(_OPEN_ARRAY)
        else:
            parts.append(scalar(item))
    return "".join(parts)


class _Raw(str):
    """Punctuation on the writer's stack, told apart from strings of the value."""

    __slots__ = ()


_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY, _COMMA = map(_Raw, "{}[],")
