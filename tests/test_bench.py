"""The benchmark runs, at a size too small to say anything but that it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parent.parent / "benchmarks" / "bench.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, str(BENCH), *arguments], capture_output=True, text=True, env=env
    )


def test_it_says_what_there_is() -> None:
    listed = run("list")
    assert listed.returncode == 0
    assert "cold_index" in listed.stdout


def test_a_tiny_run_measures_every_figure(tmp_path: Path) -> None:
    """One run over one megabyte: figures that are numbers, and a status that tells of misses."""
    small = ("--megabytes", "1", "--files", "12", "--runs", "1", "--work", str(tmp_path))
    ran = run("all", "--json", *small)
    assert ran.stderr == ""
    figures = json.loads(ran.stdout)["figures"]
    names = {figure["name"] for figure in figures}
    assert {"cold_index", "index_size", "memory", "start", "rare_brute", "rare_library"} <= names
    assert all(figure["value"] > 0 for figure in figures)
    assert ran.returncode == (0 if all(figure["reached"] for figure in figures) else 1)


def test_an_unknown_figure_is_refused() -> None:
    refused = run("run", "nonsense")
    assert refused.returncode == 2
    assert "cold_index" in refused.stderr
