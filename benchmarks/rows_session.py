"""Rows about one long session: its entries and the recovery tools against the brute path.

The brute path reads and parses the file alone. Each answer is compared with it before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from figures import Figure, Row
from reference import call
from rows_search import RARE
from stores import LONG, Stores

SESSION = (
    Row("entries_rare", "session_entries, a rare search: speed against the brute path", "x", 10,
        True, LONG),
    Row("entries_all", "session_entries, all of it: time, in brute ones", "x", 1.2, False, LONG),
    Row("overview", "session_overview: speed against the brute path", "x", 3, True, LONG),
    Row("recovery", "session_recovery_context: speed against the brute path", "x", 3, True, LONG),
    Row("find_rare", "session_search, a rare one: speed against the brute path", "x", 10, True,
        LONG),
)  # fmt: skip


def session(stores: Stores) -> Iterator[Figure]:
    """Questions about one long session against the brute path."""
    size = stores.fitted(LONG)
    index, root = stores.opened(size), stores.store(size).root
    path = next(str(path) for path in Path(root).rglob("*.jsonl"))
    asked: tuple[Callable[..., object], ...] = (
        partial(index.session_entries, path, search={"terms": [RARE]}),
        partial(index.session_entries, path),
        partial(index.overview, path),
        partial(index.recovery_context, path),
        partial(index.session_search, path, RARE),
    )
    for row, question in zip(SESSION, asked, strict=True):
        if question() != question(brute=True):
            raise SystemExit(f"{row.name}: not what the brute path answers")
        ours, brute = stores.in_turn(partial(call, question), partial(call, question, brute=True))
        detail = f"{ours * 1e3:.1f} ms, brute {brute * 1e3:.0f} ms"
        yield Figure(row, brute / ours if row.at_least else ours / brute, detail, size)
