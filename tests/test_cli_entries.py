"""`sessionindex entries`: a conversation on a terminal, a line an entry in a pipe, lines, JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build import Builder, append, encoded, session, stamp
from scratch import Store
from terminal import Ran, environment, pipe, terminal

COLOUR = re.compile("\x1b\\[[0-9;]*m")
EVIL = "\x7f\x9b31m\u202e"  # what JSON lets stand as itself, and a terminal may obey


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


def run(store: Store, home: Path, *arguments: str, columns: int | None = None, **env: str) -> Ran:
    """The command on the store, in a pipe or in a terminal of that width."""
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    command = ["entries", *arguments, *where]
    given = environment(home, **env)
    return terminal(command, given, columns) if columns else pipe(command, given)


def written(store: Store, home: Path, *arguments: str) -> bytes:
    """What a pipe gets, byte for byte."""
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    command = [sys.executable, "-m", "sessionindex", "entries", *arguments, *where]
    return subprocess.run(command, env=environment(home), stdout=subprocess.PIPE, check=True).stdout


def story() -> Builder:
    """Lines 2 to 8: user, assistant, call, result, typed command, compaction, name."""
    return (
        session("deploy")
        .user("Why does the deploy\nfail?")
        .assistant("It waits for the LOCK", thinking="a lock, surely")
        .call("bash", command="grep lock -r", timeout=5)
        .result("no such lock", error=True)
        .bash("git lock", "no output")
        .compaction("they talked about locks")
        .info("the lock story")
    )


def ids(lines: list[int]) -> list[str]:
    """The ids of the entries on these lines of the story."""
    rows = [json.loads(line) for line in story().bytes().splitlines()]
    return [rows[line - 1]["id"] for line in lines]


def numbers(ran: Ran) -> list[int]:
    """The line numbers of what a pipe got."""
    return [int(line.split("\t")[0]) for line in ran.out.splitlines()]


# --- in a pipe ----------------------------------------------------------------------------------


def test_a_pipe_gets_one_line_an_entry(store: Store, home: Path) -> None:
    """Line, timestamp, who, and what was said on one line, tabs between; nothing on stderr."""
    store.put("a", story())
    ran = run(store, home, "deploy")
    assert [line.split("\t") for line in ran.out.splitlines()] == [
        ["2", stamp(1), "user", "Why does the deploy fail?"],
        ["3", stamp(2), "assistant", "It waits for the LOCK"],
        ["4", stamp(3), "assistant", 'bash {"command":"grep lock -r","timeout":5}'],
        ["5", stamp(4), "toolResult", "no such lock"],
        ["6", stamp(5), "bashExecution", "git lock"],
        ["7", stamp(6), "compaction", "they talked about locks"],
        ["8", stamp(7), "session_info", "the lock story"],
    ]
    assert (ran.status, ran.err) == (0, "")
    assert run(store, home, "deploy", "--full") == ran  # it is about terminals
    store.index.refresh()
    assert run(store, home, "deploy") == run(store, home, "deploy", "--brute") == ran


OPTIONS: tuple[tuple[list[str], list[int]], ...] = (
    (["-e", "lock"], [3, 5, 6, 7, 8]),
    (["--term", "LOCK", "-s"], [3]),
    (["-e", "LOCK", "--case-sensitive"], [3]),
    (["-e", "fail", "-e", "talked"], [2, 7]),
    (["-e", "never said"], []),
    (["--role", "user", "--role", "toolResult"], [2, 5]),
    (["--role", "User"], []),
    (["--type", "compaction", "--type", "session_info"], [7, 8]),
    (["--type", "compaction", "--role", "user"], []),
    (["--id", *ids([3])], [3]),
    (["--id", *ids([3]), "--id", *ids([6])], [3, 6]),
    (["--id", ids([3])[0][:4]], []),
    (["--parent", *ids([3])], [4]),
    (["--parent", *ids([3]), "--parent", *ids([5])], [4, 6]),
    (["--lines", "3-5"], [3, 4, 5]),
    (["--lines", "3-3"], [3]),
    (["--lines", "3"], [3]),
    (["--lines", "6-"], [6, 7, 8]),
    (["--lines", "-3"], [2, 3]),
    (["--lines", "1"], []),
    (["--lines", "99-"], []),
    (["--since", stamp(5)], [6, 7, 8]),
    (["--until", stamp(2)], [2, 3]),
    (["--since", stamp(3), "--until", stamp(4)], [4, 5]),
    (["--until", "2026-09-09"], []),
    (["--until", "9999w"], []),
    (["--limit", "2"], [2, 3]),
    (["--limit", "2", "-e", "lock", "--lines", "4-"], [5, 6]),
)


@pytest.mark.parametrize(("arguments", "wanted"), OPTIONS, ids=[" ".join(o) for o, _ in OPTIONS])
def test_options(arguments: list[str], wanted: list[int], store: Store, home: Path) -> None:
    """Options narrow, values of one are alternatives; exit status 1 where nothing is left."""
    store.put("a", story())
    for brute in ([], ["--brute"]):
        ran = run(store, home, "deploy", *arguments, *brute)
        assert numbers(ran) == wanted
        assert (ran.status, ran.err) == (0 if wanted else 1, "")
        store.index.refresh()


def test_raw_is_the_file_in_a_pipe(store: Store, home: Path) -> None:
    """Byte for byte: blank space, line ends of Windows, what is no UTF-8, control characters."""
    lines = [
        b'  {"type":"x", "timestamp":"2026-01-01T00:00:00Z", "n":1.50}',
        b'{"type":"y",\r"timestamp":"2026-01-01T00:00:00Z","t":"' + EVIL.encode() + b'"}\r',
        b'{"type":"z","timestamp":"2026-01-01T00:00:00Z","t":"\xff\xc3"}',
    ]
    built = session("bytes")
    for line in lines:
        built.line(line)
    store.put("a", built)
    assert written(store, home, "bytes", "--raw") == b"".join(line + b"\n" for line in lines)
    assert written(store, home, "bytes", "--raw", "--type", "y") == lines[1] + b"\n"
    empty = run(store, home, "bytes", "--raw", "--type", "none")
    assert empty == Ran(1, "", "")


def test_json_is_what_call_answers(store: Store, home: Path) -> None:
    """Warnings in the answer, not on stderr; `raw` is written with the file's own bytes."""
    own = b'{"timestamp":"2026-01-01T00:00:00Z", "type":"x", "n":1.50, "big":123456789012345678901}'
    path = store.put("a", story().line(b"").line(b" " + own + b"\r"))
    for arguments, params in (
        ([], {}),
        (["--role", "user", "--limit", "1"], {"messageRoles": ["user"], "limit": 1}),
        (["--lines", "3-4"], {"startLineNo": 3, "endLineNo": 4}),
        (["-e", "Lock", "-s"], {"search": {"terms": ["Lock"], "caseSensitive": True}}),
    ):
        ran = run(store, home, "deploy", "--json", *arguments)
        answer = store.index.call("session_entries", {"sessionPath": path, **params})
        assert json.loads(ran.out) == answer
        assert answer["warnings"] == [
            {"lineNo": 9, "code": "invalid_json", "reason": "line is blank"}
        ]
        assert (ran.status, ran.err) == (0 if answer["entries"] else 1, "")
    assert b'"raw":' + own + b"}" in written(store, home, "deploy", "--json", "--type", "x")


# --- which session ------------------------------------------------------------------------------


def test_a_session_by_its_path_its_id_or_the_beginning_of_one(store: Store, home: Path) -> None:
    path = store.put("a", story())
    store.put("b", session("deployed").user("another"))
    for name in (path, "deploy", os.path.relpath(path)):
        assert len(numbers(run(store, home, name))) == 7, name
    assert numbers(run(store, home, "deploye")) == [2]


def test_an_ambiguous_id_is_an_error_that_names_the_paths(store: Store, home: Path) -> None:
    paths = [store.put(name, session(f"019e-{name}").user("x")) for name in ("a", "b")]
    ran = run(store, home, "019e")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "sessionindex: 2 sessions have an id like 019e:",
        *(f"  {path}" for path in paths),
    ]


def test_inside_pi_the_running_session_is_meant(store: Store, home: Path) -> None:
    """Where none is named; without one, that is said."""
    store.put("b", session("other").user("another"))
    inside = {"PI_SESSION_FILE": store.put("a", story())}
    assert run(store, home, **inside) == run(store, home, "deploy")
    assert numbers(run(store, home, "--role", "user", **inside)) == [2]
    assert numbers(run(store, home, "other", **inside)) == [2]
    outside = run(store, home)
    assert (outside.status, outside.out) == (2, "")
    assert outside.err == (
        "sessionindex: no session named, and none is running (PI_SESSION_FILE)\n"
    )


# --- refusals -----------------------------------------------------------------------------------

LINES = "--lines takes A-B, A-, -B or A"
REFUSED = (
    (["--lines", ""], LINES),
    (["--lines", "-"], LINES),
    (["--lines", "0"], LINES),
    (["--lines", "0-3"], LINES),
    (["--lines", "a-b"], LINES),
    (["--lines", "1-2-3"], LINES),
    (["--lines", "1,3"], LINES),
    (["--lines", "3-2"], "endLineNo 2 is before startLineNo 3"),
    (["--since", "someday"], "startTimestamp must be an ISO 8601 date"),
    (["--until", "someday"], "endTimestamp must be an ISO 8601 date"),
    (["--since", "2026-01-02", "--until", "2026-01-01"], "endTimestamp 2026-01-01 resolves before"),
    (["--limit", "0"], "Invalid value for '--limit'"),
    (["-e", ""], "search.terms[0] must be a non-empty string"),
    (["--role", ""], "messageRoles must be a list of non-empty strings"),
    (["--colour"], "No such option '--colour'"),
)


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_options_are_refused_before_the_session_is_looked_for(
    arguments: list[str], message: str, store: Store, home: Path
) -> None:
    """In one line, also where there is no such session; the session comes last."""
    ran = run(store, home, "nosuch", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"sessionindex: {message}") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "no session with the id nosuch"),
        ("/nosuch.jsonl", "sessionPath is not under the sessions root: /nosuch.jsonl"),
    ],
)
def test_a_session_that_is_not_there(name: str, message: str, store: Store, home: Path) -> None:
    assert run(store, home, name) == Ran(2, "", f"sessionindex: {message}\n")


# --- lines that are no entries ------------------------------------------------------------------

BLANK = "(line is blank)"
GARBLED = "(line is not valid JSON: it cannot be parsed)"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b""], f"1 line is no entry: 2 {BLANK}"),
        ([b"", b"{"], f"2 lines are no entries: 2 {BLANK}, 3 {GARBLED}"),
        ([b"", b"{", b"", b""], f"4 lines are no entries: 2 {BLANK}, 3 {GARBLED}, 4-5 {BLANK}"),
        ([b"[]"] * 1200, "1,200 lines are no entries: 2-1201 (line is not a JSON object)"),
    ],
)
def test_lines_that_are_no_entries_are_named(
    lines: list[bytes], said: str, store: Store, home: Path
) -> None:
    """In one line on stderr, whatever the filters are; the exit status knows nothing of it."""
    built = session("torn")
    for line in lines:
        built.line(line)
    store.put("a", built.user("whole"))
    for arguments, status in (([], 0), (["--raw"], 0), (["--limit", "1"], 0), (["-e", "no"], 1)):
        ran = run(store, home, "torn", *arguments)
        assert (ran.status, ran.err) == (status, f"sessionindex: {said}\n")
    assert "are no entries" not in run(store, home, "torn", "--json").err


def test_where_many_lines_are_no_entries_the_rest_is_counted(store: Store, home: Path) -> None:
    """Ten of them, or rows of neighbours, are named."""
    built = session("torn")
    for _ in range(12):
        built.line(b"").line(b"").user("whole")
    store.put("a", built)
    said = run(store, home, "torn").err
    assert said.startswith(f"sessionindex: 24 lines are no entries: 2-3 {BLANK}, 5-6 {BLANK}, ")
    assert said.endswith(f", 29-30 {BLANK}, and 4 more\n")
    assert said.count(BLANK) == 10 and said.count("\n") == 1


def test_a_note_about_the_file_is_no_line_of_it(store: Store, home: Path) -> None:
    """What is said of version 1 stands on a line of its own, and is not counted."""
    path = store.put("a", session("old", version=1).user("one"))
    note = (
        "sessionindex: session version 1: entry ids are not durable, so id and parentId are null\n"
    )
    assert run(store, home, "old").err == note
    append(path, b"\n{\n[]\n\n")
    assert run(store, home, "old").err == (
        f"{note}sessionindex: 4 lines are no entries: 3 {BLANK}, 4 {GARBLED}, "
        f"5 (line is not a JSON object), 6 {BLANK}\n"
    )


# --- on a terminal ------------------------------------------------------------------------------


def plain(ran: Ran) -> list[str]:
    return COLOUR.sub("", ran.out).splitlines()


def test_a_terminal_gets_a_conversation(store: Store, home: Path) -> None:
    """Who, when, and what was said, called and answered, as `show` prints it."""
    store.put("a", story().line(b""))
    ran = run(store, home, "deploy", columns=80)
    assert plain(ran) == [
        "     2  user  2026-09-10 09:00",
        "        Why does the deploy",
        "        fail?",
        "",
        "     3  assistant  2026-09-10 09:00",
        "        It waits for the LOCK",
        "        [thinking]",
        "        a lock, surely",
        "",
        "     4  assistant  2026-09-10 09:00",
        "        → bash",
        "          command: grep lock -r",
        "          timeout: 5",
        "",
        "     5  toolResult bash (error)  2026-09-10 09:00",
        "        no such lock",
        "",
        "     6  bashExecution  2026-09-10 09:00",
        "        git lock",
        "        no output",
        "",
        "     7  compaction  2026-09-10 09:00",
        "        they talked about locks",
        "",
        "     8  session_info  2026-09-10 09:00",
        "        the lock story",
        "",
        f"sessionindex: 1 line is no entry: 9 {BLANK}",
    ]
    assert ran.status == 0
    none = run(store, home, "deploy", "--type", "none", columns=80)
    assert (plain(none), none.status) == ([f"sessionindex: 1 line is no entry: 9 {BLANK}"], 1)


def test_an_entry_is_shown_as_it_begins_or_in_full(store: Store, home: Path) -> None:
    """Twelve rows of a text, 400 characters of a row; with --full all of it."""
    rows = [f"row {number}" for number in range(1, 15)]
    store.put("a", session("long").user("\n".join(rows)).user("x" * 500))
    head = "     {}  user  2026-09-10 09:00"
    assert plain(run(store, home, "long", columns=80)) == [
        head.format(2),
        *(f"        {row}" for row in rows[:12]),
        "        … 2 more lines",
        "",
        head.format(3),
        f"        {'x' * 400}…",
        "",
    ]
    assert plain(run(store, home, "long", "--full", columns=80)) == [
        head.format(2),
        *(f"        {row}" for row in rows),
        "",
        head.format(3),
        f"        {'x' * 500}",
        "",
    ]


def test_colours_are_for_terminals(store: Store, home: Path) -> None:
    """Unless they are asked for or refused."""
    store.put("a", story())

    def is_coloured(*arguments: str, columns: int | None = 80, **env: str) -> bool:
        return "\x1b[" in run(store, home, "deploy", *arguments, columns=columns, **env).out

    assert is_coloured() and is_coloured("--color", "always", NO_COLOR="1")
    assert not is_coloured("--color", "never") and not is_coloured(NO_COLOR="1")
    assert not is_coloured(columns=None) and not is_coloured("--raw")


def test_raw_on_a_terminal_is_harmless(store: Store, home: Path) -> None:
    """The same lines, each control character as a visible one; what is no UTF-8 too."""
    line = b'{"type":"x",\r"timestamp":"2026-01-01T00:00:00Z","t":"%s\xff"}\r' % EVIL.encode()
    store.put("a", session("evil").line(line).user("plain"))
    shown = run(store, home, "evil", "--raw", columns=80).out.splitlines()
    assert shown[0] == (
        '{"type":"x",␍"timestamp":"2026-01-01T00:00:00Z","t":"␡\ufffd31m\ufffd\ufffd"}␍'
    )
    assert shown[1].encode() == session("evil").line(line).user("plain").tail(2).rstrip()


def test_control_characters_never_reach_a_terminal(store: Store, home: Path) -> None:
    """In no way of showing entries, whatever a session holds; nor in what is said of them."""
    bad = f"\x1b]0;owned\x07{EVIL}\x00\t\r"
    entry = {"type": f"t{bad}", "id": bad, "timestamp": stamp(9), "message": {"text": bad}}
    built = session("evil").user(f"{bad} said").assistant(bad, thinking=bad).call(bad, **{bad: bad})
    store.put("a", built.result(bad).bash(bad, bad).info(bad).line(encoded(entry)))
    for arguments in ([], ["--full"], ["--raw"], ["--json"], ["-e", bad.replace("\x00", "")]):
        for columns in (80, None):
            if arguments == ["--raw"] and columns is None:
                continue  # a program asked for the bytes
            ran = run(store, home, "evil", *arguments, columns=columns, NO_COLOR="1")
            assert ran.status in (0, 1), ran
            assert not set(ran.out + ran.err) & set("\x1b\x07\x7f\x9b\u202e\x00\r"), arguments
    refused = run(store, home, "evil\x1b]0;owned\x07", columns=80)
    assert refused.status == 2 and "\x1b" not in refused.out
