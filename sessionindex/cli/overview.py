"""`sessionindex overview`: the sections of one session, as a table, flat lines, or JSON."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from sessionindex.cli import one_session
from sessionindex.cli.render import Style, harmless, padded, width
from sessionindex.contracts.overview import Overview, SectionSummary

_EXAMPLES: Final = """\b
Examples:
  sessionindex overview 019e2b1c                 its sections: what you asked
  sessionindex overview 019e2b1c --all           abandoned branches too
  sessionindex read 019e2b1c --section 90010002  read one of them
"""
_LONGEST_ID: Final = 36
_LABEL: Final = 20  # columns that a label should have; numbers make room for it
_HEADS: Final = ("entries", "calls", "errors", "read", "edited")


@click.command(epilog=_EXAMPLES, short_help="The sections of one session.")
@click.option("--limit", type=click.IntRange(1, 100), metavar="N", help="Sections at most (20).")
@click.option("--cursor", metavar="TOKEN", help="Go on where the last page ended.")
@one_session.session_options
def command(**asked: Any) -> int:
    """Show SESSION (a path, an id, the beginning of one; else the current one) by its sections.

    A section begins with what you said, with a compaction, or with the summary of a branch. The
    numbers are those of its entries, tool calls, errors, and files that were read and edited. In a
    pipe: section, these numbers, and how it begins, with tabs between.
    """
    params = one_session.params(asked, max_sections=asked["limit"], cursor=asked["cursor"])
    index = one_session.opened(asked)
    if asked["as_json"]:
        return one_session.print_answer(index, "session_overview", params, asked)
    result = index.overview(**one_session.how(asked), **params)
    if sys.stdout.isatty():
        style = Style(asked["color"])
        head = one_session.header(index, asked["session"])
        print(one_session.heading(head, asked, style, result.name))
        print(style.quiet(_counts(result)) + "\n")
        _table(result, style)
    else:
        for section in result.sections:
            row = (section.id, *map(str, _numbers(section)), section.label)
            print("\t".join(map(harmless, row)))
    if result.next_cursor:
        shown = f"{len(result.sections)} of {result.section_count:,} sections"
        one_session.say_more(shown, result.next_cursor)
    return 0


def _counts(result: Overview) -> str:
    """How much there is, in the scope and beside it."""
    told = one_session.counted(
        (result.selected_entries, "entry", "entries"),
        (result.section_count, "section", "sections"),
        (result.compactions, "compaction", "compactions"),
        (result.other_branches, "other branch", "other branches"),
    )
    left = result.all_entries - result.selected_entries
    return f"{told} ({left:,} more with --all)" if left else told


def _numbers(section: SectionSummary) -> tuple[int, ...]:
    return (
        section.entry_count,
        section.tool_calls,
        section.errors,
        section.read_file_count,
        section.modified_file_count,
    )


def _table(result: Overview, style: Style) -> None:
    """A line for each section, no wider than the terminal: narrow ones have fewer numbers."""
    ids = [harmless(section.start_entry_id) for section in result.sections]
    first = min(max(map(len, ("section", *ids))), _LONGEST_ID, width() // 2)
    numbers = [_numbers(section) for section in result.sections]
    columns = [
        max(len(head), *(len(str(row[place])) for row in numbers))
        for place, head in enumerate(_HEADS)
    ]
    while columns and _room(first, columns) < _LABEL:
        columns.pop()
    room = max(0, _room(first, columns))
    heads = [head.rjust(column) for head, column in zip(_HEADS, columns, strict=False)]
    top = " ".join((padded("section", first), "", padded("begins with", room), "", *heads))
    print(style.quiet(top.rstrip()))
    for ident, section, row in zip(ids, result.sections, numbers, strict=True):
        cells = [
            _number(count, column, head == "errors", style)
            for count, column, head in zip(row, columns, _HEADS, strict=False)
        ]
        named = style.place(padded(ident, first))
        print(" ".join((named, "", padded(section.label, room), "", *cells)).rstrip())


def _room(first: int, columns: list[int]) -> int:
    """What is left for labels."""
    return width() - first - 3 - sum(column + 1 for column in columns)


def _number(count: int, column: int, alarming: bool, style: Style) -> str:
    shown = (str(count) if count else "·").rjust(column)
    if alarming and count:
        return style.match(shown)
    return shown if count else style.quiet(shown)
