"""`sessionindex read`: a section of a session as its tool renders it, a page at a time."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import one_session
from sessionindex.cli.render import Style, harmless
from sessionindex.contracts.read_section import Reading
from sessionindex.errors import NothingFound
from sessionindex.scope import SECTION

_EXAMPLES: Final = """\b
Examples:
  sessionindex read 019e2b1c                     its last section
  sessionindex read 019e2b1c --section 90010002  one that overview lists
  sessionindex read 019e2b1c --entry 90010005    from an entry on, to the end
"""
_PAGE: Final = 100  # sections at once, as many as the tool gives


@click.command(epilog=_EXAMPLES, short_help="Read a section of one session.")
@click.option("--section", metavar="ID", help="The section to read (else the last one).")
@click.option("--entry", metavar="ID", help="Read from this entry on, over sections.")
@click.option("--limit", type=click.IntRange(1, 50), metavar="N", help="Entries at most (20).")
@click.option(
    "--max-chars",
    type=click.IntRange(100, 8000),
    metavar="N",
    help="How much of an entry at once (2000).",
)
@click.option("--cursor", metavar="TOKEN", help="Go on where the last page ended.")
@one_session.session_options
def command(**asked: Any) -> int:
    """Read a section of SESSION (a path, an id, the beginning of one; else the current one).

    The transcript says what was said, called and answered. What is longer than a page ends with the
    command that goes on.
    """
    if asked["section"] and asked["entry"]:
        raise click.UsageError("--section and --entry exclude each other")
    index = one_session.opened(asked)
    params = one_session.params(
        asked,
        max_entries=asked["limit"],
        max_body_chars=asked["max_chars"],
        cursor=asked["cursor"] or None,
        entry_id=asked["entry"] or None,
    )
    if not (asked["cursor"] or asked["entry"]):
        params["section_id"] = _section(index, asked)
    if asked["as_json"]:
        return one_session.print_answer(index, "session_read_section", params, asked)
    result = index.read_section(**one_session.how(asked), **params)
    _transcript(result, Style(asked["color"]))
    if result.next_cursor:
        one_session.say_more("there is more", result.next_cursor, "section", "entry")
    return 0


def _section(index: SessionIndex, asked: dict[str, Any]) -> str:
    """The section that is meant; where nothing says which, the last one."""
    if asked["section"]:
        return SECTION + str(asked["section"]).removeprefix(SECTION)
    page = one_session.params(asked, max_sections=_PAGE)
    last = SECTION  # which no session has: the tool says why
    try:
        while True:
            found = index.overview(**one_session.how(asked), **page)
            last = found.sections[-1].id
            if found.next_cursor is None:
                return last
            page["cursor"] = found.next_cursor
    except NothingFound:
        return last


def _transcript(result: Reading, style: Style) -> None:
    """The text of the tool, its headings told apart by colour."""
    print(style.strong(harmless(result.title)))
    for piece in result.pieces:
        head, _, body = piece.partition("\n")
        print(f"\n{style.place(harmless(head))}")
        if body:
            sys.stdout.write(harmless(body, lines=True).rstrip("\n") + "\n")
