"""Reported faults of trimmers: the steps of cases 25 and 27, by library and command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from histories import ids, values
from scratch import Store, ask
from terminal import environment, pipe
from test_cases import CASES
from test_trim_verify import differing

from sessionindex.jsonline import value

QUIET = ("expect_recovery",)  # test_recovery_cases asks it


class Case:
    """A case on its way through its steps; each file as it was is remembered."""

    def __init__(self, number: str, store: Store, home: Path) -> None:
        shutil.copytree(CASES / number / "sessions", store.root, dirs_exist_ok=True)
        self.steps = json.loads((CASES / number / "case.json").read_bytes())["steps"]
        self._store = store
        self._home = home
        self._before: dict[Path, bytes] = {}
        self._said = ""
        for path in store.root.rglob("*.jsonl"):
            self._before[path] = path.read_bytes()
            os.utime(path, (1_700_000_000, 1_700_000_000))
        store.index.refresh()

    def run(self) -> None:
        for step in self.steps:
            if step["do"] not in QUIET:
                getattr(self, f"_{step['do']}")(step)
            assert self._store.index.check().differences == ()

    def _at(self, step: dict[str, Any]) -> Path:
        return self._store.root.parent / str(step["path"])

    def _trim(self, step: dict[str, Any]) -> None:
        where = ["--root", str(self._store.root), "--index-dir", str(self._store.index_dir)]
        command = ["trim", str(self._at(step)), "--yes", *where]
        ran = pipe(command, environment(self._home))
        assert ran.status in (0, 1)
        assert (ran.status == 1) == ran.err.startswith("sessionindex: Not trimmed: ")
        self._said = ran.err

    def _expect_ids(self, step: dict[str, Any]) -> None:
        found = ids(self._at(step).read_bytes())
        assert found == step["ids"]
        assert not set(step["gone"]).intersection(found)

    def _expect_same_context(self, step: dict[str, Any]) -> None:
        for path, before in self._before.items():
            assert differing(before, path.read_bytes()) == []

    def _expect_search(self, step: dict[str, Any]) -> None:
        found = ask(self._store.index, step["query"])
        hits = {
            (os.path.relpath(hit.session_path, self._store.root.parent), hit.line_no)
            for hit in found.hits
        }
        assert hits == {(path, line_no) for path, line_no in step["hits"]}

    def _expect_unchanged(self, step: dict[str, Any]) -> None:
        path = self._at(step)
        assert path.read_bytes() == self._before[path]
        assert len(self._said.splitlines()) == 1

    def _expect_pairs_whole_or_unchanged(self, step: dict[str, Any]) -> None:
        path = self._at(step)
        data = path.read_bytes()
        messages = [one.get("message", {}) for one in values(data)]
        called = {
            block["id"]
            for message in messages
            for block in message.get("content", ())
            if isinstance(block, dict) and block.get("type") == "toolCall"
        }
        answered = {m["toolCallId"] for m in messages if m.get("role") == "toolResult"}
        assert data == self._before[path] or called == answered


@pytest.mark.parametrize("number", ["25", "27"])
def test_case(number: str, store: Store, tmp_path: Path) -> None:
    Case(number, store, tmp_path).run()


def test_the_second_file_of_case_25_has_no_boundary(store: Store) -> None:
    """Its compaction keeps from an entry that does not exist: refused, with that reason."""
    shutil.copytree(CASES / "25" / "sessions", store.root, dirs_exist_ok=True)
    path = next(store.root.rglob("*bug25bad.jsonl"))
    assert value(path.read_bytes().split(b"\n")[0])["id"] == "bug25bad"
    report = store.index.trim(path, force=True)
    assert report.outcome == "refused"
    assert report.reason is not None
    assert report.reason.startswith("the first entry that the newest compaction keeps is not")
