"""The cost model: what a store costs at three sizes, to see what grows with what.

Nothing is promised here. Time and memory of a cold index are those of a process of its own; the
searches are library calls on the open index, the check of every file's coverage included.
"""

from __future__ import annotations

from collections.abc import Iterator

from corpus_session import COMMON
from figures import Figure, Row, Size
from reference import call, walk
from rows_search import PAGE, RARE
from stores import HUGE, MIDDLE, SMALL, Stores

COLUMNS = {
    "files": "",
    "entries": "",
    "cold index": "s",
    "index size": "MB",
    "peak memory": "MB",
    "walk": "ms",
    "rare page": "ms",
    "common page": "ms",
    "common count": "ms",
}


def _row(column: str, size: Size) -> Row:
    name = f"scale_{column.replace(' ', '_')}_{size.megabytes:g}"
    return Row(name, column, COLUMNS[column], None, False, size)


SCALE = tuple(_row(column, size) for size in (SMALL, MIDDLE, HUGE) for column in COLUMNS)


def scale(stores: Stores) -> Iterator[Figure]:
    """Files, time, disk, memory and searches at three sizes."""
    known: dict[Size, dict[str, float]] = {}
    for row in SCALE:
        assert row.size is not None
        size = stores.fitted(row.size)
        if size not in known:
            known[size] = _costs(stores, size)
        yield Figure(row, known[size][row.what], "", size)


def _costs(stores: Stores, size: Size) -> dict[str, float]:
    store, index, cold = stores.store(size), stores.opened(size), stores.cold(size)
    rare, common, walked = stores.in_turn(
        lambda: call(index.search, RARE, **PAGE),
        lambda: call(index.search, COMMON, **PAGE),
        lambda: walk(store.root),
    )
    # It reads most of the store: once is enough to see how it grows.
    count = call(index.search, COMMON, count="exact", limit=1)
    return {
        "files": store.files,
        "entries": store.entries,
        "cold index": cold["seconds"],
        "index size": cold["bytes"] / 1e6,
        "peak memory": cold["peak"],
        "walk": walked * 1e3,
        "rare page": rare * 1e3,
        "common page": common * 1e3,
        "common count": count * 1e3,
    }
