"""`sessionindex demo`: index what is there, or the sample, and show a search with its answer."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import click

from sessionindex import SessionIndex
from sessionindex.cli import index as index_command
from sessionindex.cli import opening, options
from sessionindex.cli import search as search_command

SAMPLE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sample")


@click.command(
    epilog="Example: sessionindex demo", short_help="Index your sessions, show a search."
)
@options.root_options
def command(root: str | None, layout: str | None, index_dir: str | None) -> int:
    """Index your own Pi sessions, or a small sample where there are none, and search them."""
    found = SessionIndex(root, layout=layout)
    if os.path.isdir(found.root.path) and found.status().sessions:
        return _show(["the"], root, layout, index_dir)
    opening.say(f"no Pi sessions in {found.root.path}: here is a small sample instead")
    with tempfile.TemporaryDirectory(prefix="sessionindex-demo-") as scratch:
        return _show(["ETIMEDOUT"], SAMPLE, "projects", scratch)


def _show(terms: list[str], root: str | None, layout: str | None, index_dir: str | None) -> int:
    where = [
        part
        for name, value in (("--root", root), ("--layout", layout), ("--index-dir", index_dir))
        if value is not None
        for part in (name, value)
    ]
    _run(index_command.command, where)
    print(f"\n$ sessionindex search {' '.join(terms)} --limit 3")
    sys.stdout.flush()
    _run(search_command.command, [*terms, "--limit", "3", *where])
    return 0


def _run(command: click.Command, arguments: list[str]) -> Any:
    return command.main(arguments, prog_name=f"sessionindex {command.name}", standalone_mode=False)
