"""Decisions about files (`decision`) -> the index, file by file, and what came of it.

A decision is some moments old when its turn comes. So each file is opened as the one that was
listed: one that is another by now, or that changes while it is read, is left for the next refresh,
without a line in the index that no cursor knows of. The records of the files are kept up with
what is committed; a file that is gone stays in them to the end, for what hung on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sessionindex import layout
from sessionindex.coverage import Identity, is_proven
from sessionindex.decision import Decision
from sessionindex.files import Changed, open_listed, spoken
from sessionindex.index.record import Record
from sessionindex.index.writer import Writer
from sessionindex.intake import Intake, begun
from sessionindex.layout import Found
from sessionindex.model import PathWarning

Progress = Callable[[int, int], None]
"""Told of bytes done and bytes in all."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done with one file."""

    path: str
    cwd: str
    what: Literal["added", "appended", "rebuilt", "dropped"]
    entries: int = 0
    bytes: int = 0
    problems: Mapping[str, int] | None = None


class Execution:
    """The carrying out of decisions that were made at a moment, and what came of it."""

    def __init__(
        self,
        root: str,
        flat: bool,
        records: dict[str, Record],
        clock: int,
        progress: Progress,
        todo: Sequence[Decision],
        *,
        told: bool,
    ) -> None:
        self._told = told
        self._root = root
        self._flat = flat
        self._records = records
        self.total = sum(one.bytes for one in todo)
        self.done: list[Done] = []
        self.changed = {one.path for one in todo}
        self.warnings: list[PathWarning] = []
        self._clock = clock
        self._progress = progress
        self._read = 0
        self._last_key = 0

    def carry_out(self, writer: Writer, todo: Sequence[Decision], last_key: int) -> None:
        self._last_key = last_key
        gone: list[str] = []
        for one in todo:
            if one.action == "drop" and one.record:
                writer.drop(one.record.key)
                self.done.append(Done(one.path, self.cwd_of(one.path), "dropped"))
                gone.append(one.path)
            elif one.found:
                self._file(writer, one, one.found)
            if writer.is_full:
                writer.commit()
        writer.commit()
        for path in gone:  # not before: what hung on them was told by them
            del self._records[path]

    def cwd_of(self, path: str) -> str:
        """The project that a file belonged to: that of the session which owned it, if known."""
        owner = layout.owner(self._root, path, flat=self._flat)
        record = self._records.get(owner or "")
        return record.session.cwd if record else ""

    def _file(self, writer: Writer, one: Decision, found: Found) -> None:
        clock = time.time_ns()
        try:
            descriptor, now = open_listed(found.path, found.identity)
        except Changed:
            return  # the next refresh sees what it has become
        except OSError as error:
            reason = f"could not open file: {spoken(error)}"
            self.warnings.append(PathWarning(found.path, reason))
            return
        if one.action != "rebuild":
            # The prefix was vouched for when it was decided, but for one that was told of
            # (by its edges): a change since proves nothing.
            whole = now == found.identity and not (self._told and one.action == "append")
            clock = self._clock if whole else 0
        try:
            if one.action == "stamp" and one.record:
                self._stamp(writer, one.record, now, clock)
            else:
                self._take(writer, one, found, descriptor, now, clock)
        except OSError as error:
            reason = f"could not read file: {spoken(error)}"
            self.warnings.append(PathWarning(found.path, reason))
        finally:
            os.close(descriptor)

    def _stamp(self, writer: Writer, record: Record, now: Identity, clock: int) -> None:
        """Remember the identity that the bytes have just vouched for."""
        cursor = record.cursor._replace(identity=now, proven=is_proven(now, clock))
        if cursor != record.cursor and now.size >= cursor.offset:
            self._records[record.path] = record._replace(cursor=cursor)
            writer.put(self._records[record.path])

    def _take(
        self,
        writer: Writer,
        one: Decision,
        found: Found,
        descriptor: int,
        now: Identity,
        clock: int,
    ) -> None:
        """Index a file from where its decision says."""
        record = one.record
        what: Literal["added", "appended", "rebuilt"] = "appended"
        if one.action != "append" or record is None:
            what = "rebuilt" if record else "added"
            if record:
                writer.drop(record.key)
            record = begun(found, record.key if record else self._next_key(), now)
        intake = Intake(writer, record, now, self._advance)
        self._records.pop(record.path, None)
        try:
            intake.read(descriptor, clock)
        except Changed:
            writer.drop(record.key)  # the next refresh sees what it has become
            return
        except OSError:
            writer.drop(record.key)  # else lines would stay that no cursor knows of
            raise
        self._records[record.path] = intake.record
        problems = dict(intake.problems)
        cwd = record.session.cwd
        self.done.append(Done(one.path, cwd, what, intake.entries, intake.bytes, problems))

    def _advance(self, size: int) -> None:
        self._read += size
        self._progress(self._read, self.total)

    def _next_key(self) -> int:
        self._last_key += 1
        return self._last_key
