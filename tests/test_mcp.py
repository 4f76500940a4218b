"""The MCP server as a client sees it: the SDK's own client, over stdio, on the sample store.

The client refuses structured content that is not what the tool's output schema says.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from build import DENIED, TOOLS, session
from jsonschema import Draft202012Validator
from mcp import ClientSession, StdioServerParameters, stdio_client, types
from scratch import Store
from terminal import environment

import sessionindex
from sessionindex import mcp as server
from sessionindex.contracts.session_search import MAX_QUERY
from sessionindex.wire import listing, schemas
from sessionindex.wire.entries import SHAPES as ENTRIES
from sessionindex.wire.search import SHAPES as SEARCH

SAMPLE = Path(sessionindex.__file__).parent / "sample"
STATION = "2026-05-14T09-12-00-000Z_019e2b1c-0f3a-7c55-9d20-6b1f5a2c9001.jsonl"


@dataclass
class Client:
    """A session of the SDK's client."""

    session: ClientSession
    started: types.InitializeResult
    tools: dict[str, types.Tool] = field(default_factory=dict)
    checks: dict[str, tuple[Draft202012Validator, ...]] = field(default_factory=dict)

    async def call(self, name: str, **params: Any) -> dict[str, Any]:
        """The structured answer, after it was found to be right in every way."""
        result = await self.session.call_tool(name, params)
        assert not result.is_error, result.content
        assert isinstance(result.content[0], types.TextContent)
        told = result.structured_content
        assert json.loads(result.content[0].text) == told
        asked, answered = self.checks[name]
        asked.validate(params)
        answered.validate(told)
        most = params.get("maxBytes", 20_000)
        if name in TOOLS[:3]:
            assert len(result.content[0].text.encode()) <= most
        assert isinstance(told, dict)
        return told

    async def refusal(self, name: str, **params: Any) -> str:
        """The message of a tool error."""
        result = await self.session.call_tool(name, params)
        assert result.is_error and result.structured_content is None
        assert isinstance(result.content[0], types.TextContent)
        return result.content[0].text

    async def pages(self, name: str, rows: str, **params: Any) -> list[list[dict[str, Any]]]:
        """The rows of all pages."""
        found, cursor = [], {}
        while True:
            told = await self.call(name, **params, **cursor)
            found.append(told[rows])
            if told["nextCursor"] is None:
                return found
            assert told[rows]
            cursor = {"cursor": told["nextCursor"]}


Story = Callable[[Client], Coroutine[Any, Any, None]]


@dataclass
class Home:
    """Somebody's home, with the sessions that are in it."""

    path: Path
    root: Path

    @asynccontextmanager
    async def client(self, *options: str, **env: str) -> AsyncIterator[Client]:
        args = ["-P", "-m", "sessionindex", "mcp", "--root", str(self.root), *options]
        params = StdioServerParameters(
            command=sys.executable, args=args, env=environment(self.path, **env)
        )
        with open(self.path / "stderr", "w") as errlog:
            async with stdio_client(params, errlog) as streams, ClientSession(*streams) as one:
                client = Client(one, await one.initialize())
                for tool in (await one.list_tools()).tools:
                    client.tools[tool.name] = tool
                    both = (tool.input_schema, tool.output_schema or {})
                    client.checks[tool.name] = tuple(map(Draft202012Validator, both))
                yield client
        assert (self.path / "stderr").read_text() == ""

    def tell(self, story: Story, *options: str, **env: str) -> None:
        """Run a story with a client of its own."""

        async def whole() -> None:
            async with self.client(*options, **env) as client:
                await story(client)

        asyncio.run(whole())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Of somebody whose only sessions are the sample."""
    (tmp_path / "home").mkdir()
    shutil.copytree(SAMPLE, tmp_path / "home" / "sessions")
    return Home(tmp_path / "home", tmp_path / "home" / "sessions")


@pytest.fixture
def stored(store: Store, tmp_path: Path) -> Home:
    """Of somebody whose sessions are those of the scratch store."""
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home", store.root)


def station(home: Home) -> str:
    return str(next(home.root.rglob(STATION)))


def test_what_a_client_is_told(home: Home) -> None:
    """Seven tools, described, bounded, read-only and closed; what the server is for, and a word
    of warning about its results."""

    async def story(client: Client) -> None:
        assert client.started.server_info.name == "sessionindex"
        first, second, *_ = (client.started.instructions or "").splitlines()
        assert "past Pi coding sessions" in first and len(first) < 120
        assert "untrusted text of past sessions" in second
        assert list(client.tools) == TOOLS
        for tool in client.tools.values():
            hints = tool.annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (True, False)
            assert (hints.idempotent_hint, hints.open_world_hint) == (True, False)
            assert tool.description and len(tool.description) < 400
            for schema in (tool.input_schema, tool.output_schema):
                assert schema is not None
                Draft202012Validator.check_schema(schema)
            assert tool.input_schema["additionalProperties"] is False
            assert all("description" in one for one in tool.input_schema["properties"].values())

    home.tell(story)


def test_every_tool_answers(home: Home) -> None:
    async def story(client: Client) -> None:
        found = await client.call("search_sessions", terms=["three attempts"])
        assert found["hits"] == []  # only in the session that is running
        found = await client.call(
            "search_sessions", terms=["three attempts"], includeCurrentSession=True
        )
        assert {hit["sessionPath"] for hit in found["hits"]} == {path}
        assert found["coverage"]["new"] == 0  # the first search made the index
        rows = (await client.call("list_sessions", sortDirection="desc"))["sessions"]
        assert [row["cwd"] for row in rows] == [
            "/home/ada/code/recipes",
            "/home/ada/code/weather-station",
        ]
        rows = (await client.call("session_entries", sessionPath=path, includeRaw=True))["entries"]
        assert [row["lineNo"] for row in rows] == list(range(2, 12))
        assert all(row["raw"]["id"] == row["id"] for row in rows)
        told = await client.call("session_overview")
        assert told["content"]["counts"]["sections"] == 3
        section = told["content"]["sections"][1]["id"]
        told = await client.call("session_read_section", section_id=section)
        assert "stops sending readings" in told["content"]
        told = await client.call("session_search", query="three attempts")
        assert told["content"]["totalMatches"] > 0
        told = await client.call("session_recovery_context")
        assert told["content"]["modifiedFiles"] == ["src/uploader.py"]
        told = await client.call("session_read_section", section_id="section:none")
        assert told["details"]["found"] is False
        told = await client.call("session_overview", cursor="garbled")
        assert told["details"]["cursorValid"] is False

    path = station(home)
    home.tell(story, "--session", path)


def test_the_environment_names_the_running_session(home: Home) -> None:
    async def story(client: Client) -> None:
        assert (await client.call("session_overview"))["details"]["entryCount"] == 10

    home.tell(story, PI_SESSION_FILE=station(home))


def test_without_a_session_the_recovery_tools_say_what_to_do(home: Home) -> None:
    async def story(client: Client) -> None:
        for name in TOOLS[3:]:
            told = await client.call(name, **({"query": "x"} if name == "session_search" else {}))
            assert "sessionindex mcp --session FILE" in told["content"]

    home.tell(story)


def test_errors_are_the_contracts(home: Home) -> None:
    """Tool errors with the exact message, in the contract's order; the server goes on."""

    async def story(client: Client) -> None:
        for name, params, message in (
            ("search_sessions", {}, "terms must be a list of non-empty strings"),
            ("search_sessions", {"terms": ["x"], "nope": 1}, "unknown parameter: nope"),
            ("search_sessions", {"terms": ["x"], "includeRaw": True}, "unknown parameter"),
            ("search_sessions", {"terms": ["x"], "cursor": "x"}, "Invalid or stale search_sessio"),
            ("list_sessions", {"limit": 0}, "limit must be a positive integer: 0"),
            ("list_sessions", {"cursor": "x"}, "Invalid or stale list_sessions cursor"),
            ("list_sessions", {"maxBytes": 1999}, "maxBytes must be an integer from 2000 to"),
            ("list_sessions", {"maxBytes": True}, "maxBytes must be an integer from 2000 to"),
            ("session_entries", {}, "sessionPath must be a non-empty string"),
            ("session_entries", {"sessionPath": path, "limit": 1.5}, "limit must be a positive"),
            ("session_entries", {"sessionPath": path, "limit": 1e9 + 0.5}, "limit must be a posit"),
            ("session_entries", {"sessionPath": path, "includeRaw": 1}, "includeRaw must be true"),
            ("session_entries", {"sessionPath": path, "cursor": "x"}, "Invalid or stale session_e"),
            ("session_entries", {"sessionPath": "/etc/passwd"}, "sessionPath is not under the"),
            ("session_overview", {"scope": "x"}, "scope must be one of active, all"),
            ("mark_steering", {"text": "x"}, "unknown tool: mark_steering"),
        ):
            told = await client.refusal(name, **params)
            assert told.startswith(message), (name, params, told)

    path = station(home)
    home.tell(story, "--session", path)


def test_a_project_narrows_the_bound(home: Home) -> None:
    """Together with the settings, which are read anew for each call."""

    async def story(client: Client) -> None:
        cwds = [row["cwd"] for row in (await client.call("list_sessions"))["sessions"]]
        assert cwds == ["/home/ada/code/recipes"]
        assert (await client.call("search_sessions", terms=["uploader"]))["hits"] == []
        assert await client.refusal("session_entries", sessionPath=station(home)) == DENIED
        agent = home.path / ".pi" / "agent"
        agent.mkdir(parents=True)
        allowed = {"piRetrospect": {"allowedProjects": ["weather-station"]}}
        (agent / "settings.json").write_text(json.dumps(allowed))
        assert (await client.call("list_sessions"))["sessions"] == []
        (agent / "settings.json").write_text("{")
        broken = "piRetrospect.allowedProjects is not a valid project allowlist"
        assert await client.refusal("list_sessions") == broken

    home.tell(story, "--project", "recipes")


def test_pages_deliver_every_row_once(store: Store, stored: Home) -> None:
    """Whatever the page holds, of all three tools, and never more bytes than asked for."""
    for number in range(20):
        story = session(f"s{number:02}", timestamp=f"2026-09-{number % 9 + 10}T00:00:00Z")
        for size in range(6):
            story.user("needle " + "wörter " * (number * size % 90)).assistant("yes")
        store.put(f"s{number:02}", story)

    async def tell(client: Client) -> None:
        for most in (2000, 3000, 1_000_000):
            pages = await client.pages("list_sessions", "sessions", sortBy="id", maxBytes=most)
            assert [row["id"] for page in pages for row in page] == [f"s{n:02}" for n in range(20)]
            assert (len(pages) == 1) == (most == 1_000_000)
            pages = await client.pages(
                "list_sessions", "sessions", sortDirection="desc", limit=17, maxBytes=most
            )
            whole = await client.call("list_sessions", sortDirection="desc", limit=17)
            assert [row for page in pages for row in page][:9] == whole["sessions"][:9]
            assert sum(map(len, pages)) == 17
        path = str(store.root / "--home-dev-src-app--" / "s19.jsonl")
        for most in (2000, 20_000, 1_000_000):
            for raw in (False, True):
                params = {"sessionPath": path, "maxBytes": most, "includeRaw": raw}
                pages = await client.pages("session_entries", "entries", **params)
                assert [row["lineNo"] for page in pages for row in page] == list(range(2, 14))
                pages = await client.pages(
                    "session_entries", "entries", **params, messageRoles=["user"], limit=5
                )
                lines = [row["lineNo"] for page in pages for row in page]
                assert lines == list(range(2, 12, 2))
        for most in (2000, 20_000):
            pages = await client.pages("search_sessions", "hits", terms=["needle"], maxBytes=most)
            places = [(hit["sessionPath"], hit["lineNo"]) for page in pages for hit in page]
            assert len(places) == len(set(places)) == 120

    stored.tell(tell)


def test_a_text_that_alone_is_longer_is_cut(store: Store, stored: Home) -> None:
    """Between characters, and said; the row after it is on the next page, whole."""
    text = "wörter 会議 " * 3000
    path = store.put("a", session("a").user("before").user(text).user("after"))

    async def tell(client: Client) -> None:
        first, second, third = await client.pages(
            "session_entries", "entries", sessionPath=path, maxBytes=5000
        )
        assert [row["text"] for row in (*first, *third)] == ["before", "after"]
        [row] = second
        assert row["textTruncated"] is True
        assert text.startswith(row["text"]) and len(row["text"].encode()) > 4000
        [[_, row, _]] = await client.pages(
            "session_entries", "entries", sessionPath=path, maxBytes=1_000_000
        )
        assert row["text"] == text and "textTruncated" not in row
        _, [row], _ = await client.pages(
            "session_entries", "entries", sessionPath=path, maxBytes=60_000, includeRaw=True
        )
        assert row["rawOmitted"] is True and row["text"] == text

    stored.tell(tell)


def test_a_cursor_of_something_else_is_refused(store: Store, stored: Home) -> None:
    """Of other parameters, of another tool, of a line that was rewritten."""
    story = session("a")
    for number in range(40):
        story.user(f"needle {number} " + "x" * 100)
    path = store.put("a", story)
    refused = "Invalid or stale session_entries cursor for this question."

    async def tell(client: Client) -> None:
        ask = {"sessionPath": path, "maxBytes": 2000}
        cursor = (await client.call("session_entries", **ask))["nextCursor"]
        again = ask | {"cursor": cursor}
        assert await client.refusal("session_entries", **again, types=["message"]) == refused
        assert "cursor" in await client.refusal("list_sessions", cursor=cursor)
        wider = await client.call("session_entries", **again | {"maxBytes": 1_000_000})
        assert wider["entries"][-1]["lineNo"] == 41
        store.put("a", story.bytes().replace(b"xxxx", b"yyyy"))
        assert await client.refusal("session_entries", **again) == refused

    stored.tell(tell)


def test_what_no_message_can_hold(store: Store, stored: Home) -> None:
    """Lone surrogates, lines nested deep, runs below runs, many warnings: an answer."""
    deep = b"[" * 300 + b"]" * 300
    story = session("a").line(
        b'{"type":"message","id":"x","parentId":null,"timestamp":"2026-09-10T09:00:01.000Z",'
        b'"message":{"role":"user","content":"needle \\ud83d half"},"deep":' + deep + b"}"
    )
    for _ in range(400):
        story.line(b"no JSON")
    path = store.put("a", story)
    folder = store.root / "--home-dev-src-app--" / "a"
    for level in range(70):
        folder = folder / ("run" if level else "forks")
        folder.mkdir(parents=True)
        (folder / "session.jsonl").write_bytes(session(f"r{level}").user("x").bytes())
        folder = folder / "session"

    async def tell(client: Client) -> None:
        told = await client.call("session_entries", sessionPath=path, includeRaw=True)
        [row] = told["entries"]
        assert row["text"] == "needle \ufffd half" and row["rawOmitted"] is True
        assert 0 < len(told["warnings"]) < 400
        assert len(told["warnings"]) + told["omittedWarnings"] == 400
        hits = (await client.call("search_sessions", terms=["needle"]))["hits"]
        assert hits[0]["snippet"] == "needle \ufffd half"
        [row] = (await client.call("list_sessions", maxBytes=1_000_000))["sessions"]
        assert row["id"] == "a"

    stored.tell(tell)


def test_delegated_runs_that_do_not_fit_are_counted(store: Store, stored: Home) -> None:
    path = Path(store.put("a", session("a").user("x")))
    runs = path.with_suffix("") / "forks"
    runs.mkdir(parents=True)
    for number in range(100):
        (runs / f"run-{number:02}.jsonl").write_bytes(session(f"r{number}").user("x").bytes())

    async def tell(client: Client) -> None:
        [row] = (await client.call("list_sessions", maxBytes=3000))["sessions"]
        assert 0 < len(row["subagentSessions"]) < 20
        assert len(row["subagentSessions"]) + row["omittedSubagentSessions"] == 100
        [row] = (await client.call("list_sessions", maxBytes=100_000))["sessions"]
        assert len(row["subagentSessions"]) == 100 and "omittedSubagentSessions" not in row

    stored.tell(tell)


def test_schemas_name_what_the_library_takes() -> None:
    """No parameter more and none less, in the contract's order, and the same bounds."""
    properties = {tool.name: tool.parameters["properties"] for tool in schemas.TOOLS}
    assert list(properties["search_sessions"]) == list(SEARCH)
    assert list(properties["list_sessions"]) == list(listing.SHAPES)
    assert list(properties["session_entries"]) == list(ENTRIES)
    assert properties["session_search"]["query"]["maxLength"] == MAX_QUERY


def test_an_error_that_quotes_what_no_message_can_hold(store: Store) -> None:
    result = server.called(store.index, "list_sessions", {"startTimestamp": "\ud83d"})
    assert result.is_error
    assert result.model_dump_json().count("\ufffd") == 1


def test_a_bug_is_a_tool_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(server, "_answer", broken)
    result = server.called(store.index, "list_sessions", {})
    assert result.is_error
    assert "RuntimeError" in capsys.readouterr().err


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}}
HELLO["clientInfo"] = {"name": "test", "version": "1"}


@pytest.mark.parametrize("how", ["stdin", "SIGTERM", "SIGINT", "stdout"])
def test_it_ends_without_a_word(how: str, home: Home) -> None:
    """When its client goes away, in whatever way; stdout held nothing but the protocol."""
    child = subprocess.Popen(
        [sys.executable, "-m", "sessionindex", "mcp", "--root", str(home.root)],
        env=environment(home.path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin and child.stdout and child.stderr
    with child.stdin, child.stdout, child.stderr:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        child.stdin.write(json.dumps(hello).encode() + b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["id"] == 1
        if how == "stdin":
            child.stdin.close()
        elif how == "stdout":
            child.stdout.close()
            child.stdin.write(json.dumps(hello | {"id": 2, "method": "ping"}).encode() + b"\n")
            child.stdin.flush()
        else:
            child.send_signal(signal.Signals[how])
        assert child.wait(timeout=30) in (0, -signal.SIGTERM, -signal.SIGINT, -signal.SIGPIPE)
        assert child.stderr.read() == b""
