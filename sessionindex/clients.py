"""The entry of the MCP server in the configuration of a client, to be pasted where it belongs.

Goal: decide everything, touch nothing. Every path is absolute: clients start servers in folders of
their own choice and with few variables. The program is this Python; nothing is looked up in PATH,
and no module is taken from the folder in which it happens to run (`-P`). Of the environment, what
decides where things are is written down, where it is set.

`pi`, `claude` and `vscode` want JSON, each under its own name, `codex` wants TOML.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sessionindex import settings
from sessionindex.errors import ParameterError

Client = Literal["pi", "claude", "codex", "vscode"]
CLIENTS: Final[tuple[Client, ...]] = ("pi", "claude", "codex", "vscode")
NAME: Final = "sessionindex"


@dataclass(frozen=True, slots=True)
class Entry:
    """The text of an entry, and where it belongs."""

    text: str
    place: str


def entry(
    client: Client,
    options: Sequence[str],
    *,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Entry:
    """The entry of `sessionindex mcp` with these options, whose paths are absolute already.

    Raises ParameterError for what no configuration can hold.
    """
    env = os.environ if env is None else env
    command = os.path.abspath(sys.executable) if python is None else python
    args = ["-P", "-m", "sessionindex", "mcp", *options]
    server: dict[str, Any] = {"command": command, "args": args}
    known = settings.surroundings(env, cwd=cwd)
    for text in (command, *args, *known.values()):
        if not text.isprintable():
            raise ParameterError(f"a name like this cannot be written down: {text!a}")
    if known:
        server["env"] = known
    match client:
        case "pi":
            folder = settings.agent_dir(env, cwd=cwd)
            return Entry(_json("mcpServers", server), os.path.join(folder, "mcp.json"))
        case "claude":
            place = ".mcp.json of a project, or mcpServers of ~/.claude.json"
            return Entry(_json("mcpServers", {"type": "stdio", **server}), place)
        case "vscode":
            place = ".vscode/mcp.json of a folder, or the user's mcp.json"
            return Entry(_json("servers", {"type": "stdio", **server}), place)
        case "codex":
            return Entry(_toml(server), "~/.codex/config.toml")


def _json(under: str, server: Mapping[str, Any]) -> str:
    return json.dumps({under: {NAME: server}}, indent=2) + "\n"


def _toml(server: Mapping[str, Any]) -> str:
    lines = [f"[mcp_servers.{NAME}]"]
    lines.append(f"command = {_quoted(server['command'])}")
    lines.append(f"args = [{', '.join(map(_quoted, server['args']))}]")
    if "env" in server:
        lines.append(f"\n[mcp_servers.{NAME}.env]")
        lines += [f"{name} = {_quoted(value)}" for name, value in server["env"].items()]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML, which for what can be printed is that of JSON."""
    return json.dumps(text, ensure_ascii=False)
