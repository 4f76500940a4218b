"""`sessionindex sessions`: a table on a terminal, flat lines in a pipe, the contract's JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from build import Builder, session
from scratch import Store
from terminal import Ran, environment, pipe, terminal

COLOUR = re.compile("\x1b\\[[0-9;]*m")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def run(store: Store, home: Path, *arguments: str, columns: int | None = None, **env: str) -> Ran:
    """The command on the store, in a pipe or in a terminal of that width."""
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    command = ["sessions", *arguments, *where]
    given = environment(home, **env)
    return terminal(command, given, columns) if columns else pipe(command, given)


def put(store: Store, name: str, stamp: str, cwd: str = "/r/app", words: str = "") -> str:
    return store.put(name, story(name, stamp, cwd, words))


def story(name: str, stamp: str, cwd: str, words: str) -> Builder:
    return session(name.replace("/", "."), cwd=cwd, timestamp=stamp).user(words or f"do {name}")


def family(store: Store) -> dict[str, str]:
    return {
        name: put(store, name, stamp)
        for name, stamp in (
            ("old", "2026-01-01T00:00:00Z"),
            ("new", "2026-01-03T00:00:00Z"),
            ("new/b/session", "2026-01-03T02:00:00Z"),
            ("new/a/session", "2026-01-03T01:00:00Z"),
            ("mid", "2026-01-02T00:00:00Z"),
        )
    }


def test_a_pipe_gets_one_line_a_session(store: Store, home: Path) -> None:
    """Timestamp, folder, id and path, tabs between; newest first, nothing on stderr."""
    paths = family(store)
    ran = run(store, home)
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert rows == [
        ["2026-01-03T00:00:00Z", "/r/app", "new", paths["new"]],
        ["2026-01-02T00:00:00Z", "/r/app", "mid", paths["mid"]],
        ["2026-01-01T00:00:00Z", "/r/app", "old", paths["old"]],
    ]
    assert (ran.status, ran.err) == (0, "")
    assert run(store, home, "--brute") == ran


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], ["new", "mid", "old"]),
        (["--tree"], ["new", "new.a.session", "new.b.session", "mid", "old"]),
        (["-a", "--limit", "1"], ["new", "new.a.session", "new.b.session"]),
        (["--limit", "2"], ["new", "mid"]),
        (["--order", "asc"], ["old", "mid", "new"]),
        (["--sort", "id"], ["mid", "new", "old"]),
        (["--sort", "id", "--order", "desc"], ["old", "new", "mid"]),
        (["--sort", "timestamp"], ["new", "mid", "old"]),
        (["--since", "2026-01-02"], ["new", "mid"]),
        (["--until", "2026-01-02"], ["mid", "old"]),
        (["--cwd", "/r/app"], ["new", "mid", "old"]),
        (["--cwd", "/r/ap"], []),
        (["--cwd", "/r/../r/app/"], ["new", "mid", "old"]),
    ],
)
def test_filters_and_order(
    arguments: list[str], wanted: list[str], store: Store, home: Path
) -> None:
    family(store)
    ran = run(store, home, *arguments)
    assert [line.split("\t")[2] for line in ran.out.splitlines()] == wanted
    assert ran.status == (0 if wanted else 1)


def test_siblings(store: Store, home: Path) -> None:
    put(store, "a", "2026-01-01T00:00:00Z", "/r/app")
    put(store, "b", "2026-01-01T00:00:00Z", "/r/app-fix")
    put(store, "c", "2026-01-01T00:00:00Z", "/r/application")
    ran = run(store, home, "--cwd", "/r/app", "--siblings", "--sort", "id")
    assert [line.split("\t")[2] for line in ran.out.splitlines()] == ["a", "b"]


def test_json_is_what_call_answers(store: Store, home: Path) -> None:
    """In the contract's own order unless another is asked for; status 1 where it is empty."""
    family(store)
    store.put("bad", b"no header\n")

    def answer(**params: Any) -> dict[str, Any]:
        return store.index.call("list_sessions", params)

    for arguments, params in (
        ([], {}),
        (["--limit", "1", "--order", "desc"], {"limit": 1, "sortDirection": "desc"}),
        (
            ["--sort", "id", "--since", "2026-01-02"],
            {"sortBy": "id", "startTimestamp": "2026-01-02"},
        ),
    ):
        ran = run(store, home, "--json", *arguments, TZ="UTC")
        assert json.loads(ran.out) == answer(**params)
        assert ran.status == 0
    empty = run(store, home, "--json", "--cwd", "/nowhere")
    assert (json.loads(empty.out)["sessions"], empty.status) == ([], 1)


def test_inside_pi_the_running_session_is_left_out(store: Store, home: Path) -> None:
    paths = family(store)
    inside = {"PI_SESSION_FILE": paths["new"]}
    ran = run(store, home, "--limit", "1", **inside)
    assert ran.out.split("\t")[2] == "mid"
    ran = run(store, home, "--limit", "1", "--current", **inside)
    assert ran.out.split("\t")[2] == "new"


def test_what_cannot_be_read_is_said_and_changes_no_status(store: Store, home: Path) -> None:
    family(store)
    bad = store.put("bad", b"no header\n")
    ran = run(store, home)
    assert ran.status == 0
    assert ran.err == f"sessionindex: not readable: {bad}\n"


@pytest.mark.parametrize(
    "arguments",
    [["--limit", "0"], ["--since", "someday"], ["--sort", "size"], ["--order", "newest"], ["x"]],
)
def test_bad_options_are_refused_in_one_line(
    arguments: list[str], store: Store, home: Path
) -> None:
    ran = run(store, home, *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("sessionindex: ") and ran.err.count("\n") == 1


# --- on a terminal ------------------------------------------------------------------------------


def plain(ran: Ran) -> list[str]:
    return COLOUR.sub("", ran.out).splitlines()


def test_a_terminal_gets_a_table(store: Store, home: Path) -> None:
    """When, id, project, delegated runs, the first words of the user; and how many there are."""
    family(store)
    assert plain(run(store, home, columns=80)) == [
        "2026-01-03 00:00  new  app  +2  do new",
        "2026-01-02 00:00  mid  app      do mid",
        "2026-01-01 00:00  old  app      do old",
        "",
        "3 sessions, 2 delegated runs",
    ]
    assert plain(run(store, home, "--tree", "--limit", "1", columns=80)) == [
        "2026-01-03 00:00  new       app    +2  do new",
        "2026-01-03 01:00  new.a.se    app      do new/a/session",
        "2026-01-03 02:00  new.b.se    app      do new/b/session",
        "",
        "1 session, 2 delegated runs",
    ]
    none = run(store, home, "--cwd", "/nowhere", columns=80)
    assert (plain(none), none.status) == (["no sessions"], 1)


def test_an_id_is_long_enough_to_name_its_session(store: Store, home: Path) -> None:
    """Eight characters, or as many as tell it from every other session, listed or not."""
    ids = ("019e7a02-9b3e-1", "019e7a02-9b3e-2", "019e7a03-0000-1", "short", "shorter")
    for number, ident in enumerate(ids):
        stamp = f"2026-01-0{number + 1}T00:00:00Z"
        put(store, ident, stamp)
    lines = plain(run(store, home, "--order", "asc", columns=80))[: len(ids)]
    shown = [line.split()[2] for line in lines]
    assert shown == ["019e7a02-9b3e-1", "019e7a02-9b3e-2", "019e7a03", "short", "shorter"]
    for ident, line in zip(ids, shown, strict=True):
        where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
        ran = pipe(["show", f"{line}:2", *where], environment(home))
        assert f"do {ident}" in ran.out, ran
    alone = plain(run(store, home, "--limit", "1", "--until", "2026-01-01", columns=80))
    assert alone[0].split()[2] == "019e7a02-9b3e-1"


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int, store: Store, home: Path) -> None:
    """Whatever the project is called and the user said, and however deep runs hang."""
    words = "会議の前に " * 30
    put(store, "a", "2026-01-01T00:00:00Z", "/r/" + "long-name-" * 9, words)
    put(store, "b", "2026-01-01T00:00:00Z", "/r/降水量降水量降水量降水量降水量", "x" * 500)
    for depth in range(1, 9):
        store.put("b" + "/x/session" * depth, session(f"{depth} run").user(words))
    for arguments in ([], ["--tree"]):
        ran = run(store, home, *arguments, columns=columns)
        for line in plain(ran):
            wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)
            assert wide <= columns, line


def test_control_characters_never_reach_a_terminal(store: Store, home: Path) -> None:
    bad = "\x1b]0;owned\x07\x7f\x9b31m\u202e\x00\t\n"
    store.put("a", session(f"{bad}id", cwd=f"/tmp/{bad}x").user(f"{bad} words"))
    store.put("b", session("c", timestamp="2026-01-01T00:00:00Z").user("x"))
    for ran in (
        run(store, home),
        run(store, home, "--json"),
        run(store, home, "--color", "never", columns=80),
    ):
        assert ran.status == 0, ran
        assert not {c for c in ran.out + ran.err if c in "\x1b\x07\x7f\x9b\u202e\x00"}
    assert all(line.count("\t") == 3 for line in run(store, home).out.splitlines())
