"""Bringing the index up to the files: decide for each file, then apply, in batches.

    Nothing   the index holds for the whole file, and its identity proves it
    Stamp     it holds, but only the bytes said so: remember the identity of now
    Append    the file grew: read on from the cursor
    Rebuild   new, rewritten or replaced: read from the start
    Drop      the file is gone (a file that cannot be read, or lies in a folder that cannot be
              listed, is not gone: what the index has of it stays, and is not served)

Work is proportional to what changed, memory to a batch and the longest line. A file's identity is
taken before it is read, and it is read only as far as it reached then. A torn last line stays
outside the cursor. The access bound plays no part here: it is asked at every question.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sessionindex import entry, layout
from sessionindex.access import Policy
from sessionindex.catalog import verdict_of
from sessionindex.coverage import Cursor, Identity, Verdict, digest, is_proven, judge
from sessionindex.errors import IndexUnusable
from sessionindex.files import Changed, edges, open_listed, spoken, whole_lines
from sessionindex.index import schema
from sessionindex.index.reader import Reader
from sessionindex.index.schema import Record
from sessionindex.index.store import Store
from sessionindex.index.writer import Writer
from sessionindex.jsonline import split
from sessionindex.layout import Found
from sessionindex.model import Entry, PathWarning, Session

Action = Literal["nothing", "stamp", "append", "rebuild", "drop"]
Progress = Callable[[int, int], None]

_LARGE: Final = 16 << 20
"""Bytes to read from which a second indexing thread pays."""

_MANY: Final = 10_000
"""Documents from which an index that is a quarter dead is worth making anew."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with one file, and why it costs what it costs."""

    path: str
    action: Action
    found: Found | None
    record: Record | None

    @property
    def bytes(self) -> int:
        """Bytes that carrying it out will read, checksums apart."""
        if self.found is None or self.action in ("nothing", "stamp", "drop"):
            return 0
        start = self.record.cursor.offset if self.record and self.action == "append" else 0
        return self.found.identity.size - start


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What a refresh did; `problems` counts bad lines that were met, by code."""

    files: int
    added: int
    appended: int
    rebuilt: int
    dropped: int
    entries: int
    bytes: int
    seconds: float
    problems: Mapping[str, int]
    warnings: tuple[PathWarning, ...]


def decide(
    tree: layout.Tree, verdicts: Mapping[str, Verdict], records: Mapping[str, Record]
) -> list[Decision]:
    """The decision for every file of the tree and of the index, by path."""
    decisions = []
    there = set()
    for found in tree.sessions:
        there.add(found.path)
        record = records.get(found.path)
        decisions.append(Decision(found.path, _action(found, verdicts, record), found, record))
    unread = tuple(warning.path for warning in tree.warnings)
    for path, record in records.items():
        if path not in there and not _is_under(path, unread):
            decisions.append(Decision(path, "drop", None, record))
    return decisions


def _action(found: Found, verdicts: Mapping[str, Verdict], record: Record | None) -> Action:
    verdict = verdicts.get(found.path, "new")
    if record is None or verdict in ("new", "stale"):
        return "rebuild"
    if verdict == "behind":
        # Behind its own identity: what follows the cursor was torn then, and is so still.
        still = record.cursor.proven and record.cursor.identity == found.identity
        return "nothing" if still else "append"
    return "nothing" if judge(found.identity, record.cursor) == "fresh" else "stamp"


def _is_under(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def refresh(
    store: Store,
    root: str,
    *,
    flat: bool,
    kind: str,
    fresh: bool = False,
    paths: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> RefreshReport:
    """Make the index equal to the files; `fresh` builds it anew beside the old one.

    `paths` keeps to these files and to what lies under these folders. Raises IndexLocked and
    IndexFolderError; files that cannot be read are warnings.
    """
    try:
        report = _refresh(store, root, flat, kind, fresh, paths, progress)
    except IndexUnusable:
        if fresh:
            raise
        # Damage that opening could not see: begin anew beside it.
        return _refresh(store, root, flat, kind, True, None, progress)
    dead, documents = store.dead()
    if documents > _MANY and dead > documents // 4:
        # tantivy merges big segments for no number of deletions: only a new one is without them.
        _refresh(store, root, flat, "compaction", True, None, progress)
    return report


def _refresh(
    store: Store,
    root: str,
    flat: bool,
    kind: str,
    fresh: bool,
    paths: Sequence[str] | None,
    progress: Progress | None,
) -> RefreshReport:
    began = time.monotonic()
    with store.writing(kind, fresh=fresh) as generation:
        records = Reader(generation.index, root).records()
        verdicts: dict[str, Verdict] = {}

        def header_of(path: str, listed: Identity) -> Session | str:
            record = records.get(path)
            if paths is not None and record and not _is_under(path, paths):
                verdicts[path] = "fresh"
                return record.session
            verdicts[path] = verdict_of(path, listed, record.cursor if record else None)
            if record and verdicts[path] in ("fresh", "behind"):
                return record.session
            return layout.read_header(path, listed)

        tree = layout.discover(root, flat=flat, policy=Policy(None), header_of=header_of)
        decisions = decide(tree, verdicts, records) if tree.readable else []
        if paths is not None:
            decisions = [one for one in decisions if _is_under(one.path, paths)]
        todo = [one for one in decisions if one.action != "nothing"]
        run = _Run(store, tree.warnings, progress, sum(one.bytes for one in todo))
        if todo:
            large = run.total > _LARGE
            with Writer(generation, root, large=large) as writer:
                run.carry_out(writer, todo, max((r.key for r in records.values()), default=0))
        generation.publish()
        store.touch()
    return run.report(len(tree.sessions), time.monotonic() - began)


class _Run:
    """The carrying out of one refresh, and its counts."""

    def __init__(
        self,
        store: Store,
        warnings: Sequence[PathWarning],
        progress: Progress | None,
        total: int,
    ) -> None:
        self.total = total
        self._store = store
        self._warnings = list(warnings)
        self._progress = progress
        self._counts = dict.fromkeys(("added", "append", "rebuild", "drop", "stamp"), 0)
        self._entries = self._bytes = 0
        self._problems: dict[str, int] = {}
        self._last_key = 0

    def carry_out(self, writer: Writer, todo: Sequence[Decision], last_key: int) -> None:
        self._last_key = last_key
        for one in todo:
            if one.action == "drop" and one.record:
                writer.drop(one.record.key)
                self._counts["drop"] += 1
            elif one.found:
                self._file(writer, one, one.found)
            if writer.is_full:
                writer.commit()
        writer.commit()

    def _file(self, writer: Writer, one: Decision, found: Found) -> None:
        clock = time.time_ns()
        try:
            descriptor, now = open_listed(found.path, found.identity)
        except Changed:
            return  # the next refresh sees what it has become
        except OSError as error:
            reason = f"could not open file: {spoken(error)}"
            self._warnings.append(PathWarning(found.path, reason))
            return
        try:
            if one.action == "stamp" and one.record:
                self._stamp(writer, one.record, now, clock if now == found.identity else 0)
            else:
                # The prefix was vouched for as it was listed: a change since proves nothing.
                vouched = now == found.identity or one.action == "rebuild"
                self._read(writer, one, descriptor, now, clock if vouched else 0)
        except OSError as error:
            reason = f"could not read file: {spoken(error)}"
            self._warnings.append(PathWarning(found.path, reason))
        finally:
            os.close(descriptor)

    def _stamp(self, writer: Writer, record: Record, now: Identity, clock: int) -> None:
        """Remember the identity that the bytes have just vouched for."""
        if now.size < record.cursor.offset:
            return
        old = record.cursor
        proven = is_proven(now, clock)
        cursor = Cursor(now, proven, old.offset, old.lines, old.checksum, old.head, old.tail)
        if cursor != old:
            writer.put(_moved(record, cursor))
            self._counts["stamp"] += 1

    def _read(
        self, writer: Writer, one: Decision, descriptor: int, now: Identity, clock: int
    ) -> None:
        """Index a file from where its decision says, a commit whenever a batch is full."""
        assert one.found is not None
        record = one.record
        if one.action == "append" and record:
            self._counts["append"] += 1
        else:
            self._counts["rebuild" if record else "added"] += 1
            if record:
                writer.drop(record.key)
            record = _begun(one.found, record.key if record else self._next_key(), now)
        state = _Reading(record, self._problems)
        try:
            self._fill(writer, state, descriptor, now)
            writer.put(state.record(descriptor, now, proven=is_proven(now, clock)))
        except OSError:
            writer.drop(record.key)  # else lines would stay that no cursor knows of
            raise
        self._entries += state.added

    def _fill(self, writer: Writer, state: _Reading, descriptor: int, now: Identity) -> None:
        """Add what lies between the cursor and where the file reached when it was opened."""
        for offset, block, complete in whole_lines(descriptor, state.offset, now.size):
            if not complete:
                break
            state.take(writer, block, offset)
            self._bytes += len(block)
            if writer.is_full:
                writer.put(state.record(descriptor, now, proven=False))
                writer.commit()
            if self._progress:
                self._progress(self._bytes, self.total)

    def _next_key(self) -> int:
        self._last_key += 1
        return self._last_key

    def report(self, files: int, seconds: float) -> RefreshReport:
        counts = self._counts
        return RefreshReport(
            files,
            counts["added"],
            counts["append"],
            counts["rebuild"],
            counts["drop"],
            self._entries,
            self._bytes,
            seconds,
            self._problems,
            tuple(sorted(self._warnings, key=lambda warning: (warning.path, warning.reason))),
        )


class _Reading:
    """One file on its way into the index: the cursor so far."""

    def __init__(self, record: Record, problems: dict[str, int]) -> None:
        self._record = record
        self.offset = record.cursor.offset
        self._lines = record.cursor.lines
        self._checksum = record.cursor.checksum
        self._name = record.name
        self._problems = list(record.problems)
        self._counted = problems
        self.added = 0

    def take(self, writer: Writer, block: bytes, offset: int) -> None:
        """Add a block of whole lines."""
        record = self._record
        for line in split(block, self._lines + 1, offset):
            self._lines = line.line_no
            if line.line_no == 1:
                continue
            found = entry.parse(line, record.session.version)
            if isinstance(found, Entry):
                fields, size = schema.document(found, record.key, line.offset, len(line.data))
                writer.add(fields, size)
                self.added += 1
                if found.type == "session_info":
                    self._name = entry.text(found)
            else:
                self._problems.append((line.line_no, entry.reason_number(found)))
                self._counted[found.code] = self._counted.get(found.code, 0) + 1
        self._checksum = digest(block, self._checksum)
        self.offset = offset + len(block)

    def record(self, descriptor: int, now: Identity, *, proven: bool) -> Record:
        """What the index now knows of the file."""
        head, tail = edges(descriptor, self.offset)
        cursor = Cursor(now, proven, self.offset, self._lines, self._checksum, head, tail)
        old = self._record
        return Record(
            old.key,
            old.path,
            old.session,
            self._name,
            cursor,
            old.entries + self.added,
            tuple(self._problems),
        )


def _moved(record: Record, cursor: Cursor) -> Record:
    return Record(
        record.key,
        record.path,
        record.session,
        record.name,
        cursor,
        record.entries,
        record.problems,
    )


def _begun(found: Found, key: int, now: Identity) -> Record:
    """The record of a file of which nothing is indexed yet."""
    return Record(key, found.path, found.session, None, Cursor(now, False, 0, 0, 0, 0, 0), 0, ())
