"""Answers in so many bytes: whole rows, every row once, whatever the sizes and the order.

The reference is the answer without a bound.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from build import append, session
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import Store

from sessionindex import SessionIndex, budget
from sessionindex.errors import ParameterError
from sessionindex.wire.output import dumps


def pages(
    index: SessionIndex, tool: str, rows: str, params: Mapping[str, Any], most: int
) -> list[list[dict[str, Any]]]:
    """The rows of all pages, none of which is longer than it may be."""
    found, cursor = [], {}
    while True:
        told = budget.answer(index, tool, {**params, **cursor, "maxBytes": most})
        assert len(dumps(told)) <= most
        found.append(told[rows])
        if told["nextCursor"] is None:
            return found
        cursor = {"cursor": told["nextCursor"]}


def joined(lists: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [row for rows in lists for row in rows]


def test_a_listing_in_every_order(store: Store) -> None:
    """Also where ids, directories and instants are equal, and where a timestamp has no zone."""
    stamps = ("2026-09-10T09:00:00Z", "2026-09-10T11:00:00+02:00", "2026-09-11T00:00:00")
    for number, stamp in enumerate(stamps * 7):
        story = session(f"id{number % 3}", cwd=f"/r/c{number % 4}", timestamp=stamp)
        store.put(f"s{number:02}", story)
    for by, direction, limit in product(
        ("timestamp", "cwd", "path", "id"), ("asc", "desc"), (None, 11)
    ):
        params: dict[str, Any] = {"sortBy": by, "sortDirection": direction}
        params |= {} if limit is None else {"limit": limit}
        whole = store.index.call("list_sessions", params)["sessions"]
        paged = pages(store.index, "list_sessions", "sessions", params, 2000)
        assert joined(paged) == whole
        assert len(paged) > 1


def test_a_listing_goes_on_whatever_came_and_went(store: Store) -> None:
    """From the place in the order, also where the last session delivered is gone."""
    paths = [store.put(f"s{number:02}", session(f"s{number:02}")) for number in range(20)]
    params = {"sortBy": "id", "maxBytes": 2000}
    told = budget.answer(store.index, "list_sessions", params)
    seen = [row["id"] for row in told["sessions"]]
    os.unlink(paths[len(seen) - 1])
    os.unlink(paths[len(seen)])
    store.put("s00b", session("s00b"))
    cursor = {"cursor": told["nextCursor"], "maxBytes": 1_000_000}
    told = budget.answer(store.index, "list_sessions", params | cursor)
    assert [row["id"] for row in told["sessions"]] == [
        f"s{number:02}" for number in range(len(seen) + 1, 20)
    ]


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.integers(0, 3000).map(lambda count: "é" * count),
        st.integers(0, 3000).map(lambda count: '"\x01' * count),
    ),
    max_size=12,
)


@given(texts=TEXTS, most=st.integers(2000, 9000), raw=st.booleans(), limit=st.integers(1, 15))
@settings(max_examples=60)
def test_entries_of_every_size(
    texts: list[str], most: int, raw: bool, limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each row is the contract's, or a beginning of its text, and says so."""
    root = tmp_path_factory.mktemp("root")
    story = session("a")
    for text in texts:
        story.user(text)
    path = root / "--r--" / "a.jsonl"
    path.parent.mkdir()
    path.write_bytes(story.bytes())
    with SessionIndex(root, index_dir=root / "index", settings={}, current_session="") as index:
        params = {"sessionPath": str(path), "limit": limit}
        whole = index.call("session_entries", params)["entries"]
        paged = pages(index, "session_entries", "entries", params | {"includeRaw": raw}, most)
        rows = joined(paged)
    assert len(rows) == len(whole)
    for row, full in zip(rows, whole, strict=True):
        if row.pop("textTruncated", False):
            assert full["text"].startswith(row["text"])
            assert len(dumps(full["text"])) > most - 1000
            full = full | {"text": row["text"]}
        bare = not raw or row.pop("rawOmitted", False)
        assert row == {name: full[name] for name in full if not (bare and name == "raw")}
    assert all(page for page in paged) or not whole


def test_entries_go_on_in_a_file_that_grew(store: Store) -> None:
    """What was appended meanwhile comes on the pages that follow."""
    story = session("a")
    for number in range(20):
        story.user(f"{number} " + "x" * 200)
    path = store.put("a", story)
    params = {"sessionPath": path, "maxBytes": 2000}
    told = budget.answer(store.index, "session_entries", params)
    size = len(story)
    append(path, story.user("later").tail(size))
    cursor = {"cursor": told["nextCursor"], "maxBytes": 1_000_000}
    rest = budget.answer(store.index, "session_entries", params | cursor)
    lines = [row["lineNo"] for row in told["entries"] + rest["entries"]]
    assert lines == list(range(2, 23))


def test_a_page_of_entries_reads_no_more_than_a_page(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a long session only as many rows are made as could be on the page."""
    story = session("a")
    for number in range(2000):
        story.user(f"{number}")
    path = store.put("a", story)
    store.index.refresh()
    asked = []
    really = SessionIndex.entries_answer

    def counted(self: SessionIndex, params: Any, **how: Any) -> Any:
        found = really(self, params, **how)
        asked.append(len(found.rows))
        return found

    monkeypatch.setattr(SessionIndex, "entries_answer", counted)
    rows = joined(pages(store.index, "session_entries", "entries", {"sessionPath": path}, 20_000))
    assert len(rows) == 2000
    assert max(asked) < 300


def test_a_search_cut_short_keeps_its_counts(store: Store) -> None:
    """An exact count is that of all hits; the cursor is the contract's own."""
    for name in "abcd":
        story = session(name)
        for number in range(10):
            story.user(f"needle {number}")
        store.put(name, story)
    params = {"terms": ["needle"], "count": "exact"}
    told = budget.answer(store.index, "search_sessions", params | {"maxBytes": 3000})
    assert (told["total"], told["sessions"], told["hasMore"]) == (40, 4, True)
    rest = store.index.call("search_sessions", params | {"cursor": told["nextCursor"]})
    whole = store.index.call("search_sessions", params)
    assert told["hits"] + rest["hits"] == whole["hits"]


def test_warnings_take_a_quarter(store: Store) -> None:
    """The rest is counted, so that nobody takes what is there for all."""
    for number in range(60):
        store.put(f"bad-{number}", b"no header\n")
    store.put("good", session("good").user("needle"))
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("list_sessions", "sessions", {}),
        ("search_sessions", "hits", {"terms": ["needle"]}),
    ]
    for tool, rows, params in asked:
        told = budget.answer(store.index, tool, {**params, "maxBytes": 4000})
        assert len(told["warnings"]) + told["omittedWarnings"] == 60
        assert len(dumps(told["warnings"])) <= 1000
        assert len(told[rows]) == 1
    assert "omittedWarnings" not in budget.answer(
        store.index, "list_sessions", {"maxBytes": 1_000_000}
    )


@pytest.mark.parametrize("value", [1999, 1_000_001, 2000.5, "20000", None, True])
def test_bounds_of_the_bytes(value: Any, store: Store) -> None:
    with pytest.raises(ParameterError, match="maxBytes must be an integer from 2000 to 1000000"):
        budget.answer(store.index, "list_sessions", {"maxBytes": value})
    assert budget.answer(store.index, "list_sessions", {"maxBytes": 2000.0})


def test_a_cursor_is_of_one_root(store: Store, tmp_path: Path) -> None:
    for number in range(20):
        store.put(f"s{number}", session(f"s{number}"))
    cursor = budget.answer(store.index, "list_sessions", {"maxBytes": 2000})["nextCursor"]
    with (
        SessionIndex(tmp_path, index_dir=tmp_path / "i", settings={}) as other,
        pytest.raises(ParameterError, match="Invalid or stale list_sessions cursor"),
    ):
        budget.answer(other, "list_sessions", {"cursor": cursor})
