"""What the commands about one session share: which session, how its tool is asked, how to go on.

They are `overview`, `read`, `find` and `recover`, a recovery tool each. `--json` prints the answer
of the tool; for people the same question is put to the library, which raises where the tool only
has a text to say.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from sessionindex import SessionIndex, layout
from sessionindex.cli import opening, options
from sessionindex.cli.render import Style, harmless, local_time, project, shortened, width
from sessionindex.errors import SessionIndexError
from sessionindex.files import Changed, identity
from sessionindex.model import Session
from sessionindex.settings import current_session
from sessionindex.wire.output import dumps

Command = TypeVar("Command", bound=Callable[..., Any])

_SHORT: Final = 13  # of an id that is a UUID: the 48 bits of its time


def session_options(command: Command) -> Command:
    """SESSION, and what all four commands take."""
    for option in (
        options.root_options,
        options.color_option,
        click.option("--brute", is_flag=True, help="Read the file, without the index."),
        click.option("--json", "as_json", is_flag=True, help="The answer as JSON."),
        click.option("--leaf", metavar="ID", help="The entry where the branch ends (the last)."),
        click.option("--all", "every", is_flag=True, help="The same as --scope all."),
        click.option(
            "--scope",
            type=click.Choice(["active", "all"]),
            help="The branch that ends in the leaf (active), or all branches.",
        ),
        click.argument("session", required=False, metavar="[SESSION]"),
    ):
        command = option(command)
    return command


def opened(asked: dict[str, Any]) -> SessionIndex:
    """The index to ask; without a SESSION there has to be a current one, wherever that lies."""
    where = (asked["root"], asked["layout"], asked["index_dir"])
    if asked["session"] is not None:
        return opening.opened(*where)
    if current_session(None) is None:
        raise click.UsageError(
            "no session named, and none is running (PI_SESSION_FILE):"
            " name one, by a path or an id that 'sessionindex sessions' lists"
        )
    return SessionIndex(where[0], layout=where[1], index_dir=where[2])


def params(asked: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The parameters of a tool: the scope, and what was given."""
    if asked["every"] and asked["scope"] == "active":
        raise click.UsageError("--all and --scope active exclude each other")
    scope = "all" if asked["every"] else asked["scope"]
    given = {"scope": scope, **given}
    return {name: value for name, value in given.items() if value is not None}


def how(asked: dict[str, Any]) -> dict[str, Any]:
    """What is not a parameter of a tool: the session, its leaf, and whether by the index."""
    return {"session": asked["session"], "leaf_id": asked["leaf"], "brute": asked["brute"]}


def print_answer(
    index: SessionIndex, tool: str, given: dict[str, Any], asked: dict[str, Any]
) -> int:
    """Print what the tool answers, whatever it is; the exit status."""
    answer = index.call(tool, given, **how(asked))
    sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
    details = answer["details"]
    if details.get("cursorValid") is False:
        return 2
    return 0 if details.get("matchCount" if tool == "session_search" else "entryCount") else 1


def header(index: SessionIndex, session: str | None) -> Session | None:
    """The header of a session that was just read, where it has all that listing asks for."""
    try:
        path = index.path_of(session)
        head = layout.read_header(path, identity(os.lstat(path)))
    except (SessionIndexError, Changed, OSError, ValueError):
        return None
    return head if isinstance(head, Session) else None


def heading(
    head: Session | None, asked: dict[str, Any], style: Style, name: str | None = None
) -> str:
    """Which session it is, on one line: project, when it began, its id, and its name."""
    named = harmless(name or "")
    if head is None:
        named = named or harmless(asked["session"] or "the current session")
        return style.strong(shortened(named, width()))
    where, when = shortened(harmless(project(head.cwd)), width() // 3), local_time(head.timestamp)
    ident = harmless(head.id)
    room = width() - _most(where) - len(when) - 4
    if _most(ident) + _most(named) + 2 > room:
        ident = ident[: min(_SHORT, room)]  # still names it, if no other begins so
    room -= _most(ident) + 2
    told = shortened(named, room) if room > 8 else ""
    return "  ".join(filter(None, (style.strong(where), when, style.place(ident), told)))


def _most(text: str) -> int:
    """Columns that a text may take."""
    return len(text) if text.isascii() else 2 * len(text)


def counted(*counts: tuple[int, str, str]) -> str:
    """Numbers with their names, those that are none left out."""
    return ", ".join(f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n)


def say_more(what: str, cursor: str, *dropped: str) -> None:
    """Say, after all data, that there is more, and the command that goes on with it."""
    sys.stdout.flush()
    gap = "\n" if sys.stdout.isatty() else ""
    print(f"{gap}{what}; to go on:\n  {_continued(cursor, dropped)}", file=sys.stderr)


def _continued(cursor: str, dropped: tuple[str, ...]) -> str:
    """The command that is running now, but with this cursor; without the `dropped` parameters."""
    context = click.get_current_context()
    words, named = ["sessionindex", str(context.info_name)], []
    for param in context.command.params:
        given = context.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        if not given or param.name in ("cursor", *dropped):
            continue
        value = context.params[str(param.name)]
        if isinstance(param, click.Argument):
            named.append(_quoted(value))
        else:
            flag = isinstance(param, click.Option) and param.is_flag
            words += [param.opts[-1]] if flag else [param.opts[-1], _quoted(str(value))]
    dashes = ["--"] if any(word.startswith("-") for word in named) else []
    return " ".join([*words, "--cursor", cursor, *dashes, *named])


def _quoted(word: str) -> str:
    """A word for a shell, on one line and harmless."""
    if harmless(word) == word:
        return shlex.quote(word)
    escaped = "".join(
        f"\\{one}" if one in "\\'" else one if harmless(one) == one else _bytes(one) for one in word
    )
    return f"$'{escaped}'"


def _bytes(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
