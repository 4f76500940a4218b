"""Where entries stand: the active branch, and what its newest compaction hides, each on a story.

A story is a row of lines (id, parent, more fields); they are named by their places, from 1 on. A
field that is said to be "none" is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from build import encoded, put, session

from sessionindex import lineage
from sessionindex.session import opened

Lines = list[Any]
CHAIN: Lines = [("a", None), ("b", "a"), ("c", "b")]


def keeps(first: Any) -> dict[str, Any]:
    return {"type": "compaction", "firstKeptEntryId": first}


def told(root: Path, lines: Lines, version: Any = 3) -> lineage.Lineage:
    """The lineage of a session with these lines: tuples are entries, other values stand raw."""
    story = session("a", version=version)
    for line in lines:
        if isinstance(line, bytes):
            story.line(line)
            continue
        name, parent, *more = line
        value: dict[str, Any] = {"type": "note", "id": name, "parentId": parent}
        for fields in more:
            value |= fields
        story.line(encoded({key: said for key, said in value.items() if said != "none"}))
    with opened(put(root, "", "a", story)) as view:
        return lineage.of_outline(view.outline)


@pytest.mark.parametrize(
    ("rule", "lines", "active"),
    [
        ("nothing", [], []),
        ("a chain", CHAIN, [1, 2, 3]),
        ("the last entry of the file is the leaf", [*CHAIN, ("d", "a")], [1, 4]),
        ("of any type", [*CHAIN, ("d", "a", {"type": "label"})], [1, 4]),
        ("a root of its own", [*CHAIN, ("d", None)], [4]),
        ("a parent that is not there ends it", [*CHAIN, ("d", "x"), ("e", "d")], [4, 5]),
        ("an empty parent too", [*CHAIN, ("d", "")], [4]),
        ("and one that is no name", [*CHAIN, ("d", 1)], [4]),
        ("parents may stand below", [("a", "c"), ("c", None), ("b", "a")], [1, 2, 3]),
        ("the last line of an id counts", [("a", None), ("b", None), ("a", "b"), ("c", "a")],
         [2, 3, 4]),
        ("also for the leaf", [("a", None), ("b", "a"), ("a", "b")], [2, 3]),
        ("its own parent", [("a", None), ("b", "b")], [2]),
        ("a cycle is walked once", [("a", "c"), ("b", "a"), ("c", "b")], [1, 2, 3]),
        ("a cycle above", [("a", "b"), ("b", "a"), ("c", "b")], [1, 2, 3]),
        ("a cycle beside", [("a", "b"), ("b", "a"), ("c", None)], [3]),
        ("an entry without id hangs nowhere", [("a", None), ("none", "a"), ("b", "a")], [1, 3]),
        ("as the last it leaves no branch", [*CHAIN, ("none", "c")], []),
        ("an empty id is none", [*CHAIN, ("", "c")], []),
        ("a number neither", [*CHAIN, (4, "c")], []),
        ("nor a scalar or an array", [*CHAIN, b"[]"], []),
        ("what is false to JavaScript is no line", [*CHAIN, b"null", b"0", b"false", b'""'],
         [1, 2, 3]),
        ("nor is a line that is no JSON", [*CHAIN, b"{", b"", b"\xff"], [1, 2, 3]),
        ("nor a second header", [*CHAIN, ("d", "a", {"type": "session"})], [1, 2, 3]),
        ("a link without type or timestamp is one", [("a", None), ("b", "a", {"type": "none"}),
         ("c", "b")], [1, 2, 3]),
        ("ids are what they say, however long", [("an id of many letters", None),
         ("é", "an id of many letters"), ("c", "é")], [1, 2, 3]),
        ("control entries count", [("a", None), ("b", "a", {"type": "custom",
         "customType": "dcp-nudge"}), ("c", "b")], [1, 2, 3]),
    ],
)  # fmt: skip
def test_the_active_branch(rule: str, lines: Lines, active: list[int], tmp_path: Path) -> None:
    """From the last entry of the file over the parents to the root; all else is abandoned."""
    found = told(tmp_path, lines)
    assert sorted(line_no - 1 for line_no in found.active) == active, rule
    assert not found.hidden
    for line_no in range(2, len(lines) + 2):
        there = line_no - 1 in active
        assert found.holds(line_no, "active", None) is there, rule
        assert found.holds(line_no, "abandoned", None) is not there, rule
        assert found.holds(line_no, None, None), rule


@pytest.mark.parametrize(
    ("rule", "lines", "hidden"),
    [
        ("no compaction", CHAIN, []),
        ("what stands before the first kept entry", [*CHAIN, ("d", "c", keeps("b"))], [1]),
        ("nothing, where that is the root", [*CHAIN, ("d", "c", keeps("a"))], []),
        ("its own id keeps nothing", [*CHAIN, ("d", "c", keeps("d"))], [1, 2, 3]),
        ("an unknown one neither", [*CHAIN, ("d", "c", keeps("x"))], [1, 2, 3]),
        ("an empty one neither", [*CHAIN, ("d", "c", keeps(""))], [1, 2, 3]),
        ("none neither", [*CHAIN, ("d", "c", {"type": "compaction"})], [1, 2, 3]),
        ("one that is no name neither", [*CHAIN, ("d", "c", keeps(["b"]))], [1, 2, 3]),
        ("one on another branch neither", [*CHAIN, ("d", "b", keeps("c"))], [1, 2]),
        ("one that comes later neither", [*CHAIN, ("d", "c", keeps("e")), ("e", "d")], [1, 2, 3]),
        ("what follows stays", [*CHAIN, ("d", "c", keeps("c")), ("e", "d")], [1, 2]),
        ("the newest of two", [*CHAIN, ("d", "c", keeps("b")), ("e", "d", keeps("c"))], [1, 2]),
        ("though it keeps more", [*CHAIN, ("d", "c", keeps("c")), ("e", "d", keeps("b"))], [1]),
        ("an older one may be kept or hidden", [*CHAIN, ("d", "c", keeps("d")),
         ("e", "d", keeps("e"))], [1, 2, 3, 4]),
        ("the newest of the branch, not of the file", [("a", None), ("b", "a"),
         ("c", "b", keeps("b")), ("d", "b", keeps("d")), ("e", "c")], [1]),
        ("none on the branch", [*CHAIN, ("d", "c", keeps("d")), ("e", "c")], []),
        ("a compaction as the root", [("a", "x", keeps("a")), ("b", "a")], []),
        ("order is that of the branch", [("c", "b", keeps("b")), ("a", None), ("b", "a"),
         ("d", "c")], [2]),
        ("the last line of the kept id", [("a", None), ("b", "a"), ("a", "b"),
         ("c", "a", keeps("a"))], [2]),
        ("on a cycle", [("a", "c"), ("b", "a", keeps("b")), ("c", "b")], [1]),
        ("what only calls itself so is none", [*CHAIN, ("d", "c", {"type": "note",
         "firstKeptEntryId": "d"})], []),
        ("no branch, nothing hidden", [*CHAIN, ("d", "c", keeps("d")), ("none", "d")], []),
    ],
)  # fmt: skip
def test_what_a_compaction_hides(
    rule: str, lines: Lines, hidden: list[int], tmp_path: Path
) -> None:
    """On the active branch, before the first kept entry, or before the compaction itself."""
    found = told(tmp_path, lines)
    assert sorted(line_no - 1 for line_no in found.hidden) == hidden, rule
    assert found.hidden <= found.active
    for line_no in range(2, len(lines) + 2):
        is_hidden, is_active = line_no - 1 in hidden, line_no in found.active
        assert found.holds(line_no, None, "hidden") is is_hidden, rule
        assert found.holds(line_no, None, "visible") is (is_active and not is_hidden), rule
        assert found.holds(line_no, "active", "hidden") is is_hidden, rule
        assert not found.holds(line_no, "abandoned", "hidden"), rule
        assert not found.holds(line_no, "abandoned", "visible"), rule


@pytest.mark.parametrize(
    ("version", "chained"), [(1, True), (2, False), (3, False), (4, False), (3.0, False)]
)
def test_entries_without_durable_ids_are_one_chain(
    version: Any, chained: bool, tmp_path: Path
) -> None:
    """Version 1 has no tree: all of it is active, and nothing is known to be hidden."""
    found = told(tmp_path, [*CHAIN, ("d", "a", keeps("d"))], version)
    assert found.chained is chained
    for line_no in (3, 4):
        assert found.holds(line_no, "active", None) is chained
        assert found.holds(line_no, "active", "visible") is chained
        assert found.holds(line_no, "abandoned", None) is not chained
    assert found.holds(2, None, "hidden") is not chained


def test_a_torn_last_line_is_the_leaf_once_it_parses(tmp_path: Path) -> None:
    """A line without its end counts if it is JSON; half of one is not there yet."""
    whole = encoded({"type": "note", "id": "d", "parentId": "a"})
    for torn, active in ((whole, {2, 5}), (whole[:-1], {2, 3, 4})):
        story = session("a")
        for name, parent in CHAIN:
            story.line(encoded({"type": "note", "id": name, "parentId": parent}))
        with opened(put(tmp_path, "", "a", story.raw(torn))) as view:
            assert lineage.of_outline(view.outline).active == active
