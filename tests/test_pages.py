"""Cursors: they continue their own question, and nothing else gets through."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex.pages import MAX_CHARS, decode, digest, encode

PLACE = {"after": [-1767607200000, "/r/--a--/s.jsonl", 12]}
MINE = digest(("root", ("term",), False))
CURSOR = encode("search_sessions", MINE, PLACE)


def test_a_cursor_comes_back() -> None:
    found = decode(CURSOR, "search_sessions", MINE)
    assert found is not None
    assert found["after"] == PLACE["after"]


@pytest.mark.parametrize("path", ["", "/r/é中😀", '/r/"\\', "/r/\n\x01", "/" + "x" * 4094])
def test_any_place_comes_back(path: str) -> None:
    token = encode("t", MINE, {"after": [0, path, 1]})
    found = decode(token, "t", MINE)
    assert found is not None
    assert found["after"] == [0, path, 1]
    assert token.isascii() and token.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("character", ["x", "é", "\\", "\x01"])
def test_a_cursor_never_outgrows_what_is_accepted(character: str) -> None:
    """A path is at most 4,096 bytes long, whatever JSON makes of them."""
    path = character * (4096 // len(character.encode()))
    token = encode("session_read_section", MINE, {"after": [-8640000000000000, path, 10**9]})
    assert len(token) <= MAX_CHARS
    assert decode(token, "session_read_section", MINE) is not None


def forged(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("rule", "cursor"),
    [
        ("nothing", ""),
        ("no base64", "é"),
        ("one character", "a"),
        ("cut", CURSOR[:-5]),
        ("without its beginning", CURSOR[4:]),
        ("something before it", "AAAA" + CURSOR),
        ("something after it", CURSOR + "AAAA"),
        ("endless", "A" * (MAX_CHARS + 1)),
        ("no JSON", forged(b"hello")),
        ("no UTF-8", forged(b"\xff\xff\xff")),
        ("no object", forged(b"[1]")),
        ("an empty object", forged(b"{}")),
        ("no question", forged(b'{"tool":"search_sessions","after":[0,"a",1]}')),
        ("no tool", forged(json.dumps({"question": MINE}).encode())),
        ("very deep", forged(b"[" * 8000)),
    ],
)
def test_what_is_no_cursor(rule: str, cursor: str) -> None:
    """None, never an error and never a guess."""
    assert decode(cursor, "search_sessions", MINE) is None, rule


def test_a_cursor_of_something_else() -> None:
    """Another tool and another question have their own."""
    assert decode(CURSOR, "session_search", MINE) is None
    assert decode(CURSOR, "search_sessions", digest(("root", ("Term",), False))) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("ab",)),
        (("a", "b"), ("b", "a")),
        ((("a",), "b"), ("a", ("b",))),
        ((1,), ("1",)),
        ((None,), ("None",)),
        ((False,), (0,)),
        (("\ud800",), ("\udc00",)),
        (("é",), ("e\u0301",)),
    ],
)
def test_digests_tell_questions_apart(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """Sixteen digits, the same for the same parts only."""
    assert digest(one) == digest(list(one))
    assert digest(one) != digest(other)
    assert len(digest(one)) == 16


@given(st.text(max_size=40) | st.binary(max_size=40).map(forged))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_any_text(cursor: str) -> None:
    assert decode(cursor, "search_sessions", MINE) is None
