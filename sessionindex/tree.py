"""The tree of a session's entries: branches, leaves and sections, on numbers alone.

Every entry has an id and a parent id, both given as tokens (`fold.token`, 0 for none), in the order
of the file. A *position* is an index into these. Rules, those of Pi:

- an id that stands on several lines means the last of them when it is looked up;
- a branch goes from its leaf over the parents to the root; a parent that is not there ends it, and
  so does an entry that was visited already, so a cycle ends it too;
- a leaf is an entry that no other names as its parent.

A *selection* is a row of entries in reading order (one branch, or the file). A section begins at
its first entry and wherever an entry says that it starts one; it ends where the next begins.

What an entry says is not known here: see `signals`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


def branch(ids: Sequence[int], parents: Sequence[int], leaf: int) -> list[int]:
    """Positions from the root to the entry with the id `leaf`; empty where there is none."""
    places = {token: place for place, token in enumerate(ids)}
    path: list[int] = []
    visited: set[int] = set()
    place = places.get(leaf) if leaf else None
    while place is not None and place not in visited:
        visited.add(place)
        path.append(place)
        parent = parents[place]
        place = places.get(parent) if parent else None
    path.reverse()
    return path


def leaves(ids: Iterable[int], parents: Iterable[int]) -> int:
    """How many entries have no child."""
    having = set(parents)
    return sum(token not in having for token in ids)


def section_starts(starting: Iterable[bool]) -> tuple[int, ...]:
    """Where the sections of a selection begin, given which of its entries start one."""
    return tuple(place for place, starts in enumerate(starting) if starts or place == 0)


def section_at(starts: Sequence[int], place: int) -> int:
    """The number of the section that holds a place of the selection."""
    return bisect_right(starts, place) - 1


def span(starts: Sequence[int], number: int, size: int) -> tuple[int, int]:
    """Where a section of a selection of `size` entries begins and ends (the end is outside)."""
    return starts[number], starts[number + 1] if number + 1 < len(starts) else size
