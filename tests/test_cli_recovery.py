"""`overview`, `read`, `find` and `recover`: for a terminal, for a pipe, and as the tools answer."""

from __future__ import annotations

import json
import re
import subprocess
import unicodedata
import zlib
from pathlib import Path
from typing import Any

import pytest
from build import Builder, session
from scratch import Store
from terminal import Ran, environment, pipe, terminal

from sessionindex.cli.one_session import _quoted

COLOUR = re.compile("\x1b\\[[0-9;]*m")
COMMANDS = ("overview", "read", "find", "recover")
TOOLS = {
    "overview": "session_overview",
    "read": "session_read_section",
    "find": "session_search",
    "recover": "session_recovery_context",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def run(store: Store, home: Path, *arguments: str, columns: int | None = None, **env: str) -> Ran:
    """The command on the store, in a pipe or in a terminal of that width."""
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    command = [arguments[0], *where, *arguments[1:]]
    given = environment(home, **env)
    return terminal(command, given, columns) if columns else pipe(command, given)


def asking(command: str, *arguments: str) -> list[str]:
    """The arguments of a command; `find` has a query."""
    return [command, *(["needle"] if command == "find" else []), *arguments]


def plain(ran: Ran) -> list[str]:
    return COLOUR.sub("", ran.out).splitlines()


def ident(name: str, number: int) -> str:
    """The id of an entry of a story."""
    return f"{zlib.crc32(name.encode()) & 0xFFFF:04x}{number:04x}"


def story(name: str = "a") -> Builder:
    """Four sections, files, an error, a call without result, a compaction."""
    return (
        session(name)
        .custom("started", {"x": 1})
        .user("find the needle,\nplease")
        .call("read", path="/home/dev/src/app/hay.py")
        .result("a needle is in line 3")
        .call("edit", path="/home/dev/src/app/hay.py")
        .result("no such text", error=True)
        .compaction("looked for the needle")
        .user("now the Needle in other.py")
        .call("write", path="/tmp/other.py")
    )


def a(number: int) -> str:
    return ident("a", number)


# --- in a pipe -----------------------------------------------------------------------------------


def test_overview_in_a_pipe(store: Store, home: Path) -> None:
    """Section, entries, calls, errors, files read and edited, and how it begins."""
    store.put("a", story())
    ran = run(store, home, "overview", "a")
    assert [line.split("\t") for line in ran.out.splitlines()] == [
        [f"section:{a(1)}", "1", "0", "0", "0", "0", f"custom {a(1)}"],
        [f"section:{a(2)}", "5", "2", "1", "1", "1", "find the needle, please"],
        [f"section:{a(7)}", "1", "0", "0", "0", "0", "Compaction: looked for the needle"],
        [f"section:{a(8)}", "2", "1", "0", "0", "1", "now the Needle in other.py"],
    ]
    assert (ran.status, ran.err) == (0, "")


def test_read_is_what_the_tool_says(store: Store, home: Path) -> None:
    """The last section, the one that is named, or everything from an entry on."""
    path = store.put("a", story())
    for arguments, params in (
        ([], {"section_id": f"section:{a(8)}"}),
        (["--section", a(2)], {"section_id": f"section:{a(2)}"}),
        (["--section", f"section:{a(2)}"], {"section_id": f"section:{a(2)}"}),
        (["--entry", a(4)], {"entry_id": a(4)}),
        (["--entry", a(4), "--all"], {"entry_id": a(4), "scope": "all"}),
    ):
        ran = run(store, home, "read", "a", *arguments)
        answer = store.index.call(TOOLS["read"], params, session=path)
        assert ran == Ran(0, answer["content"] + "\n", "")


def test_find_in_a_pipe(store: Store, home: Path) -> None:
    """Entry, section, who and snippet; how many there are is said on stderr."""
    store.put("a", story())
    ran = run(store, home, "find", "NEEDLE", "a")
    assert [line.split("\t") for line in ran.out.splitlines()] == [
        [a(2), f"section:{a(2)}", "user", "find the needle, please"],
        [a(4), f"section:{a(2)}", "toolResult", f"a needle is in line 3 tool_result {called(3)}"],
        [a(7), f"section:{a(7)}", "compaction", "looked for the needle"],
        [a(8), f"section:{a(8)}", "user", "now the Needle in other.py"],
    ]
    assert (ran.status, ran.err) == (0, "4 matches\n")
    ran = run(store, home, "find", "-s", "Needle", "a")
    assert (ran.out.count("\n"), ran.err) == (1, "1 match\n")
    assert run(store, home, "find", "nothing like it", "a") == Ran(1, "", "no matches\n")


def called(number: int) -> str:
    return f"read#call_{zlib.crc32(b'a') & 0xFFFF:04x}_{number}"


SUMMARY = f"""app  2026-09-10 09:00  a
9 entries, 4 sections, 1 compaction

asked      {a(2)}  find the needle, please
latest     {a(8)}  now the Needle in other.py
modified   hay.py, /tmp/other.py
read       hay.py
errors     {a(6)}  edit: no such text
no result  write ({a(9)})
last       {a(9)}  assistant: → write
"""


def test_recover_is_the_same_for_all(store: Store, home: Path) -> None:
    """On a terminal with colours, in a pipe without them."""
    store.put("a", story())
    assert run(store, home, "recover", "a") == Ran(0, SUMMARY, "")
    ran = run(store, home, "recover", "a", columns=80)
    assert COLOUR.search(ran.out) and COLOUR.sub("", ran.out) == SUMMARY
    assert run(store, home, "recover", "a", columns=80, NO_COLOR="1").out == SUMMARY


@pytest.mark.parametrize("command", COMMANDS)
def test_the_index_changes_nothing(command: str, store: Store, home: Path) -> None:
    path = store.put("a", story())
    store.index.refresh()
    ran = run(store, home, *asking(command, "a"))
    assert ran.status == 0
    assert run(store, home, *asking(command, "a"), "--brute") == ran
    assert run(store, home, *asking(command, path)) == ran


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "params", "how"),
    [
        (["overview", "a"], {}, {}),
        (["overview", "a", "--limit", "2", "--all"], {"max_sections": 2, "scope": "all"}, {}),
        (["overview", "a", "--leaf", a(4)], {}, {"leaf_id": a(4)}),
        (["read", "a"], {"section_id": f"section:{a(8)}"}, {}),
        (["read", "a", "--section", a(2)], {"section_id": f"section:{a(2)}"}, {}),
        (
            ["read", "a", "--entry", a(2), "--limit", "3", "--max-chars", "100"],
            {"entry_id": a(2), "max_entries": 3, "max_body_chars": 100},
            {},
        ),
        (["find", "needle", "a"], {"query": "needle"}, {}),
        (
            ["find", " Needle ", "a", "-s", "--limit", "1", "--scope", "all"],
            {"query": " Needle ", "case_sensitive": True, "limit": 1, "scope": "all"},
            {},
        ),
        (["recover", "a"], {}, {}),
        (["recover", "a", "--limit", "1", "--scope", "active"], {"recent_error_limit": 1}, {}),
    ],
)
def test_json_is_what_call_answers(
    arguments: list[str], params: dict[str, Any], how: dict[str, Any], store: Store, home: Path
) -> None:
    store.put("a", story())
    answer = store.index.call(TOOLS[arguments[0]], params, session="a", **how)
    for more in ([], ["--brute"]):
        ran = run(store, home, *arguments, "--json", *more)
        assert (json.loads(ran.out), ran.err, ran.status) == (answer, "", 0)
    shown = run(store, home, *arguments, "--json", columns=80)
    assert json.loads(shown.out) == answer and shown.out.startswith("{\n")


def test_json_of_what_is_not_there(store: Store, home: Path) -> None:
    """The text of the tool is its answer; the status tells none from refused."""
    store.put("a", story())
    store.put("empty", session("empty"))
    for arguments, status in (
        (["overview", "empty"], 1),
        (["read", "empty"], 1),
        (["find", "x", "empty"], 1),
        (["recover", "empty"], 1),
        (["read", "a", "--section", "none"], 1),
        (["read", "a", "--entry", "none"], 1),
        (["find", "nothing like it", "a"], 1),
        (["overview", "a", "--cursor", "garbled"], 2),
        (["read", "a", "--cursor", "garbled"], 2),
        (["find", "x", "a", "--cursor", "garbled"], 2),
    ):
        ran = run(store, home, *arguments, "--json")
        assert (set(json.loads(ran.out)), ran.status) == ({"content", "details"}, status), arguments
        told = run(store, home, *arguments)
        assert (told.status, told.out) == (status, "")
        if status == 2 or arguments[0] != "find":
            assert f"sessionindex: {json.loads(ran.out)['content']}\n" == told.err


# --- which session, and what is refused ----------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_session_it_says_what_to_do(command: str, store: Store, home: Path) -> None:
    for more in ([], ["--json"]):
        ran = run(store, home, *asking(command), *more)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith("sessionindex: no session named, and none is running")
        assert ran.err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_inside_pi_the_running_session_is_meant(command: str, store: Store, home: Path) -> None:
    """Wherever it lies, and without any root; before it has a file, the tool says so."""
    path = store.put("a", story())
    named = run(store, home, *asking(command, "a"))
    assert run(store, home, *asking(command), PI_SESSION_FILE=path) == named
    assert pipe(asking(command), environment(home, PI_SESSION_FILE=path)) == named
    early = pipe(asking(command), environment(home, PI_SESSION_FILE=str(home / "new.jsonl")))
    assert (early.status, early.out) == (1, "")
    assert early.err.startswith("sessionindex: No raw session entries are available")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_id_of_several_is_refused_with_their_paths(
    command: str, store: Store, home: Path
) -> None:
    paths = [store.put(name, story(name)) for name in ("abc1", "abc2")]
    ran = run(store, home, *asking(command, "abc"))
    assert (ran.status, ran.out) == (2, "")
    assert all(path in ran.err for path in paths)
    assert run(store, home, *asking(command, "abc1")).status == 0


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["overview", "nobody"], 2),
        (["overview", "/nowhere/x.jsonl"], 2),
        (["overview", "a", "--limit", "0"], 2),
        (["overview", "a", "--limit", "101"], 2),
        (["overview", "a", "--scope", "some"], 2),
        (["overview", "a", "--scope", "active", "--all"], 2),
        (["overview", "a", "--leaf", "none"], 1),
        (["read", "a", "--section", "x", "--entry", "y"], 2),
        (["read", "a", "--max-chars", "99"], 2),
        (["read", "a", "--cursor", "x" * 3000], 2),
        (["read", "a", "--section", "\udcff"], 1),
        (["find"], 2),
        (["find", "", "a"], 2),
        (["find", " \n", "a"], 2),
        (["find", "\udcff", "a"], 1),
        (["recover", "a", "--limit", "21"], 2),
        (["recover", "a", "b"], 2),
    ],
)
def test_the_exit_status_tells(arguments: list[str], status: int, store: Store, home: Path) -> None:
    store.put("a", story())
    ran = run(store, home, *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.count("\n") == 1 and "Traceback" not in ran.err


def test_a_cursor_is_good_for_its_question_only(store: Store, home: Path) -> None:
    store.put("a", story())
    store.put("b", story("b"))
    cursor = command_of(run(store, home, "find", "needle", "a", "--limit", "1"))
    cursor = cursor[cursor.index("--cursor") + 1]
    assert run(store, home, "find", "needle", "a", "--cursor", cursor).status == 0
    for other in (
        ["find", "Needle", "a"],
        ["find", "needle", "b"],
        ["find", "needle", "a", "-s"],
        ["find", "needle", "a", "--all"],
        ["overview", "a"],
        ["read", "a"],
    ):
        assert run(store, home, *other, "--cursor", cursor).status == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, home: Path) -> None:
    ran = pipe([command, "--help"], environment(home))
    assert f"  sessionindex {command}" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines()) and ran.status == 0


# --- going on ------------------------------------------------------------------------------------


def command_of(ran: Ran) -> list[str]:
    """The arguments of the command that was printed to go on, as a shell reads it."""
    printed = ran.err.splitlines()[-1]
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {printed}"], capture_output=True, check=True
    )
    words = said.stdout.decode().split("\0")
    assert (words[0], words[-1]) == ("sessionindex", "")
    return words[1:-1]


def followed(store: Store, home: Path, *arguments: str) -> list[Ran]:
    """A first page, and what the commands print that go on."""
    pages = [run(store, home, *arguments)]
    while "to go on" in pages[-1].err:
        pages.append(pipe(command_of(pages[-1]), environment(home)))
    assert all(page.status == 0 for page in pages)
    return pages


@pytest.mark.parametrize(
    "arguments",
    [
        ["overview", "a"],
        ["overview", "a", "--all", "--brute"],
        ["find", "needle", "a"],
        ["find", "--", "-e", "a"],
        ["find", "a 'quoted' needle\n", "a", "--scope=all"],
        ["find", "Needle", "a", "-s"],
    ],
)
def test_following_the_commands_gives_everything_once(
    arguments: list[str], store: Store, home: Path
) -> None:
    builder = session("a")
    for number in range(7):
        builder.user(f"{number}: a 'quoted' needle\n, Needle -e").assistant("yes")
    store.put("a", builder)
    whole = run(store, home, *arguments)
    assert whole.out.count("\n") == 7
    command, *rest = arguments
    pages = followed(store, home, command, "--limit", "3", *rest)
    assert [page.out.count("\n") for page in pages] == [3, 3, 1]
    assert "".join(page.out for page in pages) == whole.out


@pytest.mark.parametrize("begin", [[], ["--section", a(1)], ["--entry", a(1)]])
def test_reading_on_gives_every_character_once(begin: list[str], store: Store, home: Path) -> None:
    """Entries in pieces, page after page; the printed command names no section any more."""
    said = "".join(chr(0x4E00 + number) for number in range(350))
    store.put("a", session("a").user(said).assistant("short").assistant(said[::-1]))
    pages = followed(store, home, "read", "a", "--limit", "2", "--max-chars", "150", *begin)
    assert len(pages) == 6
    text = "".join(re.sub(r"[^\u4e00-\u9fff]", "", read.out.split("\n\n", 1)[1]) for read in pages)
    assert text == said + said[::-1]
    assert sum(read.out.count("short") for read in pages) == 1


@pytest.mark.parametrize(
    "word",
    ["plain", "it's", "$x `y` \\", "-e", "tab\there", "\x1b]0;x\x07\n'\\", "\udcff\udcfe'\x01"],
)
def test_what_is_printed_for_a_shell_means_the_same(word: str) -> None:
    shown = _quoted(word)
    assert shown.isprintable()
    said = subprocess.run(["bash", "-c", f"printf %s {shown}"], capture_output=True, check=True)
    assert said.stdout == word.encode("utf-8", "surrogateescape")


# --- on a terminal -------------------------------------------------------------------------------


def test_overview_on_a_terminal(store: Store, home: Path) -> None:
    builder = story().info("a search")
    store.put(
        "a", builder.entry("message", parentId=a(1), message={"role": "user", "content": "B"})
    )
    assert plain(run(store, home, "overview", "a", "--leaf", a(10), columns=80)) == [
        "app  2026-09-10 09:00  a  a search",
        "10 entries, 4 sections, 1 compaction, 1 other branch (1 more with --all)",
        "",
        "section   begins with                           entries calls errors read edited",
        f"{a(1)}  custom {a(1)}                             1     ·      ·    ·      ·",
        f"{a(2)}  find the needle, please                     5     2      1    1      1",
        f"{a(7)}  Compaction: looked for the needle           1     ·      ·    ·      ·",
        f"{a(8)}  now the Needle in other.py                  3     1      ·    ·      1",
    ]
    lines = plain(run(store, home, "overview", "a", "--all", "--limit", "1", columns=80))
    assert lines[1] == "11 entries, 5 sections, 1 compaction, 1 other branch"
    assert lines[6:8] == ["1 of 5 sections; to go on:", lines[7]]
    assert lines[7].startswith("  sessionindex overview --limit 1 --all --root ")


def test_find_on_a_terminal(store: Store, home: Path) -> None:
    """Every place of the query is highlighted, cut around the first."""
    words = "straw " * 40
    store.put("a", session("a").user(f"{words}NEEDLE, needle {words}").assistant("no needle"))
    ran = run(store, home, "find", "Needle", "a", columns=80)
    assert re.findall("\x1b\\[1;31m(.*?)\x1b", ran.out) == ["NEEDLE", "needle", "needle"]
    lines = plain(ran)
    assert lines[0].startswith(f"{a(1)}  user       …") and len(lines[0]) <= 80
    assert lines[1:] == [f"{a(2)}  assistant  no needle", "", "2 matches"]


def test_read_on_a_terminal(store: Store, home: Path) -> None:
    store.put("a", story())
    ran = run(store, home, "read", "a", "--section", a(2), columns=80)
    assert COLOUR.search(ran.out)
    assert "\n".join(plain(ran)) + "\n" == run(store, home, "read", "a", "--section", a(2)).out


def crowded(name: str) -> Builder:
    """Much of everything: files, errors, calls without results, long requests."""
    words = "会議の前に build it again " * 60
    builder = session(name, cwd="/r/" + "降水量-long-name-" * 4).user(words)
    for number in range(30):
        builder.call("edit", path=f"/src/a folder/of {number}/{'deep/' * number}x.py")
        builder.call("read", path=f"/src/降水量/{number}.py").result("x" * 900, error=True)
    return builder.compaction(words).user(words).call("bash", command=words)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int, store: Store, home: Path) -> None:
    """Nor is a recovery summary longer than a screen."""
    store.put("a", crowded("0" * 36))
    store.put("b", session("b").entry("custom", id="long" * 20).entry("x" * 90, id="y" * 36))
    for arguments in (
        ["overview", "0"],
        ["recover", "0"],
        ["find", "build", "0"],
        ["overview", "b"],
        ["recover", "b"],
    ):
        lines = plain(run(store, home, *arguments, columns=columns))
        assert len(lines) <= 23 or arguments[0] == "find"
        for line in lines:
            if "--cursor" in line:
                continue  # the command that goes on
            wide = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)
            assert wide <= columns, line


def test_control_characters_never_reach_a_terminal(store: Store, home: Path) -> None:
    bad = "\x1b]0;owned\x07\x7f\x9b31m\u202e\x00\t\n needle"
    builder = session(f"a{bad}", cwd=f"/tmp/{bad}x").info(bad).user(bad).user(bad, role2=bad)
    builder.call(bad, path=bad, name=bad).result(bad, error=True).call("edit", path=bad)
    builder.entry(f"type{bad}", id=f"id{bad}", x=bad).entry("branch_summary", summary=bad)
    builder.entry("message", id=f"x{bad}", message={"role": bad, "content": bad})
    path = store.put("a", builder.call(bad))
    for arguments in (
        *(asking(command, path) for command in COMMANDS),
        ["read", path, "--entry", ident(f"a{bad}", 2)],
        ["read", path, "--section", bad.replace("\0", "")],
        ["find", bad.replace("\0", "").strip("\n"), path],
        ["find", "\x9b31m", path, "--limit", "1"],
        ["overview", path, "--limit", "1", "--leaf", f"x{bad}".replace("\0", "")],
    ):
        for ran in (
            run(store, home, *arguments),
            run(store, home, *arguments, "--json"),
            run(store, home, *arguments, "--color", "never", columns=80),
        ):
            assert ran.status in (0, 1), ran
            assert not {c for c in ran.out + ran.err if c in "\x1b\x07\x7f\x9b\u202e\x00"}
    for command, tabs in (("overview", 6), ("find", 3)):
        lines = run(store, home, *asking(command, path)).out.splitlines()
        assert lines and all(line.count("\t") == tabs for line in lines)
