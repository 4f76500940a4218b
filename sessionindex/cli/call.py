"""`sessionindex call`: any tool by its name, JSON in, JSON out; once, or a line each."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.errors import ParameterError
from sessionindex.wire.output import dumps

_EXAMPLES = """\b
Examples:
  sessionindex call search_sessions '{"terms": ["ETIMEDOUT"]}'
  echo '{"id": 1, "tool": "list_sessions", "params": {}}' | sessionindex call --serve
"""


@click.command(epilog=_EXAMPLES, short_help="A tool by its name, with JSON.")
@click.argument("tool", required=False)
@click.argument("params", default="{}", metavar="[JSON|-]")
@click.option("--session", metavar="FILE", help="The session that a recovery tool reads.")
@click.option("--leaf", metavar="ID", help="Its leaf (else the last entry).")
@click.option("--tool-call-id", metavar="ID", help="The call that is running now.")
@click.option("--current-session", metavar="FILE", help="The running session ('' for none).")
@click.option("--settings", metavar="JSON", help="Pi's effective settings (else its files).")
@click.option("--brute", is_flag=True, help="From the files alone, without the index.")
@click.option(
    "--serve",
    is_flag=True,
    help="Answer JSON lines on stdin, {id, tool, params, …}, until it ends.",
)
@options.root_options
def command(
    tool: str | None,
    params: str,
    session: str | None,
    leaf: str | None,
    tool_call_id: str | None,
    current_session: str | None,
    settings: str | None,
    brute: bool,
    serve: bool,
    **where: Any,
) -> int:
    """Call TOOL with the parameters of its contract (- reads them from stdin).

    With --serve each line of stdin is a call, {id, tool, params, session?, leafId?, toolCallId?,
    currentSession?, settings?}, and is answered on a line, {id, result} or {id, error}.
    """
    known: dict[str, Any] = {
        "settings": None if settings is None else json_object("--settings", settings),
        "current_session": current_session,
    }
    if serve:
        if brute or any(one is not None for one in (tool, session, leaf, tool_call_id)):
            raise click.UsageError("with --serve, each request says what is called and of what")
        return _serve(SessionIndex(where["root"], **_where(where), **known))
    if tool is None:
        raise click.UsageError("Missing argument 'TOOL'.")
    text = sys.stdin.read() if params == "-" else os.fsencode(params).decode("utf-8", "replace")
    given = json_object("the parameters", text)
    index = opening.opened(where["root"], **_where(where), **known)
    opening.refresh_when_needed(index)
    answer = index.written(
        tool, given, session=session, leaf_id=leaf, tool_call_id=tool_call_id, brute=brute
    )
    sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
    return 0


def _serve(index: SessionIndex) -> int:
    """The root need not be there yet: each request is answered for itself."""
    from sessionindex.serve import serve

    opening.refresh_when_needed(index)
    serve(index, sys.stdin.buffer, sys.stdout.buffer)
    return 0


def _where(where: dict[str, Any]) -> dict[str, Any]:
    return {"layout": where["layout"], "index_dir": where["index_dir"]}


def json_object(what: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{what} must be a JSON object") from error
    if not isinstance(value, dict):
        raise ParameterError(f"{what} must be a JSON object")
    return value
