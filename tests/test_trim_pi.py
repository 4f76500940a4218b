"""Pi's own code as the judge: it builds the same context from every trimmed file.

Where Pi cannot be had (`pi_home`) these tests are skipped and say why; what Pi said of recorded
files is then what `test_trim_verify` goes by, and here each of those is trimmed too.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pi_home import Installed
from test_trim_verify import RECORDED, differing

from sessionindex.trim import steps

TOOLS = Path(__file__).parent / "pi"
COUNT, SEED = 40, 7


@pytest.fixture(scope="module")
def tools(pi: Installed) -> Installed:
    """Pi with the tools beside it, where they find its modules."""
    for tool in TOOLS.glob("*.mjs"):
        shutil.copy(tool, pi.folder / tool.name)
    return pi


def node(pi: Installed, tool: str, *arguments: str) -> list[dict[str, Any]]:
    """What a tool prints, line by line."""
    command = [str(pi.node), tool, *arguments]
    done = subprocess.run(command, cwd=pi.folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def judged(tools: Installed, made: Path, trimmed: Path) -> dict[str, list[str]]:
    """The files by outcome, after each was trimmed and each trimmed one compared by Pi."""
    trimmed.mkdir()
    outcomes: dict[str, list[str]] = {}
    pairs: list[str] = []
    for source in sorted(made.glob("*.jsonl")):
        if source.name == "manifest.jsonl":
            continue
        target = trimmed / source.name
        shutil.copy(source, target)
        report = steps.trim(str(target))
        outcomes.setdefault(report.outcome, []).append(source.name)
        if report.outcome == "trimmed":
            pairs += [str(source), str(target)]
        else:
            assert target.read_bytes() == source.read_bytes(), source.name
    assert sorted(os.listdir(trimmed)) == sorted(chain(*outcomes.values()))
    for start in range(0, len(pairs), 80):
        for verdict in node(tools, "pi_context.mjs", "--compare", *pairs[start : start + 80]):
            assert verdict["equal"], (verdict["before"], verdict["differences"])
    return outcomes


def test_forty_sessions(tools: Installed, tmp_path: Path) -> None:
    """Every profile of sessions that Pi's own session manager wrote."""
    node(tools, "pi_sessions.mjs", str(tmp_path / "made"), str(COUNT), str(SEED))
    outcomes = judged(tools, tmp_path / "made", tmp_path / "trimmed")
    assert len(outcomes["trimmed"]) >= 30
    assert len(list(chain(*outcomes.values()))) == COUNT


def test_each_kind_of_damage(tools: Installed, tmp_path: Path) -> None:
    """Refused and untouched, or trimmed with the same context; never anything else."""
    node(tools, "pi_sessions.mjs", str(tmp_path / "made"), "1", str(SEED), "--bad")
    outcomes = judged(tools, tmp_path / "made", tmp_path / "trimmed")
    assert len(outcomes["trimmed"]) >= 10
    assert len(outcomes["refused"]) >= 10


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_recorded_sessions(path: Path, tmp_path: Path) -> None:
    """Without Pi: the same by the judgement that test_trim_verify proves to be Pi's."""
    before = gzip.decompress(path.read_bytes())
    target = tmp_path / "t.jsonl"
    target.write_bytes(before)
    report = steps.trim(str(target))
    assert report.outcome in ("trimmed", "nothing"), report.reason
    assert differing(before, target.read_bytes()) == []
