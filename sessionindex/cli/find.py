"""`sessionindex find`: a literal in the entries of one session, in reading order."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from sessionindex.cli import one_session
from sessionindex.cli.render import Style, harmless, highlighted, padded, who, width
from sessionindex.contracts.session_search import SessionMatches
from sessionindex.snippet import first_match
from sessionindex.text import is_blank, squeeze

_EXAMPLES: Final = """\b
Examples:
  sessionindex find ETIMEDOUT 019e2b1c         what that session says about it
  sessionindex find -s TODO --all              here, abandoned branches too
  sessionindex read 019e2b1c --entry 90010004  read on from a match
"""
_LONGEST_ID: Final = 36
_ROLE: Final = 12
_LEAST: Final = 16  # columns of a snippet, however narrow the terminal is


@click.command(epilog=_EXAMPLES, short_help="Find a literal in one session.")
@click.argument("query")
@click.option("-s", "--case-sensitive", "sensitive", is_flag=True, help="Case matters.")
@click.option("--limit", type=click.IntRange(1, 50), metavar="N", help="Matches at most (20).")
@click.option("--cursor", metavar="TOKEN", help="Go on where the last page ended.")
@one_session.session_options
def command(query: str, **asked: Any) -> int:
    """Find QUERY, a literal, in SESSION (a path, an id, the beginning of one; else the current).

    What is searched is what was said, tool calls, and their names and ids. In a pipe: entry,
    section, who, snippet, with tabs between.
    """
    query = os.fsencode(query).decode("utf-8", "replace")
    if is_blank(query):
        raise click.UsageError("an empty query would match everything")
    params = one_session.params(
        asked,
        query=query,
        case_sensitive=asked["sensitive"],
        limit=asked["limit"],
        cursor=asked["cursor"],
    )
    index = one_session.opened(asked)
    if asked["as_json"]:
        return one_session.print_answer(index, "session_search", params, asked)
    result = index.session_search(**one_session.how(asked), **params)
    _print(result, Style(asked["color"]))
    _total(result)
    return 0 if result.matches else 1


def _print(result: SessionMatches, style: Style) -> None:
    if not sys.stdout.isatty():
        for match in result.matches:
            shown = highlighted(match.snippet, _places(match.snippet, result), style)
            row = (match.entry_id, match.section_id, who(match.type, match.role))
            print("\t".join((*map(harmless, row), shown)))
        return
    ids = [harmless(match.entry_id) for match in result.matches]
    speakers = [harmless(who(match.type, match.role)) for match in result.matches]
    first = min(max(map(len, ids), default=0), _LONGEST_ID, width() // 3)
    second = min(max(map(len, speakers), default=0), _ROLE)
    room = max(_LEAST, width() - first - second - 4)
    for match, ident, speaker in zip(result.matches, ids, speakers, strict=True):
        shown = highlighted(match.snippet, _places(match.snippet, result), style, room)
        named, said = style.place(padded(ident, first)), style.quiet(padded(speaker, second))
        print(f"{named}  {said}  {shown}")


def _places(text: str, result: SessionMatches) -> list[tuple[int, int]]:
    """Where the query is in a snippet."""
    query = squeeze(result.query)  # as the snippet is
    places, at = [], 0
    while found := first_match(text[at:], (query,), result.case_sensitive):
        places.append((at + found[0], at + found[1]))
        at += found[1]
    return places


def _total(result: SessionMatches) -> None:
    count = f"{result.total:,} match{'es' * (result.total != 1)}"
    if result.next_cursor:
        one_session.say_more(f"{len(result.matches)} of {count}", result.next_cursor)
    else:
        sys.stdout.flush()
        gap = "\n" if result.matches and sys.stdout.isatty() else ""
        print(f"{gap}{count if result.total else 'no matches'}", file=sys.stderr)
