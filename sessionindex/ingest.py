"""Bringing the index up to the files: decide for each file (`decision`), then apply, in batches.

Work is proportional to what changed, memory to a batch and the longest line. A file that is named
and known costs a stat, its new bytes and a commit; a folder that is named, or a file that is new or
gone, costs a walk of its project; nothing named, a walk of the root. Everything is indexed, whoever
may see it: the access bound is asked at every question, and the report of a refresh tells only of
what it shows.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sessionindex import catalog, coverage, layout, standing
from sessionindex.access import Policy
from sessionindex.catalog import verdict_of
from sessionindex.coverage import Identity, Verdict
from sessionindex.decision import Decision, decide, is_under
from sessionindex.errors import IndexFolderError, IndexUnusable
from sessionindex.execution import Execution, Progress
from sessionindex.index import segments, snapshot
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record
from sessionindex.index.snapshot import Snapshot, Written
from sessionindex.index.store import Generation, Store
from sessionindex.index.writer import Writer
from sessionindex.layout import Notes, Survey, Tree
from sessionindex.model import PathWarning, Session

_MANY: Final = 10_000
"""Documents from which an index that is a quarter dead is worth making anew."""


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
    known: Snapshot | None = None,
) -> tuple[RefreshReport, Snapshot | None]:
    """Make the index equal to the files; `fresh` builds it anew beside the old one.

    `known` is what was known of the files at some state of the index, and what comes back beside
    the report what is known now: while the index is in that state, it need not be read again.
    `paths` keeps to these files and to what lies under these folders. Raises IndexLocked and
    IndexFolderError; files that cannot be read are warnings.
    """
    with store.held(kind):
        ingest = Ingest(store, root, lambda: flat, policy, progress, known)
        return ingest.refresh(paths, fresh=fresh), ingest.snapshot()


class Interrupted(Exception):
    """Whoever refreshes was asked to stop."""


class Ingest:
    """Refreshing for as long as somebody holds the writer lock.

    What the index knows of the files is read once and kept: nobody else can change it. Work is
    then that of the paths that are named, not that of the root. Whoever has `interrupted` answer
    True gets Interrupted before the next block is read; what was committed stays.
    """

    def __init__(
        self,
        store: Store,
        root: str,
        is_flat: Callable[[], bool],
        policy: Policy,
        progress: Progress | None = None,
        known: Snapshot | None = None,
    ) -> None:
        self._store = store
        self._root = root
        self._is_flat = is_flat  # shows with the first files of a root that is looked at
        self._flat = is_flat()
        self._policy = policy
        self._progress = None if policy.is_bound else progress  # bytes of whoever they are
        self._open: tuple[Generation, dict[str, Record]] | None = None
        self._left: object = None
        self._known = known
        self._survey: Survey | None = None
        self._written: Written | None = None
        self.interrupted: Callable[[], bool] = lambda: False

    def refresh(self, paths: Sequence[str] | None = None, *, fresh: bool = False) -> RefreshReport:
        """As `refresh` of this module, for whoever holds the lock."""
        try:
            report = self._run(paths, fresh)
        except IndexUnusable:
            if fresh:
                raise
            # Damage that opening could not see: begin anew beside it.
            return self._run(None, True)
        if paths is None:
            dead, documents = self._store.dead()
            if documents > _MANY and dead > documents // 4:
                # tantivy merges big segments for no number of deletions: a new one is without.
                self._run(None, True)
        return report

    def _run(self, paths: Sequence[str] | None, fresh: bool) -> RefreshReport:
        began = time.monotonic()
        if not self._store.is_held():  # taken away, and perhaps begun anew by somebody else
            raise IndexFolderError("the index folder was taken away", self._store.folder)
        known, self._open = self._open, None  # what fails leaves nothing that can be trusted
        state = self._store.state()
        if fresh or known is None or state is None or state != self._left:
            generation = self._store.generation(fresh=fresh)
            records = self._records(generation)
        else:
            generation, records = known
            segments.verify(generation.folder)  # somebody may have damaged it meanwhile
        clock = time.time_ns()
        before = self._store.state() if generation.published else None
        tree, decisions = self._decided(records, paths)
        todo = [one for one in decisions if one.action != "nothing"]
        told = paths is not None
        run = Execution(self._root, self._flat, records, clock, self._advanced, todo, told=told)
        if todo:
            with Writer(generation, self._root, expected=run.total) as writer:
                run.carry_out(writer, todo, max((r.key for r in records.values()), default=0))
        if not told:
            self._look_again(records, clock)
        generation.publish()
        self._store.touch()
        self._open = generation, records
        self._left = self._store.state()
        self._write_down(generation.folder, run.changed, before)
        return self._report(tree, run, time.monotonic() - began, told=told)

    def _records(self, generation: Generation) -> dict[str, Record]:
        """What the index knows of the files: as it was told of, if it is in that state still."""
        self._written = None
        if not generation.published:
            # Beside the current one, with a state of its own: nothing is in it.
            return dict(Reader(generation.index, self._root).records())
        state, known = self._store.state(), self._known
        if known is None or known[:2] != (state, time.tzname):
            known = self._store.snapshot(state, self._root)
        if known is not None:
            self._survey, self._written = known.survey, known.written
            return dict(known.records)
        return dict(Reader(generation.index, self._root).records())

    def snapshot(self) -> Snapshot | None:
        """What the index knows of the files now; only whoever holds the lock can say it."""
        state = self._store.state()
        if not self._open or not state:
            return None
        return Snapshot(state, time.tzname, self._open[1], self._survey, self._written)

    def _write_down(self, folder: str, changed: Collection[str], before: object) -> None:
        """Have the snapshot on disk be of this state, for whoever reads the index next."""
        written, self._written = self._written, None
        now = self.snapshot()
        if now is None:
            return
        with suppress(OSError):  # it costs the next reader time, no more
            if written is not None and written.survey is now.survey:
                if now.state == before:
                    self._written = written
                else:
                    self._written = snapshot.add(folder, self._root, now, changed, before, written)
            if self._written is None:
                self._written = snapshot.save(folder, self._root, now)

    def _advanced(self, done: int, total: int) -> None:
        if self.interrupted():
            raise Interrupted
        if self._progress:
            self._progress(done, total)

    # --- what there is now -----------------------------------------------------------------------

    def _decided(
        self, records: Mapping[str, Record], paths: Sequence[str] | None
    ) -> tuple[Tree, list[Decision]]:
        """What was looked at, and what is to be done about it."""
        verdicts: dict[str, Verdict] = {}

        def header_of(path: str, listed: Identity) -> Session | str:
            record = records.get(path)
            cursor = record.cursor if record else None
            verdicts[path] = verdict_of(path, listed, cursor, by_edges=paths is not None)
            if record and verdicts[path] in ("fresh", "behind"):
                return record.session
            return layout.read_header(path, listed)

        if paths is None:
            self._flat = self._is_flat()
            tree = self._walked(header_of, None)
            return tree, decide(tree, verdicts, records) if tree.readable else []
        sessions = [found for path in paths if (found := catalog.at(path, records, header_of))]
        there = {found.path for found in sessions}
        rest = [path for path in paths if path not in there]
        decisions = decide(Tree(tuple(sessions), ()), verdicts, {p: records[p] for p in there})
        warnings: tuple[PathWarning, ...] = ()
        if rest:
            self._flat = self._is_flat()
            tree = self._walked(header_of, self._projects(rest))
            warnings = tree.warnings
            rest += [path.removesuffix(layout.SUFFIX) for path in rest]  # and what it launched
            near = {p: r for p, r in records.items() if p not in there and is_under(p, rest)}
            listed = tuple(
                one for one in tree.sessions if one.path not in there and is_under(one.path, rest)
            )
            sessions += listed
            if tree.readable:
                decisions += decide(tree._replace(sessions=listed), verdicts, near)
        return Tree(tuple(sessions), warnings), decisions

    def _walked(self, header_of: layout.Header, only: Collection[str] | None) -> Tree:
        survey, root, flat = self._survey, self._root, self._flat
        if only is None and survey is not None and survey.flat == flat:
            still = standing.tree(survey, root, header_of)
            if still is not None:
                return still
        notes, clock = Notes() if only is None else None, time.time_ns()
        policy = Policy(None)  # everything is indexed, whoever may see it
        tree = layout.discover(
            root, flat=flat, policy=policy, header_of=header_of, only=only, notes=notes
        )
        if notes is not None:
            self._survey = standing.surveyed(tree, root, notes, flat, clock)
        return tree

    def _look_again(self, records: Mapping[str, Record], walked_ns: int) -> None:
        """Walk once more after long work, where the walk before it was too early to prove anything.

        Else the first index of a root in which somebody is at work would leave no survey.
        """
        if self._survey is not None or time.time_ns() - walked_ns <= coverage.RACY_NS:
            return

        def header_of(path: str, listed: Identity) -> Session | str:
            record = records.get(path)
            known = record is not None and record.cursor.identity == listed
            return record.session if record and known else layout.read_header(path, listed)

        self._walked(header_of, None)

    def _projects(self, paths: Sequence[str]) -> Collection[str] | None:
        """The project folders that hold these paths; None for all."""
        inside = self._root.rstrip(os.sep) + os.sep
        names = {path[len(inside) :].split(os.sep, 1)[0] for path in paths}
        whole = self._flat or not all(path.startswith(inside) for path in paths)
        return None if whole or "" in names else names

    def _report(self, tree: Tree, run: Execution, seconds: float, *, told: bool) -> RefreshReport:
        """What was done, as far as the bound shows it."""
        done, warnings = run.done, [*tree.warnings, *run.warnings]
        admits = self._policy.admits
        if self._policy.is_bound and told and not warnings:  # not the work of a walk
            shown = {found.path for found in tree.sessions if admits(run.cwd_of(found.path))}
            tree = tree._replace(sessions=tuple(f for f in tree.sessions if f.path in shown))
            done = [
                one
                for one in done
                if one.path in shown or (one.what == "dropped" and admits(one.cwd))
            ]
        elif self._policy.is_bound:
            tree = layout.discover(self._root, flat=self._flat, policy=self._policy)
            shown = {found.path for found in tree.sessions}
            there = {one.path for one in done if one.what != "dropped"}
            done = [
                one
                for one in done
                if one.path in shown or (one.path not in there and admits(one.cwd))
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
