"""Figures that can be trusted: each a ratio, ours and a reference in turn in one run, medians.

    bench.py list                       what there is, and what each has to reach
    bench.py run NAME... [--json]       some of it
    bench.py all [--megabytes N]        all of it; exit status 1 where a figure is missed

The store is made by `corpus.py` from a seed and kept in `--work` for the next run. Machines are
shared and noisy: absolute times are shown as detail only, but for the two that are promised as
such. The reference of a search is the brute path of the same process, and `rg -F -i` over the same
root where ripgrep is installed; of the start, `python -c pass`; of indexing, a bare tantivy writer
that is handed the same text from memory (same fields, threads, heap, commits and merges).
Each measurement of indexing and memory is a process of its own.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import corpus

import sessionindex
from sessionindex import SessionIndex

PACKAGE = Path(sessionindex.__file__).parent


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure; `at_least` says which way `target` bounds it, None is no promise."""

    name: str
    what: str
    value: float
    unit: str
    target: float | None
    at_least: bool
    detail: str

    @property
    def is_reached(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target


class Bench:
    """The stores that the figures share, made when the first figure needs them."""

    def __init__(self, work: Path, megabytes: float, files: int, runs: int) -> None:
        self.work = work
        self.megabytes = megabytes
        self.files = files
        self.runs = runs

    def store(self, megabytes: float, files: int | None = None, seed: int = 1) -> corpus.Corpus:
        """A corpus of that size, made once."""
        root = self.work / f"store-{megabytes:g}mb-{files or 'any'}-seed{seed}"
        note = root.with_suffix(".json")
        if not note.exists():
            shutil.rmtree(root, ignore_errors=True)
            made = corpus.write(str(root), megabytes=megabytes, seed=seed, files=files)
            note.write_text(json.dumps(asdict(made)))
        kept = json.loads(note.read_text())
        kept["needles"] = tuple(corpus.Needle(**needle) for needle in kept["needles"])
        return corpus.Corpus(**kept)

    @cached_property
    def main(self) -> corpus.Corpus:
        return self.store(self.megabytes)

    @cached_property
    def many(self) -> corpus.Corpus:
        """A store of many files."""
        return self.store(self.megabytes, self.files)

    @cached_property
    def long(self) -> corpus.Corpus:
        """A store of one long session, 36 MB where the others are of their full size."""
        return self.store(min(36, self.megabytes), 1)

    @property
    def index_dir(self) -> Path:
        return self.work / "index"

    def opened(self, store: corpus.Corpus) -> SessionIndex:
        """The store, indexed, its identities old enough to be trusted."""
        index = SessionIndex(store.root, index_dir=self.index_dir, settings={}, current_session="")
        index.refresh()
        while index.status().fresh < store.files or _checked(index):
            time.sleep(0.5)  # a file written within two seconds of its indexing proves nothing yet
            index.refresh()
        return index

    def command(self, store: corpus.Corpus, *arguments: str) -> list[str]:
        command = [sys.executable, "-m", "sessionindex", "search", *arguments]
        return [*command, "--root", store.root, "--index-dir", str(self.index_dir)]

    def in_turn(self, *timed: Callable[[], float]) -> list[float]:
        """The median of each, the runs taken in turn after one that does not count."""
        rows = [[one() for one in timed] for _ in range(self.runs + 1)][1:]
        return [median(column) for column in zip(*rows, strict=True)]


def _checked(index: SessionIndex) -> bool:
    """Whether a question still has to ask the bytes of some file."""
    found: list[int] = []
    index.before_scan = lambda uncovered, error: bool(found.append(uncovered))
    index.search("x", limit=1, count="page")
    index.before_scan = None
    return found != [0]


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PI_SESSION_FILE": "", "PI_CODING_AGENT_DIR": tempfile.gettempdir()}


def process(command: Sequence[str]) -> float:
    """Seconds of a whole process, what it prints thrown away."""
    began = time.perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
    )
    took = time.perf_counter() - began
    if done.returncode not in (0, 1):
        raise SystemExit(f"ended with {done.returncode}: {' '.join(command)}")
    return took


def child(*arguments: str) -> dict[str, float]:
    """What a measuring child of this very file reports."""
    command = [sys.executable, __file__, "child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=_environment(), check=True)
    return dict(json.loads(done.stdout))


def nothing() -> float:
    return process([sys.executable, "-c", "pass"])


# --- children -----


def child_index(root: str) -> dict[str, float]:
    """A cold index of a root: seconds, bytes, and this process's peak memory in MB."""
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        index = SessionIndex(root, index_dir=folder, settings={}, current_session="")
        began = time.perf_counter()
        report = index.refresh()
        took = time.perf_counter() - began
        size = index.status().index_bytes
    return {"seconds": took, "bytes": size, "raw": report.bytes, "peak": _peak()}


def child_bare(root: str) -> dict[str, float]:
    """The same documents from memory into a bare tantivy writer.

    Their gram fields hold the searchable text as it is. (Ours are told less of it, to the same
    grams: what we save there is ours to show.)
    """
    import tantivy

    from sessionindex import entry
    from sessionindex.fold import PAD, key
    from sessionindex.index import schema, writer
    from sessionindex.jsonline import split
    from sessionindex.model import KINDS, Entry

    documents, raw = [], 0
    for path in sorted(Path(root).rglob("*.jsonl")):
        data = path.read_bytes()
        raw += len(data)
        for line in split(data, 1, 0):
            found = entry.parse(line, 3)
            if isinstance(found, Entry):
                fields, _ = schema.document(found, 1, line.offset, len(line.data))
                whole = {field: "" for field in schema.ALWAYS_OF if field in fields}
                for kind in KINDS:
                    if schema.FIELD_OF[kind] in whole and (text := entry.searchable(found, kind)):
                        whole[schema.FIELD_OF[kind]] += key(text) + PAD
                documents.append((fields | whole, sum(map(len, whole.values()))))
    built = schema.build()
    with tempfile.TemporaryDirectory(prefix="bench-bare-") as folder:
        began = time.perf_counter()
        index = tantivy.Index(built, path=folder)
        schema.register_tokenizer(index)
        scale = writer.scale(raw)
        bare = index.writer(heap_size=scale.heap, num_threads=scale.threads)
        waiting = 0
        for fields, size in documents:
            bare.add_document(tantivy.Document.from_dict(fields, built))
            waiting += size
            if waiting >= scale.batch:
                bare.commit()
                waiting = 0
        bare.commit()
        bare.wait_merging_threads()
        took = time.perf_counter() - began
    return {"seconds": took}


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


# --- figures -----


def cold_index(bench: Bench) -> Iterator[Figure]:
    """Indexing a store that was never indexed."""
    root = bench.main.root
    rows = [(child("index", root), child("bare", root)) for _ in range(max(1, bench.runs // 3))]
    ours = median(row[0]["seconds"] for row in rows)
    bare = median(row[1]["seconds"] for row in rows)
    raw = rows[0][0]["raw"]
    yield Figure(
        "cold_index",
        "cold index, speed against a bare tantivy writer",
        bare / ours,
        "x",
        0.8,
        True,
        f"{raw / 1e6 / ours:.0f} MB/s, bare {raw / 1e6 / bare:.0f} MB/s",
    )
    size = rows[0][0]["bytes"]
    yield Figure(
        "index_size", "index, of the raw JSONL", size / raw, "", 0.30, False, f"{size / 1e6:.0f} MB"
    )


def memory(bench: Bench) -> Iterator[Figure]:
    """Peak memory of a cold index: of many files, and of one file of the same size."""
    for name, what, files in (
        ("memory", "peak memory of a cold index", None),
        ("memory_one_file", "the same, all in one file", 1),
    ):
        store = bench.store(bench.megabytes, files)
        peak = child("index", store.root)["peak"]
        yield Figure(name, what, peak, "MB", 300, False, f"{store.bytes / 1e6:.0f} MB of sessions")


def start(bench: Bench) -> Iterator[Figure]:
    """The command line against a Python that does nothing."""
    with tempfile.TemporaryDirectory(prefix="bench-empty-") as empty:
        command = [sys.executable, "-m", "sessionindex", "search", "x", "--root", empty]
        command += ["--index-dir", f"{empty}/../{os.path.basename(empty)}-index"]
        process(command)
        ours, python = bench.in_turn(lambda: process(command), nothing)
        shutil.rmtree(f"{empty}-index", ignore_errors=True)
    yield Figure(
        "start", "search of an empty root, in `python -c pass`", ours / python, "x", 8, False,
        f"{ours * 1e3:.0f} ms, python {python * 1e3:.0f} ms",
    )  # fmt: skip
    store = bench.main
    bench.opened(store)
    rare = bench.command(store, "xq-needle-once")
    ours, python = bench.in_turn(lambda: process(rare), nothing)
    yield Figure(
        "rare_command", "a rare literal, whole process, in `python -c pass`", ours / python, "x",
        8, False, f"{ours * 1e3:.0f} ms, python {python * 1e3:.0f} ms",
    )  # fmt: skip


SEARCHES = (
    ("rare", "xq-needle-once", {"count": "page", "limit": 50}),
    ("common_page", corpus.COMMON, {"count": "page", "limit": 50}),
    ("absent", "no such thing anywhere", {"count": "page", "limit": 50}),
    ("two_characters", "鑫鱻", {"count": "page", "limit": 50}),
    ("quotes", 'xq "needle"\nquoted', {"count": "page", "limit": 50}),
    ("common_exact", corpus.COMMON, {"count": "exact", "limit": 1}),
)


def searches(bench: Bench) -> Iterator[Figure]:
    """Literals against the brute path, in one process; each answer compared first."""
    index = bench.opened(bench.main)
    known = {needle.text: needle.count for needle in bench.main.needles}
    for name, term, filters in SEARCHES:
        exact = index.search(term).total
        if exact != known.get(term, 0):
            raise SystemExit(f"{term!r}: {exact} hits instead of {known.get(term, 0)}")

        def timed(brute: bool, term: str = term, filters: dict[str, object] = filters) -> float:
            began = time.perf_counter()
            index.search(term, brute=brute, **filters)
            return time.perf_counter() - began

        ours, brute = bench.in_turn(lambda: timed(False), lambda: timed(True))
        yield Figure(
            f"{name}_brute", f"{name.replace('_', ' ')}: speed against the brute path",
            brute / ours, "x", None, True, f"{ours * 1e3:.1f} ms, brute {brute * 1e3:.0f} ms",
        )  # fmt: skip


def ripgrep(bench: Bench) -> Iterator[Figure]:
    """Whole processes against ripgrep over the same root, where it is installed."""
    rg = shutil.which("rg")
    if not rg:
        return
    bench.opened(bench.main)
    root = bench.main.root
    for name, term in (("rare", "xq-needle-once"), ("absent", "no such thing anywhere")):
        ours, theirs = bench.in_turn(
            lambda term=term: process(bench.command(bench.main, term)),  # type: ignore[misc]
            lambda term=term: process([rg, "-F", "-i", term, root]),  # type: ignore[misc]
        )
        yield Figure(
            f"{name}_rg", f"{name}, whole process: speed against `rg -F -i`", theirs / ours, "x",
            None, True, f"{ours * 1e3:.0f} ms, rg {theirs * 1e3:.0f} ms",
        )  # fmt: skip
    brute, theirs = bench.in_turn(
        lambda: process(bench.command(bench.main, "xq-needle-once", "--brute")),
        lambda: process([rg, "-F", "-i", "-j1", "xq-needle-once", root]),
    )
    yield Figure(
        "brute_rg", "the brute path: speed against `rg -F -i -j1`", theirs / brute, "x", None,
        True, f"{brute * 1e3:.0f} ms, rg {theirs * 1e3:.0f} ms",
    )  # fmt: skip


def walk(root: str) -> float:
    """Seconds of a bare scandir of the tree with a stat of each file."""
    began = time.perf_counter()
    todo = [root]
    while todo:
        with os.scandir(todo.pop()) as found:
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    todo.append(item.path)
                else:
                    item.stat(follow_symlinks=False)
    return time.perf_counter() - began


def library(bench: Bench) -> Iterator[Figure]:
    """A rare literal in a store of many files, coverage check included."""
    store = bench.many
    index = bench.opened(store)

    def search() -> float:
        began = time.perf_counter()
        index.search("xq-needle-once", count="page", limit=50)
        return time.perf_counter() - began

    ours, bare = bench.in_turn(search, lambda: walk(store.root))
    yield Figure(
        "rare_library", f"a rare literal, {store.files:,} files, coverage included", ours * 1e3,
        "ms", 50, False, f"{ours / bare:.1f} bare scandir + stat ({bare * 1e3:.0f} ms)",
    )  # fmt: skip


def listing(bench: Bench) -> Iterator[Figure]:
    """All sessions of a store of many unchanged files."""
    store = bench.many
    index = bench.opened(store)

    def listed(brute: bool) -> float:
        began = time.perf_counter()
        index.list_sessions(brute=brute)
        return time.perf_counter() - began

    ours, brute, bare = bench.in_turn(
        lambda: listed(False), lambda: listed(True), lambda: walk(store.root)
    )
    yield Figure(
        "listing", f"list_sessions, {store.files:,} files, in bare scandir + stat", ours / bare,
        "x", 3, False, f"{ours * 1e3:.0f} ms, bare {bare * 1e3:.0f} ms",
    )  # fmt: skip
    yield Figure(
        "listing_brute", "the same: speed against reading the headers", brute / ours, "x",
        1.5, True, f"{ours * 1e3:.0f} ms, brute {brute * 1e3:.0f} ms",
    )  # fmt: skip


def entries(bench: Bench) -> Iterator[Figure]:
    """One long session: a rare search in it, and all of it, against the brute path."""
    store = bench.long
    index = bench.opened(store)
    path = next(str(path) for path in Path(store.root).rglob("*.jsonl"))
    rare = {"search": {"terms": ["xq-needle-once"]}}
    for name, what, filters, target, at_least in (
        ("entries_rare", "session_entries, rare search, one session", rare, 10, True),
        ("entries_all", "session_entries, all of it: time, in brute ones", {}, 1.2, False),
    ):

        def timed(brute: bool, filters: dict[str, Any] = filters) -> Callable[[], float]:
            def run() -> float:
                began = time.perf_counter()
                index.session_entries(path, brute=brute, **filters)
                return time.perf_counter() - began

            return run

        ours, brute = bench.in_turn(timed(False), timed(True))
        yield Figure(
            name, what, brute / ours if at_least else ours / brute, "x", target, at_least,
            f"{ours * 1e3:.1f} ms, brute {brute * 1e3:.0f} ms, {store.bytes / 1e6:.0f} MB",
        )  # fmt: skip


@contextmanager
def watching(store: corpus.Corpus, index: SessionIndex, folder: Path) -> Iterator[int]:
    """A watcher of a store in a process of its own, past its first walks; its process id."""
    command = [sys.executable, "-m", "sessionindex", "watch", "--root", store.root]
    command += ["--index-dir", str(folder), "--log-level", "warning"]
    process = subprocess.Popen(command, env=_environment())
    try:
        deadline = time.monotonic() + 60
        while (holder := index.status().writer) is None or holder.pid != process.pid:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the watcher does not start")
            time.sleep(0.05)
        time.sleep(3)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def watch(bench: Bench) -> Iterator[Figure]:
    """The background indexer: how soon text is in the index, and what it costs when idle."""
    store = bench.many
    index = bench.opened(store)
    minute = 60 if bench.runs > 1 else 1
    with watching(store, index, bench.index_dir) as process:
        before = _cpu(process)
        time.sleep(minute)
        idle = (_cpu(process) - before) * 60 / minute
        resident = _resident(process)
    with tempfile.TemporaryDirectory(prefix="bench-watch-") as folder:
        root = Path(folder, "sessions")
        shutil.copytree(store.root, root)
        copy = replace(store, root=str(root))
        paths = sorted(root.rglob("*.jsonl"))
        line = paths[0].read_bytes().splitlines(keepends=True)[1]
        copied = SessionIndex(root, index_dir=folder, settings={}, current_session="")
        copied.refresh()
        with watching(copy, copied, Path(folder)):
            took = [
                _until_indexed(copied, paths[number % len(paths)], line)
                for number in range(100 if bench.runs > 1 else 5)
            ]
        copied.close()
    late = sorted(took)[int(0.95 * len(took))]
    yield Figure(
        "watch_latency", "append to index, 95th percentile", late * 1e3, "ms", 500, False,
        f"median {median(took) * 1e3:.0f} ms, {len(took)} appends, {store.files:,} files",
    )  # fmt: skip
    yield Figure(
        "watch_idle", "watcher, idle: CPU a minute, walks included", max(idle, 0.001) * 1e3, "ms",
        500, False, f"{store.files:,} files, over {minute} s",
    )  # fmt: skip
    yield Figure("watch_memory", "watcher, idle: memory", resident, "MB", 80, False, "resident")


def _until_indexed(index: SessionIndex, path: Path, line: bytes) -> float:
    """Seconds from an append until the index holds it, one at a time and at no fixed distance."""
    with path.open("ab") as file:
        file.write(line)
    began = time.perf_counter()
    end = path.stat().st_size
    while time.perf_counter() - began < 60:
        reader = index._present.reader()
        if reader is not None and reader.records()[str(path)].cursor.offset == end:
            took = time.perf_counter() - began
            time.sleep(0.05 + 0.3 * (end % 7) / 7)
            return took
        time.sleep(0.005)
    raise SystemExit(f"never indexed: {path}")


def _cpu(process: int) -> float:
    """Seconds of CPU that a process has used."""
    if sys.platform == "linux":
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    said = subprocess.check_output(["ps", "-o", "time=", "-p", str(process)], text=True)
    minutes, seconds = said.strip().rsplit(":", 2)[-2:]
    return int(minutes) * 60 + float(seconds)


def _resident(process: int) -> float:
    """Megabytes that a process holds now."""
    said = subprocess.check_output(["ps", "-o", "rss=", "-p", str(process)], text=True)
    return int(said) / 1e3


BENCHES: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "cold_index": cold_index,
    "memory": memory,
    "start": start,
    "searches": searches,
    "ripgrep": ripgrep,
    "library": library,
    "listing": listing,
    "entries": entries,
    "watch": watch,
}


# --- the command -----


def table(figures: Sequence[Figure]) -> str:
    """One line a figure."""
    lines = []
    for figure in figures:
        digits = 0 if figure.unit in ("MB", "ms") else 2
        value = f"{figure.value:,.{digits}f} {figure.unit}".strip()
        bound = ">=" if figure.at_least else "<="
        target = "" if figure.target is None else f"{bound} {figure.target:g}"
        verdict = "" if figure.target is None else "reached" if figure.is_reached else "MISSED"
        lines.append(f"{figure.what:<58} {value:>10} {target:>8} {verdict:<8} {figure.detail}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Raw)
    parser.add_argument("what", choices=["list", "run", "all", "child"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--files", type=int, default=4000, help="of the store of many files")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "bench-work")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.what == "child":
        kind, root = asked.names
        print(json.dumps({"index": child_index, "bare": child_bare}[kind](root)))
        return 0
    if asked.what == "list":
        for name, measure in BENCHES.items():
            print(f"{name:<12} {measure.__doc__}")
        return 0
    unknown = set(asked.names) - set(BENCHES)
    if unknown or (asked.what == "run") != bool(asked.names):
        parser.error(f"run takes some of: {', '.join(BENCHES)}")
    compileall.compile_dir(str(PACKAGE), quiet=2)
    asked.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(asked.work, asked.megabytes, asked.files, asked.runs)
    figures: list[Figure] = []
    for name in asked.names or BENCHES:
        for figure in BENCHES[name](bench):
            figures.append(figure)
            if not asked.json:
                print(table([figure]), flush=True)
    if asked.json:
        rows = [{**asdict(figure), "reached": figure.is_reached} for figure in figures]
        machine = {"machine": platform.platform(), "cores": os.cpu_count()}
        print(json.dumps({**machine, "megabytes": asked.megabytes, "figures": rows}, indent=2))
    return 0 if all(figure.is_reached for figure in figures) else 1


class _Raw(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())
