"""The background indexer: keeps the part of the root that no index covers short.

Goal: text is in the index a moment after it was written, and an idle machine stays idle. Answers
are exact without it; nothing here may cost one.

Rules:

- It holds the writer lock as long as it runs; a kill frees it.
- The watch is started first, then the root is reconciled: a walk, a stat for each file, no marks of
  how far time had come. It is reconciled again every `every` seconds, so that no event is needed
  for anything to be found. Where a walk finds what no event told of, the watch is started anew:
  the kernel's queue ran over, or a folder was not watched.
- Events only say where to look. A known file is read on from where it is indexed; a folder, a new
  or a vanished file has its project walked (files made with their folder give no event).
- Commits are at least `_PAUSE` apart; events wait meanwhile and come as one batch.
- While the root does not exist, the nearest folder above it is watched. A root that is made anew,
  or another one in its place, starts the watch anew.
- What fails (a full disk, a damaged index) is logged once, noted for `daemon status`, and tried
  again later, less and less often.

Log lines count; they never quote sessions. watchfiles is used here only.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from watchfiles import Change, watch

from sessionindex.daemon import report
from sessionindex.errors import IndexLocked, SessionIndexError
from sessionindex.ingest import Interrupted

if TYPE_CHECKING:
    from sessionindex import SessionIndex
    from sessionindex.ingest import Ingest, RefreshReport

Log = Callable[[str, str], None]
"""Takes a level (error, warning, info, debug) and a line."""

_PAUSE: Final = 0.2
_STEP_MS: Final = 50
_WAKE_MS: Final = 500
_MANY: Final = 500
"""Paths of one batch from which a walk of the root costs less."""
_LONGEST: Final = 60.0
"""Seconds between attempts after many failures."""


class _Again(Exception):
    """The watch has to be started anew."""


class _Blind(Exception):
    """The system lets nothing be watched."""


class Watcher:
    """One root, watched until `stop` is set."""

    def __init__(self, index: SessionIndex, log: Log, *, every: float) -> None:
        self.stop = threading.Event()
        self._index = index
        self._root = index.root.path
        self._log = log
        self._every = every
        self._failed: str | None = None  # "" once something has worked
        self._blind: str | None = None
        self._closed = False  # whether some folder may not be entered
        self._waited = False
        self._attempts = 0
        self._due = 0.0
        self._last = 0.0

    def run(self) -> None:
        """Watch until stopped; raises IndexLocked where another watcher holds the index."""
        while not self.stop.is_set():
            try:
                with self._index.keeping("watch") as ingest:
                    ingest.interrupted = self.stop.is_set
                    self._watch_for_ever(ingest)
            except IndexLocked as locked:
                if "(watch)" in locked.holder:
                    raise
                self._log("info", f"waiting for {locked.holder}")
                self.stop.wait(0.5)
            except Interrupted:
                break
            except SessionIndexError as error:
                self._fail(str(error))
        self._log("info", "stopped")

    # --- the loop --------------------------------------------------------------------------------

    def _watch_for_ever(self, ingest: Ingest) -> None:
        while not self.stop.is_set():
            before = _identity(self._root)
            if before is None:
                self._wait_for_root()
                continue
            self._waited = False
            self._reconcile(ingest)  # at once: the watch takes a moment to begin
            try:
                self._watch(ingest, before)
            except _Again:
                self._log("debug", "the watch is started anew")
            except _Blind as error:
                self._look_only(str(error))
                self.stop.wait(self._every)

    def _watch(self, ingest: Ingest, before: object) -> None:
        first = True
        for changes in self._events(self._root):
            self._blind = None
            if self.stop.is_set():
                return
            # Made anew it may have the inode that it had.
            if _identity(self._root) != before or (Change.deleted, self._root) in changes:
                raise _Again
            self._take(ingest, changes)
            if first or time.monotonic() >= self._due:
                found = self._reconcile(ingest)
                if found and not first:
                    raise _Again
                first = False

    def _events(self, folder: str, *, below: bool = True) -> Iterator[set[tuple[Change, str]]]:
        """What happens in a folder, or nothing now and then; raises _Again and _Blind."""
        try:
            # A closed folder would end the watch, or that of all the folders after it.
            yield from watch(
                *(_with_folders(folder) if self._closed and below else (folder,)),
                watch_filter=None,
                debounce=_STEP_MS * 2,
                step=_STEP_MS,
                stop_event=self.stop,
                rust_timeout=_WAKE_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
                recursive=below,
                ignore_permission_denied=self._closed,
            )
        except FileNotFoundError as error:
            raise _Again from error
        except PermissionError as error:
            if self._closed:
                raise _Blind(str(error)) from error
            self._closed = True
            raise _Again from error
        except (OSError, RuntimeError) as error:  # no more watches, no more descriptors
            raise _Blind(str(error)) from error

    def _look_only(self, error: str) -> None:
        if error != self._blind:
            self._blind = error
            self._log("warning", f"cannot watch, only look every {self._every:g} s: {error}")

    def _take(self, ingest: Ingest, changes: Iterable[tuple[Change, str]]) -> None:
        paths = sorted({path for change, path in changes if _matters(change, path)})
        if not paths:
            return
        self.stop.wait(max(0.0, self._last + _PAUSE - time.monotonic()))
        if len(paths) > _MANY:
            self._reconcile(ingest)
        else:
            self._done(ingest.refresh(paths), "batch")

    def _reconcile(self, ingest: Ingest) -> bool:
        """Walk the root; whether anything had to be done."""
        self._due = time.monotonic() + self._every
        done = ingest.refresh()
        self._done(done, "walk")
        return bool(done.added or done.appended or done.rebuilt or done.dropped)

    def _done(self, done: RefreshReport, what: str) -> None:
        self._last = time.monotonic()
        self._attempts = 0
        if self._failed != "":
            if self._failed:
                self._log("info", "works again")
            self._failed = ""
            report.note(self._index.index_folder, None)  # also what an earlier run has left
        counts = (
            (done.added, "new"),
            (done.appended, "grown"),
            (done.rebuilt, "rewritten"),
            (done.dropped, "gone"),
        )
        told = ", ".join(f"{count} {word}" for count, word in counts if count)
        level = "info" if told else "debug"
        size = f"{done.entries} entries, {done.bytes} bytes, {done.seconds * 1000:.0f} ms"
        self._log(level, f"{what}: {told or 'nothing new'} ({size})")

    def _fail(self, error: str) -> None:
        """Say it once, remember it, and wait a while."""
        self._attempts += 1
        if error != self._failed:
            self._failed = error
            self._log("error", error)
            report.note(self._index.index_folder, error)
        self.stop.wait(min(_LONGEST, 2.0 ** min(self._attempts, 6) / 2))

    def _wait_for_root(self) -> None:
        """Return when the root, or another folder above it, has come to be."""
        above = os.path.dirname(self._root)
        while _identity(above) is None and above != os.path.dirname(above):
            above = os.path.dirname(above)
        if not self._waited:
            self._waited = True
            self._log("info", "the sessions root does not exist yet")
        below = os.path.relpath(self._root, above).split(os.sep, 1)[0]
        try:
            for _ in self._events(above, below=False):
                if _identity(os.path.join(above, below)) or _identity(above) is None:
                    return
        except _Again:
            return
        except _Blind as error:
            self._look_only(str(error))
            self.stop.wait(min(1.0, self._every))


def _identity(folder: str) -> tuple[int, int] | None:
    """What tells a folder from another one in its place; None where there is none."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if os.path.isdir(folder) else None


def _with_folders(folder: str) -> list[str]:
    """A folder, and those directly in it."""
    try:
        with os.scandir(folder) as found:
            return [folder, *(item.path for item in found if item.is_dir(follow_symlinks=False))]
    except OSError:
        return [folder]


def _matters(change: Change, path: str) -> bool:
    """Whether an event may be about a session: its file, or a folder that came or went."""
    if path.endswith(".jsonl") or change == Change.deleted:
        return True
    return change == Change.added and os.path.isdir(path)
