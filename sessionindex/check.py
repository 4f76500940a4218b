"""Does the index say what the files say? Differences, and their repair.

A difference is a claim of the index that a question would trust and that is not so. An index that
is merely behind claims nothing about the rest: that is `pending`, no difference.

For every file whose indexed prefix still stands, against a fresh parse of exactly that prefix:

- the record: header, name, cursor (lines, checksum, digests), number of entries, problems;
- the entries: each line once, at its place, with its instant, type and role; none too many;
- the grams of a sample of lines, or of all: each line is found by every gram of its texts;

and for the index as a whole: one record a file, no entry without a record, and a snapshot that
says of the files, and of where they are, what the records and a walk of the root say. Where the
bound hides sessions, only what it shows is looked at. A file that changes while it is looked at is
pending, whatever was seen.

Repair is a new generation beside the old one, then the same check again: it mends whatever it was,
and it is what takes deleted grams out for good.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sessionindex import entry as entries
from sessionindex import header, jsonline
from sessionindex.access import Policy
from sessionindex.catalog import Catalog, File
from sessionindex.coverage import digest
from sessionindex.files import Changed, edges, identity, open_listed, spoken, whole_lines
from sessionindex.fold import GRAM
from sessionindex.index import documents, schema
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record
from sessionindex.jsonline import split
from sessionindex.model import Entry, Line, PathWarning, Problem, Session
from sessionindex.present import Present
from sessionindex.signals import Tip

_CHUNK = 400
"""Grams asked for in one query."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A false claim of the index; `line_no` None where it is about a whole file."""

    path: str
    line_no: int | None
    what: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was looked at and found; `pending` bytes are not claimed by the index.

    `dead` documents are deleted and still on disk; `repaired` says that a new generation was made.
    """

    files: int
    entries: int
    differences: tuple[Difference, ...]
    repaired: bool
    warnings: tuple[PathWarning, ...]
    pending: int
    dead: int


_Fact = tuple[int, ...]
"""Offset, length and columns (as stored, -1 for none) of a line as a fresh parse has it."""


def look(present: Present, sample: int | None) -> CheckReport:
    """One look at the newest commit and the root as they are; `sample` lines, None for all.

    Raises PolicyError, IndexUnusable.
    """
    policy, reader = present.policy(), present.checked_reader()
    now = present.walked(policy, {one.path: one for one in reader.all_records()})
    whole = not policy.is_bound
    # Deletions may be of sessions that the bound hides.
    dead = present.store.dead()[0] if whole else 0
    report = check(now, reader, sample=sample, whole=whole, dead=dead)
    rotten = [
        Difference(path, None, "its bytes are not those that were written")
        for path in present.store.corrupt()
    ]
    rotten += _remembered(present, reader, policy)
    return replace(report, differences=(*rotten, *report.differences))


def check(
    catalog: Catalog, reader: Reader, *, sample: int | None, whole: bool, dead: int
) -> CheckReport:
    """Compare the index with the files; `sample` lines for their grams, None for all.

    `whole` says that the catalog shows every session, so that nothing may be left over.
    """
    differences: list[Difference] = list(_leftovers(reader)) if whole else []
    warnings = list(catalog.warnings)
    covered = [file for file in catalog.files if file.record]
    choose = _chooser(sample, sum(file.record.entries for file in covered if file.record))
    counted = 0
    for file in covered:
        assert file.record is not None
        counted += file.record.entries
        try:
            found = _differences(file, _File(file.record, reader, choose))
            if found and identity(os.lstat(file.path)) != file.found.identity:
                continue  # it has changed under our eyes
            differences += found
        except (Changed, FileNotFoundError):
            continue
        except OSError as error:
            warnings.append(PathWarning(file.path, f"could not read file: {spoken(error)}"))
    pending = sum(file.uncovered for file in catalog.files)
    return CheckReport(
        len(covered), counted, tuple(differences), False, tuple(warnings), pending, dead
    )


def _remembered(present: Present, reader: Reader, policy: Policy) -> Iterator[Difference]:
    """What the snapshot of this commit would have a question believe that is not so."""
    snapshot = reader.snapshot()
    if snapshot is None:
        return
    records = {record.path: record for record in reader.all_records()}
    if snapshot.records != records:
        yield Difference(present.store.folder, None, "its snapshot is of other files")
        return
    before = present.walked(policy, records)
    standing = present.catalog(policy, reader)
    if standing.files != before.files and before == present.walked(policy, records):
        yield Difference(present.store.folder, None, "its snapshot is of another tree")


def _chooser(sample: int | None, total: int) -> Callable[[], bool]:
    """Chooses about `sample` of `total` lines, other ones at every check."""
    if sample is None or sample >= total:
        return lambda: True
    return lambda: random.random() * total < sample


def _differences(file: File, checked: _File) -> list[Difference]:
    descriptor, _ = open_listed(file.path, file.found.identity)
    try:
        return list(checked.differences(descriptor))
    finally:
        os.close(descriptor)


def _leftovers(reader: Reader) -> Iterator[Difference]:
    """What the index holds for no file, or twice."""
    records = reader.all_records()
    for path, count in Counter(record.path for record in records).items():
        if count > 1:
            yield Difference(path, None, f"{count} records of one file")
    keys = Counter(record.key for record in records)
    for record in records:
        if keys[record.key] > 1:
            yield Difference(record.path, None, "its key belongs to another file too")
    if reader.count() != sum(record.entries for record in records):
        for key, number in sorted(reader.keys().items()):
            if key not in keys:
                yield Difference("", None, f"{number} entries of no file (key {key})")


class _File:
    """One file: its indexed prefix parsed anew, and what differs."""

    def __init__(self, record: Record, reader: Reader, choose: Callable[[], bool]) -> None:
        self._record = record
        self._reader = reader
        self._choose = choose
        self._facts: dict[int, _Fact] = {}
        self._named: dict[tuple[str, str], set[int]] = {}
        self._problems: list[tuple[int, int]] = []
        self._header: object = None
        self._version = record.session.version
        self._tip = Tip(self._version)
        self._tokens: dict[int, bytes] = {}
        self._entries = 0
        self._lines = self._end = self._checksum = 0

    def differences(self, descriptor: int) -> Iterator[Difference]:
        cursor = self._record.cursor
        for offset, block, complete in whole_lines(descriptor, 0, cursor.offset):
            if not complete:
                break
            for line in split(block, self._lines + 1, offset):
                yield from self._line(line)
            self._checksum = digest(block, self._checksum)
            self._end = offset + len(block)
        yield from self._of_record(edges(descriptor, self._end))
        yield from self._of_entries()
        yield from self._of_names()

    def _differs(self, line_no: int | None, what: str) -> Difference:
        return Difference(self._record.path, line_no, what)

    def _line(self, line: Line) -> Iterator[Difference]:
        self._lines = line.line_no
        if line.line_no == 1:
            self._header = header.parse(line.data)
            if isinstance(self._header, Session):
                self._version = self._header.version
                self._tip = Tip(self._version)
            return
        fields = self._fields(line)
        if fields is None:
            return
        self._note(line, fields)
        if self._choose():
            for field in schema.ALWAYS_OF:
                if field in fields and not self._leads_back(line.line_no, field, fields[field]):
                    yield self._differs(line.line_no, f"its {field} do not lead back to it")

    def _fields(self, line: Line) -> dict[str, Any] | None:
        """The document that the index must have of a line, if any."""
        key, place = self._record.key, (line.offset, len(line.data))
        try:
            value = jsonline.value(line.data)
        except jsonline.Unreadable as error:
            self._problem(Problem(line.line_no, entries.INVALID_JSON, error.reason))
            return None
        in_tree = self._tip.pass_by(value)
        found = entries.understand(value, line.line_no, self._version)
        if isinstance(found, Entry):
            self._entries += 1
            return documents.document(found, key, *place)[0]
        self._problem(found)
        return documents.loose_document(value, line.line_no, key, *place) if in_tree else None

    def _problem(self, found: Problem) -> None:
        self._problems.append((found.line_no or 0, entries.reason_number(found)))

    def _note(self, line: Line, fields: dict[str, Any]) -> None:
        """What the index must say of an entry besides its grams."""
        columns = (fields.get(name, -1) for name in ("instant", "id", "parent", "shape"))
        self._facts[line.line_no] = (line.offset, len(line.data), *columns)
        if "facts" in fields:
            self._tokens[line.line_no] = fields["facts"]
        for field in ("type", "role"):
            if field in fields:
                self._named.setdefault((field, fields[field]), set()).add(line.line_no)
        for flag in fields.get("flags", ()):
            self._named.setdefault(("flags", flag), set()).add(line.line_no)

    def _leads_back(self, line_no: int, field: str, text: str) -> bool:
        """Whether every gram of a line's gram text finds the line."""
        grams = sorted({text[start : start + GRAM] for start in range(len(text) - GRAM + 1)})
        return all(
            line_no in self._reader.lines_with(self._record.key, field, grams[at : at + _CHUNK])
            for at in range(0, len(grams), _CHUNK)
        )

    def _of_record(self, ends: tuple[int, int]) -> Iterator[Difference]:
        record, cursor = self._record, self._record.cursor
        for what, indexed, parsed in (
            ("the header", record.session, self._header),
            ("the name", record.name, self._tip.name),
            ("the leaf", record.leaf, self._tip.leaf),
            ("the number of entries", record.entries, self._entries),
            ("the list of problems", self._reader.problems(record.key), self._problems),
            ("the number of problems", dict(record.problems), self._counted()),
            ("the way to it", self._reader.looked_up(record.path), record),
            ("the number of lines", cursor.lines, self._lines),
            ("the length", cursor.offset, self._end),
            ("the checksum", cursor.checksum, self._checksum),
            ("the digest of head and tail", (cursor.head, cursor.tail), ends),
        ):
            if indexed != parsed:
                yield self._differs(None, f"{what} is not as indexed")

    def _counted(self) -> dict[int, int]:
        return dict(Counter(number for _, number in self._problems))

    def _of_entries(self) -> Iterator[Difference]:
        """Each line once, at its place."""
        indexed = self._reader.entries_of(self._record.key)
        counts = Counter(row[0] for row in indexed)
        for line_no, count in sorted(counts.items()):
            if line_no not in self._facts:
                yield self._differs(line_no, "indexed, but no entry")
            elif count > 1:
                yield self._differs(line_no, f"indexed {count} times")
        for line_no in sorted(self._facts.keys() - counts.keys()):
            yield self._differs(line_no, "not indexed")
        if self._reader.facts_of(self._record.key) != self._tokens:
            yield self._differs(None, "its facts are not as indexed")
        for line_no, *fact in indexed:
            if self._facts.get(line_no, tuple(fact)) != tuple(fact):
                yield self._differs(line_no, "indexed at another place, instant, parent or shape")

    def _of_names(self) -> Iterator[Difference]:
        """Each line under its type, role and flags."""
        for (field, name), lines in self._named.items():
            for line_no in sorted(self._reader.lines_named(self._record.key, field, name) ^ lines):
                yield self._differs(line_no, f"indexed under another {field.removesuffix('s')}")
