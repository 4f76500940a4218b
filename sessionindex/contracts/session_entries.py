"""session_entries: the entries of one session file, filtered, in the order of the file.

    places    what the index covers: the lines that its columns and grams do not rule out
    verify    each of them is read at its place, parsed and tested like any other line
    tail      what lies past the cursor, or the whole file where the index covers nothing, is
              parsed line by line
    problems  lines that are no entries, of the whole file whatever the filters: those of the
              covered part from the index, those of the rest from the lines

Nothing of the covered part is read once the limit is reached. Stored history as it is: no
compaction, no branch is applied. `Changed` says that the file must be asked again; not `strict`,
a file that keeps changing is an error instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sessionindex import entry as entries
from sessionindex import evidence, header, layout, scan
from sessionindex.address import Address
from sessionindex.catalog import verdict_of
from sessionindex.errors import SessionFileError
from sessionindex.files import read_from, whole_lines
from sessionindex.fold import folded, token
from sessionindex.index.plan import Plan
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record
from sessionindex.jsonline import split
from sessionindex.model import Entry, Kind, Line, Problem
from sessionindex.rawtest import RawTest
from sessionindex.timestamps import Window, local_to_utc_ms

_KINDS: Final[tuple[Kind, ...]] = ("text", "shell", "system")
"""The kinds that hold an entry's text, and more."""

_LEGACY: Final = Problem(
    None,
    "legacy_version",
    "session version 1: entry ids are not durable, so id and parentId are null",
)


@dataclass(frozen=True, slots=True)
class Question:
    """The checked parameters; None does not filter. Lines are inclusive, `terms` match if any."""

    path: str
    start_line: int | None
    end_line: int | None
    ids: frozenset[str] | None
    parent_ids: frozenset[str] | None
    window: Window
    types: frozenset[str] | None
    roles: frozenset[str] | None
    terms: tuple[str, ...]
    case_sensitive: bool
    limit: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """An entry, the contract's text of it, and its line as it stands in the file."""

    entry: Entry
    text: str | None
    line: bytes


@dataclass(frozen=True, slots=True)
class EntriesResult:
    """Rows and problems in the order of the file; a problem of the whole file comes first."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...]


def session_entries(
    question: Question, address: Address, reader: Reader | None, *, strict: bool = True
) -> EntriesResult:
    """The answer; raises SessionFileError, OSError and Changed."""
    record = _usable(address, reader)
    head = record.session if record else layout.read_header(address.path, address.identity)
    with evidence.Opened(address.path, address.identity, record, head, strict) as descriptor:
        version = record.session.version if record else _version(descriptor, address.path)
        run = _Run(question, version)
        if record and reader:
            run.covered(descriptor, record, reader)
            run.rest(descriptor, record.cursor.offset, record.cursor.lines)
        else:
            run.rest(descriptor, 0, 0)
    return run.result()


def _usable(address: Address, reader: Reader | None) -> Record | None:
    """The record of the file, where it still holds for a prefix of it."""
    record = reader.record_of(address.spelled) if reader else None
    if record is None or not record.session.version:
        return None
    verdict = verdict_of(address.path, address.identity, record.cursor)
    return record if verdict in ("fresh", "behind") else None


def _version(descriptor: int, path: str) -> int:
    parts: list[bytes] = []
    for data in read_from(descriptor, 0):
        first, end, _ = data.partition(b"\n")
        parts.append(first)
        if end:
            break
    found = header.version(b"".join(parts))
    if isinstance(found, str):
        raise SessionFileError(f"not a Pi session file: {found}", path)
    return found


class _Run:
    """One question on its way through a file."""

    def __init__(self, question: Question, version: int) -> None:
        self._question = question
        self._version = version
        self._needles = [folded(term, question.case_sensitive) for term in question.terms]
        self._rows: list[Row] = []
        self._problems = [_LEGACY] if version == 1 else []

    def result(self) -> EntriesResult:
        return EntriesResult(tuple(self._rows), tuple(self._problems))

    @property
    def _is_full(self) -> bool:
        limit = self._question.limit
        return limit is not None and len(self._rows) >= limit

    def covered(self, descriptor: int, record: Record, reader: Reader) -> None:
        """The part of the file that the index covers."""
        for problem in reader.problems(record.key):
            self._problems.append(entries.problem(*problem))
        if (self._question.start_line or 0) > record.cursor.lines:
            return
        for line in self._possible(scan.lines_at(descriptor, reader.places(self._plan(record)))):
            found = entries.parse(line, self._version)
            if isinstance(found, Entry):
                self._offer(found, line)
            if self._is_full:
                return

    def rest(self, descriptor: int, offset: int, lines: int) -> None:
        """Every line from an offset on; `lines` lie before it."""
        for start, block, complete in whole_lines(descriptor, offset):
            for line in split(block, lines + 1, start, complete=complete):
                lines = line.line_no
                if lines == 1:
                    continue
                found = entries.parse(line, self._version)
                if isinstance(found, Problem):
                    self._problems.append(found)
                elif not self._is_full:
                    self._offer(found, line)

    def _possible(self, lines: Iterator[Line]) -> Iterator[Line]:
        """The lines that may hold a term."""
        question = self._question
        if not question.terms:
            return lines
        test = RawTest(question.terms, case_sensitive=question.case_sensitive, kinds=_KINDS)
        return (line for line in lines if test.possible(line.data))

    def _plan(self, record: Record) -> Plan:
        question = self._question
        bounded = question.start_line is not None or question.end_line is not None
        last = record.cursor.lines if question.end_line is None else question.end_line
        return Plan(
            question.terms,
            False,
            _KINDS,
            None if question.types is None else tuple(question.types),
            None if question.roles is None else tuple(question.roles),
            question.window.start_ms,
            question.window.end_ms,
            (record.key,),
            (question.start_line or 0, last) if bounded else None,
            _tokens(question.ids),
            _tokens(question.parent_ids),
        )

    def _offer(self, entry: Entry, line: Line) -> None:
        question = self._question
        if not self._passes(entry):
            return
        text = entries.text(entry)
        if self._needles:
            if text is None:
                return
            low = folded(text, question.case_sensitive)
            if not any(needle in low for needle in self._needles):
                return
        self._rows.append(Row(entry, text, line.data))

    def _passes(self, entry: Entry) -> bool:
        asked = self._question
        instant = local_to_utc_ms(entry.instant) if entry.floating else entry.instant
        return (
            (asked.start_line is None or entry.line_no >= asked.start_line)
            and (asked.end_line is None or entry.line_no <= asked.end_line)
            and (asked.ids is None or entry.id in asked.ids)
            and (asked.parent_ids is None or entry.parent_id in asked.parent_ids)
            and (asked.types is None or entry.type in asked.types)
            and (asked.roles is None or entry.role in asked.roles)
            and asked.window.holds(instant)
        )


def _tokens(names: frozenset[str] | None) -> frozenset[int] | None:
    return None if names is None else frozenset(map(token, names))
