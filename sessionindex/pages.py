"""Opaque cursors: where a page ended, bound to the question that it continues.

A cursor is base64url (no padding) of a JSON object: the tool, a digest of the question, and the
place after which the next page begins. The digest stands in for the question, so a cursor stays
short whatever was asked, and a cursor of another question, tool or root is refused, never guessed.
A cursor holds no text of a session.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sessionindex import jsonline

MAX_CHARS: Final = 36_000
"""A cursor may name a path (4,096 bytes at most, up to six times that as JSON escapes them)."""


def digest(question: Sequence[Any]) -> str:
    """Sixteen hex digits that stand for the parts of a question."""
    from hashlib import blake2b  # only where there is a next page

    spelled = repr(tuple(question)).encode("utf-8", "surrogatepass")
    return blake2b(spelled, digest_size=8).hexdigest()


def encode(tool: str, question: str, place: Mapping[str, Any]) -> str:
    """The cursor that continues `question` (a digest) after `place`."""
    body = jsonline.compact({"tool": tool, "question": question, **place})
    return urlsafe_b64encode(body.encode()).rstrip(b"=").decode("ascii")


def decode(cursor: str, tool: str, question: str) -> dict[str, Any] | None:
    """The place in a cursor; None where it is garbled or continues something else."""
    if not cursor or len(cursor) > MAX_CHARS or not cursor.isascii():
        return None
    try:
        body = jsonline.strict(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(body, dict) or (body.get("tool"), body.get("question")) != (tool, question):
        return None
    return body
