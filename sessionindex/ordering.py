"""Hits in the order asked for: the best `limit` of them after a place, without keeping the rest.

The orders are total: `newest` is instant descending, then path, then line; `oldest` is its exact
mirror; `path` is path, then line. A place is such a key; a page is what comes after it.

A `Page` is offered keys first, so that a hit is only rendered when it has a chance to be shown.
With `unique`, hits of equal identity (entry id and text) count once, as the first in the order;
an entry without an id is like no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

Order = Literal["newest", "oldest", "path"]
Key = tuple[int, str, int]
"""(minus the instant, or 0 in order of path; path; line_no)."""

Hit = TypeVar("Hit")


def key_of(order: Order, instant: int, path: str, line_no: int) -> Key:
    """The sort key of a hit."""
    return (0 if order == "path" else -instant, path, line_no)


class _Kept(Generic[Hit]):
    __slots__ = ("hit", "key")

    def __init__(self, key: Key, hit: Hit) -> None:
        self.key = key
        self.hit = hit


class Page(Generic[Hit]):
    """The page being filled; `limit` None keeps everything."""

    def __init__(self, order: Order, *, limit: int | None, after: Key | None, unique: bool) -> None:
        self._backwards = order == "oldest"
        self._room = None if limit is None else limit + 1
        self._limit = limit
        self._after = after
        self._kept: list[_Kept[Hit]] = []
        self._first: dict[object, _Kept[Hit]] | None = {} if unique else None
        self._total = 0
        self._counts: dict[str, int] = {}
        self._worst: Key | None = None

    def offer(self, key: Key, identity: object, render: Callable[[], Hit]) -> None:
        """Take a hit into account; `render` is called only where it may be on the page."""
        if self._first is not None and identity is not None:
            known = self._first.get(identity)
            if known is None or self._before(key, known.key):
                self._first[identity] = _Kept(key, render())
            return
        self._total += 1
        self._counts[key[1]] = self._counts.get(key[1], 0) + 1
        if self._after is not None and not self._before(self._after, key):
            return
        if self._worst is None or self._before(key, self._worst):
            self._kept.append(_Kept(key, render()))
            if self._room is not None and len(self._kept) >= 2 * self._room + 64:
                self._kept.sort(key=lambda one: one.key, reverse=self._backwards)
                del self._kept[self._room :]
                self._worst = self._kept[-1].key  # what a newcomer must beat from now on

    def is_settled(self, bound: Key) -> bool:
        """Whether nothing that comes at or after `bound` in the order can be on the page."""
        if self._room is None:
            return False
        kept = self._sorted()
        return len(kept) >= self._room and self._before(kept[self._room - 1].key, bound)

    def hits(self) -> tuple[list[Hit], bool, Key | None]:
        """The hits of the page, whether more follow, and the key of the last one."""
        kept = self._sorted()
        more = self._limit is not None and len(kept) > self._limit
        shown = kept[: self._limit]
        return [one.hit for one in shown], more, shown[-1].key if shown else None

    @property
    def total(self) -> int:
        """How many hits were offered, equal ones once with `unique`."""
        return self._total + len(self._first or ())

    def counts(self) -> dict[str, int]:
        """How many of the hits lie in each file."""
        counts = dict(self._counts)
        for one in (self._first or {}).values():
            counts[one.key[1]] = counts.get(one.key[1], 0) + 1
        return counts

    def _before(self, one: Key, other: Key) -> bool:
        return one > other if self._backwards else one < other

    def _sorted(self) -> list[_Kept[Hit]]:
        kept = list(self._kept)
        if self._first:
            after = self._after
            kept += [
                one for one in self._first.values() if after is None or self._before(after, one.key)
            ]
        kept.sort(key=lambda one: one.key, reverse=self._backwards)
        return kept
