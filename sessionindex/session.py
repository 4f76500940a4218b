"""One session now: the outline of its entries in numbers, and the lines that are asked for.

An `Outline` says of every recovery entry (a line with an id and a type, of a file whose version
has durable ids) where it stands, its id and its parent as tokens, and its traits; it holds no text.
Whatever decides, counts or compares works on it. What is shown is read by `OpenSession.read`: just
those lines, each checked to be the line that the outline means, else `Changed` is raised and the
question has to be put again.

The outline is gathered from the file alone here, a block at a time; one whose first part comes from
somewhere else is what a `Gathering` begins with. A torn last line counts if it parses already.

The header may lack what listing asks for: whose session it is is not for this module to say. A file
that is empty or not there yet is a session without entries.
"""

from __future__ import annotations

import errno
import os
import stat
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from sessionindex import header, jsonline, scan, signals
from sessionindex.catalog import verdict_of
from sessionindex.coverage import Identity
from sessionindex.files import Changed, identity, open_listed, read_at, whole_lines
from sessionindex.fold import token
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record
from sessionindex.model import Kind, Line
from sessionindex.signals import Tip, Traits

_BATCH_BYTES: Final = 4 << 20
_BATCH_ROWS: Final = 2_000


class NoSession(Exception):
    """A file is no session; `reason` is why its first line is no header."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Test(Protocol):
    """A test on a line's bytes that rejects only what nobody asks for."""

    def possible(self, line: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Outline:
    """A session in numbers; the columns have one item for each entry, in the order of the file.

    `leaf` is the id of the last entry line of the file, 0 where that line has none. `torn` is the
    offset of an entry whose line has no line end yet, or -1.
    """

    path: str
    session_id: str | None
    has_parent: bool
    version: int
    name: str | None
    leaf: int
    torn: int
    line_nos: Sequence[int]
    offsets: Sequence[int]
    lengths: Sequence[int]
    ids: Sequence[int]
    parents: Sequence[int]
    shapes: Sequence[int]
    facts: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.ids)

    def traits(self, row: int) -> Traits:
        """What the entry of a row says."""
        return signals.unpack(self.shapes[row], self.facts[row])


def nothing(path: str) -> Outline:
    """The outline of a session without a file, or with an empty one."""
    return headed(path, {})


def headed(path: str, head: dict[str, Any]) -> Outline:
    """The outline of a session of which only the header is known."""
    named = head.get("id")
    return Outline(
        path,
        named if isinstance(named, str) and named else None,
        head.get("parentSession") is not None,
        header.version_of(head),
        None,
        0,
        -1,
        *((),) * 7,
    )


class Gathering:
    """An outline that grows: begins with what is known, `add` takes the lines that follow it."""

    def __init__(self, known: Outline) -> None:
        self._known = known
        self._tip = Tip(known.version, known.leaf, known.name)
        self._torn = known.torn
        self._numbers = tuple(
            array("Q", column)
            for column in (
                known.line_nos,
                known.offsets,
                known.lengths,
                known.ids,
                known.parents,
                known.shapes,
            )
        )
        self._facts = list(known.facts)

    def add(self, line: Line) -> None:
        """Take one line; what is no entry is left out."""
        try:
            value = jsonline.value(line.data)
        except jsonline.Unreadable:
            return
        if not self._tip.pass_by(value):
            return
        parent = value.get("parentId")
        above = token(parent) if isinstance(parent, str) and parent else 0
        shape, facts = signals.pack(signals.traits(value))
        numbers = (line.line_no, line.offset, len(line.data), self._tip.leaf, above, shape)
        for column, found in zip(self._numbers, numbers, strict=True):
            column.append(found)
        self._facts.append(facts)
        if not line.complete:
            self._torn = line.offset

    def outline(self) -> Outline:
        """What was gathered."""
        line_nos, offsets, lengths, ids, parents, shapes = self._numbers
        return replace(
            self._known,
            name=self._tip.name,
            leaf=self._tip.leaf,
            torn=self._torn,
            line_nos=line_nos,
            offsets=offsets,
            lengths=lengths,
            ids=ids,
            parents=parents,
            shapes=shapes,
            facts=self._facts,
        )


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session whose lines can be read; `descriptor` is None where there is no file.

    `identity` is the file's before anything was read of it.
    """

    outline: Outline
    descriptor: int | None
    identity: Identity | None = None
    covered: Covered | None = None

    def candidates(self, needles: Sequence[str], kinds: tuple[Kind, ...]) -> Collection[int] | None:
        """The rows that may hold every needle: a superset; None where nobody knows better."""
        if self.covered is None or not needles:
            return None
        reader, record = self.covered
        held = reader.lines_holding(record.key, needles, kinds)
        if held is None:
            return None
        last = record.cursor.lines
        return {
            row
            for row, line_no in enumerate(self.outline.line_nos)
            if line_no in held or line_no > last
        }

    def read(
        self, rows: Iterable[int], test: Test | None = None
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Row and value of these entries, in the order given; `test` may leave some out.

        Memory is one batch of lines, or the longest line. Raises Changed.
        """
        lengths = self.outline.lengths
        batch: list[int] = []
        size = 0
        for row in rows:
            batch.append(row)
            size += lengths[row]
            if size >= _BATCH_BYTES or len(batch) >= _BATCH_ROWS:
                yield from self._values(batch, test)
                batch, size = [], 0
        if batch:
            yield from self._values(batch, test)

    def one(self, row: int) -> dict[str, Any]:
        """The value of one entry. Raises Changed."""
        return next(self.read((row,)))[1]

    def _values(self, batch: list[int], test: Test | None) -> Iterator[tuple[int, dict[str, Any]]]:
        outline = self.outline
        if self.descriptor is None:
            raise Changed(outline.path)
        places = [(row, outline.offsets[row], outline.lengths[row]) for row in sorted(set(batch))]
        found = {}
        for line in scan.lines_at(self.descriptor, places, outline.torn):
            if test is None or test.possible(line.data):
                row = line.line_no  # as it is called in these places
                found[row] = self._value(row, line.data, whole=test is None)
        for row in batch:
            if row in found:
                yield row, found[row]

    def _value(self, row: int, line: bytes, *, whole: bool) -> dict[str, Any]:
        """The value of a line, if it is the entry that the outline means (`whole`: all of it)."""
        outline = self.outline
        try:
            value = jsonline.value(line)
        except jsonline.Unreadable as error:
            raise Changed(outline.path) from error
        if not signals.is_entry(value) or token(value["id"]) != outline.ids[row]:
            raise Changed(outline.path)
        if whole and signals.pack(signals.traits(value)) != (
            outline.shapes[row],
            outline.facts[row],
        ):
            raise Changed(outline.path)
        return value  # type: ignore[no-any-return]


class Covered(NamedTuple):
    """An index that holds for the beginning of a file."""

    reader: Reader
    record: Record


class Known(NamedTuple):
    """What somebody else knows of the first `offset` bytes of a file, which are `lines` lines."""

    outline: Outline
    offset: int
    lines: int


@contextmanager
def opened(
    path: str, *, reader: Reader | None = None, spelled: str | None = None, strict: bool = True
) -> Iterator[OpenSession]:
    """The session in a file; its outline from the file alone, or on from what an index knows.

    `spelled` is the path as the index knows it. Raises NoSession, OSError (FileNotFoundError too),
    and Changed where the file changed meanwhile; not `strict`, only where a line that was read is
    no longer there.
    """
    try:
        found = os.lstat(path)
    except ValueError as error:  # a NUL or a lone surrogate: no file has such a name
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from error
    if not stat.S_ISREG(found.st_mode):
        raise NoSession("it is no regular file")
    descriptor, before = open_listed(path, identity(found))
    try:
        covered = _covered(path, before, reader, spelled)
        known = _known(path, descriptor, covered) if covered else None
        yield OpenSession(_gathered(path, descriptor, known), descriptor, before, covered)
        if strict and identity(os.fstat(descriptor)) != before:
            raise Changed(path)
    finally:
        os.close(descriptor)


def _covered(
    path: str, now: Identity, reader: Reader | None, spelled: str | None
) -> Covered | None:
    """The index, where it still holds for the beginning of a file."""
    record = reader.record_of(spelled or path) if reader else None
    if reader is None or record is None:
        return None
    holds = verdict_of(path, now, record.cursor) in ("fresh", "behind")
    return Covered(reader, record) if holds else None


def _known(path: str, descriptor: int, covered: Covered) -> Known:
    reader, record = covered
    first = read_at(descriptor, 0, header.MAX_BYTES + 1).split(b"\n", 1)[0]
    columns = reader.outline(record.key)._asdict()
    begun = replace(headed(path, _head(first)), name=record.name, leaf=record.leaf, **columns)
    return Known(begun, record.cursor.offset, record.cursor.lines)


def _gathered(path: str, descriptor: int, known: Known | None) -> Outline:
    gathering = Gathering(known.outline) if known else None
    line_no = known.lines + 1 if known else 1
    for offset, block, complete in whole_lines(descriptor, known.offset if known else 0):
        for line in jsonline.split(block, line_no, offset, complete=complete):
            line_no = line.line_no + 1
            if gathering is None:
                gathering = Gathering(headed(path, _head(line.data)))
            else:
                gathering.add(line)
    return gathering.outline() if gathering else nothing(path)


def _head(data: bytes) -> dict[str, Any]:
    head = header.opening(data)
    if isinstance(head, str):
        raise NoSession(head)
    return head
