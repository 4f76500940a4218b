"""A stretch of one session file, read as a person reads it: entries in file order.

Straight from the file, whatever the index says: the lines around a hit, and the first words of a
session, by which people know one. Blocks before the stretch are only counted, never parsed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import Final

from sessionindex import entry
from sessionindex.coverage import Identity
from sessionindex.files import Changed, open_listed, read_at, whole_lines
from sessionindex.jsonline import split
from sessionindex.model import Entry, Line
from sessionindex.text import preview

_OPENING: Final = 256 << 10


def around(
    path: str, listed: Identity, version: int, line_no: int, count: int
) -> tuple[Entry, ...]:
    """The entry on a line, with the `count` entries before and after it; () where it is none.

    Lines that are no entries do not count. Raises Changed and OSError as `open_listed` does.
    """
    descriptor, _ = open_listed(path, listed)
    before: deque[Entry] = deque(maxlen=count)
    rest: list[Entry] = []
    try:
        for found in _entries(descriptor, version, line_no - 4 * count - 16):
            if found.line_no < line_no:
                before.append(found)
            elif found.line_no == line_no or rest:
                rest.append(found)
            if found.line_no > line_no and (not rest or len(rest) > count):
                break
    finally:
        os.close(descriptor)
    return (*before, *rest[: count + 1]) if rest else ()


def _entries(descriptor: int, version: int, first: int) -> Iterator[Entry]:
    """The entries of a file from about line `first` on."""
    lines = 0
    for offset, block, complete in whole_lines(descriptor, 0):
        end = lines + block.count(b"\n")
        if end >= first:
            for line in split(block, lines + 1, offset, complete=complete):
                if line.line_no > 1 and line.line_no >= first:
                    found = entry.parse(line, version)
                    if isinstance(found, Entry):
                        yield found
        lines = end


def first_words(path: str, listed: Identity, version: int) -> str | None:
    """The beginning of the first thing the user said, on one line; None where it is not near."""
    try:
        descriptor, _ = open_listed(path, listed)
    except (Changed, OSError):
        return None
    try:
        data = read_at(descriptor, 0, _OPENING)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    for number, line in enumerate(data.split(b"\n")[:200], 1):
        if number > 1 and b'"user"' in line:
            found = entry.parse(Line(number, 0, line), version)
            if isinstance(found, Entry) and found.role == "user":
                words = entry.text(found)
                if words and words.strip():
                    return preview(words, 120)
    return None
