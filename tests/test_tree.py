"""Branches, leaves and sections, each on a tree of a few entries: (id, parent), in file order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionindex import tree

CHAIN = [(1, 0), (2, 1), (3, 2)]
FORK = [(1, 0), (2, 1), (3, 1), (4, 3)]


@pytest.mark.parametrize(
    ("rule", "entries", "leaf", "expected"),
    [
        ("a chain", CHAIN, 3, [0, 1, 2]),
        ("up to an entry in the middle", CHAIN, 2, [0, 1]),
        ("one side of a fork", FORK, 2, [0, 1]),
        ("the other side", FORK, 4, [0, 2, 3]),
        ("no leaf", CHAIN, 0, []),
        ("a leaf that is not there", CHAIN, 9, []),
        ("nothing at all", [], 1, []),
        ("a parent that is missing ends the walk", [(2, 7), (3, 2)], 3, [0, 1]),
        ("parents may stand below their children", [(3, 2), (2, 1), (1, 0)], 3, [2, 1, 0]),
        ("the last line with an id counts", [(1, 0), (2, 1), (1, 2)], 2, [2, 1]),
        ("its own parent", [(1, 1)], 1, [0]),
        ("a cycle is walked once", [(1, 3), (2, 1), (3, 2)], 3, [0, 1, 2]),
        ("a cycle above", [(1, 2), (2, 1), (3, 2)], 3, [0, 1, 2]),
    ],
)
def test_branch(rule: str, entries: list[tuple[int, int]], leaf: int, expected: list[int]) -> None:
    ids, parents = [one[0] for one in entries], [one[1] for one in entries]
    assert tree.branch(ids, parents, leaf) == expected, rule


@pytest.mark.parametrize(
    ("rule", "entries", "expected"),
    [
        ("nothing", [], 0),
        ("a chain has one", CHAIN, 1),
        ("a fork has two", FORK, 2),
        ("roots without children are leaves", [(1, 0), (2, 0)], 2),
        ("a cycle has none", [(1, 2), (2, 1)], 0),
        ("each line of a repeated id counts", [(1, 0), (2, 1), (2, 1)], 2),
        ("a missing parent is nobody's child", [(2, 9)], 1),
    ],
)
def test_leaves(rule: str, entries: list[tuple[int, int]], expected: int) -> None:
    assert tree.leaves([one[0] for one in entries], [one[1] for one in entries]) == expected, rule


@given(st.lists(st.booleans(), max_size=20))
def test_sections_cover_a_selection_once(starting: list[bool]) -> None:
    """Sections follow each other without gaps, and every place is in the one that says so."""
    starts = tree.section_starts(starting)
    spans = [tree.span(starts, number, len(starting)) for number in range(len(starts))]
    covered = [place for start, end in spans for place in range(start, end)]
    assert covered == list(range(len(starting)))
    for number, (start, end) in enumerate(spans):
        assert start < end and (starting[start] or start == 0)
        assert not any(starting[start + 1 : end])
        assert all(tree.section_at(starts, place) == number for place in range(start, end))


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 9)), max_size=12), st.integers(0, 9))
def test_any_tree(entries: list[tuple[int, int]], leaf: int) -> None:
    """A branch visits no entry twice, ends at its leaf, and each follows its parent."""
    ids, parents = [one[0] for one in entries], [one[1] for one in entries]
    path = tree.branch(ids, parents, leaf)
    assert len(set(path)) == len(path)
    assert bool(path) == (leaf in ids)
    if path:
        assert ids[path[-1]] == leaf
    for above, below in pairwise(path):
        assert parents[below] == ids[above]
