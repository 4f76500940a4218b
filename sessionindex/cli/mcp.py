"""`sessionindex mcp`: the tools for any MCP client, and the entry of its configuration."""

from __future__ import annotations

import sys
from typing import Any, cast

import click

from sessionindex import SessionIndex, clients
from sessionindex.cli import opening, options
from sessionindex.cli.render import harmless
from sessionindex.settings import current_session

_EXAMPLES = """\b
Examples:
  sessionindex mcp --print-config claude   what to paste where
  sessionindex mcp --project my-app        a server that sees one project
"""


@click.command(epilog=_EXAMPLES, short_help="The tools for MCP clients, on stdio.")
@click.option(
    "--session", metavar="FILE", help="The running session, else PI_SESSION_FILE ('' for none)."
)
@click.option(
    "--project", "projects", multiple=True, metavar="NAME", help="Only this project (repeat)."
)
@click.option(
    "--print-config",
    "client",
    type=click.Choice(clients.CLIENTS),
    help="Print this client's entry for the server, with these options, and end.",
)
@options.root_options
def command(
    session: str | None, projects: tuple[str, ...], client: str | None, **where: Any
) -> int:
    """Serve the tools to one MCP client until it goes away.

    Clients start it themselves. It needs the package mcp: pip install 'sessionindex[mcp]'. With
    --project, what Pi's settings allow and NAME are both needed to see a session.
    """
    index = SessionIndex(
        where["root"],
        layout=where["layout"],
        index_dir=where["index_dir"],
        current_session=session,
    )
    if projects:
        index = index.seen_by(projects=projects)
    if client is not None:
        entry = clients.entry(cast(clients.Client, client), _options(session, projects, where))
        sys.stdout.write(entry.text)
        opening.say(f"belongs into {harmless(entry.place)}")
        return 0
    try:
        from sessionindex import mcp
    except ImportError as error:
        reason = f"the MCP server needs the package mcp ({error})"
        raise click.ClickException(f"{reason}: pip install 'sessionindex[mcp]'") from error
    opening.refresh_when_needed(index)
    if sys.stdin.isatty():
        opening.say("waiting for an MCP client on stdin; --print-config prints a client's entry")
    mcp.serve(index)
    return 0


def _options(session: str | None, projects: tuple[str, ...], where: dict[str, Any]) -> list[str]:
    """The options that were given, with absolute paths."""
    given = opening.root_words(where)
    if session is not None:
        given += ["--session", current_session(session) or ""]
    for project in projects:
        given += ["--project", project]
    return given
