"""Rows about making and refreshing the index: speed, size and memory.

A cold index is measured in a process of its own (`cold`), ours and the references in turn, so its
peak memory is that of indexing alone. A refresh is measured in an opened SessionIndex, on a copy
of a store, each time after an append to another file, in turn with a bare walk of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median

from figures import Figure, Row
from reference import call, walk
from stores import LARGE, LINE, MANY, ONE_FILE, WIDE_LINE, Stores

BARE = Row("cold_index", "cold index: speed against a bare tantivy writer", "x", 0.9, True, LARGE)
FTS5 = Row("cold_fts5", "the same against SQLite FTS5, trigrams", "x", 3, True, LARGE)
BYTES = Row("index_size", "index, of the raw JSONL", "", 0.25, False, LARGE)
COLD = (BARE, FTS5, BYTES)


def cold_index(stores: Stores) -> Iterator[Figure]:
    """Indexing a store that was never indexed, against the same text fed from memory."""
    size = stores.fitted(LARGE)
    found = [
        [stores.measure_cold(what, size) for what in ("index", "bare")]
        for _ in range(stores.cold_runs)
    ]
    other = stores.measure_cold("fts5", size)  # once: it takes longer than all the others
    ours, bare = (median(run[which]["seconds"] for run in found) for which in (0, 1))
    raw, held = found[0][0]["raw"], found[0][0]["bytes"]
    rate = raw / 1e6 / ours
    yield Figure(BARE, bare / ours, f"{rate:.1f} MB/s, bare {raw / 1e6 / bare:.1f} MB/s", size)
    if not other:
        yield Figure(FTS5, None, "this SQLite has no FTS5 with trigrams")
    else:
        fts5 = other["seconds"]
        detail = f"FTS5 {raw / 1e6 / fts5:.1f} MB/s, {other['bytes'] / raw:.2f} of the raw"
        yield Figure(FTS5, fts5 / ours, detail, size)
    detail = f"{held / 1e6:.0f} MB, bare writer {found[0][1]['bytes'] / raw:.2f}"
    yield Figure(BYTES, held / raw, detail, size)


MEMORY = (
    Row("memory", "peak memory of a cold index", "MB", 250, False, LARGE),
    Row("memory_one_file", "the same, all in one file", "MB", 250, False, ONE_FILE),
    Row("memory_line", "the same, one line of ASCII", "MB", 750, False, LINE),
    Row("memory_wide_line", "the same, four bytes a character", "MB", 750, False, WIDE_LINE),
)
"""The bound of a line is 250 MB and five such lines."""


def memory(stores: Stores) -> Iterator[Figure]:
    """Peak memory of a cold index: of many files, of one, of one long line."""
    for row in MEMORY:
        assert row.size is not None
        size = stores.fitted(row.size)
        found = stores.cold(size)
        yield Figure(row, found["peak"], f"{found['raw'] / 1e6:,.0f} MB of sessions", size)


REFRESH = (
    Row("refresh", "refresh after an append of 300 bytes, in bare scandir + stat", "x", 3, False,
        MANY),
)  # fmt: skip


def refresh(stores: Stores) -> Iterator[Figure]:
    """Bringing an index up to a root in which one file of many has grown."""
    size = stores.fitted(MANY)
    with stores.copy(size) as (root, index):
        paths = sorted(root.rglob("*.jsonl"))
        Random("refresh").shuffle(paths)
        grown = cycle(paths)

        def appended() -> float:
            append(next(grown), 300)
            return call(index.refresh)

        ours, bare = stores.in_turn(appended, lambda: walk(str(root)), runs=3 * stores.runs)
    detail = f"{ours * 1e3:.1f} ms, bare {bare * 1e3:.1f} ms"
    yield Figure(REFRESH[0], ours / bare, detail, size)


def append(path: Path, length: int) -> None:
    """Add a line of that many bytes, a user's message, to a session."""
    ident = b"%08x" % path.stat().st_size  # never given twice
    head = (
        b'{"type":"message","id":"' + ident + b'","parentId":null,'
        b'"timestamp":"2026-08-15T12:00:00.000Z","message":{"role":"user","content":"'
    )
    tail = b'","timestamp":1786795200000}}\n'
    words = b"and one more thing, "
    said = (words * (length // len(words) + 1))[: length - len(head) - len(tail)]
    with path.open("ab") as file:
        file.write(head + said + tail)
