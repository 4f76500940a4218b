"""Pages: whatever is offered in whatever order, they hold what sorting everything would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex.ordering import Key, Order, Page, key_of

ORDERS = get_args(Order)
Place = tuple[int, str, int]


def keys(order: Order, places: Iterable[Place]) -> list[Key]:
    return [key_of(order, *place) for place in places]


def page(order: Order, offered: Iterable[Key], **given: Any) -> Page[Key]:
    chosen: dict[str, Any] = {"limit": None, "after": None, "unique": False} | given
    filled: Page[Key] = Page(order, **chosen)
    for key in offered:
        filled.offer(key, None, lambda key=key: key)
    return filled


PLACES = [(5, "/b", 2), (5, "/a", 9), (7, "/a", 3), (5, "/b", 1), (-1, "/c", 1)]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("newest", [(7, "/a", 3), (5, "/a", 9), (5, "/b", 1), (5, "/b", 2), (-1, "/c", 1)]),
        ("oldest", [(-1, "/c", 1), (5, "/b", 2), (5, "/b", 1), (5, "/a", 9), (7, "/a", 3)]),
        ("path", [(7, "/a", 3), (5, "/a", 9), (5, "/b", 1), (5, "/b", 2), (-1, "/c", 1)]),
    ],
)
def test_orders(order: Order, wanted: list[Place]) -> None:
    """Instant, then path, then line; the mirror of it; path, then line."""
    assert page(order, keys(order, PLACES)).hits() == (
        keys(order, wanted),
        False,
        key_of(order, *wanted[-1]),
    )


def test_strings_sort_by_code_point() -> None:
    """U+FF5E before an emoji, unlike in JavaScript."""
    offered = keys("path", [(0, "/😀", 1), (0, "/～", 1), (0, "/Z", 1), (0, "/a", 1)])
    assert [key[1] for key in page("path", offered).hits()[0]] == ["/Z", "/a", "/～", "/😀"]


def test_an_empty_page() -> None:
    nothing = page("newest", [], limit=5)
    assert nothing.hits() == ([], False, None)
    assert (nothing.total, nothing.counts()) == (0, {})


def test_what_has_no_chance_is_never_rendered() -> None:
    """Once the page is full of better ones, and where it lies before the place."""
    rendered = []
    filled: Page[int] = Page("newest", limit=1, after=(-900, "", 0), unique=False)
    for instant in range(1000):
        filled.offer(
            key_of("newest", 1000 - instant, "/a", 1),
            None,
            lambda i=instant: rendered.append(i) or i,
        )
    assert filled.hits() == ([100], True, key_of("newest", 900, "/a", 1))
    assert filled.total == 1000
    assert len(rendered) < 100
    assert min(rendered) == 100


def test_equal_hits_count_once_as_the_first_of_them() -> None:
    """A hit without an identity is like no other."""
    filled: Page[str] = Page("newest", limit=10, after=None, unique=True)
    for instant, path, identity in [
        (1, "/fork", "x"),
        (3, "/main", "x"),
        (2, "/copy", "x"),
        (1, "/main", "y"),
        (1, "/a", None),
        (1, "/b", None),
    ]:
        filled.offer(key_of("newest", instant, path, 1), identity, lambda p=path: p)
    assert filled.hits()[0] == ["/main", "/a", "/b", "/main"]
    assert filled.total == 4
    assert filled.counts() == {"/a": 1, "/b": 1, "/main": 2}


def test_a_page_is_settled_when_nothing_later_can_be_on_it() -> None:
    """One more than the limit must be there, to know whether more follow."""
    filled = page("newest", keys("newest", [(9, "/a", 1), (8, "/a", 2)]), limit=2)
    assert not filled.is_settled(key_of("newest", 0, "", 0))
    filled.offer(key_of("newest", 7, "/a", 3), None, lambda: key_of("newest", 7, "/a", 3))
    assert filled.is_settled(key_of("newest", 6, "", 0))
    assert not filled.is_settled(key_of("newest", 7, "/a", 3))
    assert not page("newest", keys("newest", PLACES)).is_settled(key_of("newest", -9, "", 0))


places = st.tuples(st.integers(-3, 3), st.sampled_from(["/a", "/b", "/é"]), st.integers(1, 60))
identities = st.none() | st.integers(0, 9)


@given(
    st.dictionaries(places, identities, max_size=150),
    st.sampled_from(ORDERS),
    st.none() | st.integers(1, 20),
    st.none() | places,
    st.booleans(),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_a_page_is_a_cut_of_all_hits_in_order(
    offered: dict[Place, int | None],
    order: Order,
    limit: int | None,
    after: Place | None,
    unique: bool,
) -> None:
    """Sorting everything, then counting once, then cutting, gives the same."""
    # In order of path two hits of one line would share a key, so a line is offered once.
    hits = {
        (path, line): (key_of(order, at, path, line), who)
        for (at, path, line), who in offered.items()
    }
    start = None if after is None else key_of(order, *after)
    filled: Page[Key] = Page(order, limit=limit, after=start, unique=unique)
    for key, identity in hits.values():
        filled.offer(key, identity, lambda key=key: key)

    wanted: list[Key] = []
    seen = set()
    for key, identity in sorted(hits.values(), key=lambda hit: hit[0], reverse=order == "oldest"):
        if not unique or identity is None or identity not in seen:
            wanted.append(key)
            seen.add(identity)
    assert filled.total == len(wanted)
    assert filled.counts() == Counter(key[1] for key in wanted)
    rest = [
        key
        for key in wanted
        if start is None or (key < start if order == "oldest" else key > start)
    ]
    shown = rest[:limit]
    assert filled.hits() == (shown, len(rest) > len(shown), shown[-1] if shown else None)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_pages_one_after_another_are_the_whole(order: Order, limit: int) -> None:
    """Each begins where the one before ended."""
    offered = keys(order, [(n % 5, f"/{n % 3}", n) for n in range(20)])
    found: list[Key] = []
    more, last = True, None
    while more:
        hits, more, last = page(order, offered, limit=limit, after=last).hits()
        assert hits
        found += hits
    assert found == page(order, offered).hits()[0]
    assert len(found) == 20
