"""The catalog of the last question, where it still stands: for those who ask again and again.

Goal: a program that keeps a root open does not list its folders anew for every question. The rule
is that of files (`coverage`): a folder whose stat is the one from before it was listed, and whose
ctime was more than two seconds old at that moment, holds the same names. So a catalog stands while

    - every folder it came from is proven unchanged, the root among them,
    - every file that was seen and not admitted is proven unchanged,
    - the bound, the layout and the index's commit are the same;

each file is still asked for its stat, and one that is not fresh at sight is judged anew. Whatever
else differs, a file that is gone or has another header among it, the tree is walked again.

It costs a stat a folder and a file instead of a walk: 17 ms for 4,000 files in 1,900 folders where
the catalog takes 46. Only file systems that are known to keep the times of folders are trusted.
Whoever asks once needs none of this (`present`).
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from sessionindex import catalog
from sessionindex.access import Policy
from sessionindex.catalog import Catalog, File
from sessionindex.coverage import is_proven
from sessionindex.files import Changed, identity, keeps_folder_times
from sessionindex.index.schema import Record
from sessionindex.layout import Notes


class _Key(NamedTuple):
    """What a catalog was taken for, but for the records, which are compared as they are."""

    root: str
    flat: bool
    policy: Policy


class _Kept(NamedTuple):
    key: _Key
    records: Mapping[str, Record]
    catalog: Catalog
    notes: Notes


class Standing:
    """The last catalog of a root; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: _Kept | None = None

    def take(
        self,
        root: str,
        *,
        flat: bool,
        policy: Policy,
        records: Mapping[str, Record],
        headers_only: bool = False,
    ) -> Catalog:
        """As `catalog.take`."""
        key = _Key(root, flat, policy)
        with self._lock:
            kept = self._kept
        if kept is not None and kept.key == key and kept.records is records:
            standing = _still(kept, headers_only)
            if standing is not None:
                return standing
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
        with self._lock:
            self._kept = None
            if _can_stand(taken, notes, clock_ns):
                self._kept = _Kept(key, records, taken, notes)
        return taken


def _can_stand(taken: Catalog, notes: Notes, clock_ns: int) -> bool:
    """Whether what was noted can later prove that a catalog is the same."""
    if taken.warnings or not taken.readable or not notes.whole:
        return False
    if not all(map(keeps_folder_times, {folder.device for _, folder in notes.folders})):
        return False
    known = (*notes.folders, *notes.hidden)
    return all(is_proven(one, clock_ns) for _, one in known)


def _still(kept: _Kept, headers_only: bool) -> Catalog | None:
    """The kept catalog, brought up to date; None where the tree has to be walked."""
    folders, hidden = kept.notes.folders, kept.notes.hidden
    root = kept.key.root
    lstat = os.lstat
    try:
        if identity(os.stat(root)) != folders[0][1]:
            return None
        for path, known in folders[1:]:
            # Spelled out: a call for each of thousands would cost as much as its stat.
            now = lstat(path)
            if known != (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns):
                return None
        for path, known in hidden:
            if identity(lstat(path)) != known:
                return None
        return _judged_anew(kept, headers_only)
    except (OSError, Changed):
        return None


def _judged_anew(kept: _Kept, headers_only: bool) -> Catalog | None:
    files: list[File] | None = None
    for place, file in enumerate(kept.catalog.files):
        path, known = file[0][0], file[0][1]
        now = os.lstat(path)
        if (
            file[1] == "fresh"
            and file[3] == 0
            and known == (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        ):
            continue
        if not stat.S_ISREG(now.st_mode):
            return None
        listed = identity(now)
        about, head = catalog.judged(
            path, listed, kept.records.get(path), headers_only=headers_only
        )
        if head != file.found.session:
            return None
        if files is None:
            files = list(kept.catalog.files)
        files[place] = File(file.found._replace(identity=listed), *about)
    return kept.catalog if files is None else Catalog(tuple(files), (), True)
