"""`sessionindex index`: bring the index up to the files."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.cli.render import size
from sessionindex.errors import IndexLocked, IndexUnusable
from sessionindex.wire.output import dumps

_PATIENCE: Final = 30.0
"""Seconds that a watcher is given to cover the files."""

_TORN: Final = 2.0


@click.command(epilog="Example: sessionindex index", short_help="Bring the index up to date.")
@click.option("--rebuild", is_flag=True, help="Build it anew beside the old one, then switch.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@options.root_options
def command(rebuild: bool, as_json: bool, **where: Any) -> int:
    """Read what is new or changed in the sessions into the index."""
    index = opening.opened(**where)
    error = index.damage()
    if isinstance(error, IndexUnusable) and error.damaged and not rebuild:
        opening.say(f"{error}; building it anew")
    try:
        report = opening.refresh(index, rebuild=rebuild)
    except IndexLocked as busy:
        if rebuild:
            raise
        if _covered_by_another(index, busy):
            print("covered by the watcher")
        else:
            opening.say(str(busy))
        return 0
    if as_json:
        fields = dataclasses.asdict(report)
        fields["warnings"] = [warning._asdict() for warning in report.warnings]
        sys.stdout.buffer.write(dumps(fields) + b"\n")
        return 0
    done = [
        f"{number:,} {word}"
        for number, word in (
            (report.added, "new"),
            (report.appended, "grown"),
            (report.rebuilt, "rewritten"),
            (report.dropped, "gone"),
        )
        if number
    ]
    speed = f", {report.bytes / 1e6 / report.seconds:.0f} MB/s" if report.bytes > 1e6 else ""
    cost = f"{report.entries:,} entries, {size(report.bytes)}, {report.seconds:.1f} s{speed}"
    print(f"{report.files:,} sessions: {', '.join(done) or 'nothing new'} ({cost})")
    if report.problems:
        bad = ", ".join(f"{count:,} {code}" for code, count in sorted(report.problems.items()))
        opening.say(f"lines that are no entries: {bad}")
    for warning in report.warnings[:10]:
        opening.say(f"{warning.path}: {warning.reason}")
    if len(report.warnings) > 10:
        opening.say(f"and {len(report.warnings) - 10} more that could not be read")
    return 0


def _covered_by_another(index: SessionIndex, busy: IndexLocked) -> bool:
    """Whether a watcher has covered the files that are there now, or does so within a while."""
    if "(watch)" not in busy.holder:
        return False
    end = time.monotonic() + _PATIENCE
    pending, since = -1, 0.0
    while (now := time.monotonic()) < end:
        status = index.status()
        if status.pending_bytes != pending:
            pending, since = status.pending_bytes, now
        # What stays behind for so long is lines without their end yet.
        if not (status.new or status.stale) and (not pending or now - since > _TORN):
            return True
        time.sleep(0.1)
    return False
