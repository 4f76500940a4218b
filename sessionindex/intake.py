"""One file on its way into the index: read from its cursor on, entry by entry.

A file's identity is taken before it is read, and it is read only as far as it reached then. A torn
last line stays outside the cursor. Whenever a batch is full, the file's record so far and the
entries that it covers are committed together; so is the rest, by whoever ends the batch.

An identity is *proven* only against a clock from before the bytes were read: for an append that is
the moment before the indexed prefix was vouched for, which the caller knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sessionindex import entry, header, jsonline
from sessionindex.coverage import Cursor, Identity, digest, is_proven
from sessionindex.files import Changed, edges, whole_lines
from sessionindex.index import documents
from sessionindex.index.record import Record
from sessionindex.index.writer import Writer
from sessionindex.jsonline import split
from sessionindex.layout import Found
from sessionindex.model import Entry, Line, Problem
from sessionindex.signals import Tip


def begun(found: Found, key: int, now: Identity) -> Record:
    """The record of a file of which nothing is indexed yet."""
    return Record(key, found.path, found.session, None, Cursor(now, False, 0, 0, 0, 0, 0), 0, (), 0)


class Intake:
    """The reading of one file into a writer; `entries`, `bytes` and `problems` count what came.

    `record` is what the index knows of the file with the next commit.
    """

    def __init__(
        self, writer: Writer, record: Record, now: Identity, progress: Callable[[int], None]
    ) -> None:
        self.entries = self.bytes = 0
        self.problems: Counter[str] = Counter()
        self._writer = writer
        self._record = self.record = record
        self._now = now
        self._progress = progress
        self._offset = record.cursor.offset
        self._lines = record.cursor.lines
        self._checksum = record.cursor.checksum
        self._tip = Tip(record.session.version, record.leaf, record.name)
        self._numbers = Counter(dict(record.problems))
        self._fresh_problems: list[tuple[int, int]] = []

    def read(self, descriptor: int, clock_ns: int) -> None:
        """Add what lies between the cursor and where the file reached when it was opened.

        Raises Changed where its first line is not the header that was listed, and OSError.
        """
        for offset, block, _ in whole_lines(descriptor, self._offset, self._now.size, torn=False):
            self._take(block, offset)
            self._progress(len(block))
            if self._writer.is_full:
                self._put(descriptor, proven=False)
                self._writer.commit()
        proven = self._offset > 0 and is_proven(self._now, clock_ns)  # else no byte vouches for it
        self._put(descriptor, proven=proven)

    def _take(self, block: bytes, offset: int) -> None:
        record = self._record
        for line in split(block, self._lines + 1, offset):
            self._lines = line.line_no
            if line.line_no == 1:
                if header.parse(line.data) != record.session:
                    raise Changed(record.path)  # rewritten since its header was read
                continue
            self._line(line)
        self._checksum = digest(block, self._checksum)
        self._offset = offset + len(block)
        self.bytes += len(block)

    def _line(self, line: Line) -> None:
        key, place = self._record.key, (line.offset, len(line.data))
        try:
            value = jsonline.value(line.data)
        except jsonline.Unreadable as error:
            self._problem(Problem(line.line_no, entry.INVALID_JSON, error.reason))
            return
        in_tree = self._tip.pass_by(value)
        found = entry.understand(value, line.line_no, self._record.session.version)
        if isinstance(found, Entry):
            fields, size = documents.document(found, key, *place)
            self._writer.add(fields, size)
            self.entries += 1
            return
        self._problem(found)
        if in_tree:
            self._writer.add(documents.loose_document(value, line.line_no, key, *place), 0)

    def _problem(self, found: Problem) -> None:
        self._fresh_problems.append((found.line_no or 0, entry.reason_number(found)))
        self.problems[found.code] += 1

    def _put(self, descriptor: int, *, proven: bool) -> None:
        """Tell the writer what the index now knows of the file."""
        if self._fresh_problems:
            self._writer.add_problems(self._record.key, self._fresh_problems)
            self._numbers.update(number for _, number in self._fresh_problems)
            self._fresh_problems = []
        head, tail = edges(descriptor, self._offset)
        old = self._record
        cursor = Cursor(self._now, proven, self._offset, self._lines, self._checksum, head, tail)
        problems = tuple(sorted(self._numbers.items()))
        count = old.entries + self.entries
        name, leaf = self._tip.name, self._tip.leaf
        self.record = Record(old.key, old.path, old.session, name, cursor, count, problems, leaf)
        self._writer.put(self.record)
