"""The walk of an earlier question, where it still stands: for whoever need not list every folder.

Goal: a root that is asked again and again is not listed anew for every question. The rule is that
of files (`coverage`): a folder whose stat is the one from before it was listed, and whose ctime was
more than two seconds old at that moment, holds the same names. So a survey (`layout.Survey`) stands
while

    - every folder it came from is proven unchanged, the root among them,
    - every file that was seen and not admitted is proven unchanged;

each session file is still asked for its stat, and one that is not fresh at sight is judged anew.
Whatever else differs, a file that is gone or has another header among it, the tree is walked again.

It costs a stat a folder and a file instead of a walk: 17 ms for 4,000 files in 1,900 folders where
the catalog takes 46. Only file systems that are known to keep the times of folders are trusted. A
`Standing` keeps the catalog of the last question, for the same bound, layout and commit; the survey
of an earlier process comes with the index (`index.snapshot`), for whom no bound hides anything.

To look (`_differences`: stats and nothing else) and to judge what differs are two steps, so that a
process which asks once can have a child look while it still imports what it asks with.
"""

import os
import time
from _thread import allocate_lock  # `threading` would be a fiftieth of a short search
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from stat import S_ISREG
from typing import Final, NamedTuple

from sessionindex import catalog
from sessionindex.access import Policy
from sessionindex.catalog import Catalog, File, Files, Shelved
from sessionindex.child import Child, is_worth_it
from sessionindex.coverage import Identity, is_proven
from sessionindex.files import Changed, identity, keeps_folder_times, open_folder
from sessionindex.index.record import Record
from sessionindex.index.shelf import Sessions, above
from sessionindex.layout import Header, Notes, Survey, Tree


class _Key(NamedTuple):
    """What a catalog was taken for, but for the records, which are compared as they are."""

    root: str
    flat: bool
    policy: Policy


class _Kept(NamedTuple):
    """What a catalog was, and `looks`: the path of each file, absolute or below the root, and the
    identity by which it is fresh at sight, if any is.
    """

    key: _Key
    records: Mapping[str, Record]
    files: Files
    survey: Survey
    looks: Sequence[tuple[str, tuple[int, ...] | None]]


_Differences = list[tuple[int, int, tuple[int, ...]]]
"""Of each file that is not fresh at sight: its place, its mode and its identity."""

_MANY: Final = 1000
"""How many stats take longer than a child that takes them."""

_LATEST: Final = 1.0
"""Seconds for which a look ahead counts: as long as it may take to import on a slow machine."""

_SHARE: Final = 70
"""Per cent of the files that a child looks at; then this process has come to where it can too."""


class _Ahead(NamedTuple):
    """A look that a child has begun: at the folders, and at a share of the files."""

    kept: _Kept
    share: int
    child: Child[_Differences | None]
    began: float

    def is_old(self) -> bool:
        """Whether it says nothing of now."""
        return time.monotonic() - self.began > _LATEST

    def differences(self) -> _Differences | None:
        """As `_differences` of all, the rest looked at here while the child comes to its end."""
        rest = _differences(self.kept, self.share)
        first = self.child.value()
        return None if rest is None or first is None else first + rest


class Standing:
    """The last catalog of a root; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._kept: _Kept | None = None
        self._fallen: Survey | None = None
        self._ahead: _Ahead | None = None

    def look_ahead(
        self, root: str, *, policy: Policy, records: Mapping[str, Record], survey: Survey
    ) -> None:
        """Have a child look already whether a survey stands, if that is worth one.

        It is for one question: the next one, where that is of the same bound and the same records,
        and comes at once.
        """
        if len(records) + len(survey.folders) < _MANY or not is_worth_it():
            return
        kept = _begun(_Key(root, survey.flat, policy), records, survey)
        if kept is not None:
            share = len(kept.looks) * _SHARE // 100
            child = Child(lambda: _differences(kept, 0, share))
            ahead = _Ahead(kept, share, child, time.monotonic())
            with self._lock:
                self._kept, self._ahead = kept, ahead

    def take(
        self,
        root: str,
        *,
        flat: bool,
        policy: Policy,
        records: Mapping[str, Record],
        headers_only: bool = False,
        survey: Survey | None = None,
    ) -> Catalog:
        """As `catalog.take`; `survey` is one of these records, where somebody made one."""
        key = _Key(root, flat, policy)
        with self._lock:
            kept, fallen = self._kept, self._fallen
            ahead, self._ahead = self._ahead, None
        if kept is None or kept.key != key or kept.records is not records:
            usable = None if survey is fallen else survey
            kept = None if usable is None else _begun(key, records, usable)
        if ahead is not None and (ahead.kept is not kept or ahead.is_old()):
            ahead.child.drop()
            ahead = None
        if kept is not None:
            differences = _differences(kept) if ahead is None else ahead.differences()
            still = None if differences is None else _judged_anew(kept, differences, headers_only)
            with self._lock:
                self._kept = kept if still else None
                self._fallen = self._fallen if still else survey
            if still is not None:
                return still
        notes = Notes()
        clock_ns = time.time_ns()
        taken = catalog.take(
            root,
            flat=flat,
            policy=policy,
            records=records,
            headers_only=headers_only,
            notes=notes,
        )
        found = tuple([file.found for file in taken.files])
        made = surveyed(Tree(found, taken.warnings, taken.readable), root, notes, flat, clock_ns)
        with self._lock:
            self._kept = made and _kept(key, records, taken.files, made)
        return taken


def surveyed(tree: Tree, root: str, notes: Notes, flat: bool, clock_ns: int) -> Survey | None:
    """The survey that a walk was which began at this moment; None where it would prove nothing."""
    if tree.warnings or not tree.readable or not notes.whole:
        return None
    (_, own), *folders = notes.folders
    try:
        if identity(os.stat(root)) != own:  # a link, a mount or a folder above it moved
            return None
    except OSError:
        return None
    known = (*notes.folders, *notes.hidden)
    if not _keep_times(notes.folders) or not all(is_proven(one, clock_ns) for _, one in known):
        return None
    inside = above(root)
    below, hidden = (
        [(path.removeprefix(inside), one) for path, one in some] for some in (folders, notes.hidden)
    )
    return Survey(flat, tree.sessions, own, below, hidden)


def tree(survey: Survey, root: str, header_of: Header) -> Tree | None:
    """What `layout.discover` would find without a bound; None where the root has to be walked."""
    try:
        with _opened(root) as descriptor:
            if not _unmoved(survey, descriptor):
                return None
        sessions = []
        for found in survey.sessions:
            now = os.lstat(found.path)
            listed = identity(now)
            if not S_ISREG(now.st_mode) or header_of(found.path, listed) != found.session:
                return None
            sessions.append(found if listed == found.identity else found._replace(identity=listed))
        return Tree(tuple(sessions), ())
    except (OSError, Changed):
        return None


@contextmanager
def _opened(root: str) -> Iterator[int]:
    descriptor = open_folder(root, follow=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _keep_times(folders: Sequence[tuple[str, Identity]]) -> bool:
    return all(map(keeps_folder_times, {known[0] for _, known in folders}))


def _begun(key: _Key, records: Mapping[str, Record], survey: Survey) -> _Kept | None:
    """What an earlier process would have kept, had it been this one."""
    if key.flat != survey.flat or not _keep_times([("", survey.own), *survey.folders]):
        return None
    if key.policy.is_bound:
        shown = _shown(survey, key.policy, records)
        return shown and _kept(key, records, _files(shown, records), shown)
    sessions = survey.sessions
    if not isinstance(sessions, Sessions) or sessions.records is not records:
        return _kept(key, records, _files(survey, records), survey)
    looks = zip(sessions.records.below, sessions.records.vouched(), strict=True)
    return _Kept(key, records, Shelved(sessions, {}), survey, list(looks))


def _kept(key: _Key, records: Mapping[str, Record], files: Files, survey: Survey) -> _Kept:
    looks = [
        (file[0][0], file[0][1] if file[1] == "fresh" and not file[3] else None) for file in files
    ]
    return _Kept(key, records, files, survey, looks)


def _files(survey: Survey, records: Mapping[str, Record]) -> Files:
    found = [(one, records[one.path]) for one in survey.sessions]
    return Files(
        File(one, "fresh" if catalog.at_sight(one.identity, record) else "unsure", record, 0)
        for one, record in found
    )


def _shown(survey: Survey, policy: Policy, records: Mapping[str, Record]) -> Survey | None:
    """What a walk would have found within a bound; None where that is not proven."""
    sessions, admits = survey.sessions, policy.admits
    shown = {one.path for one in sessions if not one.parent and admits(one.session.cwd)}
    hidden = [one for one in sessions if not one.parent and one.path not in shown]
    if not all(catalog.at_sight(one.identity, records[one.path]) for one in hidden):
        return None  # one of them may have another header
    return survey._replace(
        sessions=tuple([one for one in sessions if one.owner in shown]),
        # By absolute paths, which are as good.
        hidden=[*survey.hidden, *((one.path, one.identity) for one in hidden)],
    )


def _unmoved(survey: Survey, root: int) -> bool:
    """Whether every folder, and every file that was not admitted, is the one it was."""
    stat = os.stat
    if identity(os.fstat(root)) != survey.own:
        return False
    for path, known in survey.folders:
        now = stat(path, dir_fd=root, follow_symlinks=False)
        if known != (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns):
            return False
    return all(
        identity(stat(path, dir_fd=root, follow_symlinks=False)) == known
        for path, known in survey.hidden
    )


def _differences(kept: _Kept, start: int = 0, end: int | None = None) -> _Differences | None:
    """What is not as it was kept; None where the tree has to be walked.

    Of the files at some places; the folders go with the first.
    """
    found: _Differences = []
    stat = os.stat
    try:
        with _opened(kept.key.root) as root:
            if not (start or _unmoved(kept.survey, root)):
                return None
            for place, (path, known) in enumerate(kept.looks[start:end], start):
                # Spelled out: a call for each of thousands would cost as much as its stat.
                now = stat(path, dir_fd=root, follow_symlinks=False)
                one = (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
                if known != one:
                    found.append((place, now.st_mode, one))
    except (OSError, Changed):
        return None
    return found


def _judged_anew(kept: _Kept, differences: _Differences, headers_only: bool) -> Catalog | None:
    """The kept catalog, brought up to date; None where the tree has to be walked."""
    files, others = kept.files, dict[int, File]()
    for place, mode, now in differences:
        if not S_ISREG(mode):
            return None
        listed, found = Identity._make(now), files[place].found
        try:
            about, head = catalog.judged(
                found.path, listed, kept.records.get(found.path), headers_only=headers_only
            )
        except (OSError, Changed):
            return None
        if head != found.session:
            return None
        others[place] = File(found._replace(identity=listed), *about)
    return Catalog(files.replaced(others) if others else files, (), True)
