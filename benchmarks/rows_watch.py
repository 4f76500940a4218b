"""Rows about the background indexer: how soon text is in the index, and what an idle one costs.

The watcher is a process of its own, past its first walks when it is measured. Appends go to a copy
of the store, one at a time and at no fixed distance.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from figures import Figure, Row
from reference import environment
from rows_index import append
from stores import MANY, Stores

from sessionindex import SessionIndex

WATCH = (
    Row("watch_latency", "append to index, 95th percentile", "ms", 500, False, MANY),
    Row("watch_idle", "watcher, idle: CPU a minute, walks included", "ms", 500, False, MANY),
    Row("watch_memory", "watcher, idle: memory", "MB", 80, False, MANY),
)


def watch(stores: Stores) -> Iterator[Figure]:
    """The background indexer: its delay, and its cost when nothing happens."""
    size = stores.fitted(MANY)
    minute, first, appends = (1, 0.5, 3) if stores.quick else (60, 3, 100)
    with stores.copy(size) as (root, index), _watching(root, index, first) as watcher:
        before = _cpu(watcher)
        time.sleep(minute)
        idle = (_cpu(watcher) - before) * 60 / minute
        resident = _resident(watcher)
        paths = sorted(root.rglob("*.jsonl"))
        took = [_until_indexed(index, paths[number % len(paths)]) for number in range(appends)]
    late = sorted(took)[int(0.95 * len(took))]
    detail = f"median {median(took) * 1e3:.0f} ms, {len(took)} appends"
    yield Figure(WATCH[0], late * 1e3, detail, size)
    yield Figure(WATCH[1], max(idle, 0.001) * 1e3, f"over {minute} s", size)
    yield Figure(WATCH[2], resident, "resident", size)


@contextmanager
def _watching(root: Path, index: SessionIndex, first: float) -> Iterator[int]:
    """A watcher of a root, that many seconds after it has taken over; its process id."""
    command = [sys.executable, "-m", "sessionindex", "watch", "--root", str(root)]
    command += ["--index-dir", str(root.parent / "index"), "--log-level", "warning"]
    process = subprocess.Popen(command, env=environment())
    try:
        deadline = time.monotonic() + 60
        while (holder := index.status().writer) is None or holder.pid != process.pid:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the watcher does not start")
            time.sleep(0.05)
        time.sleep(first)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _until_indexed(index: SessionIndex, path: Path) -> float:
    """Seconds from an append until the index holds it."""
    append(path, 2_000)
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
