"""Pi's own code as the judge: it builds the same context from every trimmed file.

Node 22 and Pi come from npm, once, into a folder of their own (`SESSIONINDEX_PI_HOME`, else the
cache of pytest). Where they cannot be had these tests are skipped and say why; what Pi said of
recorded files is then what `test_trim_verify` goes by, and here each of those is trimmed too.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from test_trim_verify import RECORDED, differing

from sessionindex.trim import steps

TOOLS = Path(__file__).parent / "pi"
PI = "@earendil-works/pi-coding-agent@1.6.0"
COUNT, SEED = 40, 7
_ARCH = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


@pytest.fixture(scope="module")
def pi(request: pytest.FixtureRequest) -> Path:
    """A folder with Node, Pi and the tools."""
    named = os.environ.get("SESSIONINDEX_PI_HOME")
    cache = request.config.cache
    if named:
        home = Path(named)
    elif cache is not None:
        home = Path(cache.mkdir("pi"))
    else:
        pytest.skip("no folder for Pi: SESSIONINDEX_PI_HOME names one")
    node = f"node-{sys.platform}-{_ARCH.get(platform.machine().lower(), platform.machine())}"
    if not (home / "node_modules" / node / "bin" / "node").exists():
        installed(home, node)
    for tool in TOOLS.glob("*.mjs"):
        shutil.copy(tool, home / tool.name)
    return home


def installed(home: Path, node: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: Pi itself cannot be asked")
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text('{"private": true}')
    command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", f"{node}@22", PI]
    try:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)
        said = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    except subprocess.TimeoutExpired:
        said = ["no answer in 300 s"]
    if said is not None:
        pytest.skip(f"npm cannot install Node 22 and Pi: {' '.join(said)}")


def node(pi: Path, tool: str, *arguments: str) -> list[dict[str, Any]]:
    """What a tool prints, line by line."""
    (program,) = (pi / "node_modules").glob("node-*/bin/node")
    command = [str(program), tool, *arguments]
    done = subprocess.run(command, cwd=pi, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def judged(pi: Path, made: Path, trimmed: Path) -> dict[str, list[str]]:
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
        for verdict in node(pi, "pi_context.mjs", "--compare", *pairs[start : start + 80]):
            assert verdict["equal"], (verdict["before"], verdict["differences"])
    return outcomes


def test_forty_sessions(pi: Path, tmp_path: Path) -> None:
    """Every profile of sessions that Pi's own session manager wrote."""
    node(pi, "pi_sessions.mjs", str(tmp_path / "made"), str(COUNT), str(SEED))
    outcomes = judged(pi, tmp_path / "made", tmp_path / "trimmed")
    assert len(outcomes["trimmed"]) >= 30
    assert len(list(chain(*outcomes.values()))) == COUNT


def test_each_kind_of_damage(pi: Path, tmp_path: Path) -> None:
    """Refused and untouched, or trimmed with the same context; never anything else."""
    node(pi, "pi_sessions.mjs", str(tmp_path / "made"), "1", str(SEED), "--bad")
    outcomes = judged(pi, tmp_path / "made", tmp_path / "trimmed")
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
