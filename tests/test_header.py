"""First lines: which are sessions, and what is said of those that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessionindex.header import MAX_BYTES, TOO_LONG, parse
from sessionindex.model import Session

HEADER: dict[str, Any] = {
    "type": "session",
    "version": 3,
    "id": "s1",
    "timestamp": "2026-01-05T10:00:00.000Z",
    "cwd": "/r/app",
}
INSTANT = 1767607200000


def line(**changes: Any) -> bytes:
    """A good header with these fields changed, or gone where they are `...`."""
    value = {name: field for name, field in (HEADER | changes).items() if field is not ...}
    return json.dumps(value).encode()


def session(**changes: Any) -> Session:
    found = parse(line(**changes))
    assert isinstance(found, Session), found
    return found


def test_a_header() -> None:
    assert session(extra=1, parentSession="/r/s0.jsonl") == Session(
        "s1", "/r/app", "2026-01-05T10:00:00.000Z", INSTANT, "/r/s0.jsonl", 3
    )


def test_an_odd_header_is_one_too() -> None:
    """Blank ids and relative folders are texts like others; an empty parent is none."""
    odd = session(id=" ", cwd="app", parentSession="", timestamp="2026-01-05")
    assert odd == Session(" ", "app", "2026-01-05", 1767571200000, None, 3)
    assert session(id="\ud800").id == "\ud800"


def test_the_first_line_may_carry_a_mark_and_a_cr() -> None:
    assert parse(b"\xef\xbb\xbf" + line() + b"\r") == parse(line())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "first line is empty"),
        (b" \t\r", "first line is empty"),
        ("\ufeff\u00a0\u2028".encode(), "first line is empty"),
        (b"{", "first line is not valid JSON: it cannot be parsed"),
        (b"[" * 2000, "first line is not valid JSON: nested deeper than 1024 levels"),
        (b"\x00", "first line is not valid JSON: it cannot be parsed"),
        (b"[]", "first line is not a JSON object"),
        (b'"session"', "first line is not a JSON object"),
        (b"null", "first line is not a JSON object"),
        (b"{}", "first line is not a session header (type: undefined)"),
        (line(type=None), "first line is not a session header (type: null)"),
        (line(type="Session"), "first line is not a session header (type: Session)"),
        (line(type=""), "first line is not a session header (type: )"),
        (line(type=1.50), "first line is not a session header (type: 1.5)"),
        (line(type=["session"]), "first line is not a session header (type: session)"),
        (line(type={"a": 1}), "first line is not a session header (type: [object Object])"),
        (line(id=...), "session header has no id"),
        (line(id=""), "session header has no id"),
        (line(id=5, cwd=""), "session header has no id"),
        (line(cwd=...), "session header has no cwd"),
        (line(cwd=""), "session header has no cwd"),
        (line(cwd=None, timestamp=""), "session header has no cwd"),
        (line(timestamp=...), "session header has no readable timestamp"),
        (line(timestamp=INSTANT), "session header has no readable timestamp"),
        (line(timestamp="yesterday"), "session header has no readable timestamp"),
        (line(timestamp="", parentSession=1), "session header has no readable timestamp"),
        (line(parentSession=None), "session header parentSession is not a string"),
        (line(parentSession=["a"]), "session header parentSession is not a string"),
    ],
)
def test_what_is_no_header(data: bytes, reason: str) -> None:
    """The contract's reasons, the first that holds."""
    assert parse(data) == reason


@pytest.mark.parametrize(
    ("version", "read"),
    [
        (..., 1),
        (1, 1),
        (3, 3),
        (3.0, 3),
        (1e21, 2**53 - 1),
        (0, 0),
        (-1, 0),
        (2.5, 0),
        ("3", 0),
        (None, 0),
        (True, 0),
        ([3], 0),
    ],
)
def test_versions(version: Any, read: int) -> None:
    """Absent means 1, and a huge one is JavaScript's greatest exact integer.

    0 stands for what is no positive integer; listing minds neither.
    """
    assert session(version=version).version == read


def test_a_version_beyond_all_numbers() -> None:
    found = parse(line().replace(b"3", b"1e400", 1))
    assert isinstance(found, Session)
    assert found.version == 0


def test_length() -> None:
    """1 MiB is the most, mark and CR included; a longer line is not even parsed."""
    room = MAX_BYTES - len(line(pad=""))
    longest = line(pad="x" * room)
    assert len(longest) == MAX_BYTES
    assert isinstance(parse(longest), Session)
    assert parse(longest + b"\r") == "first line is longer than 1048576 bytes"
    assert parse(b"\xef\xbb\xbf" + longest) == TOO_LONG
    assert parse(b" " * (MAX_BYTES + 1)) == TOO_LONG
