"""`sessionindex call`: any tool by its name, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import click

from sessionindex.cli import options
from sessionindex.errors import ParameterError
from sessionindex.wire.output import dumps


@click.command(
    epilog="""Example: sessionindex call search_sessions '{"terms": ["ETIMEDOUT"]}'""",
    short_help="A tool by its name, with JSON.",
)
@click.argument("tool")
@click.argument("params", default="{}", metavar="[JSON|-]")
@click.option("--session", metavar="FILE", help="The session that a recovery tool reads.")
@click.option("--leaf", metavar="ID", help="Its leaf (else the last entry).")
@click.option("--tool-call-id", metavar="ID", help="The call that is running now.")
@click.option("--current-session", metavar="FILE", help="The running session ('' for none).")
@click.option("--settings", metavar="JSON", help="Pi's effective settings (else its files).")
@click.option("--brute", is_flag=True, help="From the files alone, without the index.")
@options.root_options
def command(
    tool: str,
    params: str,
    session: str | None,
    leaf: str | None,
    tool_call_id: str | None,
    current_session: str | None,
    settings: str | None,
    brute: bool,
    root: str | None,
    layout: str | None,
    index_dir: str | None,
) -> int:
    """Call TOOL with the parameters of its contract (- reads them from stdin)."""
    text = sys.stdin.read() if params == "-" else os.fsencode(params).decode("utf-8", "replace")
    given = json_object("the parameters", text)
    index = options.opened(
        root,
        layout,
        index_dir,
        settings=None if settings is None else json_object("--settings", settings),
        current_session=current_session,
    )
    options.refresh_when_needed(index)
    answer = index.written(
        tool, given, session=session, leaf_id=leaf, tool_call_id=tool_call_id, brute=brute
    )
    sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
    return 0


def json_object(what: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{what} must be a JSON object") from error
    if not isinstance(value, dict):
        raise ParameterError(f"{what} must be a JSON object")
    return value
