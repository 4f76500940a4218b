"""A line with another parent: only the value of `parentId` changes, every other byte stays.

The bytes are walked once, strings and brackets only, so that numbers, key order, blanks, escapes
and invalid UTF-8 stay what they were. Where a name stands twice in an object JavaScript takes the
last; all of them are changed.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sessionindex import jsonline
from sessionindex.text import quoted

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]', re.S)
_NAME: Final = "parentId"


class NoParent(ValueError):
    """The line names no parent that could be replaced."""


def relinked(line: bytes, parent: str | None) -> bytes:
    """The line with this parent. Raises NoParent."""
    spelled = b"null" if parent is None else quoted(parent).encode("utf-8")
    parts: list[bytes] = []
    done = 0
    for start, end in _values(line):
        parts += [line[done:start], spelled]
        done = end
    if not parts:
        raise NoParent
    return b"".join([*parts, line[done:]])


def same_but_parent(one: bytes, other: bytes) -> bool:
    """Whether two lines are the same value, their parents apart."""
    try:
        return _without(one) == _without(other)
    except (jsonline.Unreadable, AttributeError, TypeError):
        return False


def _without(line: bytes) -> list[tuple[str, Any]]:
    return [item for item in jsonline.value(line).items() if item[0] != _NAME]


def _values(line: bytes) -> list[tuple[int, int]]:
    """Where the values of the object's own `parentId` stand: strings, or null."""
    found: list[tuple[int, int]] = []
    depth = 0
    name = b""  # the last string of the outermost object
    begin = -1  # where a value of ours begins, while in it
    for token in _TOKEN.finditer(line):
        mark = token[0]
        if depth == 1 and begin >= 0 and mark in (b",", b"}"):
            found.append(_trimmed(line, begin, token.start()))
            begin = -1
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and mark == b":" and _is_ours(name):
            begin = token.end()
        elif depth == 1 and mark.startswith(b'"'):
            name = mark if begin < 0 else b""
    return found


def _trimmed(line: bytes, begin: int, end: int) -> tuple[int, int]:
    blank = b" \t\r\n"
    while begin < end and line[begin : begin + 1] in blank:
        begin += 1
    while end > begin and line[end - 1 : end] in blank:
        end -= 1
    return begin, end


def _is_ours(name: bytes) -> bool:
    if b"\\" not in name:
        return name == b'"parentId"'
    try:
        return bool(jsonline.value(name) == _NAME)
    except jsonline.Unreadable:
        return False
