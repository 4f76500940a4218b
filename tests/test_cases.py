"""Faults that people reported of tools like this one: each case is an input, steps and answers.

The steps are those of `data/cases/NN/case.json`. A watcher that is named there is a refresh here:
the promise is that a question needs none, so every `expect_search`, `expect_list` and
`expect_entries` is asked before and after a refresh, with the index and from the files alone.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from build import append, encoded, session
from scratch import Store, ask, entries

from sessionindex import SessionIndex, SessionIndexError

CASES = Path(__file__).parent / "data" / "cases"
NUMBERS = ("01", "02", "03", "04", "05", "07", "08", "10", "12", "14", "17", "20", "21")
QUIET = ("note", "start_daemon", "stop_daemon")
NOBODY = 65534


class Case:
    """A case on its way through its steps, in a scratch folder of its own."""

    def __init__(self, number: str, scratch: Path) -> None:
        self.steps = json.loads((CASES / number / "case.json").read_bytes())["steps"]
        self._given = CASES / number
        self._scratch = scratch
        self._root = scratch / "sessions"
        for name in ("sessions", "stage"):
            if (self._given / name).is_dir():
                shutil.copytree(self._given / name, scratch / name)
        self._root.mkdir(exist_ok=True)
        self.store = Store(self._root, scratch / "index")
        self._current = ""

    def run(self) -> None:
        zone = os.environ.get("TZ")
        try:
            for step in self.steps:
                live_in(step.get("tz", zone))
                if step["do"] not in QUIET:
                    getattr(self, f"_{step['do']}")(step)
        finally:
            live_in(zone)
            for index in self.store.opened:
                index.close()

    def _at(self, path: str) -> Path:
        return self._scratch / path

    def _there(self, path: str) -> Path:
        found = self._at(path)
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def _source(self, step: dict[str, Any]) -> bytes:
        return self._at(step["src"]).read_bytes()

    # --- changes ---------------------------------------------------------------------------------

    def _put(self, step: dict[str, Any]) -> None:
        self._there(step["path"]).write_bytes(self._source(step))

    def _append(self, step: dict[str, Any]) -> None:
        append(str(self._at(step["path"])), self._source(step))

    def _replace_in_place(self, step: dict[str, Any]) -> None:
        path = self._at(step["path"])
        before = path.stat()
        path.write_bytes(self._source(step))
        if step.get("keep_mtime"):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _replace_by_rename(self, step: dict[str, Any]) -> None:
        beside = self._at(step["path"] + ".new")
        beside.write_bytes(self._source(step))
        beside.replace(self._at(step["path"]))

    def _delete(self, step: dict[str, Any]) -> None:
        self._at(step["path"]).unlink()

    def _move(self, step: dict[str, Any]) -> None:
        self._at(step["path"]).rename(self._there(step["to"]))

    def _chmod(self, step: dict[str, Any]) -> None:
        self._at(step["path"]).chmod(int(step["mode"], 8))

    def _mkfifo(self, step: dict[str, Any]) -> None:
        os.mkfifo(self._at(step["path"]))

    def _run(self, step: dict[str, Any]) -> None:
        assert step["cmd"].startswith("python3 gen.py {root}/")
        pictures(self._scratch / step["cmd"].split("{root}/")[1], 20)

    def _index_once(self, step: dict[str, Any]) -> None:
        self.store.index.refresh()

    _wait = _index_once

    # --- answers ---------------------------------------------------------------------------------

    def _expect_search(self, step: dict[str, Any]) -> None:
        # The made-up pictures of this suite are fewer: the last of them stands for its line.
        step = json.loads(json.dumps(step).replace("BIG17n137", "BIG17n17").replace("139", "19"))
        for _ in range(2):
            sensitive = step.get("caseSensitive", False)
            found = ask(self.store.index, step["query"], case_sensitive=sensitive)
            hits = {
                (os.path.relpath(hit.session_path, self._scratch), hit.line_no)
                for hit in found.hits
            }
            assert hits == {(path, line_no) for path, line_no in step["hits"]}, step
            assert len(hits) == len(found.hits)
            self.store.index.refresh()

    def _set_current(self, step: dict[str, Any]) -> None:
        self._current = str(self._at(step["path"]))

    def _listed(self, params: dict[str, Any]) -> dict[str, Any]:
        """What is listed: by what the index knows, and by the files alone."""
        index = self.store.open(current_session=self._current)
        answer = index.call("list_sessions", params)
        assert answer == index.call("list_sessions", params, brute=True)
        return answer

    def _expect_list(self, step: dict[str, Any]) -> None:
        for _ in range(2):
            answer = self._listed(step.get("params", {}))
            assert self._named(answer["sessions"]) == step["top"], step
            rows = {row["path"]: row for row in everything(answer["sessions"])}
            for path, children in step.get("children", {}).items():
                row = rows[str(self._at(path))]
                assert self._named(row["subagentSessions"]) == children
            for path, forked in step.get("parentSessionPath", {}).items():
                assert rows[str(self._at(path))]["parentSessionPath"] == forked
            assert not set(step.get("absent", ())).intersection(self._named(rows.values()))
            if "warnings" in step:
                self._warned(step, {one["path"] for one in answer["warnings"]})
            self.store.index.refresh()
        if "params" not in step:
            self._expect_reached(step)

    def _expect_list_throws(self, step: dict[str, Any]) -> None:
        with pytest.raises(SessionIndexError):
            self._listed(step["params"])

    def _named(self, rows: Iterable[dict[str, Any]]) -> list[str]:
        return [os.path.relpath(row["path"], self._scratch) for row in rows]

    def _warned(self, step: dict[str, Any], paths: Iterable[str]) -> None:
        """These warnings, but for some that may be missing."""
        allowed = step["warnings"]
        certain = allowed[: len(allowed) - step.get("warnings_may_omit_last", 0)]
        said = {os.path.relpath(path, self._scratch) for path in paths}
        assert set(certain) <= said <= set(allowed)

    def _expect_reached(self, step: dict[str, Any]) -> None:
        """What is listed is what a search reaches, with the same warnings."""
        wanted = set(step["top"]).union(*step.get("children", {}).values())
        found = ask(self.store.index, '"', "e", kinds=["text", "tools", "shell", "system"])
        reached = {os.path.relpath(hit.session_path, self._scratch) for hit in found.hits}
        assert reached == wanted
        assert self.store.index.status().sessions == len(wanted)
        if "warnings" in step:
            self._warned(step, {one.path for one in found.warnings})

    def _expect_entries(self, step: dict[str, Any]) -> None:
        for _ in range(2):
            found = entries(self.store.index, str(self._at(step["path"])))
            assert [row.entry.line_no for row in found.rows] == step["lineNos"], step
            problems = [{"lineNo": one.line_no, "code": one.code} for one in found.problems]
            assert problems == step["warnings"], step
            self.store.index.refresh()

    def _expect_exists(self, step: dict[str, Any]) -> None:
        assert self._at(step["path"]).exists()

    def _expect_absent(self, step: dict[str, Any]) -> None:
        assert not self._at(step["path"]).exists()

    def _expect_index_mb_below(self, step: dict[str, Any]) -> None:
        assert self.store.index.status().index_bytes < step["mb"] << 20


def live_in(zone: str | None) -> None:
    """Have the host be in this zone; None is wherever it is."""
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()


def everything(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Sessions, each followed by what it launched."""
    for row in rows:
        yield row
        yield from everything(row["subagentSessions"])


def pictures(path: Path, count: int) -> None:
    """Tool results of one line of text and a megabyte of picture each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    with path.open("wb") as file:
        file.write(session("bug17big").bytes())
        for number in range(count):
            shown = {"type": "text", "text": f"shot {number} BIG17n{number}"}
            data = base64.b64encode(draw.randbytes(786_432)).decode()
            picture = {"type": "image", "data": data, "mimeType": "image/png"}
            entry = {
                "type": "message",
                "id": f"{number:08x}",
                "parentId": None,
                "timestamp": "2026-09-10T09:00:01.000Z",
                "message": {
                    "role": "toolResult",
                    "toolCallId": "c",
                    "toolName": "read",
                    "content": [shown, picture],
                    "isError": False,
                },
            }
            file.write(encoded(entry) + b"\n")


def in_child(work: Callable[..., None], *arguments: Any) -> None:
    """Run this in a process of its own, and fail as it fails."""
    child = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    child.start()
    child.join(120)
    assert child.exitcode == 0


def peak_mb() -> int:
    """The most memory this process had at once; on Linux not what its parent had before exec."""
    if sys.platform == "linux":
        said = Path("/proc/self/status").read_text().split("VmHWM:")[1]
        return int(said.split()[0]) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20


@pytest.mark.parametrize("number", NUMBERS)
def test_case(number: str, tmp_path: Path) -> None:
    """Every answer of the case, before and after a refresh, with and without the index."""
    Case(number, tmp_path).run()


def test_no_step_is_left_out_in_silence() -> None:
    """A step is done, named as quiet, or the suite fails."""
    for number in (*NUMBERS, "15", "18"):
        for step in json.loads((CASES / number / "case.json").read_bytes())["steps"]:
            assert step["do"] in QUIET or hasattr(Case, f"_{step['do']}")


# --- 15: what cannot be read --------------------------------------------------------------------


def as_nobody(folder: str) -> None:
    """Case 15 as a user whom permissions bind; runs in a child process."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    Case("15", Path(folder)).run()


def test_case_15_as_an_ordinary_user() -> None:
    """Unreadable is not empty: a warning for each, and nothing is forgotten."""
    # Not tmp_path: its parents are closed to everybody but the user of the suite.
    with tempfile.TemporaryDirectory() as scratch:
        if os.geteuid() == 0:
            os.chown(scratch, NOBODY, NOBODY)
        in_child(as_nobody, scratch)


# --- 17: pictures -------------------------------------------------------------------------------


def index_pictures(folder: str, allowed_mb: int) -> None:
    """Refresh and search in a process of its own, whose peak memory is then known."""
    with SessionIndex(
        Path(folder, "sessions"),
        index_dir=Path(folder, "index"),
        settings={},
        current_session="",
    ) as index:
        index.refresh()
        assert index.search("BIG17n7").total
        assert index.status().index_bytes < 20 << 20
    assert peak_mb() < allowed_mb


@pytest.mark.parametrize(
    "count",
    [
        20,
        pytest.param(
            200,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(
                    "SESSIONINDEX_SLOW" not in os.environ, reason="writes 200 MB: SESSIONINDEX_SLOW"
                ),
            ],
        ),
    ],
)
def test_pictures_cost_neither_memory_nor_index(count: int, tmp_path: Path) -> None:
    """Memory is a batch, never the file; pictures are not in the index."""
    pictures(tmp_path / "sessions" / "--p--" / "big.jsonl", count)
    in_child(index_pictures, str(tmp_path), 400)


# --- 18: large files ----------------------------------------------------------------------------


def hundreds(root: Path) -> list[Path]:
    """299 sessions, one of them with a header of 300,000 bytes."""
    paths = []
    for number in range(299):
        padded = {"pad": "x" * 300_000} if number == 5 else {}
        story = session(f"b18n{number}", cwd=f"/home/dev/src/p{number % 7}", **padded)
        paths.append(root / f"--home-dev-src-p{number % 7}--" / f"b18n{number}.jsonl")
        paths[-1].parent.mkdir(parents=True, exist_ok=True)
        paths[-1].write_bytes(story.bytes())
    return paths


def endless(path: Path, beginning: bytes) -> None:
    """A file that goes on for 2 GiB of nothing, in one line (sparse: it takes no room)."""
    with path.open("wb") as file:
        file.write(beginning + b'{"type":"message","id":"1","parentId":null,"x":"')
        file.truncate(2 << 30)


def list_large_files(folder: str, wanted: dict[str, Any]) -> None:
    """Case 18 in a process of its own, whose peak memory is then known."""
    root, index_dir = Path(folder, "sessions"), Path(folder, "index")
    huge = hundreds(root)[0].with_name("b18huge.jsonl")
    header = session("b18huge").bytes()
    begun = session("b18huge").user("hello").bytes()

    def listed() -> None:
        for brute in (False, True):
            began = time.monotonic()
            answer = index.call("list_sessions", {}, brute=brute)
            assert time.monotonic() - began < wanted["max_seconds"]
            assert len(answer["sessions"]) == wanted["count"]
            assert answer["warnings"] == wanted["warnings"]

    with SessionIndex(root, index_dir=index_dir, settings={}, current_session="") as index:
        endless(huge, header)
        listed()  # nothing is indexed
        huge.unlink()
        index.refresh()
        endless(huge, header)
        listed()  # it came after the rest was
        huge.write_bytes(begun)
        index.refresh()
        endless(huge, begun)
        listed()  # it was indexed before it grew
    assert peak_mb() < wanted["max_rss_mb"]


def test_case_18_reads_headers_only(tmp_path: Path) -> None:
    """Time and memory follow the number of files, not their size."""
    (wanted,) = [step for step in Case("18", tmp_path).steps if step["do"] == "expect_list"]
    in_child(list_large_files, str(tmp_path), wanted)
