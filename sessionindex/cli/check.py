"""`sessionindex check`: is the index what the files say?"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from sessionindex.cli import opening, options
from sessionindex.cli.render import Style, harmless, size
from sessionindex.wire.output import dumps
from sessionindex.wire.shapes import camel

_SAMPLE = 1000
_SHOWN = 50


@click.command(
    epilog="Example: sessionindex check --all", short_help="Prove the index against the files."
)
@click.option("--all", "every", is_flag=True, help=f"The grams of every line, not of {_SAMPLE:,}.")
@click.option("--repair", is_flag=True, help="Make what differs anew; clear deleted entries away.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@options.color_option
@options.root_options
def command(every: bool, repair: bool, as_json: bool, color: str, **where: Any) -> int:
    """Compare the index with the files: every file, every entry, and a sample of the grams.

    Exit status 1 where anything differs. What the index does not cover yet is no difference.
    """
    report = opening.opened(**where).check(None if every else _SAMPLE, repair)
    if as_json:
        fields = {
            **{camel(name): value for name, value in dataclasses.asdict(report).items()},
            "differences": [
                {"path": one.path, "lineNo": one.line_no, "what": one.what}
                for one in report.differences
            ],
            "warnings": [one._asdict() for one in report.warnings],
        }
        sys.stdout.buffer.write(dumps(fields, pretty=sys.stdout.isatty()) + b"\n")
        return 1 if report.differences else 0
    style = Style(color)
    for one in report.differences[:_SHOWN]:
        line = f":{one.line_no}" if one.line_no else ""
        print(f"{style.path(harmless(one.path))}{line}: {one.what}")
    if len(report.differences) > _SHOWN:
        print(f"and {len(report.differences) - _SHOWN:,} more")
    for warning in report.warnings[:10]:
        opening.say(f"{warning.path}: {warning.reason}")
    verdict = f"{len(report.differences):,} differences" if report.differences else "no difference"
    notes = [f"{report.files:,} files and {report.entries:,} entries checked: {verdict}"]
    if report.repaired:
        notes.append("the index was made anew")
    if report.pending:
        notes.append(f"{size(report.pending)} not indexed yet")
    if report.dead:
        notes.append(f"{report.dead:,} deleted entries still on disk (--repair clears them)")
    print("; ".join(notes), file=sys.stderr if report.differences else sys.stdout)
    return 1 if report.differences else 0
