"""`sessionindex pi`: what is written where for Pi, what is left alone, and what status sees."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Ran, environment, pipe

from sessionindex.pi import installer, surroundings
from sessionindex.pi.extension import SKILL, ExtensionError, Piece, command, pieces
from sessionindex.wire.schemas import TOOLS

TRIMS = (
    "sessionindex: trimming is on: after a compaction, what the model does not see any more goes"
    " from the session's file for good; there are no backups\n"
)


class Home:
    """A home of somebody who has Pi, and the command in it."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.agent = self.home / ".pi" / "agent"
        self.agent.mkdir(parents=True)
        self.extension = self.agent / "extensions" / "sessionindex.js"
        self.skill = self.agent / "skills" / SKILL / "SKILL.md"

    def run(self, *arguments: str, **more: str) -> Ran:
        return pipe(["pi", *arguments], environment(self.home, **more))

    def status(self) -> tuple[int, dict[str, object]]:
        ran = self.run("status", "--json")
        return ran.status, json.loads(ran.out)

    def settings(self, **words: object) -> None:
        (self.agent / "settings.json").write_text(json.dumps(words))

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def made(tmp_path: Path, *options: str, **env: str) -> tuple[Piece, ...]:
    """The pieces for a home in scratch space."""
    return pieces(options, env={"HOME": str(tmp_path), **env}, cwd=str(tmp_path))


# --- what is written -----------------------------------------------------------------------------


def constant(text: str, name: str) -> object:
    """A value that was written into the extension."""
    found = re.search(rf"^const {name} = (.*?);$", text, re.M | re.S)
    assert found
    return json.loads(found[1].replace(",\n]", "]"))


def test_the_extension_says_what_python_says(tmp_path: Path) -> None:
    """Command, options, surroundings and the seven tools; marking is not for models."""
    env = {"SESSIONINDEX_DIR": "kept", "PI_CODING_AGENT_DIR": "pi", "XDG_CACHE_HOME": "/cache"}
    extension, _ = made(tmp_path, "--root", "/some/root", **env)
    text = extension.text
    assert extension.path == f"{tmp_path}/pi/extensions/sessionindex.js"
    assert constant(text, "COMMAND") == [sys.executable, "-P", "-m", "sessionindex"]
    assert command(text) == constant(text, "COMMAND")
    assert constant(text, "OPTIONS") == ["--root", "/some/root"]
    known = {"SESSIONINDEX_DIR": f"{tmp_path}/kept", "XDG_CACHE_HOME": "/cache"}
    assert constant(text, "ENVIRONMENT") == known
    tools = constant(text, "TOOLS")
    assert isinstance(tools, list)
    assert [(tool["name"], tool["parameters"], tool["outputSchema"]) for tool in tools] == [
        (tool.name, tool.parameters, tool.result) for tool in TOOLS
    ]
    assert "mark_steering" not in [tool["name"] for tool in tools]
    assert not re.search('"@[A-Z]+@"', text)


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node here")
def test_the_extension_is_javascript(tmp_path: Path) -> None:
    """What is written parses as a module, odd names included."""
    odd = made(tmp_path, "--index-dir", "/a \"b\" 'c' \\ ${d} `e` </script> 会")
    target = tmp_path / "extension.mjs"
    target.write_text(odd[0].text)
    done = subprocess.run(["node", "--check", str(target)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_skill_can_be_read_by_pi(tmp_path: Path) -> None:
    """Its name is that of its folder, its description quoted and not too long."""
    _, skill = made(tmp_path)
    head = skill.text.split("---\n")[1].splitlines()
    words = dict(line.split(": ", 1) for line in head if not line.startswith("#"))
    assert words.keys() == {"name", "description"}
    assert words["name"] == Path(skill.path).parent.name == SKILL
    assert 0 < len(json.loads(words["description"])) <= 1024
    named = set(re.findall(r"\b((?:search|list|session)_[a-z_]+)\(", skill.text))
    assert named == {tool.name for tool in TOOLS}


@pytest.mark.parametrize("name", ["/a\nb", "/a\0b", "/a\udcff"])
def test_what_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExtensionError, match="cannot be written down"):
        made(tmp_path, "--index-dir", name)


# --- installing ----------------------------------------------------------------------------------


def test_install_and_uninstall(home: Home) -> None:
    """Written and said so; taken away again with nothing left; each twice."""
    before = home.files()
    ran = home.run("install")
    assert (ran.status, ran.out) == (0, f"{home.extension}: written\n{home.skill}: written\n")
    config = home.agent / "extensions" / "session-surgery.json"
    assert ran.err.startswith(TRIMS)
    assert f'to turn that off: {{"autoAfterCompaction": false}} in {config}\n' in ran.err
    assert home.extension.stat().st_mode & 0o777 == 0o600

    again = home.run("install")
    assert again.out == f"{home.extension}: there already\n{home.skill}: there already\n"

    gone = home.run("uninstall")
    assert gone == Ran(0, f"{home.extension}: removed\n{home.skill}: removed\n", "")
    assert home.files() == sorted([*before, ".pi/agent/extensions", ".pi/agent/skills"])
    none = home.run("uninstall")
    assert none == Ran(0, f"{home.extension}: not there\n{home.skill}: not there\n", "")


def test_another_agent_folder(home: Home, tmp_path: Path) -> None:
    """Pi's variable says where, as it does to Pi."""
    home.run("install", PI_CODING_AGENT_DIR=str(tmp_path / "other"))
    assert (tmp_path / "other" / "extensions" / "sessionindex.js").exists()
    assert not home.extension.exists()


def test_a_dry_run_does_nothing(home: Home) -> None:
    before = home.files()
    ran = home.run("install", "--dry-run")
    would = f"{home.extension}: would be written\n{home.skill}: would be written\n"
    assert (ran.status, ran.out, home.files()) == (0, would, before)
    home.run("install")
    there = home.files()
    ran = home.run("uninstall", "--dry-run", "--json")
    assert json.loads(ran.out) == {
        "files": [
            {"path": str(home.extension), "what": "would be removed"},
            {"path": str(home.skill), "what": "would be removed"},
        ],
        "dryRun": True,
    }
    assert home.files() == there


def test_an_older_one_is_replaced(home: Home) -> None:
    """And what a user keeps beside the skill stays when it goes."""
    home.run("install")
    home.extension.write_text("// made by sessionindex; an older version\n")
    notes = home.skill.parent / "notes.md"
    notes.write_text("mine")
    status, said = home.status()
    assert (status, said["extension"]) == (1, {"path": str(home.extension), "state": "outdated"})
    again = home.run("install", "--index-dir", "kept")
    assert again.out == f"{home.extension}: replaced\n{home.skill}: there already\n"
    assert constant(home.extension.read_text(), "OPTIONS") == [
        "--index-dir",
        os.path.abspath("kept"),
    ]
    home.run("uninstall")
    assert notes.exists() and not home.skill.exists() and not home.extension.exists()


def foreign_text(path: Path) -> None:
    path.write_text("// somebody else's\n// made by sessionindex; is not in the first line\n")


def foreign_link(path: Path) -> None:
    (path.parent / "elsewhere").write_text("// made by sessionindex; but a link\n")
    path.symlink_to("elsewhere")


FOREIGN = (foreign_text, foreign_link, Path.mkdir)


@pytest.mark.parametrize("make", FOREIGN)
@pytest.mark.parametrize("what", ["extension", "skill"])
def test_what_is_not_ours_is_left_alone(what: str, make: object, home: Home) -> None:
    """Nothing is installed beside it; an uninstall takes the rest."""
    home.run("install")
    path: Path = getattr(home, what)
    path.unlink()
    make(path)  # type: ignore[operator]
    other = home.skill if what == "extension" else home.extension
    other.unlink()
    before = home.files()
    ran = home.run("install")
    refusal = f"sessionindex: not made by sessionindex, left alone: {path}\n"
    assert (ran, home.files()) == (Ran(2, "", refusal), before)
    assert home.status()[1][what] == {"path": str(path), "state": "foreign"}
    gone = home.run("uninstall")
    assert f"{path}: not made by sessionindex, left alone\n" in gone.out
    assert home.files() == before


def test_a_folder_that_cannot_be_written(home: Home) -> None:
    """The system's reason, and exit status 2."""
    (home.agent / "extensions").write_text("a file")
    ran = home.run("install")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"sessionindex: cannot write {home.extension}: ENOTDIR: Not a directory\n"


# --- what status sees ----------------------------------------------------------------------------


def test_status(home: Home) -> None:
    """Missing, then installed and able to run; a word about trimming."""
    status, said = home.status()
    assert (status, said["command"]) == (1, None)
    assert said["skill"] == {"path": str(home.skill), "state": "missing"}
    home.run("install")
    status, said = home.status()
    assert (status, said["failure"], said["switchedOffBy"], said["trimming"]) == (
        *(0, None, None),
        True,
    )
    assert home.run("status").out.splitlines() == [
        f"   extension  installed: {home.extension}",
        f"       skill  installed: {home.skill}",
        "     command  runs",
        "    trimming  on",
    ]


def test_a_command_that_is_gone(home: Home) -> None:
    """The Python of an environment that was deleted, and one without the package."""
    home.run("install")
    whole = home.extension.read_text()
    for program, reason in (
        (["/nowhere/python"], "ENOENT: No such file or directory"),
        (["/bin/sh", "-c", "echo No module named sessionindex >&2; exit 1"], "No module named"),
    ):
        other = f"const COMMAND = {json.dumps(program)};"
        home.extension.write_text(re.sub("^const COMMAND = .*$", other, whole, flags=re.M))
        status, said = home.status()
        assert status == 1 and str(said["failure"]).startswith(reason)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"autoAfterCompaction": true}', "on"),
        ('{"autoAfterCompaction": false}', "off"),
        ('{"autoAfterCompaction": 1}', "automatic trimming is off: autoAfterCompaction of "),
        ("{", "automatic trimming is off: "),
    ],
)
def test_trimming_is_spoken_of(text: str, said: str, home: Home) -> None:
    """What the configuration says; an installation says it too."""
    (home.agent / "extensions").mkdir()
    (home.agent / "extensions" / "session-surgery.json").write_text(text)
    assert f"    trimming  {said}" in home.run("status").out
    err = home.run("install").err
    assert err.startswith(TRIMS) if said == "on" else TRIMS not in err


OFF = [
    ([], None),
    (["-extensions/sessionindex.js"], "-extensions/sessionindex.js"),
    (["-./extensions/sessionindex.js"], "-./extensions/sessionindex.js"),
    (["-/agent/extensions/sessionindex.js"], "-/agent/extensions/sessionindex.js"),
    (["-sessionindex.js"], None),  # a path has to be exact
    (["!sessionindex.js"], "!sessionindex.js"),
    (["!*.js"], "!*.js"),
    (["!extensions/*"], "!extensions/*"),
    (["!ext*"], None),
    (["!**/session*"], "!**/session*"),
    (["!{a,sessionindex}.js"], "!{a,sessionindex}.js"),
    (["!sessionindex.[jt]s"], "!sessionindex.[jt]s"),
    (["!other.js", "-extensions/other.js", "extensions/sessionindex.js"], None),
    (["!*.js", "+extensions/sessionindex.js"], None),
    (["+extensions/sessionindex.js", "-extensions/sessionindex.js"], "-extensions/sessionindex.js"),
    (["![", "!(", 7, {"source": "x"}], None),
    ("-extensions/sessionindex.js", None),  # no list
]


@pytest.mark.parametrize(("entries", "by"), OFF)
def test_settings_can_switch_it_off(entries: object, by: str | None) -> None:
    path = "/agent/extensions/sessionindex.js"
    assert surroundings.switched_off(path, "/agent", {"extensions": entries}) == by


def test_status_says_that_it_is_switched_off(home: Home) -> None:
    home.run("install")
    home.settings(extensions=["-extensions/sessionindex.js"])
    status, said = home.status()
    assert (status, said["switchedOffBy"]) == (1, "-extensions/sessionindex.js")


def test_rivals_are_named(home: Home) -> None:
    """In the folder and in both settings; not their configuration, and not what is switched off."""
    folder = home.agent / "extensions"
    (folder / "session-recovery").mkdir(parents=True)
    for name in ("pi-retrospect.js", "Steering.ts", "session-surgery.json", "other.js", ".x"):
        (folder / name).write_text("")
    home.settings(
        packages=["npm:pi-session-surgery", {"source": "git:host/pi-retrospect"}, 7, "npm:else"],
        extensions=["/code/steering-marks.js", "-extensions/pi-retrospect.js"],
    )
    named = [
        str(folder / "Steering.ts"),
        str(folder / "pi-retrospect.js"),
        str(folder / "session-recovery"),
        "npm:pi-session-surgery in settings.json",
        "git:host/pi-retrospect in settings.json",
        "/code/steering-marks.js in settings.json",
    ]
    rivals = home.status()[1]["rivals"]
    assert isinstance(rivals, list) and [one["where"] for one in rivals] == named
    assert all(f"sessionindex: beware of {one}: " in home.run("install").err for one in named)


def test_a_plan_is_a_value(tmp_path: Path) -> None:
    """Looking writes nothing; an installation writes what the plan says."""
    wanted = made(tmp_path)
    plan = installer.plan(wanted)
    assert [one.state for one in plan] == ["missing", "missing"] and not list(tmp_path.iterdir())
    installer.install(plan)
    assert [one.state for one in installer.plan(wanted)] == ["installed", "installed"]
