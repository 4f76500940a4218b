"""Rows about the library on many files, warm, what proves that the index covers them included.

Times are promised as such only here. The files are read once before, so that they are in the
system's cache, as they are for whoever has just worked in those sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from cuts import needles
from figures import Figure, Row
from reference import call, walk
from rows_search import PAGE, RARE
from stores import LARGE, MANY, Stores

LIBRARY = (
    Row("needles_p50", "needles of 4 to 40 characters cut at random: median", "ms", 40, False,
        LARGE),
    Row("needles_p99", "the same: 99th percentile", "ms", 250, False, LARGE),
    Row("rare_library", "a rare literal, library, coverage included", "ms", 50, False, MANY),
)  # fmt: skip


def library(stores: Stores) -> Iterator[Figure]:
    """First pages of 1,000 different needles cut from the store, and of a rare one."""
    size = stores.fitted(LARGE)
    index, root = stores.opened(size), stores.store(size).root
    warm(root)
    cut = needles(root, 30 if stores.quick else 1_020)
    for needle in cut[-20:]:
        index.search(needle, **PAGE)
    took = sorted((call(index.search, needle, **PAGE), needle) for needle in cut[:-20])
    times = [one for one, _ in took]
    detail = f"{len(times):,} needles, slowest {times[-1] * 1e3:.0f} ms {took[-1][1]!r}"
    yield Figure(LIBRARY[0], median(times) * 1e3, detail, size)
    late = times[min(len(times) - 1, int(0.99 * len(times)))]
    yield Figure(LIBRARY[1], late * 1e3, "", size)

    size = stores.fitted(MANY)
    index, root = stores.opened(size), stores.store(size).root
    ours, bare = stores.in_turn(lambda: call(index.search, RARE, **PAGE), lambda: walk(root))
    detail = f"{ours / bare:.1f} bare scandir + stat ({bare * 1e3:.0f} ms)"
    yield Figure(LIBRARY[2], ours * 1e3, detail, size)


def warm(root: str) -> None:
    """Read all files of a root."""
    for path in Path(root).rglob("*.jsonl"):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


LISTING = (
    Row("listing", "list_sessions, in bare scandir + stat", "x", 3, False, MANY),
    Row("listing_brute", "the same: speed against reading the headers", "x", 1.5, True, MANY),
)


def listing(stores: Stores) -> Iterator[Figure]:
    """All sessions of a store of many unchanged files."""
    size = stores.fitted(MANY)
    index, root = stores.opened(size), stores.store(size).root
    ours, brute, bare = stores.in_turn(
        lambda: call(index.list_sessions),
        lambda: call(index.list_sessions, brute=True),
        lambda: walk(root),
    )
    detail = f"{ours * 1e3:.1f} ms, bare {bare * 1e3:.1f} ms"
    yield Figure(LISTING[0], ours / bare, detail, size)
    detail = f"{ours * 1e3:.1f} ms, brute {brute * 1e3:.0f} ms"
    yield Figure(LISTING[1], brute / ours, detail, size)
