"""The stores that figures are measured on, made when one is asked for and kept for the next run.

A store is made from a seed by `corpus` and never changed: what appends to files takes a copy. No
store is larger than the run allows (`--megabytes`, `--files`); a figure then says at which size
it was measured. Indexes are kept beside the stores, one for each root.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median

import corpus
from figures import Size
from reference import environment

from sessionindex import SessionIndex
from sessionindex.errors import SessionIndexError

SMALL, MIDDLE = Size(200), Size(1000)
LARGE, HUGE = Size(2000, 4000), Size(5000, 4000)
MANY = Size(200, 4000)
LONG, ONE_FILE = Size(36, 1), Size(1800, 1)
LINE, WIDE_LINE = Size(100, 1, "line"), Size(100, 1, "wide line")


class Stores:
    """The stores of a run, and how often it measures.

    `runs` in turn for most figures, `cold_runs` for cold indexes; a quick run draws fewer needles.
    """

    def __init__(
        self, work: Path, most: Size, *, runs: int = 7, cold_runs: int = 3, quick: bool = False
    ) -> None:
        self.work = work
        self.most = most
        self.runs = runs
        self.cold_runs = cold_runs
        self.quick = quick
        self.index_dir = work / "index"
        self._open: dict[Size, SessionIndex] = {}
        self._cold: defaultdict[tuple[str, Size], list[dict[str, float]]] = defaultdict(list)

    def fitted(self, size: Size) -> Size:
        """The size that this run has for one that is promised."""
        files = size.files
        if files is not None and self.most.files is not None:
            files = min(files, self.most.files)
        return replace(size, megabytes=min(size.megabytes, self.most.megabytes), files=files)

    def store(self, size: Size) -> corpus.Corpus:
        """A store of that size, made once."""
        size = self.fitted(size)
        kind = "" if size.kind == "sessions" else f"-{size.kind.replace(' ', '-')}"
        root = (
            self.work
            / f"store-{size.megabytes:g}mb-{size.files or 'any'}-seed1-{corpus.EDITION}{kind}"
        )
        note = root.with_name(f"{root.name}.json")
        if not note.exists():
            shutil.rmtree(root, ignore_errors=True)
            note.write_text(json.dumps(asdict(_made(root, size))))
        kept = json.loads(note.read_text())
        needles = tuple(corpus.Needle(**needle) for needle in kept["needles"])
        return corpus.Corpus(**{**kept, "root": str(root), "needles": needles})

    def opened(self, size: Size) -> SessionIndex:
        """The store of that size, indexed, its identities old enough to be trusted."""
        size = self.fitted(size)
        if size not in self._open:
            self._open[size] = self._indexed(self.store(size).root, self.index_dir)
        return self._open[size]

    @contextmanager
    def copy(self, size: Size) -> Iterator[tuple[Path, SessionIndex]]:
        """A copy of a store to append to, with its index; both are gone afterwards."""
        folder = self.work / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        root = folder / "sessions"
        shutil.copytree(self.store(size).root, root)
        index = self._indexed(str(root), folder / "index")
        try:
            yield root, index
        finally:
            index.close()
            shutil.rmtree(folder)

    def _indexed(self, root: str, index_dir: Path) -> SessionIndex:
        """An index of a root that need not ask the bytes of any file; of a quick run it may."""
        index = SessionIndex(root, index_dir=index_dir, settings={}, current_session="")
        index.refresh()
        while not self.quick and _is_asked(index):
            time.sleep(0.5)  # a file written within two seconds of its indexing proves nothing yet
            index.refresh()
        return index

    def command(self, size: Size, *arguments: str) -> list[str]:
        """A search of that store on the command line; `opened` has indexed it."""
        root = self.store(size).root
        command = [sys.executable, "-m", "sessionindex", "search", *arguments]
        return [*command, "--root", root, "--index-dir", str(self.index_dir)]

    def in_turn(self, *timed: Callable[[], float], runs: int | None = None) -> list[float]:
        """The median of each, the runs taken in turn after one that does not count."""
        first = 0 if self.quick else 1
        rows = [[one() for one in timed] for _ in range((runs or self.runs) + first)][first:]
        return [median(column) for column in zip(*rows, strict=True)]

    def measure_cold(self, what: str, size: Size) -> dict[str, float]:
        """What a process reports that makes a cold index: `index`, `bare` or `fts5`."""
        program = str(Path(__file__).with_name("cold.py"))
        command = [sys.executable, program, what, self.store(size).root]
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment(), check=True)
        found = dict(json.loads(done.stdout))
        self._cold[what, self.fitted(size)].append(found)
        return found

    def cold(self, size: Size) -> dict[str, float]:
        """A cold index of that store, ours: the one of this run that took most memory."""
        if (key := ("index", self.fitted(size))) not in self._cold:
            self.measure_cold("index", size)
        return max(self._cold[key], key=lambda found: found["peak"])


def _made(root: Path, size: Size) -> corpus.Corpus:
    if size.kind == "sessions":
        return corpus.write(str(root), megabytes=size.megabytes, files=size.files)
    is_wide = size.kind == "wide line"
    return corpus.write_line(str(root), megabytes=size.megabytes, is_wide=is_wide)


def _is_asked(index: SessionIndex) -> bool:
    """Whether a question would still read bytes of some file to know it again."""
    now = index.status()
    if now.fresh < now.sessions:
        return True
    found: list[int] = []

    def told(uncovered: int, error: SessionIndexError | None) -> bool:
        found.append(uncovered)
        return False  # nothing was refreshed

    index.before_scan = told
    index.search("x", limit=1, count="page")
    index.before_scan = None
    return found != [0]
