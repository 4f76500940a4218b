"""The README's examples are run, on the sample store, in a terminal of 80 columns."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from terminal import environment, pipe, terminal

import sessionindex

README = Path(__file__).parent.parent / "README.md"
SAMPLE = Path(sessionindex.__file__).parent / "sample"
EXAMPLES = re.findall(r"```console\n\$ sessionindex (.*?)\n(.*?)```", README.read_text(), re.S)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of somebody whose only sessions are the sample."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(SAMPLE, home / ".pi" / "agent" / "sessions")
    return home


def shown(command: str, home: Path) -> str:
    """What a person sees who enters the command."""
    ran = terminal(shlex.split(command), environment(home, NO_COLOR="1"))
    text = ran.out.replace(str(home), "/home/ada")
    return re.sub(r'("nextCursor": ")[^"]*', r"\1…", text)


def test_there_are_five_examples() -> None:
    """For somebody with two minutes; what comes after them may have its own."""
    first, _, depth = README.read_text().partition("## Searching")
    assert first.count("```console") == 5 and "```console" in depth


@pytest.mark.parametrize(("command", "expected"), EXAMPLES, ids=[row[0] for row in EXAMPLES])
def test_an_example_prints_what_the_readme_says(command: str, expected: str, home: Path) -> None:
    assert shown(command, home) == expected


def test_the_walk_in_pi_gets_that_answer(home: Path) -> None:
    """What the script of the walk asks is answered as it says."""
    walk = README.read_text().partition("## In Pi\n")[2].partition("\n## ")[0]
    asked = re.findall(r"search_sessions\(\n(.*?)\n\)", walk, re.S)[0]
    fields = re.findall(r"hits\.map\(\(\{ (.*?) \}\)", walk)[0].split(", ")
    ran = pipe(["call", "search_sessions", asked], environment(home))
    hits = [{name: hit[name] for name in fields} for hit in json.loads(ran.out)["hits"]]
    assert hits == json.loads(re.findall("```json\n(.*?)```", walk, re.S)[0])


def test_the_library_example_runs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python block works as written, on the sample."""
    block = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)[0]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SESSIONINDEX_DIR", str(home / "index"))
    for name in ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "PI_SESSION_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    said: list[str] = []
    exec(block, {"print": lambda *words: said.append(" ".join(map(str, words)))})
    assert said[-1] == "1 in 1 sessions"
