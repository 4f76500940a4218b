"""`sessionindex entries`: the entries of one session, as a conversation or as they stand."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import options, transcript
from sessionindex.cli.render import Style, harmless, who
from sessionindex.contracts.session_entries import EntriesResult
from sessionindex.text import squeeze
from sessionindex.wire.output import dumps

_EXAMPLES: Final = """\b
Examples:
  sessionindex entries 019f711c --role user            what you said in it
  sessionindex entries 019f711c -e ETIMEDOUT --full    entries that mention it, whole
  sessionindex entries 019f711c --lines 90-120 --raw   those lines as they stand
"""
_LINES: Final = re.compile("([1-9][0-9]{0,17})?(-)?([1-9][0-9]{0,17})?")
_SHOWN: Final = 3


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
    index = options.opened(asked["root"], asked["layout"], asked["index_dir"])
    params = _params(index, session, asked)
    if asked["as_json"]:
        answer = index.written("session_entries", params, brute=asked["brute"])
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if answer["entries"] else 1
    result = index.entries_answer(params, brute=asked["brute"])
    if asked["raw"]:
        for row in result.rows:
            sys.stdout.buffer.write(row.line + b"\n")
    elif sys.stdout.isatty():
        style = Style(asked["color"])
        for row in result.rows:
            transcript.print_entry(row.entry, style, lines=None if asked["full"] else 12)
    else:
        _flat(result)
    _warn(result)
    return 0 if result.rows else 1


def _params(index: SessionIndex, session: str | None, asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the parameters of session_entries."""
    terms = [os.fsencode(term).decode("utf-8", "surrogateescape") for term in asked["terms"]]
    first, last = _range(asked["lines"])
    params: dict[str, Any] = {
        "sessionPath": index.path_of(session),
        "startLineNo": first,
        "endLineNo": last,
        "ids": list(asked["ids"]),
        "parentIds": list(asked["parents"]),
        "startTimestamp": options.moment(asked["since"]),
        "endTimestamp": options.moment(asked["until"]),
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


def _flat(result: EntriesResult) -> None:
    """A line for each entry: place, time, who, text; tab-separated, for other programs."""
    for row in result.rows:
        entry = row.entry
        said = harmless(squeeze(row.text or transcript.said(entry)))
        print(entry.line_no, entry.timestamp, harmless(who(entry.type, entry.role)), said, sep="\t")


def _warn(result: EntriesResult) -> None:
    for problem in result.problems[:_SHOWN]:
        place = f"line {problem.line_no}: " if problem.line_no else ""
        options.say(f"{place}{problem.reason}")
    if len(result.problems) > _SHOWN:
        options.say(f"and {len(result.problems) - _SHOWN:,} more lines that are no entries")
