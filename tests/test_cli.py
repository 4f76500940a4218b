"""The command line: what is printed where, exit statuses, and what must never reach a terminal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from build import session
from scratch import Store
from terminal import Ran, environment, pipe, terminal

from sessionindex.cli.opening import moment


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def run(store: Store, home: Path, *arguments: str, columns: int | None = None) -> Ran:
    """A command on the store, in a pipe or in a terminal of that width."""
    command = [*arguments, "--root", str(store.root), "--index-dir", str(store.index_dir)]
    env = environment(home)
    return terminal(command, env, columns) if columns else pipe(command, env)


def test_a_pipe_gets_one_line_a_hit(store: Store, home: Path) -> None:
    """`path:line:snippet`, data on stdout, nothing on stderr, status 0."""
    path = store.put("a", session("a").user("the needle is here"))
    ran = run(store, home, "search", "needle")
    assert ran == Ran(0, f"{path}:2:the needle is here\n", "")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["search", "needle"], 0),
        (["search", "nothing like it"], 1),
        (["search", "needle", "--json"], 0),
        (["search", "nothing like it", "--json"], 1),
        (["search", "-c", "nothing like it"], 1),
        (["search"], 2),
        (["search", ""], 2),
        (["search", "needle", "--limit", "0"], 2),
        (["search", "needle", "--since", "someday"], 2),
        (["search", "needle", "--all", "--across"], 2),
        (["search", "needle", "-s", "-i"], 2),
        (["search", "needle", "--cursor", "garbled"], 2),
        (["search", "--branch", "active"], 0),
        (["search", "--branch", "abandoned"], 1),
        (["search", "--compacted", "visible", "-c"], 0),
        (["search", "--errors"], 1),
        (["search", "--touched", "a.py"], 1),
        (["search", "--tool", "edit", "--tool", "read", "--json"], 1),
        (["search", "--branch", "any"], 2),
        (["search", "--compacted", "any", "--role", "user"], 2),
        (["search", "--branch", "main"], 2),
        (["search", "--touched", ""], 2),
        (["search", "needle", "--touched", ""], 2),
        (["search", "needle", "--tool", ""], 2),
        (["show", "a:2"], 0),
        (["show", "a:99"], 1),
        (["show", "nobody:2"], 2),
        (["show", "a"], 2),
        (["show", "a:" + "9" * 5000], 2),
        (["show", "a:2", "-C", "9" * 20], 2),
        (["search", "needle", "-C", "9" * 20], 2),
        (["search", "needle", "--since", "9" * 20 + "d"], 2),
        (["index"], 0),
        (["status"], 0),
        (["call", "search_sessions", '{"terms": ["needle"]}'], 0),
        (["call", "search_sessions", '{"terms": []}'], 2),
        (["call", "search_sessions", "not json"], 2),
        (["call", "no_such_tool", "{}"], 2),
    ],
)
def test_the_exit_status_tells(store: Store, home: Path, arguments: list[str], status: int) -> None:
    """0 is a match or done, 1 is none, 2 is an error said in one line on stderr."""
    store.put("a", session("a").user("the needle is here"))
    ran = run(store, home, *arguments)
    assert ran.status == status
    assert "Traceback" not in ran.err
    if status == 2:
        assert ran.out == ""
        assert ran.err.startswith("sessionindex: ") and ran.err.count("\n") == 1


def test_a_typo_is_answered_with_the_word_that_was_meant(home: Path) -> None:
    ran = pipe(["serach", "x"], environment(home))
    assert ran.status == 2
    assert "no such command 'serach'; did you mean 'search'?" in ran.err


def test_a_missing_root_says_what_was_tried_and_why(home: Path) -> None:
    """The path, and where it came from."""
    ran = pipe(["search", "x"], environment(home, PI_CODING_AGENT_SESSION_DIR="/no/where"))
    assert ran.status == 2
    expected = "the sessions root does not exist: /no/where (from PI_CODING_AGENT_SESSION_DIR)"
    assert expected in ran.err


def test_the_first_search_indexes_and_later_ones_use_it(store: Store, home: Path) -> None:
    """No `index` is needed first; the answer is the same, and then no byte is scanned."""
    store.put("a", session("a").user("the needle is here"))
    assert run(store, home, "search", "needle").status == 0
    answer = json.loads(run(store, home, "search", "needle", "--json").out)
    assert answer["coverage"]["new"] == 0
    assert answer["coverage"]["scannedBytes"] == 0


def test_control_characters_never_reach_a_terminal(store: Store, home: Path) -> None:
    """Neither C0, DEL, C1, nor marks that turn the text's direction, in any view."""
    bad = "\x1b]0;owned\x07 needle \x7f\x9b31m\u202e end\x00"
    store.put("a", session("\x1b[31mid", cwd="/tmp/\x1b[2J").user(bad).call("x\x1b", path=bad))
    for arguments in (
        ["search", "needle"],
        ["search", "needle", "-C", "1"],
        ["search", "needle", "--json"],
        ["search", "-c", "needle"],
        ["show", f"{store.root}/--home-dev-src-app--/a.jsonl:2", "-C", "2"],
    ):
        for ran in (
            run(store, home, *arguments, "--limit", "5")
            if arguments[0] == "search"
            else run(store, home, *arguments),
            run(store, home, *arguments, "--color", "never", columns=80),
        ):
            assert ran.status == 0, ran
            found = {c for c in ran.out + ran.err if c in "\x1b\x07\x7f\x9b\u202e\x00"}
            assert not found, (arguments, found)


def test_a_terminal_gets_headings_and_colours(store: Store, home: Path) -> None:
    """Project, date, first words, the command that reopens it; matches in colour."""
    path = store.put("a", session("a", cwd="/home/dev/src/app").user("first words needle"))
    ran = run(store, home, "search", "needle", columns=80)
    assert f"pi --session {path}" in ran.out
    assert "\x1b[1;31mneedle\x1b[0m" in ran.out
    assert "first words" in ran.out.split("\n")[0]


def test_no_line_of_a_hit_is_wider_than_the_terminal(store: Store, home: Path) -> None:
    """Headings and hits fit 80 columns, whatever the text; only paths are left whole."""
    text = "会議の前に " * 30 + "needle" + " 後で確認" * 30
    store.put("a", session("a").user(text).user("x" * 300 + " needle " + "y" * 300))
    ran = run(store, home, "search", "needle", "--color", "never", columns=80)
    from sessionindex.cli.render import _columns

    lines = [line for line in ran.out.split("\n") if "pi --session" not in line]
    assert max(map(_columns, lines)) <= 80
    assert sum("needle" in line for line in lines) >= 2


def test_context_shows_the_entries_around(store: Store, home: Path) -> None:
    """-C 1 shows one entry before and one after, the hit marked with a colon."""
    store.put("a", session("a").user("before it").assistant("the needle").user("after it"))
    ran = run(store, home, "search", "needle", "-C", "1")
    assert "2- user  before it" in ran.out
    assert "3: assistant  the needle" in ran.out
    assert "4- user  after it" in ran.out


def test_smart_case_minds_capitals_only(store: Store, home: Path) -> None:
    store.put("a", session("a").user("Needle").user("needle"))
    assert run(store, home, "search", "-S", "needle").out.count("\n") == 2
    assert run(store, home, "search", "-S", "Needle").out.count("\n") == 1


def test_counts_and_session_lists_are_exact(store: Store, home: Path) -> None:
    """-c counts every hit whatever the limit; -l names each session once."""
    a = store.put("a", session("a").user("needle").user("needle").user("needle"))
    b = store.put("b", session("b").user("needle"))
    counted = run(store, home, "search", "-c", "needle", "--limit", "1").out
    assert sorted(counted.split("\n")) == sorted(["", f"{a}:3", f"{b}:1"])
    listed = run(store, home, "search", "-l", "needle", "--limit", "1").out
    assert sorted(listed.split("\n")) == sorted(["", a, b])


def test_paging_by_cursor_delivers_every_hit_once(store: Store, home: Path) -> None:
    builder = session("a")
    for number in range(7):
        builder.user(f"needle {number}")
    store.put("a", builder)
    seen, cursor = [], []
    while True:
        ran = run(store, home, "search", "needle", "--json", "--limit", "3", *cursor)
        answer = json.loads(ran.out)
        seen += [hit["lineNo"] for hit in answer["hits"]]
        if not answer["hasMore"]:
            break
        cursor = ["--cursor", answer["nextCursor"]]
    assert seen == [8, 7, 6, 5, 4, 3, 2]


def test_call_reads_stdin_and_knows_the_current_session(store: Store, home: Path) -> None:
    """`-` takes the parameters from stdin; the running session is left out."""
    a = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    ran = pipe(
        ["call", "search_sessions", "-", "--current-session", a, *where],
        environment(home),
        b'{"terms": ["needle"]}',
    )
    assert [hit["sessionId"] for hit in json.loads(ran.out)["hits"]] == ["b"]


def test_a_lone_surrogate_survives_json_output(store: Store, home: Path) -> None:
    """What orjson cannot write is written as the escape it came from."""
    store.put(
        "a",
        session("a").line(
            b'{"type":"message","id":"x","parentId":null,"timestamp":"2026-09-10T09:00:01.000Z",'
            b'"message":{"role":"user","content":"needle \\ud83d half"}}'
        ),
    )
    ran = run(store, home, "search", "needle", "--json")
    assert "\\ud83d" in ran.out
    assert json.loads(ran.out)["hits"][0]["snippet"] == "needle \ud83d half"


WAYS = {"plain": "3000", "by click": "3_000"}
"""A limit that is read without click, and one that is left to it."""


@pytest.mark.parametrize("limit", WAYS.values(), ids=WAYS)
def test_a_closed_pipe_ends_quietly(store: Store, home: Path, limit: str) -> None:
    """`| head -1` is no error and prints none."""
    builder = session("a")
    for number in range(3000):
        builder.user(f"needle number {number} " + "x" * 100)
    store.put("a", builder)
    command = [sys.executable, "-m", "sessionindex", "search", "needle", "--limit", limit]
    command += ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    child = subprocess.Popen(
        command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(timeout=60), said) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("limit", WAYS.values(), ids=WAYS)
def test_a_full_disk_under_the_output_is_said(store: Store, home: Path, limit: str) -> None:
    store.put("a", session("a").user("needle"))
    command = [sys.executable, "-m", "sessionindex", "search", "needle", "--limit", limit]
    command += ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, env=environment(home), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == b"sessionindex: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("limit", WAYS.values(), ids=WAYS)
def test_interrupting_ends_with_130_and_no_traceback(store: Store, home: Path, limit: str) -> None:
    """Ctrl-C while an index is being made."""
    big = session("a")
    for number in range(4000):
        big.user(f"needle {number} " + "lorem ipsum dolor " * 40)
    store.put("a", big)
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "sessionindex", "search", "needle", "--limit", limit]
    command += ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    child = subprocess.Popen(
        command,
        env=environment(home),
        stdin=inner,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    marker = store.index_dir
    while child.poll() is None and not list(marker.glob("*/writer.lock")):
        pass  # until the indexing has begun
    child.send_signal(signal.SIGINT)
    assert child.stderr is not None
    said = child.stderr.read()
    child.stderr.close()
    os.close(outer)
    os.close(inner)
    assert child.wait(timeout=60) in (0, 130)  # 0: it was done before the signal came
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (None, None),
        ("2026-01-02", "2026-01-02"),
        ("2d", "2026-09-08T12:00:00.500Z"),
        ("12h", "2026-09-10T00:00:00.500Z"),
        ("30m", "2026-09-10T11:30:00.500Z"),
        ("1w", "2026-09-03T12:00:00.500Z"),
        ("today", "2026-09-10"),
        ("Yesterday", "2026-09-09"),
        ("2 parsecs", "2 parsecs"),
    ],
)
def test_moments_as_people_write_them(
    said: str | None, meant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans count back from now; what is none of these goes on to the contract's own reader."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert moment(said, now_ms=1_789_041_600_500) == meant


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_stream_disturbs_nothing(closed: str, store: Store, home: Path) -> None:
    """Whatever the caller closed: the status is the answer's, and there is no traceback."""
    store.put("a", session("a").user("needle"))
    command = [sys.executable, "-m", "sessionindex", "search", "needle"]
    command += ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    script = f'"$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *command], env=environment(home), capture_output=True
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_an_ascii_terminal_gets_escapes(store: Store, home: Path) -> None:
    """The term is found as its bytes say, and what cannot be shown is escaped, not fatal."""
    store.put("a", session("a").user("needle 降水"))
    env = environment(home, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    ran = pipe(["search", "降水", *where], env)
    assert (ran.status, ran.err) == (0, "")
    assert "needle \\u964d\\u6c34" in ran.out


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["--branch", "abandoned"], [4]),
        (["--branch", "active", "needle"], [2]),
        (["--compacted", "hidden"], [3, 2]),
        (["--compacted", "visible"], [7, 6, 5]),
        (["--tool", "read"], [5]),
        (["--tool", "read", "--tool", "edit", "--order", "oldest"], [3, 5, 6]),
        (["--errors"], [6]),
        (["--touched", "app.py"], [5, 3]),
        (["--touched", "src/app.py", "--tool", "edit"], [3]),
        (["--touched", "/app.py", "--compacted", "hidden", "src"], [3]),
        (["--errors", "needle"], []),
    ],
)
def test_what_only_the_tree_and_the_calls_tell(
    store: Store, home: Path, arguments: list[str], lines: list[int]
) -> None:
    """--branch, --compacted, --tool, --errors and --touched, with a term or without one."""
    story = session("a").user("needle").call("edit", path="src/app.py")  # 2, 3
    fork = json.loads(story.tail(2))["id"]
    story.user("needle off the branch")  # 4
    story.entry(
        "message",
        parentId=fork,
        message={
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "app.py"}}
            ],
        },
    )  # 5
    kept = json.loads(story.tail(4))["id"]
    story.message("toolResult", toolName="edit", content="failed", isError=True)  # 6
    path = store.put("a", story.compaction("summary", keep=kept))  # 7
    ran = run(store, home, "search", *arguments)
    found = [line.removeprefix(f"{path}:").split(":")[0] for line in ran.out.splitlines()]
    assert (list(map(int, found)), ran.status, ran.err) == (lines, 0 if lines else 1, "")


def test_names_and_paths_are_read_as_their_bytes_say(store: Store, home: Path) -> None:
    """As terms are: whatever the locale made of the arguments."""
    store.put("a", session("a").call("edit", path="src/降水.py").call("道具", path="x"))
    env = environment(home, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    for arguments in (["--touched", "降水.py"], ["--tool", "道具"]):
        ran = pipe(["search", *arguments, *where], env)
        assert (ran.status, ran.err, ran.out.count("\n")) == (0, "", 1), arguments


def test_a_pipe_is_told_that_there_is_more(store: Store, home: Path) -> None:
    """The lines stay clean; stderr says that they are not all."""
    story = session("a")
    for number in range(5):
        story.user(f"needle {number}")
    store.put("a", story)
    ran = run(store, home, "search", "needle", "--limit", "2")
    assert len(ran.out.splitlines()) == 2
    assert ran.err == "sessionindex: 2 shown, there are more: --limit N, or -c for their number\n"


def test_sessions_of_a_search_come_in_the_order_asked_for(store: Store, home: Path) -> None:
    first, second = (
        store.put(name, session(name, timestamp=f"2026-01-0{day}T00:00:00Z").user("needle"))
        for name, day in (("b", 1), ("a", 2))
    )
    for order, paths in (("newest", [second, first]), ("oldest", [first, second])):
        ran = run(store, home, "search", "-l", "needle", "--order", order)
        assert ran.out.split() == paths
    assert run(store, home, "search", "-l", "needle", "--order", "path").out.split() == [
        second,
        first,
    ]
