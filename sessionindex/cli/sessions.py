"""`sessionindex sessions`: which sessions there are, as a table, as flat lines, or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.cli.render import Style, harmless, local_time, padded, project, shortened, width
from sessionindex.contracts.list_sessions import ListResult, SessionRow
from sessionindex.wire.output import dumps
from sessionindex.wire.shapes import camel

_EXAMPLES = """\b
Examples:
  sessionindex sessions --limit 20                    the newest ones
  sessionindex sessions --cwd . --siblings            of this folder and its worktrees
  sessionindex sessions --since 2w --tree             with the runs that they delegated
  sessionindex show 019e2b1c:2 -C 5                   read one: its ID and a line
"""

_SHORT: Final = 8
_LONGEST_ID: Final = 36
_PROJECT: Final = 18
_DEEPEST: Final = 4  # what hangs deeper is set in no further


@click.command(epilog=_EXAMPLES, short_help="List sessions, newest first.")
@click.option("--cwd", "cwds", multiple=True, metavar="DIR", help="Only sessions of this folder.")
@click.option("--siblings", is_flag=True, help="With --cwd: also folders named DIR-….")
@click.option("--since", metavar="TIME", help="Not before: ISO, 2d, 12h, today, yesterday.")
@click.option("--until", metavar="TIME", help="Not after: the same.")
@click.option("--current", is_flag=True, help="Include the session this runs inside.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Sessions at most (else all).")
@click.option(
    "--sort", type=click.Choice(["timestamp", "cwd", "path", "id"]), help="By what (timestamp)."
)
@click.option(
    "--order",
    type=click.Choice(["asc", "desc"]),
    help="Ascending or descending (timestamps: newest first, but for --json).",
)
@click.option("-a", "--tree", is_flag=True, help="Delegated runs too, below what launched them.")
@click.option("--json", "as_json", is_flag=True, help="The answer as JSON (oldest first).")
@click.option("--brute", is_flag=True, help="Read the files, without the index.")
@options.color_option
@options.root_options
def command(**asked: Any) -> int:
    """List sessions: when, ID, project, how many runs were delegated, and the first words.

    An ID is as short as it can be and still names one session. In a pipe: timestamp, folder, ID
    and path, with tabs between.
    """
    index = opening.opened(asked["root"], asked["layout"], asked["index_dir"])
    filters = _filters(asked)
    if asked["as_json"]:
        params = {camel(name): value for name, value in filters.items()}
        answer = index.call("list_sessions", params, brute=asked["brute"])
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if answer["sessions"] else 1
    if asked["order"] is None and asked["sort"] in (None, "timestamp"):
        filters["sort_direction"] = "desc"
    result = index.list_sessions(brute=asked["brute"], **filters)
    if sys.stdout.isatty():
        _table(index, result, asked)
    else:
        for _, row in _rows(result.sessions, asked["tree"]):
            print("\t".join(map(harmless, (row.timestamp, row.cwd, row.id, row.path))))
    opening.warn(result.warnings)
    return 0 if result.sessions else 1


def _filters(asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the filters of list_sessions."""
    filters: dict[str, Any] = {
        "cwds": [opening.folder(folder) for folder in asked["cwds"]],
        "cwd_match": "sibling-prefix" if asked["siblings"] else None,
        "include_current_session": asked["current"],
        "start_timestamp": opening.moment(asked["since"]),
        "end_timestamp": opening.moment(asked["until"]),
        "sort_by": asked["sort"],
        "sort_direction": asked["order"],
        "limit": asked["limit"],
    }
    return {name: value for name, value in filters.items() if value not in (None, [])}


def _rows(rows: Iterable[SessionRow], tree: bool) -> Iterator[tuple[int, SessionRow]]:
    """Each session, and with `tree` its delegated runs below it, with its depth."""
    todo = [(0, row) for row in reversed(tuple(rows))]
    while todo:
        depth, row = todo.pop()
        yield depth, row
        if tree:
            todo += [(depth + 1, child) for child in reversed(row.children)]


def _table(index: SessionIndex, result: ListResult, asked: dict[str, Any]) -> None:
    """A line for each session, no wider than the terminal; it is printed as it is found out."""
    style = Style(asked["color"])
    shown = [
        (row, "  " * min(depth, _DEEPEST) + project(row.cwd), _count(row))
        for depth, row in _rows(result.sessions, asked["tree"])
    ]
    if shown:
        everything = index.list_sessions(include_current_session=True, brute=asked["brute"])
        short = _short_ids(row.id for _, row in _rows(everything.sessions, True))
        columns = (
            16,
            min(_LONGEST_ID, max(_most(short.get(row.id, row.id)) for row, _, _ in shown)),
            min(_PROJECT, max(6, width() - 62), max(_most(name) for _, name, _ in shown)),
            max(len(count) for _, _, count in shown),
        )
        room = width() - sum(columns) - 2 * len(columns)
        for row, name, count in shown:
            cells = (local_time(row.timestamp), short.get(row.id, row.id), name, count)
            when, ident, name, count = map(padded, cells, columns)
            words = harmless(index.first_words(row.path) or "")
            spoken = shortened(words, room) if room > 8 else ""
            line = (when, style.place(ident), style.strong(name), *filter(None, [count]))
            print("  ".join((*line, style.quiet(spoken))).rstrip())
    runs = sum(1 for _ in _rows(result.sessions, True)) - len(result.sessions)
    print(_total(len(result.sessions), runs), file=sys.stderr)


def _count(row: SessionRow) -> str:
    """How many runs hang on a session, at any depth."""
    runs = sum(1 for _ in _rows(row.children, True))
    return f"+{runs}" if runs else ""


def _most(text: str) -> int:
    """Columns that a text may take."""
    return len(text) if text.isascii() else 2 * len(text)


def _short_ids(ids: Iterable[str]) -> dict[str, str]:
    """For each ID the shortest beginning that no other has; all of one that several have."""
    ordered = sorted(ids)
    short = {}
    for place, one in enumerate(ordered):
        around = (*ordered[max(place - 1, 0) : place], *ordered[place + 1 : place + 2])
        size = _SHORT
        while size < len(one) and any(other.startswith(one[:size]) for other in around):
            size += 1
        short[one] = one[:size]
    return short


def _total(sessions: int, runs: int) -> str:
    if not sessions:
        return "no sessions"
    delegated = f", {runs:,} delegated run{'s' * (runs != 1)}" if runs else ""
    return f"\n{sessions:,} session{'s' * (sessions != 1)}{delegated}"
