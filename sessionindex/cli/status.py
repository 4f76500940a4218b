"""`sessionindex status`: what is there, and how much of it the index covers."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from sessionindex import wire
from sessionindex.cli import options
from sessionindex.cli.render import harmless, size


@click.command(epilog="Example: sessionindex status --json", short_help="What the index covers.")
@click.option("--json", "as_json", is_flag=True, help="The status as JSON.")
@options.root_options
def command(as_json: bool, **where: Any) -> int:
    """Say what the root holds and how far the index is."""
    status = options.opened(**where).status()
    if as_json:
        fields = {wire.camel(name): value for name, value in dataclasses.asdict(status).items()}
        sys.stdout.buffer.write(wire.dumps(fields, pretty=sys.stdout.isatty()) + b"\n")
        return 0
    share = 100 * status.index_bytes / status.bytes if status.bytes else 0
    rows = [
        ("root", f"{status.root} ({status.layout})"),
        ("sessions", f"{status.sessions:,} ({size(status.bytes)})"),
        ("index", status.index_dir),
        ("", f"{status.entries:,} entries, {size(status.index_bytes)} ({share:.0f} %)"),
        (
            "covered",
            f"{status.fresh:,} whole, {status.behind:,} grown since, "
            f"{status.stale:,} rewritten since, {status.new:,} not yet",
        ),
        ("to read", f"{size(status.pending_bytes)} by each question"),
        ("writer", str(status.writer) if status.writer else "none"),
    ]
    if status.damage:
        rows.append(("note", status.damage))
    for name, value in rows:
        print(f"{name:>9}  {harmless(value)}")
    return 0
