"""`call --serve`: a real child that answers lines, whatever they hold; and one index, many callers.

Answers come in the order of the requests, so a test writes all of them before it reads any.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from build import DENIED, append, session
from scratch import Store
from terminal import environment, pipe

from sessionindex import SessionIndex
from sessionindex.errors import AccessDenied, ParameterError
from sessionindex.index.reader import Reader
from sessionindex.serve import answer


def allowing(*projects: str) -> dict[str, Any]:
    return {"piRetrospect": {"allowedProjects": list(projects)}}


class Server:
    """A child that serves a store."""

    def __init__(self, store: Store, home: Path, *options: str) -> None:
        home.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "sessionindex", "call", "--serve", *options]
        command += ["--root", str(store.root), "--index-dir", str(store.index_dir)]
        self.child = subprocess.Popen(
            command,
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, *requests: Any) -> None:
        """Each a request, or a line as it stands."""
        assert self.child.stdin is not None
        for one in requests:
            line = one if isinstance(one, bytes) else json.dumps(one).encode()
            self.child.stdin.write(line + b"\n")
        self.child.stdin.flush()

    def line(self) -> bytes:
        assert self.child.stdout is not None
        return self.child.stdout.readline()

    def ask(self, *requests: Any) -> list[dict[str, Any]]:
        self.send(*requests)
        return [json.loads(self.line()) for _ in requests]

    def end(self) -> tuple[int, bytes]:
        """Close stdin; how it ended, and what it said on stderr."""
        _, said = self.child.communicate(timeout=60)
        return self.child.returncode, said


@pytest.fixture
def server(store: Store, tmp_path: Path) -> Iterator[Server]:
    server = Server(store, tmp_path / "home")
    yield server
    server.child.kill()
    server.child.communicate()


def test_many_requests_are_answered_in_order(store: Store, server: Server) -> None:
    """All sent before any is read; the answers are those of `call`; it ends with stdin."""
    path = store.put("a", session("a").user("the needle").assistant("here"))
    calls = [
        ("list_sessions", {}),
        ("search_sessions", {"terms": ["needle"]}),
        ("session_entries", {"sessionPath": path}),
        ("session_overview", {}),
    ]
    requests = [
        {"id": number, "tool": tool, "params": params, "session": path}
        for number, (tool, params) in enumerate(calls * 25)
    ]
    answers = server.ask(*requests)
    assert [one["id"] for one in answers] == list(range(100))
    index = store.open()
    for request, one in zip(requests, answers, strict=True):
        expected = index.call(request["tool"], request["params"], session=path)
        assert one["result"] | {"coverage": 0} == expected | {"coverage": 0}
    assert server.end() == (0, b"")


def test_an_answer_comes_before_the_next_request(store: Store, server: Server) -> None:
    """Nothing waits in a buffer; and what was written meanwhile is there."""
    path = store.put("a", session("a"))
    ask = {"id": "again", "tool": "search_sessions", "params": {"terms": ["needle"]}}
    for count in range(3):
        assert len(server.ask(ask)[0]["result"]["hits"]) == count
        append(path, session("a").user(f"needle {count}").tail(1))


@pytest.mark.parametrize(
    ("line", "ident", "error"),
    [
        (b"nonsense", None, "a request must be a JSON object on one line"),
        (b"\xff\xfe{}", None, "a request must be a JSON object on one line"),
        (b"[" * 100_000, None, "a request must be a JSON object on one line"),
        (b"[1]", None, "a request must be a JSON object on one line"),
        (b"{}", None, "id must be a string or a whole number"),
        (b'{"id": true, "tool": "x"}', None, "id must be a string or a whole number"),
        (b'{"id": {}, "tool": "x"}', None, "id must be a string or a whole number"),
        (b'{"id": 1}', 1, "tool must be a string"),
        (b'{"id": 1, "tool": 2}', 1, "tool must be a string"),
        (b'{"id": 1, "tool": "x", "params": []}', 1, "params must be an object"),
        (b'{"id": 1, "tool": "x", "settings": null}', 1, "settings must be an object"),
        (b'{"id": 1, "tool": "x", "leafId": null}', 1, "leafId must be a string"),
        (b'{"id": "a", "tool": "x", "brute": 1}', "a", "unknown name in a request: brute"),
        (b'{"id": "a", "tool": "x"}', "a", "unknown tool: x"),
        (b'{"id": "\\ud83d", "tool": "x"}', "\ud83d", "unknown tool: x"),
        (
            b'{"id": 1, "tool": "list_sessions", "params": {"limit": 0}}',
            1,
            "limit must be a positive integer: 0",
        ),
        (
            b'{"id": 1, "tool": "list_sessions", "settings": {"piRetrospect": 1}}',
            1,
            "piRetrospect.allowedProjects is not a valid project allowlist",
        ),
    ],
)
def test_what_is_refused(line: bytes, ident: Any, error: str, store: Store) -> None:
    """The message is the contract's; the id is the request's where it has one."""
    assert json.loads(answer(store.index, line)) == {"id": ident, "error": error}


def test_a_bad_line_is_answered_and_the_next_one_too(store: Store, server: Server) -> None:
    """Also one that is torn by the end of stdin; blank ones are none."""
    bad, good = server.ask(b"{", {"id": 1, "tool": "list_sessions"})
    assert bad == {"id": None, "error": "a request must be a JSON object on one line"}
    assert good == {"id": 1, "result": {"sessions": [], "warnings": []}}
    assert server.child.stdin is not None
    server.child.stdin.write(b'\n \r\n{"id": 2, "tool": "list_sessions"}')
    server.child.stdin.close()
    assert json.loads(server.line())["id"] == 2
    server.child.stdin = None
    assert server.end() == (0, b"")


def test_a_bug_is_an_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(SessionIndex, "written", broken)
    got = json.loads(answer(store.index, b'{"id": 1, "tool": "list_sessions"}'))
    assert got == {"id": 1, "error": "internal error: RuntimeError"}
    assert "RuntimeError" in capsys.readouterr().err


def test_raw_is_the_files_own_bytes(store: Store, server: Server) -> None:
    """Blanks, escapes, key order and numbers as they stand in the file, on one line."""
    raw = (
        b'{"type":"message","id":"x" , "parentId":null,"timestamp":"2026-09-10T09:00:01.000Z",'
        b'"n":1.50,"message":{"content":"\\u0041\\ud83d","role":"user"}}'
    )
    path = store.put("a", session("a").line(raw))
    server.send({"id": 1, "tool": "session_entries", "params": {"sessionPath": path}})
    line = server.line()
    assert b'"raw":' + raw in line
    assert line.count(b"\n") == 1


def test_each_request_has_its_own_current_session_and_settings(
    store: Store, server: Server
) -> None:
    """One index, and nothing of one request is left for the next."""
    a = store.put("a", session("a", cwd="/r/alpha").user("needle"), "--r-alpha--")
    b = store.put("b", session("b", cwd="/r/beta").user("needle"), "--r-beta--")
    search = {"tool": "search_sessions", "params": {"terms": ["needle"]}}
    entries = {"tool": "session_entries", "params": {"sessionPath": b}}
    overview = {"tool": "session_overview", "params": {}}
    bound = {"settings": allowing("alpha")}
    free: dict[str, Any] = {"settings": {}}
    got = server.ask(
        {"id": 1, **search},
        {"id": 2, **search, "currentSession": a},
        {"id": 3, **search, **bound},
        {"id": 4, **search, **bound, "currentSession": a},
        {"id": 5, **entries, **bound},
        {"id": 6, **overview, **bound, "session": b},
        {"id": 7, **overview, **bound, "currentSession": b},
        {"id": 8, **search, **free, "currentSession": ""},
    )
    found = [sorted(h["sessionId"] for h in one["result"]["hits"]) for one in got[:4]]
    assert found == [["a", "b"], ["b"], ["a"], []]
    assert [one.get("error") for one in got[4:6]] == [DENIED, DENIED]
    assert got[6]["result"]["content"]["session"]["id"] == "b"  # its owner asks
    assert len(got[7]["result"]["hits"]) == 2


def test_options_are_what_requests_leave_out(store: Store, tmp_path: Path) -> None:
    a = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    given = ["--current-session", a, "--settings", json.dumps(allowing())]
    server = Server(store, tmp_path / "home", *given)
    ask = {"tool": "list_sessions", "params": {}}
    got = server.ask({"id": 1, **ask}, {"id": 2, **ask, "settings": {}})
    assert [len(one["result"]["sessions"]) for one in got] == [0, 1]
    assert server.end() == (0, b"")


@pytest.mark.parametrize("more", [["list_sessions"], ["--session", "x"], ["--brute"]])
def test_with_serve_requests_say_what_is_called(more: list[str], store: Store) -> None:
    ran = pipe(["call", "--serve", *more], environment(store.root.parent))
    assert ran.status == 2
    assert "with --serve, each request says what is called and of what" in ran.err


def test_the_root_may_come_later(store: Store, tmp_path: Path) -> None:
    store.root.rmdir()
    server = Server(store, tmp_path / "home")
    ask = {"id": 1, "tool": "search_sessions", "params": {"terms": ["needle"]}}
    assert server.ask(ask)[0]["result"]["warnings"] != []
    store.put("a", session("a").user("needle"))
    assert len(server.ask(ask)[0]["result"]["hits"]) == 1
    assert server.end()[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_word(number: int, store: Store, server: Server) -> None:
    server.ask({"id": 1, "tool": "list_sessions"})
    server.child.send_signal(number)
    status, said = server.end()
    assert status in (-signal.SIGTERM, 130)
    assert said.strip() == b""  # click ends the line in which ^C stands


def test_a_reader_that_went_away_ends_it_without_a_word(store: Store, server: Server) -> None:
    server.ask({"id": 1, "tool": "list_sessions"})
    assert server.child.stdout is not None and server.child.stderr is not None
    server.child.stdout.close()
    server.send({"id": 2, "tool": "list_sessions"})
    assert server.child.wait(timeout=60) == 0
    assert server.child.stderr.read() == b""
    server.child.stdout = None


# --- one index, many callers ---------------------------------------------------------------------


def test_the_index_is_opened_once_for_all_callers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a commit replaces it; whoever refreshes, all see it."""
    store.put("a", session("a").user("needle"))
    index = store.open()
    index.refresh()
    opened = []
    really = Reader.__init__

    def counted(self: Reader, *given: Any) -> None:
        opened.append(self)
        really(self, *given)

    monkeypatch.setattr(Reader, "__init__", counted)
    for number in range(5):
        seen = index.seen_by(settings={}, current_session=f"/nowhere/{number}.jsonl")
        assert seen.search("needle").total == 1
    assert len(opened) == 1
    store.put("b", session("b").user("needle"))
    index.seen_by(settings={}).refresh()
    before = len(opened)
    for seen in (index, index.seen_by(settings={}), index.seen_by(projects=["app"])):
        assert seen.search("needle").coverage.fresh == 2
    assert len(opened) == before + 1


def test_a_caller_narrows_the_bound_and_never_widens_it(store: Store) -> None:
    """What the settings allow and what the caller names are both needed, everywhere."""
    for name in ("alpha", "beta", "gamma"):
        story = session(name, cwd=f"/r/{name}").user("needle")
        store.put(name, story, f"--r-{name}--")
    index = store.open(settings=allowing("alpha", "beta"))
    seen = index.seen_by(projects=["beta", "gamma"])
    assert [hit.session_id for hit in seen.search("needle").hits] == ["beta"]
    assert [row.id for row in seen.list_sessions().sessions] == ["beta"]
    for name in ("alpha", "gamma"):
        path = str(store.root / f"--r-{name}--" / f"{name}.jsonl")
        with pytest.raises(AccessDenied):
            seen.session_entries(path)
        with pytest.raises(AccessDenied):
            seen.overview(path)
    assert seen.status().sessions == 1
    assert len(index.list_sessions().sessions) == 2
    assert len(index.seen_by(projects=["*"]).list_sessions().sessions) == 2
    assert len(index.seen_by(projects=[]).list_sessions().sessions) == 0
    assert len(seen.seen_by(settings={}).list_sessions().sessions) == 2
    for bad in (["a/b"], [""], [".."]):
        with pytest.raises(ParameterError, match="projects must be base names"):
            index.seen_by(projects=bad)


def test_callers_in_threads_get_their_own_answers(store: Store) -> None:
    paths = {n: store.put(n, session(n, cwd=f"/r/{n}").user("needle")) for n in "abcd"}
    index = store.open()
    wrong: list[str] = []

    def look(name: str) -> None:
        other = next(path for other, path in paths.items() if other != name)
        for turn in range(20):
            seen = index.seen_by(settings=allowing(name))
            found = [hit.session_id for hit in seen.search("needle").hits]
            with suppress(AccessDenied):
                seen.session_entries(other)
                wrong.append(other)
            wrong.extend(one for one in found if one != name)
            if name == "a" and turn % 5 == 0:
                index.refresh()

    threads = [threading.Thread(target=look, args=(name,)) for name in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
