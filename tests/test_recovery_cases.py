"""Reported faults that the recovery tools answer for: each case is an input, steps and answers.

Steps on the trimmer and on search across sessions are tested elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scratch import Store

CASES = Path(__file__).parent / "data" / "cases"
ELSEWHERE = {
    "trim",
    "expect_pairs_whole_or_unchanged",
    "expect_search",
    "expect_snippet_valid_utf8",
    "index_once",
}
SAID = {
    "originalUser": lambda found: found["originalUserRequest"]["text"],
    "latestUser": lambda found: found["latestUserInstruction"]["text"],
    "compactions": lambda found: found["compactionCount"],
    "unmatchedToolCalls": lambda found: [call["id"] for call in found["pendingToolCalls"]],
}


def expect_overview(store: Store, path: str, step: dict[str, Any]) -> None:
    """Where the sections start, on pages of any size."""
    for size in (1, 3, 100):
        params, starts = {"scope": step["scope"], "max_sections": size}, []
        while True:
            answer = store.index.call("session_overview", params, session=path)["content"]
            starts += [section["startEntryId"] for section in answer["sections"]]
            if not answer["hasMore"]:
                break
            params["cursor"] = answer["nextCursor"]
        assert starts == step["section_starts"]


def expect_recovery(store: Store, path: str, step: dict[str, Any]) -> None:
    found = store.index.call("session_recovery_context", {}, session=path)["content"]
    for name in step.keys() - {"do", "path"}:
        assert SAID[name](found) == step[name]


def expect_pages_join_to_text(store: Store, path: str, step: dict[str, Any]) -> None:
    """The pieces of an entry, its heading apart, are its text, whatever their size."""
    for size in (100, 2000, 8000):
        how: dict[str, Any] = {"entry_id": step["entry_id"]}
        whole = ""
        while how:
            page = store.index.read_section(path, max_entries=1, max_body_chars=size, **how)
            assert all(piece.encode() for piece in page.pieces)  # no half of a character
            whole += page.pieces[0].partition("\n")[2]
            how = {"cursor": page.next_cursor} if page.next_cursor else {}
        assert hashlib.sha256(whole.encode()).hexdigest() == step["sha256"]


STEPS = {
    "expect_overview": expect_overview,
    "expect_recovery": expect_recovery,
    "expect_pages_join_to_text": expect_pages_join_to_text,
}


@pytest.mark.parametrize("number", ["27", "29", "31"])
def test_case(store: Store, number: str) -> None:
    """Before and after a refresh."""
    shutil.copytree(CASES / number / "sessions", store.root, dirs_exist_ok=True)
    steps = json.loads((CASES / number / "case.json").read_bytes())["steps"]
    for _ in range(2):
        for step in steps:
            if step["do"] not in ELSEWHERE:
                STEPS[step["do"]](store, str(store.root.parent / step["path"]), step)
        store.index.refresh()
