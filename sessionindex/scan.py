"""Raw files -> entries that may match, with the raw test before any parsing.

`entries` is the brute path: it knows nothing of the index, bytes from an offset on, to the end of
the file as it is now. It is the reference that every indexed answer is compared with, the fallback
where there is no usable index, and what reads the tails and files that the index does not cover.
`entries_at` reads single lines at places that an index names, neighbours in one call, and checks
that they still are lines.

A torn last line counts only if it is whole JSON already; else it is pending, and no problem.
Lines the raw test rejects are never parsed, so problems of lines are not reported from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sessionindex import entry
from sessionindex.files import Changed, blocks, read_at, read_from
from sessionindex.model import Entry, Line
from sessionindex.rawtest import RawTest, line_ends

Place = tuple[int, int, int]
"""line_no, offset and length (bytes, without the LF) of a line."""

_GAP: Final = 16 << 10
_RUN: Final = 4 << 20


def entries(
    descriptor: int, *, test: RawTest, version: int, offset: int = 0, lines: int = 0
) -> Iterator[Entry]:
    """The entries from `offset` on that may match, in file order; `lines` lie before it."""
    counted = offset  # lines are counted up to here: not at all where nothing is found
    for start, block, size, complete in blocks(descriptor, offset):
        for first, end in test.lines(block, size):
            if counted < start:
                lines += _lines_between(descriptor, counted, start)
                counted = start
            lines += line_ends(block, counted - start, first)
            counted = start + first
            line = Line(lines + 1, counted, block[first:end], complete)
            if line.line_no == 1:
                continue  # the header
            found = entry.parse(line, version)
            if isinstance(found, Entry):
                yield found
        del block  # two of them would not stay in a processor's cache


def _lines_between(descriptor: int, start: int, end: int) -> int:
    """How many lines end in a part of the file that was read before."""
    return sum(line_ends(data, 0, len(data)) for data in read_from(descriptor, start, end))


def entries_at(
    descriptor: int, places: Sequence[Place], *, test: RawTest, version: int
) -> Iterator[Entry]:
    """The entries at these places (ascending offsets) that may match.

    Raises Changed where a run of them no longer is whole lines of the file. Neighbours are tested
    together: most are rejected, and a look at each would cost more than all the bytes. Where
    nearly all are kept the test is left out, but for a file now and then.
    """
    lines = _tested(descriptor, places, test) if test.pays() else lines_at(descriptor, places)
    for line in lines:
        found = entry.parse(line, version)
        if isinstance(found, Entry):
            yield found


def _tested(descriptor: int, places: Sequence[Place], test: RawTest) -> Iterator[Line]:
    """The lines at these places that the test keeps."""
    for first, last, base, size in _runs(places):
        data = read_at(descriptor, base, size)
        if len(data) != size or data[:1] != b"\n" or data[-1:] != b"\n":
            raise Changed
        if test.rejects(data):  # most are
            test.learn(last - first, 0)
            continue
        kept = 0
        run = places[first:last]
        at = {offset - base: (line_no, length) for line_no, offset, length in run}
        for start, end in test.lines(data, size):
            line_no, length = at.get(start, (0, end - start))
            if length != end - start:
                raise Changed
            if line_no:  # else it lies between the candidates
                kept += 1
                yield Line(line_no, base + start, data[start:end])
        test.learn(last - first, kept)


def lines_at(descriptor: int, places: Sequence[Place], torn: int = -1) -> Iterator[Line]:
    """The lines at these places (ascending offsets); raises Changed where one is no line.

    The line at the offset `torn` may end with the file.
    """
    for first, last, base, size in _runs(places):
        data = read_at(descriptor, base, size)
        for line_no, offset, length in places[first:last]:
            start = offset - base
            end = start + length
            after = data[end : end + 1] or (b"\n" if offset == torn else b"")
            if data[start - 1 : start] != b"\n" or after != b"\n":
                raise Changed
            line = data[start:end]
            if len(line) != length or b"\n" in line:
                raise Changed
            yield Line(line_no, offset, line)


def _runs(places: Sequence[Place]) -> Iterator[tuple[int, int, int, int]]:
    """Places that lie close together, to be read in one call, each with the LF on either side.

    First and last of them as a slice, offset and size of what is to be read.
    """
    first, start, end = 0, places[0][1] if places else 0, 0
    for at, (_, offset, length) in enumerate(places):
        if at > first and (offset - end > _GAP or offset + length - start > _RUN):
            yield first, at, start - 1, end - start + 2
            first, start = at, offset
        end = offset + length
    if places:
        yield first, len(places), start - 1, end - start + 2
