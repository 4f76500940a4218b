"""Sessions as stories: a builder whose bytes are those that Pi would have written.

    session("a", cwd="/r/app").user("why?").assistant("because").call("edit", path="x.py").bytes()

Entry ids, call ids and timestamps follow from the session's name and the number of the entry: one
second a line. Every entry hangs on the one before it. `raw` puts bytes there as they stand.
"""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

BEGAN = datetime(2026, 9, 10, 9, tzinfo=UTC)
CWD = "/home/dev/src/app"
PROJECT = "--home-dev-src-app--"
TOOLS = [
    "search_sessions",
    "list_sessions",
    "session_entries",
    "session_overview",
    "session_read_section",
    "session_search",
    "session_recovery_context",
]
DENIED = "session is outside the projects allowed by piRetrospect.allowedProjects"
_SURROGATE = re.compile("[\ud800-\udfff]")


def stamp(seconds: int) -> str:
    """The timestamp of so many seconds after the beginning of every story."""
    moment = BEGAN + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def encoded(value: Any) -> bytes:
    """A value as JSON.stringify writes it: raw Unicode, escapes for lone surrogates only."""
    spelled = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", spelled).encode()


class Builder:
    """A session file that grows by one line a call."""

    def __init__(self, name: str, cwd: str, header: dict[str, Any]) -> None:
        self.name = name
        self._code = zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0xFFFF
        self._end = b"\n"
        self._parent: str | None = None
        self._call: tuple[str, str] = ("unknown", "unknown")
        first = {"type": "session", "version": 3, "id": name, "timestamp": stamp(0), "cwd": cwd}
        self._lines = [encoded(first | header) + b"\n"]

    def bytes(self) -> bytes:
        return b"".join(self._lines)

    def tail(self, since: int) -> bytes:
        """What was added after the first `since` lines, header included."""
        return b"".join(self._lines[since:])

    def __len__(self) -> int:
        return len(self._lines)

    # --- lines -----------------------------------------------------------------------------------

    def raw(self, data: bytes) -> Builder:
        """Bytes as they stand, without a line end of ours."""
        self._lines.append(data)
        return self

    def line(self, data: bytes) -> Builder:
        """A whole line of these bytes."""
        return self.raw(data + self._end)

    def crlf(self) -> Builder:
        """End the lines that follow as Windows does."""
        self._end = b"\r\n"
        return self

    def entry(self, kind: str, **fields: Any) -> Builder:
        """An entry of this type; `id` and `timestamp` may be given."""
        number = len(self._lines)
        value = {
            "type": kind,
            "id": f"{self._code:04x}{number:04x}",
            "parentId": self._parent,
            "timestamp": stamp(number),
        } | fields
        self._parent = value["id"]
        return self.line(encoded(value))

    def message(self, role: str, *, at: str | None = None, **fields: Any) -> Builder:
        given = {} if at is None else {"timestamp": at}
        return self.entry("message", message={"role": role, **fields}, **given)

    # --- what people and models say --------------------------------------------------------------

    def user(self, text: str, **fields: Any) -> Builder:
        return self.message("user", content=[{"type": "text", "text": text}], **fields)

    def assistant(self, text: str, *, thinking: str | None = None, **fields: Any) -> Builder:
        blocks = [] if thinking is None else [{"type": "thinking", "thinking": thinking}]
        blocks.append({"type": "text", "text": text})
        return self.message("assistant", content=blocks, **fields)

    def call(self, tool: str, **arguments: Any) -> Builder:
        """An assistant's tool call; `result` answers the last one."""
        self._call = (tool, f"call_{self._code:04x}_{len(self._lines)}")
        block = {"type": "toolCall", "id": self._call[1], "name": tool, "arguments": arguments}
        return self.message("assistant", content=[block], stopReason="toolUse")

    def result(self, text: str, *, error: bool = False, details: Any = None) -> Builder:
        more = {} if details is None else {"details": details}
        return self.message(
            "toolResult",
            toolCallId=self._call[1],
            toolName=self._call[0],
            content=[{"type": "text", "text": text}],
            isError=error,
            **more,
        )

    def bash(self, command: str, output: str) -> Builder:
        return self.message(
            "bashExecution", command=command, output=output, exitCode=0, cancelled=False
        )

    def system(self, text: str) -> Builder:
        return self.message("system", content=text)

    def compaction(self, summary: str, *, keep: str | None = None) -> Builder:
        """A compaction that keeps from the entry `keep` on (by default nothing before it)."""
        return self.entry(
            "compaction",
            summary=summary,
            firstKeptEntryId=keep or self._parent,
            tokensBefore=1000,
        )

    def custom(self, kind: str, data: Any) -> Builder:
        return self.entry("custom", customType=kind, data=data)

    def info(self, name: str) -> Builder:
        return self.entry("session_info", name=name)


def session(name: str, *, cwd: str = CWD, **header: Any) -> Builder:
    """A story that has only its header; keywords are more fields of the header."""
    return Builder(name, cwd, header)


def put(root: Path | str, project: str, name: str, builder: Builder | bytes) -> str:
    """Write a session file and its missing folders; its path. `project` "" is a flat root."""
    path = Path(root, project, f"{name}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(builder if isinstance(builder, bytes) else builder.bytes())
    return str(path)


def append(path: str, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)
