"""Case, and the grams a needle must have: what makes the index unable to miss.

Matching without case is `str.lower()` of each side on its own, then substring, as in the
contracts (no casefold: ß is not SS). `lower` has one context rule: a sigma at the end of a word
becomes ς. The *gram key* of a text is therefore `lower()` with ς made σ, and with lone surrogates
(which tantivy cannot take) made U+FFFD. Both maps work character by character, so

    needle.lower() in text.lower()   or   needle in text
        implies   key(needle) in key(text)   implies   grams(needle) <= grams(text)

and a conjunction of grams is a superset of the answer; false candidates die in verification.
Grams are three code points. The gram text of an entry ends in two NULs, so that each character,
the last too, begins a gram: a needle of one or two characters is a prefix of one.

The Unicode version of `lower()` is part of the index's format (`index/schema`).
"""

from __future__ import annotations

import re
from typing import Final

GRAM: Final = 3
PAD: Final = "\0\0"
_SURROGATE: Final = "[\ud800-\udfff]"  # compiled where it is used


def key(text: str) -> str:
    """The gram key of a text."""
    low = text.lower()
    if not low.isascii():
        low = low.replace("ς", "σ")
        try:
            low.encode()  # the fastest way to see that there is no lone surrogate
        except UnicodeEncodeError:
            low = re.sub(_SURROGATE, "\ufffd", low)
    return low


def grams(needle: str) -> tuple[str, ...]:
    """The distinct grams of a needle of three characters or more, in the order of the needle."""
    low = key(needle)
    return tuple(dict.fromkeys(low[i : i + GRAM] for i in range(len(low) - GRAM + 1)))


def token(text: str) -> int:
    """A number from 1 below 2**64 that stands for a string, and can be kept in a column.

    Exact for up to 8 ASCII characters without NUL, as Pi's own ids are; 63 bits of a digest else.
    """
    if len(text) <= 8 and text.isascii() and text and "\0" not in text:
        return int.from_bytes(text.encode().ljust(8, b"\0"))
    from hashlib import blake2b  # most ids need none, and it costs a start two milliseconds

    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) | 1 << 63


def told(number: int) -> str | None:
    """The string that a token is exactly; None where it is a digest, or no token."""
    if not number or number >> 63:
        return None
    return number.to_bytes(8).rstrip(b"\0").decode("ascii")


def folded(text: str, case_sensitive: bool) -> str:
    """What is compared: the text itself, or its lower case."""
    return text if case_sensitive else text.lower()
