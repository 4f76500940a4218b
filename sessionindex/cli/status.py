"""`sessionindex status`: what is there, and how much of it the index covers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from sessionindex.cli import opening, options
from sessionindex.cli.render import harmless, local_time, size
from sessionindex.index.lock import Holder
from sessionindex.status import Status
from sessionindex.wire.output import dumps, iso
from sessionindex.wire.reports import status_answer


@click.command(epilog="Example: sessionindex status --json", short_help="What the index covers.")
@click.option("--json", "as_json", is_flag=True, help="The status as JSON.")
@options.root_options
def command(as_json: bool, **where: Any) -> int:
    """Say what the root holds and how far the index is."""
    status = opening.opened(**where).status()
    if as_json:
        answer = status_answer(status)
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0
    rows = [
        ("root", f"{status.root} ({status.layout})"),
        ("sessions", f"{status.sessions:,} ({size(status.bytes)})"),
        ("index", status.index_dir),
        ("", f"{status.entries:,} entries{_taken(status)}"),
        (
            "covered",
            f"{status.fresh:,} whole, {status.behind:,} grown since, "
            f"{status.stale:,} rewritten since, {status.new:,} not yet",
        ),
        ("to read", f"{size(status.pending_bytes)} by each question"),
        ("problems", _problems(status.problems)),
        ("refreshed", _when(status.last_refresh)),
        ("writer", _writer(status.writer)),
    ]
    if status.damage:
        rows.append(("note", status.damage))
    for name, value in rows:
        print(f"{name:>9}  {harmless(value)}")
    return 0


def _taken(status: Status) -> str:
    """What the index takes; not said where it would tell of what the access bound hides."""
    if status.index_bytes is None:
        return ""
    share = 100 * status.index_bytes / status.bytes if status.bytes else 0
    return f", {size(status.index_bytes)} ({share:.0f} %)"


def _problems(problems: Mapping[str, int]) -> str:
    rows = [f"{count:,} {code}" for code, count in problems.items()]
    return f"{', '.join(rows)} (lines that are no entries)" if rows else "none"


def _when(instant: int | None) -> str:
    return local_time(iso(instant) or "") if instant else "never"


def _writer(writer: Holder | None) -> str:
    return f"{writer}, since {_when(writer.since)}" if writer else "none"
