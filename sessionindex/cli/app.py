"""The command line: which commands there are, and what click makes of them.

A command is: parse, one call of the library, print. Data goes to stdout, talk to stderr. How one
ends is the same for all (`ending`); what click raises is handled here. Commands are loaded when
they are named, so that none pays for the imports of another; a plain search never comes here.
"""

from __future__ import annotations

import importlib
from typing import Final

import click

from sessionindex.cli import ending

_COMMANDS: Final = {
    "search": "sessionindex.cli.search",
    "sessions": "sessionindex.cli.sessions",
    "entries": "sessionindex.cli.entries",
    "show": "sessionindex.cli.show",
    "overview": "sessionindex.cli.overview",
    "read": "sessionindex.cli.read",
    "find": "sessionindex.cli.find",
    "recover": "sessionindex.cli.recover",
    "index": "sessionindex.cli.index",
    "status": "sessionindex.cli.status",
    "watch": "sessionindex.cli.watch",
    "daemon": "sessionindex.cli.daemon",
    "check": "sessionindex.cli.check",
    "trim": "sessionindex.cli.trim",
    "call": "sessionindex.cli.call",
    "mcp": "sessionindex.cli.mcp",
    "pi": "sessionindex.cli.pi",
    "completion": "sessionindex.cli.completion",
    "demo": "sessionindex.cli.demo",
}


class _Commands(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(_COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], _COMMANDS, 1)
            hint = f"did you mean '{close[0]}'?" if close else f"try: search {args[0]}"
            ctx.fail(f"no such command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: sessionindex search 'connection timed out'",
)
@click.version_option(package_name="sessionindex")
def commands() -> None:
    """Find anything that was ever said in your Pi sessions, at once and exactly."""


def run(arguments: list[str] | None = None) -> int:
    """Carry out a command line; the exit status."""
    return ending.of(lambda: _by_click(arguments))


def _by_click(arguments: list[str] | None) -> int:
    try:
        status = commands.main(arguments, prog_name="sessionindex", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        return ending.failed(_usage(error), 2)
    except click.ClickException as error:
        return ending.failed(error.format_message(), 2)
    except click.Abort:
        return 130


def _usage(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "sessionindex"
    return f"{error.format_message()} ('{command} --help' tells more)"
