"""What the reference of the recovery tools answered, replayed: every case, in every mode.

A case is a request and the answer that was observed. Cursors are each side's own: a cursor of the
reference is exchanged for ours, and only whether there is one counts; the reader's text must carry
its own. Numbers compare as JavaScript's; details that are absent, null or false are the same, but
for those that say so on purpose.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from sessionindex import SessionIndex

GOLDEN = Path(__file__).parent / "data" / "golden" / "session-recovery"
SPOKEN = {"found", "hasMore", "cursorValid", "sourceAvailable"}
CONTINUE = re.compile(r"(continue with next_cursor): \S+")


def cases() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def alike(value: Any) -> Any:
    """The same shape for both sides: numbers as floats, cursors as whether there is one."""
    if isinstance(value, dict):
        return {k: bool(v) if k == "nextCursor" else alike(v) for k, v in value.items()}
    if isinstance(value, list):
        return [alike(item) for item in value]
    if isinstance(value, str):
        return CONTINUE.sub(r"\1", value)
    return float(value) if type(value) is int else value


def said(details: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in details.items() if k in SPOKEN or (v is not None and v is not False)}


def key_order(value: Any) -> Any:
    """The names of an object in their order, all the way down."""
    if isinstance(value, dict):
        return [(name, key_order(member)) for name, member in value.items()]
    return [key_order(item) for item in value] if isinstance(value, list) else None


def replay(index: SessionIndex, root: Path, **how: Any) -> list[str]:
    """The names of the cases whose answer differs."""
    ours: dict[str, str] = {}
    different = []
    for case in cases():
        request, expected = case["request"], case["expected"]
        params = dict(request["params"])
        if params.get("cursor") in ours:
            params["cursor"] = ours[params["cursor"]]
        answer = index.call(
            f"session_{request['op']}",
            params,
            session=str(root / request["sessionFile"]),
            leaf_id=request.get("leafId"),
            tool_call_id=request.get("toolCallId"),
            **how,
        )
        cursor = answer["details"].get("nextCursor")
        theirs = expected["details"].get("nextCursor")
        if cursor and theirs:
            ours[theirs] = cursor
        same = (
            alike(answer["content"]) == alike(expected["content"])
            and key_order(answer["content"]) == key_order(expected["content"])
            and said(alike(answer["details"])) == said(alike(expected["details"]))
        )
        carried = request["op"] != "read_section" or not cursor or cursor in answer["content"]
        if not (same and carried):
            different.append(case["name"])
    return different


@pytest.mark.parametrize("mode", ["cold", "indexed", "brute"])
def test_every_case(tmp_path: Path, mode: str) -> None:
    with tarfile.open(GOLDEN / "sessions.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    with SessionIndex(
        tmp_path, index_dir=tmp_path / "index", layout="projects", settings={}, current_session=""
    ) as index:
        if mode == "indexed":
            index.refresh()
        assert replay(index, tmp_path, brute=mode == "brute") == []


def test_nothing_was_left_out() -> None:
    """The copy has all four tools, and pages that follow pages."""
    found = cases()
    assert len(found) == 293
    assert {case["request"]["op"] for case in found} == {
        "overview",
        "read_section",
        "search",
        "recovery_context",
    }
    assert sum("cursor" in case["request"]["params"] for case in found) > 40
