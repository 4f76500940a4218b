"""A plain search is read without click: as click reads it, or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from build import session
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scratch import Store
from terminal import environment, pipe

from sessionindex.cli import plain
from sessionindex.cli.app import commands
from sessionindex.cli.search import command


def by_click(arguments: list[str]) -> dict[str, Any] | None:
    """The values that click gives the command; None where it does not carry it out."""
    above = click.Context(commands, info_name="sessionindex", **commands.context_settings)
    try:
        return command.make_context("search", list(arguments), parent=above).params
    except (click.UsageError, click.exceptions.Exit):
        return None


def takes(option: click.Option) -> plain.Takes:
    """What the table has to say of an option."""
    if option.is_flag:
        return True
    if isinstance(option.type, click.Choice):
        assert option.type.case_sensitive
        return tuple(option.type.choices)
    if isinstance(option.type, click.IntRange):
        low, high = option.type.min, option.type.max
        assert not (option.type.min_open or option.type.max_open or option.type.clamp)
        assert isinstance(low, int) and isinstance(high, int | None)
        return range(low, 10**9 if high is None else high + 1)
    assert option.type is click.STRING
    return str


def test_the_table_is_what_click_was_told() -> None:
    """Each spelling, each type, and nothing that the table has no word for."""
    told: dict[str, tuple[str, plain.Takes]] = {}
    for option in command.params:
        assert (option.callback, option.envvar, option.required) == (None, None, False)
        if isinstance(option, click.Option):
            assert (option.nargs, option.count, option.prompt) == (1, False, None)
            told |= dict.fromkeys(option.opts, (option.name, takes(option)))
            told |= dict.fromkeys(option.secondary_opts, (option.name, False))
        else:
            assert (option.name, option.nargs) == ("terms", -1)
    assert told == plain.OPTIONS
    assert by_click([]) == plain.DEFAULTS
    many = {one.name for one in command.params if one.nargs < 0 or getattr(one, "multiple", False)}
    assert many == set(plain.MANY)


def test_click_is_told_nothing_else() -> None:
    """No setting that has it read a command line otherwise."""
    assert commands.context_settings.keys() == {"help_option_names", "max_content_width"}
    assert command.context_settings == {}
    assert command.callback is not None and not command.deprecated


NUMBERS = ["0", "1", "2", "50", "007", "1000", "1001"]
WORDS = ["x", "", "-", "a b", "é", "\udcff", "user", "text", "any", "newest", "flat", "never"]
ODD = ["--", "--help", "-h", "-x", "-lx", "-=", "---", "--lim", "--Limit", "-0", "-1", "--é=x"]
LETTERS = "esiSlcCh=x5"
VALUES = [*NUMBERS, *WORDS, *ODD]

arguments = st.lists(
    st.sampled_from([*plain.OPTIONS, *VALUES])
    | st.builds("{}={}".format, st.sampled_from([*plain.OPTIONS]), st.sampled_from(VALUES))
    | st.text(LETTERS, min_size=1, max_size=4).map("-{}".format),
    max_size=7,
)
fitting = st.lists(
    st.sampled_from([(name,) for name, (_, what) in plain.OPTIONS.items() if what in (True, False)])
    | st.sampled_from(
        [
            form
            for name, (_, what) in plain.OPTIONS.items()
            if what is str or isinstance(what, tuple | range)
            for value in (VALUES if what is str else map(str, what[:4]))
            for form in ((name, value), (f"{name}={value}",), (f"{name}{value}",))
        ]
    )
    | st.sampled_from([("x",), ("needle",), ("--",), ("",)]),
    max_size=6,
).map(lambda groups: [word for group in groups for word in group])


@given(arguments | fitting)
@example(["--", "-l", "--help"])
@example(["-lce", "--", "x"])
@example(["-e=x", "-C5"])
@example(["-C", "-1", "x"])
@example(["x", "--limit"])
@example(["x", "--limit="])
@example(["x", "--all="])
@example(["--heading", "x", "--no-heading"])
@settings(derandomize=True, deadline=None, max_examples=1500)
def test_a_plain_command_line_is_what_click_makes_of_it(given: list[str]) -> None:
    """The same values; and None only where click refuses, or the command does what click gives."""
    wanted = by_click(given)
    if wanted is not None and plain.contradiction(wanted):
        wanted = None
    assert plain.read(["search", *given]) == wanted


@pytest.mark.parametrize(
    "given",
    [
        ["ETIMEDOUT"],
        ["git push --force", "--role", "user"],
        ["-l", "--cwd", ".", "flaky test"],
        ["-c", "--all", "docker", "port 5432", "--since", "2w"],
        ["--compacted", "hidden", "port 5432"],
        ["--touched", "app.py", "--tool", "edit"],
        ["--json", "--limit", "1", "--in", "thinking", "0.2794 mm"],
        ["-e", "-x", "-C2", "--limit=5", "--root", "/r", "--index-dir", "/i", "--color", "always"],
        ["--errors"],
        ["--brute", "--", "-x"],
    ],
)
def test_common_command_lines_are_plain(given: list[str]) -> None:
    assert plain.read(["search", *given]) == by_click(given) is not None


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["x"],
        ["sessions"],
        ["--", "search", "x"],
        ["--version"],
        ["search"],
        ["search", "--help"],
        ["search", "x", "-h"],
        ["search", "--all", "--across", "x"],
        ["search", "x", "--limit", "1_000"],
        ["search", "x", "--limit", " 5"],
        ["search", "x", "--limit", "٣"],
        ["search", "x", "--limit", "9" * 10],
    ],
)
def test_the_rest_is_left_to_click(given: list[str]) -> None:
    """Other commands, help, refusals, and numbers that only look odd."""
    assert plain.read(given) is None


def test_completion_is_left_to_click(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plain.COMPLETION, "bash_complete")
    assert plain.read(["search", "x"]) is None


def test_a_shell_is_answered_whatever_it_has_typed(home: Path) -> None:
    """The variable is the one that click goes by."""
    asked = {plain.COMPLETION: "bash_complete", "COMP_WORDS": "sessionindex search --s"}
    ran = pipe(["search", "x"], environment(home, COMP_CWORD="2", **asked))
    assert "--since" in ran.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no term given"),
        (["x", ""], "an empty term would match everything"),
        (["x", "--all", "--across"], "--all and --across exclude each other"),
        (["x", "-si"], "-s and -i exclude each other"),
    ],
)
def test_contradictions_are_said_as_click_says_what_is_wrong(
    home: Path, given: list[str], said: str
) -> None:
    ran = pipe(["search", *given], environment(home))
    assert ran.err == f"sessionindex: {said} ('sessionindex search --help' tells more)\n"
    assert (ran.status, ran.out) == (2, "")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


HEAVY = {"click", "orjson", "dataclasses", "inspect", "uuid", "platform", "gettext", "locale"}
HEAVY |= {"sqlite3", "mcp", "watchfiles", "asyncio", "hashlib", "traceback", "subprocess"}
"""Not datetime, which tantivy imports."""


@pytest.mark.parametrize("found", [True, False])
def test_a_plain_search_starts_with_what_it_needs(store: Store, home: Path, found: bool) -> None:
    """Half of its time is imports: in a process of its own, over an index, these are none of it."""
    story = session("a").user("an older needle").user("the needle is here")
    path = store.put("a", story.call("edit", path="a.py"))
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    assert pipe(["index", *where], environment(home)).status == 0
    program = (
        "import os, sys; from sessionindex.__main__ import main\n"
        "def late(made):\n"
        "    hints = getattr(made, '__annotations__', {}) if isinstance(made, type) else {}\n"
        "    return any(type(hint).__name__ == 'ForwardRef' for hint in hints.values())\n"
        "def ended(status, end=os._exit):\n"
        "    own = [one for name, one in sys.modules.items() if name.startswith('sessionindex')]\n"
        "    tuples = [one for part in own for one in vars(part).values()]\n"
        "    made = {one.__qualname__ for one in tuples if late(one)}\n"
        "    print(*sys.modules, file=sys.stderr)\n"
        "    print(*made, file=sys.stderr, flush=True)\n"
        "    end(status)\n"
        "os._exit = ended\n"
        "main()"
    )
    term = "needle" if found else "nothing like it"
    command = [sys.executable, "-c", program, "search", term, "--limit", "1", *where]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True)
    wanted = f"{path}:3:the needle is here\n" if found else ""
    assert (done.returncode, done.stdout) == (0 if found else 1, wanted)
    *_, modules, compiled = done.stderr.splitlines()
    loaded = set(modules.split())
    assert {"tantivy", "sessionindex.cli.hits"} <= loaded
    assert loaded & HEAVY == set()
    assert compiled == "", "tuples whose fields were compiled a second time (see `model`)"
