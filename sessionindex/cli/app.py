"""The command line: which commands there are, and how each ends.

A command is: parse, one call of the library, print. Data goes to stdout, talk to stderr. Exit
status 0 is a match (or done), 1 is none, 2 an error; each error of this package knows its own.
Commands are loaded when they are named, so that none pays for the imports of another.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from typing import Final

import click

from sessionindex.errors import SessionIndexError

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
    _prepare_streams()
    try:
        status = commands.main(arguments, prog_name="sessionindex", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except SessionIndexError as error:
        return _failed(str(error), error.exit_status)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        return _failed(_usage(error), 2)
    except click.ClickException as error:
        return _failed(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (BrokenPipeError, SystemExit):  # click makes the first into the second
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0  # whoever reads us has read enough
    except OSError as error:
        if error.filename is None and error.errno in _OUTPUT:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _failed(f"cannot write the output: {os.strerror(error.errno)}", 2)
        return _bug()
    except Exception:
        return _bug()


_OUTPUT: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF)


def _prepare_streams() -> None:
    """Have all three streams, whatever was closed, and none that fails for a character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace" if mode == "w" else "surrogateescape")


def _bug() -> int:
    """What nobody thought of: its traceback, and a status that no script takes for `no match`."""
    import traceback

    with contextlib.suppress(OSError):
        traceback.print_exc()
    return 2


def _usage(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx else "sessionindex"
    return f"{error.format_message()} ('{command} --help' tells more)"


def _failed(message: str, status: int) -> int:
    from sessionindex.cli.render import harmless

    with contextlib.suppress(OSError):
        print(f"sessionindex: {harmless(message, lines=True)}", file=sys.stderr)
        sys.stderr.flush()
    return status
