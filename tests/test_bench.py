"""The benchmark runs, at a size too small to say anything but that it runs, and judges rightly."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import bench
import corpus
import cuts
import pytest
import reference
from figures import Figure, Row, Size, grid, line

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
AT = Size(200, 4000)
SPEED = Row("speed", "how fast", "x", 3, True, AT)
TIME = Row("time", "how slow", "ms", 3, False, AT)
ANYWHERE = Row("start", "how soon", "x", 6, False)
OPEN = Row("open", "how it is", "x")


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more}
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "bench.py"), *arguments],
        capture_output=True,
        text=True,
        env=env,
    )


def test_it_says_what_there_is() -> None:
    listed = run("list")
    assert listed.returncode == 0
    for words in ("cold_index", "needles_p99", ">= 0.9", "at 5,000 MB in 4,000 files"):
        assert words in listed.stdout


def test_a_quick_run_measures_every_row(tmp_path: Path) -> None:
    """One megabyte, once: figures that are numbers, and none of them judged."""
    ran = run("all", "--json", "--quick", "--work", str(tmp_path))
    assert ran.stderr == ""
    figures: list[dict[str, Any]] = json.loads(ran.stdout)["figures"]
    rows = [row.name for measurement in bench.MEASUREMENTS.values() for row in measurement.rows]
    assert [figure["name"] for figure in figures] == rows
    without = {figure["name"] for figure in figures if figure["verdict"] == "not measured"}
    assert without == (set() if reference.has_ripgrep() else {n for n in rows if "_rg" in n})
    assert all(figure["value"] > 0 for figure in figures if figure["name"] not in without)
    assert {figure["verdict"] for figure in figures} <= {"", "not judged", "not measured"}
    assert ran.returncode == 0
    kept = {path.name for path in tmp_path.iterdir() if not path.name.startswith("store-")}
    assert kept == {"index"}


def test_rows_that_need_ripgrep_say_that_it_is_missing(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    asked = ("run", "processes", "brute", "phrases", "--quick", "--work", str(tmp_path))
    ran = run(*asked, PATH=str(empty))
    assert (ran.returncode, ran.stderr) == (0, "")
    head, *table, last = ran.stdout.splitlines()
    assert head.startswith("what") and len(table) == 12
    assert all("not measured" in row and reference.NO_RIPGREP in row for row in table)
    assert last == "12 not measured"


@pytest.mark.parametrize("asked", [("run", "nonsense"), ("run",), ("all", "start")])
def test_an_unknown_measurement_is_refused(asked: tuple[str, ...]) -> None:
    refused = run(*asked)
    assert refused.returncode == 2
    assert "cold_index" in refused.stderr


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure(SPEED, 3, "", AT), "pass"),
        (Figure(SPEED, 2.99, "", AT), "FAIL"),
        (Figure(TIME, 3, "", AT), "pass"),
        (Figure(TIME, 3.01, "", AT), "FAIL"),
        (Figure(SPEED, 9, "", Size(100, 4000)), "not judged"),
        (Figure(SPEED, 9, "", Size(200)), "not judged"),
        (Figure(SPEED, 1, "", AT, is_judged=False), "not judged"),
        (Figure(SPEED, None, "why"), "not measured"),
        (Figure(ANYWHERE, 7, ""), "FAIL"),
        (Figure(OPEN, 1, "", AT), ""),
    ],
)
def test_a_figure_is_judged_at_the_size_of_its_promise(figure: Figure, verdict: str) -> None:
    assert figure.verdict == verdict
    assert figure.as_json()["verdict"] == verdict
    assert verdict in line(figure)
    assert bench.status([figure]) == (verdict == "FAIL")


def test_a_line_says_at_which_size_it_was_measured() -> None:
    assert line(Figure(SPEED, 9, "1 ms", Size(20, 12))).endswith(
        "9.00 x     >= 3 not judged   1 ms; 20 MB in 12 files instead of 200 MB in 4,000 files"
    )
    assert line(Figure(SPEED, 9, "", AT)).endswith("pass         200 MB in 4,000 files")
    assert line(Figure(SPEED, None, "no rg")).endswith("-     >= 3 not measured no rg")


def test_a_grid_has_a_line_for_each_size() -> None:
    figures = [Figure(row, value, "", size) for size, row, value in (
        (Size(1), TIME, 2), (Size(1), OPEN, 5), (Size(2, 1), TIME, 30),
    )]  # fmt: skip
    assert [text.split() for text in grid(figures).splitlines()] == [
        ["how", "slow", "how", "it", "is"],
        ["1", "MB", "2.00", "ms", "5.00", "x"],
        ["2", "MB", "in", "one", "file", "30", "ms", "-"],
    ]


def test_cuts_stand_in_the_store(tmp_path: Path) -> None:
    """Needles of 4 to 40 characters and phrases of 12, the same each time, each of them there."""
    corpus.write(str(tmp_path), megabytes=1)
    texts = "\0".join(
        json.dumps(json.loads(row), ensure_ascii=False)
        for path in tmp_path.rglob("*.jsonl")
        for row in path.read_text().splitlines()
    )
    needles, phrases = cuts.needles(str(tmp_path), 40), cuts.phrases(str(tmp_path), 10)
    assert needles == cuts.needles(str(tmp_path), 40)
    assert (len(set(needles)), len(set(phrases))) == (40, 10)
    assert all(4 <= len(needle) <= 40 for needle in needles)
    assert all(len(phrase) == 12 and phrase.replace(" ", "").isalpha() for phrase in phrases)
    for cut in (*needles, *phrases):
        assert json.dumps(cut, ensure_ascii=False)[1:-1] in texts


@pytest.mark.skipif(shutil.which("rg") is None, reason="needs ripgrep")
def test_ripgrep_finds_a_literal_as_json_spells_it(tmp_path: Path) -> None:
    text = 'a "b"\nc\\d'
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    assert reference.sees(reference.ripgrep(str(tmp_path), reference.spelled(text)))
    assert not reference.sees(reference.ripgrep(str(tmp_path), reference.spelled("no" + text)))


@pytest.mark.parametrize("is_wide", [True, False])
def test_a_long_line_is_as_long_as_it_says(is_wide: bool, tmp_path: Path) -> None:
    said = corpus.write_line(str(tmp_path), megabytes=1, is_wide=is_wide)
    data = next(tmp_path.rglob("*.jsonl")).read_bytes()
    assert (len(data), data.count(b"\n")) == (said.bytes, said.entries + 1)
    assert 0.97e6 < max(map(len, data.splitlines())) < 1.03e6
    text = json.loads(data.splitlines()[2])["message"]["content"][0]["text"]
    assert (max(text) > "\uffff") == is_wide
    assert is_wide or text.isascii()


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_modules_are_short_and_say_what_they_are(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= 400
    assert len((ast.get_docstring(ast.parse(source)) or "").splitlines()) >= 3
