"""How a root and its index stand, within the access bound: what `status` reports.

Counted from the catalog of this moment, so it is as true as a search: a file is `fresh` (the index
covers it), `behind` (it grew since), `stale` (it was rewritten since) or `new`. Problems are those
that the index remembers of the lines it covers. Nothing is said of sessions that the bound hides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sessionindex.entry import REASONS
from sessionindex.errors import IndexUnusable
from sessionindex.index.lock import Holder
from sessionindex.index.schema import FORMAT
from sessionindex.present import Present


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a root and its index now; `pending_bytes` are not covered by the index.

    `index_bytes` is None under an access bound: it would tell of what is hidden.
    `last_refresh` is in milliseconds; `problems` counts lines of covered files that are no
    entries, by code; `damage` says why there is no index that can be used, or is None.
    """

    root: str
    layout: str
    index_dir: str
    sessions: int
    entries: int
    bytes: int
    index_bytes: int | None
    format: str
    fresh: int
    behind: int
    stale: int
    new: int
    pending_bytes: int
    last_refresh: int | None
    problems: Mapping[str, int]
    writer: Holder | None
    damage: str | None


def take(present: Present) -> Status:
    """The status of a root now."""
    policy = present.policy()
    damage = present.damage()
    try:
        now = present.catalog(policy, present.reader())
    except IndexUnusable as error:  # damage that only reading shows
        damage = error
        present.give_up(error)
        now = present.catalog(policy, None)
    count = Counter(file.verdict for file in now.files)
    records = [file.record for file in now.files if file.record]
    problems: Counter[str] = Counter()
    for record in records:
        for number, count_of in record.problems:
            problems[REASONS[number][0]] += count_of
    return Status(
        present.root.path,
        "flat" if present.is_flat() else "projects",
        present.store.folder,
        len(now.files),
        sum(record.entries for record in records),
        sum(file.found.identity.size for file in now.files),
        None if policy.is_bound else present.store.size(),
        FORMAT,
        count["fresh"],
        count["behind"],
        count["stale"],
        count["new"],
        sum(file.uncovered for file in now.files),
        present.store.touched(),
        dict(sorted(problems.items())),
        present.store.holder(),
        str(damage) if damage else None,
    )
