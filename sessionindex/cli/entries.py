"""`sessionindex entries`: the entries of one session, as a conversation or as they stand."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Final

import click

from sessionindex.cli import opening, options, transcript
from sessionindex.cli.render import Style, harmless, who
from sessionindex.contracts.session_entries import EntriesResult
from sessionindex.model import Problem
from sessionindex.text import squeeze
from sessionindex.wire.entries import question_of
from sessionindex.wire.output import dumps

_EXAMPLES: Final = """\b
Examples:
  sessionindex entries 019f711c --role user            what you said in it
  sessionindex entries 019f711c -e ETIMEDOUT --full    entries that mention it, whole
  sessionindex entries 019f711c --lines 90-120 --raw   those lines as they stand
"""
_LINES: Final = re.compile("([1-9][0-9]{0,17})?(-)?([1-9][0-9]{0,17})?")
_NAMED: Final = 10
"""How many lines that are no entries, or rows of them, are named; the rest is counted."""


@click.command(epilog=_EXAMPLES, short_help="The entries of one session.")
@click.argument("session", required=False, metavar="[SESSION]")
@click.option("-e", "--term", "terms", multiple=True, metavar="TERM", help="Text holds TERM (any).")
@click.option("-s", "--case-sensitive", "sensitive", is_flag=True, help="Case of TERM matters.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Only messages of this role.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type.")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only the entry with this id.")
@click.option(
    "--parent", "parents", multiple=True, metavar="ID", help="Only answers to this entry."
)
@click.option("--lines", metavar="A-B", help="Only these lines of the file (A-, -B, A).")
@click.option("--since", metavar="TIME", help="Not before: ISO, 2d, 12h, today, yesterday.")
@click.option("--until", metavar="TIME", help="Not after: the same.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Entries at most.")
@click.option("--full", is_flag=True, help="Each entry whole (else how it begins).")
@click.option("--raw", is_flag=True, help="The lines as they stand in the file.")
@click.option("--json", "as_json", is_flag=True, help="The answer as JSON.")
@click.option("--brute", is_flag=True, help="Read the file, without the index.")
@options.color_option
@options.root_options
def command(session: str | None, **asked: Any) -> int:
    """Show the entries of SESSION (a path, an id, the beginning of one; else the current one)."""
    params = _params(asked)
    question_of({**params, "sessionPath": os.sep})  # refused before a session is looked for
    index = opening.opened(asked["root"], asked["layout"], asked["index_dir"])
    params["sessionPath"] = index.path_of(session)
    if asked["as_json"]:
        answer = index.written("session_entries", params, brute=asked["brute"])
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if answer["entries"] else 1
    result = index.entries_answer(params, brute=asked["brute"])
    if asked["raw"]:
        _raw(result)
    elif sys.stdout.isatty():
        style = Style(asked["color"])
        for row in result.rows:
            transcript.print_entry(row.entry, style, lines=None if asked["full"] else 12)
    else:
        _flat(result)
    _warn(result)
    return 0 if result.rows else 1


def _params(asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the parameters of session_entries, but for the session."""
    terms = [os.fsencode(term).decode("utf-8", "surrogateescape") for term in asked["terms"]]
    first, last = _range(asked["lines"])
    params: dict[str, Any] = {
        "startLineNo": first,
        "endLineNo": last,
        "ids": list(asked["ids"]),
        "parentIds": list(asked["parents"]),
        "startTimestamp": opening.moment(asked["since"]),
        "endTimestamp": opening.moment(asked["until"]),
        "types": list(asked["types"]),
        "messageRoles": list(asked["roles"]),
        "search": {"terms": terms, "caseSensitive": asked["sensitive"]} if terms else None,
        "limit": asked["limit"],
    }
    return {name: value for name, value in params.items() if value not in (None, [])}


def _range(lines: str | None) -> tuple[int | None, int | None]:
    if lines is None:
        return None, None
    found = _LINES.fullmatch(lines)
    if not found or not (found[1] or found[3]):
        raise click.UsageError(f"--lines takes A-B, A-, -B or A: {lines}")
    first = int(found[1]) if found[1] else None
    last = int(found[3]) if found[3] else None
    return first, last if found[2] else first


def _raw(result: EntriesResult) -> None:
    """The lines of the file: their bytes in a pipe, made harmless on a terminal."""
    shown = sys.stdout.isatty()
    for row in result.rows:
        if shown:
            print(harmless(row.line.decode("utf-8", "replace")))
        else:
            sys.stdout.buffer.write(row.line + b"\n")


def _flat(result: EntriesResult) -> None:
    """A line for each entry: place, time, who, text; tab-separated, for other programs."""
    for row in result.rows:
        entry = row.entry
        said = harmless(squeeze(row.text or transcript.said(entry)))
        print(entry.line_no, entry.timestamp, harmless(who(entry.type, entry.role)), said, sep="\t")


def _warn(result: EntriesResult) -> None:
    """What there is to say of the whole file; and in one line, which lines are no entries."""
    lines = [problem for problem in result.problems if problem.line_no is not None]
    for problem in result.problems:
        if problem.line_no is None:
            opening.say(problem.reason)
    if lines:
        many = f"{len(lines):,} lines are no entries" if len(lines) > 1 else "1 line is no entry"
        opening.say(f"{many}: {_named(lines)}")


def _named(lines: list[Problem]) -> str:
    """Line numbers and reasons; neighbours with the same reason as one."""
    runs: list[list[Problem]] = []
    for problem in lines:
        if runs and _goes_on(runs[-1][-1], problem):
            runs[-1].append(problem)
        else:
            runs.append([problem])
    parts = []
    for run in runs[:_NAMED]:
        last = f"-{run[-1].line_no}" if len(run) > 1 else ""
        parts.append(f"{run[0].line_no}{last} ({run[0].reason})")
    if rest := sum(map(len, runs[_NAMED:])):
        parts.append(f"and {rest:,} more")
    return ", ".join(parts)


def _goes_on(one: Problem, other: Problem) -> bool:
    return other.line_no == (one.line_no or 0) + 1 and other.reason == one.reason
