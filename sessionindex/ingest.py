"""Bringing the index up to the files: decide for each file, then apply, in batches.

    Nothing   the index holds for the whole file, and its identity proves it
    Stamp     it holds, but only the bytes said so: remember the identity of now
    Append    the file grew: read on from the cursor
    Rebuild   new, rewritten or replaced: read from the start
    Drop      the file is gone (a file that cannot be read, or lies in a folder that cannot be
              listed, is not gone: what the index has of it stays, and is not served)

Work is proportional to what changed, memory to a batch and the longest line. Everything is
indexed, whoever may see it: the access bound is asked at every question, and the report of a
refresh tells only of what it shows.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sessionindex import layout
from sessionindex.access import Policy
from sessionindex.catalog import verdict_of
from sessionindex.coverage import Identity, Verdict, is_proven, judge
from sessionindex.errors import IndexUnusable
from sessionindex.files import Changed, open_listed, spoken
from sessionindex.index.reader import Reader
from sessionindex.index.schema import Record
from sessionindex.index.store import Store
from sessionindex.index.writer import Writer
from sessionindex.intake import Intake, begun
from sessionindex.layout import Found, Tree
from sessionindex.model import PathWarning, Session

Action = Literal["nothing", "stamp", "append", "rebuild", "drop"]
Progress = Callable[[int, int], None]

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
class Done:
    """What was done with one file."""

    path: str
    cwd: str
    what: Literal["added", "appended", "rebuilt", "dropped"]
    entries: int = 0
    bytes: int = 0
    problems: Mapping[str, int] | None = None


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
    tree: Tree, verdicts: Mapping[str, Verdict], records: Mapping[str, Record]
) -> list[Decision]:
    """The decision for every file of the tree and of the index, by path."""
    decisions = []
    there = set()
    for found in tree.sessions:
        there.add(found.path)
        record = records.get(found.path)
        decisions.append(Decision(found.path, _action(found, verdicts, record), found, record))
    unread = [warning.path for warning in tree.warnings]
    unread += [path.removesuffix(layout.SUFFIX) for path in unread]  # and what it launched
    for path, record in records.items():
        if path not in there and not _is_under(path, unread):
            decisions.append(Decision(path, "drop", None, record))
    return decisions


def _action(found: Found, verdicts: Mapping[str, Verdict], record: Record | None) -> Action:
    verdict = verdicts.get(found.path, "new")
    if record and not record.cursor.lines and record.cursor.identity == found.identity:
        return "nothing"  # not one whole line yet: nothing is claimed of it
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
    policy: Policy,
    fresh: bool = False,
    paths: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> RefreshReport:
    """Make the index equal to the files; `fresh` builds it anew beside the old one.

    `paths` keeps to these files and to what lies under these folders. Raises IndexLocked and
    IndexFolderError; files that cannot be read are warnings.
    """
    refreshed = _Refresh(store, root, flat, policy, progress)
    try:
        report = refreshed.run(kind, fresh, paths)
    except IndexUnusable:
        if fresh:
            raise
        # Damage that opening could not see: begin anew beside it.
        return refreshed.run(kind, True, None)
    dead, documents = store.dead()
    if documents > _MANY and dead > documents // 4:
        # tantivy merges big segments for no number of deletions: only a new one is without them.
        refreshed.run("compaction", True, None)
    return report


class _Refresh:
    """One root's refreshing."""

    def __init__(
        self, store: Store, root: str, flat: bool, policy: Policy, progress: Progress | None
    ) -> None:
        self._store = store
        self._root = root
        self._flat = flat
        self._policy = policy
        self._progress = None if policy.is_bound else progress  # bytes of whoever they are

    def run(self, kind: str, fresh: bool, paths: Sequence[str] | None) -> RefreshReport:
        began = time.monotonic()
        with self._store.writing(kind, fresh=fresh) as generation:
            records = Reader(generation.index, self._root).records()
            clock = time.time_ns()
            tree, verdicts = self._look(records, paths)
            decisions = decide(tree, verdicts, records) if tree.readable else []
            if paths is not None:
                decisions = [one for one in decisions if _is_under(one.path, paths)]
            todo = [one for one in decisions if one.action != "nothing"]
            run = _Run(self._root, self._flat, records, clock, self._progress, todo)
            if todo:
                with Writer(generation, self._root, expected=run.total) as writer:
                    run.carry_out(writer, todo, max((r.key for r in records.values()), default=0))
            generation.publish()
            self._store.touch()
        return self._report(tree, run, time.monotonic() - began)

    def _look(
        self, records: Mapping[str, Record], paths: Sequence[str] | None
    ) -> tuple[Tree, dict[str, Verdict]]:
        """The tree now, and the verdict on each of its files."""
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

        tree = layout.discover(
            self._root, flat=self._flat, policy=Policy(None), header_of=header_of
        )
        return tree, verdicts

    def _report(self, tree: Tree, run: _Run, seconds: float) -> RefreshReport:
        """What was done, as far as the bound shows it."""
        done, warnings = run.done, [*tree.warnings, *run.warnings]
        if self._policy.is_bound:
            tree = layout.discover(self._root, flat=self._flat, policy=self._policy)
            shown = {found.path for found in tree.sessions}
            there = {one.path for one in done if one.what != "dropped"}
            done = [
                one
                for one in done
                if one.path in shown or (one.path not in there and self._policy.admits(one.cwd))
            ]
            own = [warning for warning in run.warnings if warning.path in shown]
            warnings = [*tree.warnings, *own]
        what = Counter(one.what for one in done)
        problems: Counter[str] = Counter()
        for one in done:
            problems.update(one.problems or {})
        return RefreshReport(
            len(tree.sessions),
            what["added"],
            what["appended"],
            what["rebuilt"],
            what["dropped"],
            sum(one.entries for one in done),
            sum(one.bytes for one in done),
            seconds,
            dict(sorted(problems.items())),
            tuple(sorted(set(warnings), key=lambda warning: (warning.path, warning.reason))),
        )


class _Run:
    """The carrying out of decisions that were made at a moment, and what came of it."""

    def __init__(
        self,
        root: str,
        flat: bool,
        records: Mapping[str, Record],
        clock: int,
        progress: Progress | None,
        todo: Sequence[Decision],
    ) -> None:
        self._root = root
        self._flat = flat
        self._records = records
        self.total = sum(one.bytes for one in todo)
        self.done: list[Done] = []
        self.warnings: list[PathWarning] = []
        self._clock = clock
        self._progress = progress
        self._read = 0
        self._last_key = 0

    def carry_out(self, writer: Writer, todo: Sequence[Decision], last_key: int) -> None:
        self._last_key = last_key
        for one in todo:
            if one.action == "drop" and one.record:
                writer.drop(one.record.key)
                self.done.append(Done(one.path, self._cwd_of(one.path), "dropped"))
            elif one.found:
                self._file(writer, one, one.found)
            if writer.is_full:
                writer.commit()
        writer.commit()

    def _cwd_of(self, path: str) -> str:
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
            # The prefix was vouched for when it was decided: a change since proves nothing.
            clock = self._clock if now == found.identity else 0
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
            writer.put(record._replace(cursor=cursor))

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
        try:
            intake.read(descriptor, clock)
        except Changed:
            writer.drop(record.key)  # the next refresh sees what it has become
            return
        except OSError:
            writer.drop(record.key)  # else lines would stay that no cursor knows of
            raise
        problems = dict(intake.problems)
        cwd = record.session.cwd
        self.done.append(Done(one.path, cwd, what, intake.entries, intake.bytes, problems))

    def _advance(self, size: int) -> None:
        self._read += size
        if self._progress:
            self._progress(self._read, self.total)

    def _next_key(self) -> int:
        self._last_key += 1
        return self._last_key
