"""A stretch of one session file, read as a person reads it: entries in file order.

Straight from the file, whatever the index says: the lines around a hit, and the first words of a
session, by which people know one. What lies before a stretch is only counted; from the hit on the
file is read backwards and forwards until there are entries enough. Lines that are no entries do
not count. Each entry comes with its line, for whoever wants the file's own bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from sessionindex import entry
from sessionindex.coverage import Identity
from sessionindex.files import Changed, open_listed, read_at, whole_lines
from sessionindex.jsonline import split
from sessionindex.model import Entry, Line
from sessionindex.text import preview

Spoken = tuple[Entry, Line]

_OPENING: Final = 256 << 10
_STEP: Final = 64 << 10


def around(
    path: str, listed: Identity, version: int, line_nos: Iterable[int], count: int
) -> dict[int, tuple[Spoken, ...]]:
    """For each of these lines that is an entry: the entry, and `count` entries on either side.

    Raises Changed and OSError as `open_listed` does.
    """
    descriptor, _ = open_listed(path, listed)
    try:
        stretches = {}
        for line in _at(descriptor, sorted({number for number in line_nos if number > 1})):
            found = entry.parse(line, version)
            if isinstance(found, Entry):
                before = [*_backwards(descriptor, line, version, count)][::-1]
                after = _forwards(descriptor, line, version, count)
                stretches[line.line_no] = (*before, (found, line), *after)
        return stretches
    finally:
        os.close(descriptor)


def _at(descriptor: int, line_nos: list[int]) -> Iterator[Line]:
    """The lines with these numbers (ascending), as far as the file has them."""
    wanted = iter(line_nos)
    number = next(wanted, None)
    lines = 0
    for offset, block, complete in whole_lines(descriptor, 0):
        end = lines + block.count(b"\n") + (not complete)
        if number is not None and number <= end:
            for line in split(block, lines + 1, offset, complete=complete):
                if line.line_no == number:
                    yield line
                    number = next(wanted, None)
        if number is None:
            return
        lines = end


def _backwards(descriptor: int, hit: Line, version: int, count: int) -> Iterator[Spoken]:
    """The `count` entries before a line, nearest first."""
    end, line_no, size = hit.offset, hit.line_no, _STEP
    while end and count:
        start = max(0, end - size)
        data = read_at(descriptor, start, end - start)
        cut = data.find(b"\n", 0, -1) + 1 if start else 0  # where the first whole line begins
        if start and not cut:
            size *= 4
            continue
        place = end - 1
        for raw in reversed(data[cut:-1].split(b"\n")):
            place -= len(raw)
            line_no -= 1
            line = Line(line_no, place, raw)
            found = entry.parse(line, version) if line_no > 1 else None
            if isinstance(found, Entry):
                yield found, line
                count -= 1
                if not count:
                    return
            place -= 1
        end = start + cut


def _forwards(descriptor: int, hit: Line, version: int, count: int) -> Iterator[Spoken]:
    """The `count` entries after a line."""
    if not count or not hit.complete:
        return
    line_no = hit.line_no + 1
    for offset, block, complete in whole_lines(descriptor, hit.offset + len(hit.data) + 1):
        for line in split(block, line_no, offset, complete=complete):
            line_no = line.line_no + 1
            found = entry.parse(line, version)
            if isinstance(found, Entry):
                yield found, line
                count -= 1
                if not count:
                    return


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
