"""`sessionindex show`: from a hit to the conversation around it."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click

from sessionindex import entry as entries
from sessionindex.cli import opening, options, transcript
from sessionindex.cli.render import Style
from sessionindex.wire.entries import BLANK, entry_row
from sessionindex.wire.output import Raw, dumps

_LINE: Final = re.compile("0*[1-9][0-9]{0,17}")


@click.command(
    epilog="Example: sessionindex show 019f711c:95 -C 3", short_help="Read around a hit."
)
@click.argument("place", metavar="SESSION:LINE")
@click.option(
    "-C", "--context", type=click.IntRange(0, 1000), default=0, metavar="N", help="N around it."
)
@click.option("--json", "as_json", is_flag=True, help="The entries as JSON.")
@options.color_option
@options.root_options
def command(place: str, context: int, as_json: bool, color: str, **where: Any) -> int:
    """Show the entry on a LINE of a SESSION (a path, an id, or the beginning of one)."""
    session, colon, number = place.rpartition(":")
    if not (colon and session and _LINE.fullmatch(number)):
        raise click.UsageError(f"expected SESSION:LINE, as search prints it: {place}")
    index = opening.opened(**where)
    if as_json:
        _, found = index.around(session, int(number), context)
        rows = [
            entry_row(entry, entries.text(entry), Raw(line.data.strip(BLANK)))
            for entry, line in found
        ]
        sys.stdout.buffer.write(dumps(rows, pretty=sys.stdout.isatty()) + b"\n")
    else:
        transcript.print_around(index, session, int(number), context, Style(color))
    return 0
