"""Recorded answers of list_sessions, session_entries and mark_steering, replayed.

`data/golden/tool-api` holds requests, the trees they are about, and what another implementation of
the same contract answered. Every request is put in four ways: to a root that was never indexed, to
one whose files are too young for stat to vouch for them, to one whose index does, and to the files
alone.

What is not compared is what only that implementation can say: its parser's and the system's prose
after a colon, integers beyond a double, and rows whose timestamp is none of ISO 8601, which may be
read or refused.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessionindex import SessionIndex, SessionIndexError, coverage, layout
from sessionindex.model import Session

GIVEN = Path(__file__).parent / "data" / "golden" / "tool-api"
CASES = gzip.decompress((GIVEN / "cases.jsonl.gz").read_bytes()).decode("utf-8").splitlines()
NAMES = [json.loads(case)["name"] for case in CASES]
MODES = ("cold", "young", "indexed", "brute")

DECIDED = {
    "nasty/entries/--ver--/inf.jsonl": "a number beyond a double is null, and is spelled so",
}
"""Cases that are answered otherwise on purpose, each with the decision behind it."""

PROSE = re.compile(
    r"((?:is not valid JSON|not readable|could not open file|could not read file"
    r"|could not read session file|sessions root is not readable): ).*",
    re.DOTALL,
)
ISO = re.compile(
    r"([+-]\d{6}|\d{4})(-\d\d(-\d\d)?)?([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?)?"
)
UNDATED = ("entry has no readable timestamp", "session header has no readable timestamp")


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders that the requests name, laid out; links and a pipe are among them."""
    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(GIVEN / "trees.tar.gz") as tar:
        tar.extractall(folder / "trees", filter="fully_trusted")
    return folder


@pytest.fixture
def zone() -> Iterator[None]:
    """The host's zone again, whatever a case made of it; and room for a row nested very deep."""
    before, depth = os.environ.get("TZ"), sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(depth)
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    time.tzset()


def effective(request: dict[str, Any]) -> Any:
    """The settings of a request: whole, or what it says of the two that matter."""
    if "settings" in request:
        return request["settings"]
    said = {}
    if "allowedProjects" in request:
        said["allowedProjects"] = request["allowedProjects"]
    if request["op"] == "mark_steering":
        said["markSteeringMessages"] = request.get("enabled", True)
    return {"piRetrospect": said} if said else {}


def put(request: dict[str, Any], mode: str, trees: Path) -> dict[str, Any]:
    """What we answer to a request, in this mode."""
    os.environ["TZ"] = request["tz"]
    time.tzset()
    tool = request["op"]
    params = request.get("params")
    if tool == "mark_steering":
        names = ("text", "source", "streamingBehavior", "images")
        params = {name: request[name] for name in names if name in request}
    root = request.get("sessionsRoot", str(trees / "none"))
    folder = trees / mode / re.sub(r"\W+", "-", os.path.relpath(root, trees))
    how: dict[str, Any] = {"layout": "projects", "index_dir": folder}
    if mode in ("young", "indexed") and not folder.exists() and os.path.isdir(root):
        with (
            pytest.MonkeyPatch.context() as patch,
            SessionIndex(root, settings={}, current_session="", **how) as index,
        ):
            if mode == "indexed":
                patch.setattr(coverage, "RACY_NS", -1)  # as if nothing had changed for long
            index.refresh()
    current = request.get("currentSessionFile") or ""
    with SessionIndex(root, settings=effective(request), current_session=current, **how) as index:
        try:
            return {"ok": True, "result": index.call(tool, params, brute=mode == "brute")}
        except SessionIndexError as error:
            return {"ok": False, "error": str(error)}


def comparable(value: Any, name: str = "") -> Any:
    """An answer without what only one implementation can say."""
    if isinstance(value, dict):
        return {name: comparable(member, name) for name, member in value.items()}
    if isinstance(value, list):
        kept = [member for member in value if name not in KEPT or KEPT[name](member)]
        return [comparable(member) for member in kept]
    if isinstance(value, str) and name in ("reason", "error"):
        return PROSE.sub(r"\1…", value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return as_double(value)
    return value


def as_double(number: int | float) -> float | None:
    try:
        double = float(number)
    except OverflowError:
        return None
    return double if math.isfinite(double) else None


def is_dated(row: dict[str, Any]) -> bool:
    return isinstance(row["timestamp"], str) and ISO.fullmatch(row["timestamp"]) is not None


KEPT = {
    "sessions": is_dated,
    "subagentSessions": is_dated,
    "entries": is_dated,
    "warnings": lambda warning: warning["reason"] not in UNDATED,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_recorded_answer(case: str, mode: str, trees: Path, zone: None) -> None:
    """Ours is the same, whatever the index knows."""
    given = json.loads(case.replace("{ROOT}", str(trees / "trees")))
    ours = comparable(put(given["request"], mode, trees))
    theirs = comparable(given["expected"])
    if given["name"] in DECIDED:
        assert ours != theirs, "no difference any more: take it out of DECIDED"
    else:
        assert ours == theirs


def test_in_the_mode_indexed_headers_come_from_the_index(
    trees: Path, zone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a header whose line has no end yet, which is never indexed, is read from its file."""
    given = [json.loads(case.replace("{ROOT}", str(trees / "trees"))) for case in CASES]
    listings = [case["request"] for case in given if case["request"]["op"] == "list_sessions"]
    for request in listings:
        put(request, "indexed", trees)  # the first on a root makes its index
    really = layout.read_header

    def unindexed(path: str, listed: coverage.Identity) -> Session | str:
        found = really(path, listed)
        assert isinstance(found, str) or b"\n" not in Path(path).read_bytes()
        return found

    monkeypatch.setattr(layout, "read_header", unindexed)
    answers = [put(request, "indexed", trees) for request in listings]
    assert sum(len(one["result"]["sessions"]) for one in answers if one["ok"]) > 100


def test_every_decision_is_about_a_case() -> None:
    assert set(DECIDED) <= set(NAMES)
