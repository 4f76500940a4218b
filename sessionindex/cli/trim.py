"""`sessionindex trim`: small session files, the same context."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.cli.call import json_object
from sessionindex.cli.render import harmless, padded, size, width
from sessionindex.trim.report import TrimReport
from sessionindex.wire.output import dumps
from sessionindex.wire.trim import prepared_answer, trim_answer

_EXAMPLES: Final = """\b
Examples:
  sessionindex trim 019f711c --dry-run               what would go
  sessionindex trim 019f711c --backup ~/trimmed      the original is kept there, compressed
  sessionindex trim --all --older-than 30d           every session that rested for a month
"""
_REST: Final = re.compile("([0-9]{1,5})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.command(epilog=_EXAMPLES, short_help="Make a session's file small, its context the same.")
@click.argument("session", required=False, metavar="[SESSION]")
@click.option("--all", "every", is_flag=True, help="All sessions at rest.")
@click.option(
    "--older-than", metavar="AGE", help="What rest means for --all (7d, 12h; 7d if left out)."
)
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--transcript", is_flag=True, help="Into a new session, without tool calls.")
@click.option("--backup", metavar="DIR", help="Keep the original there, compressed.")
@click.option("--restore", is_flag=True, help="Put the original back (from --backup DIR).")
@click.option("--force", is_flag=True, help="Also the running session, or one written just now.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.option("--prepare", is_flag=True, help="Only the first of two steps (for the extension).")
@click.option("--commit", metavar="TOKEN", help="The second step.")
@click.option("--discard", metavar="TOKEN", help="Or take the prepared file away.")
@click.option("--leaf", metavar="ID", help="With --prepare: the live leaf.")
@click.option("--project", metavar="DIR", help="With --prepare: the folder of its configuration.")
@click.option("--trusted", is_flag=True, help="With --project: that folder is trusted.")
@click.option("--settings", metavar="JSON", help="Pi's effective settings (else its files).")
@click.option("--current-session", metavar="FILE", help="The running session ('' for none).")
@options.root_options
def command(root: str | None, layout: str | None, index_dir: str | None, **asked: Any) -> int:
    """Drop from a session's file what its newest compaction hides from the model for good.

    What the model sees stays the same, proved before anything is replaced. What goes is gone for
    good unless there is a --backup. Exit status: 0 trimmed or nothing to trim, 1 refused.
    """
    _fit(asked)
    given = asked["settings"]
    stepping = asked["prepare"] or asked["commit"] is not None or asked["discard"] is not None
    # A running session may lie outside of the root; only its owner trims it in two steps.
    index = (SessionIndex if stepping else opening.opened)(
        root,
        layout=layout,
        index_dir=index_dir,
        settings=None if given is None else json_object("--settings", given),
        current_session=asked["current_session"],
    )
    with index:
        if stepping:
            return _in_steps(index, asked)
        return _all(index, asked) if asked["every"] else _one(index, asked)


def _fit(asked: dict[str, Any]) -> None:
    """Refuse what contradicts itself, before anything is opened."""
    ways = ("every", "prepare", "commit", "discard")
    named = [way for way in ways if asked[way] not in (None, False)]
    if len(named) > 1:
        raise click.UsageError("only one of --all, --prepare, --commit and --discard")
    needs = not named or named == ["prepare"]
    if needs != (asked["session"] is not None):
        raise click.UsageError("name a SESSION, or --all" if needs else "no SESSION with that")
    if asked["restore"] and not asked["backup"]:
        raise click.UsageError("--restore needs --backup DIR, where the original is")
    if asked["transcript"] and (asked["backup"] or asked["every"]):
        raise click.UsageError("--transcript goes with neither --backup nor --all")
    if asked["older_than"] is not None and not asked["every"]:
        raise click.UsageError("--older-than goes with --all")
    if asked["every"] and (asked["restore"] or asked["force"]):
        raise click.UsageError("--all goes with neither --restore nor --force")


# --- one session ---------------------------------------------------------------------------------


def _one(index: SessionIndex, asked: dict[str, Any]) -> int:
    path = index.path_of(asked["session"])
    how = {name: asked[name] for name in ("transcript", "backup", "restore", "force")}
    if not asked["yes"]:
        report = index.trim(path, dry_run=True, **how)
        if asked["dry_run"] or report.outcome != "planned":
            return _told(report, asked)
        _show_plan(report, sys.stderr)
        _confirm("Go on?")
    elif asked["dry_run"] or asked["transcript"]:
        report = index.trim(path, dry_run=True, **how)
        if asked["dry_run"] or report.outcome != "planned":
            return _told(report, asked)
        _show_plan(report, sys.stderr)  # a transcript is never written unseen
    return _told(index.trim(path, **how), asked)


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to ask: say --yes")
    click.confirm(question, abort=True, err=True)


def _told(report: TrimReport, asked: dict[str, Any]) -> int:
    """Print a report; the exit status."""
    refused = report.outcome == "refused"
    if asked["as_json"]:
        _print_json(trim_answer(report))
    elif report.outcome == "planned":
        _show_plan(report, sys.stdout)
    elif not refused:
        print(harmless(report.message))
        for what, path in (("original", report.backup), ("new session", report.new_path)):
            if path is not None:
                print(f"{what}: {harmless(path)}")
    if refused:
        opening.say(f"{report.message} ({report.path})")
    return 1 if refused else 0


def _show_plan(report: TrimReport, stream: Any) -> None:
    """What would go, by kind, the largest first."""
    rows = sorted(report.dropped.items(), key=lambda item: -item[1].bytes)
    for kind, one in rows:
        line = f"{padded(kind, 24)} {one.entries:>8,} entries  {size(one.bytes):>10}"
        print(f"  {line}", file=stream)
    print(harmless(report.message), file=stream)


def _print_json(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(dumps(value, pretty=sys.stdout.isatty()) + b"\n")
    sys.stdout.buffer.flush()


# --- all at rest ---------------------------------------------------------------------------------


def _all(index: SessionIndex, asked: dict[str, Any]) -> int:
    reports = [index.trim(path, dry_run=True) for path in index.at_rest(_age(asked))]
    planned = [report for report in reports if report.outcome == "planned"]
    refused = [report for report in reports if report.outcome == "refused"]
    if not asked["as_json"]:
        _table(planned, len(reports) - len(planned) - len(refused))
    if planned and not asked["dry_run"]:
        if not asked["yes"]:
            _confirm(f"Trim {len(planned):,} sessions?")
        planned = [index.trim(report.path, backup=asked["backup"]) for report in planned]
        refused += [report for report in planned if report.outcome == "refused"]
    if asked["as_json"]:
        _print_json({"reports": [trim_answer(report) for report in (*planned, *refused)]})
    elif planned and not asked["dry_run"]:
        done = [report for report in planned if report.outcome == "trimmed"]
        before = sum(report.bytes_before for report in done)
        after = sum(report.bytes_after for report in done)
        print(f"{len(done):,} sessions trimmed: {size(before)} → {size(after)}")
    for report in refused:
        opening.say(f"{report.message} ({report.path})")
    return 1 if refused else 0


def _age(asked: dict[str, Any]) -> float:
    given = asked["older_than"] or "7d"
    found = _REST.fullmatch(given.strip().lower())
    if not found:
        raise click.UsageError(f"--older-than takes 30m, 12h, 7d or 2w: {given}")
    return int(found[1]) * _SECONDS[found[2]]


def _table(planned: list[TrimReport], rest: int) -> None:
    """What each would give, the most first."""
    room = max(20, width() - 28)
    for report in sorted(planned, key=lambda one: one.bytes_after - one.bytes_before):
        name = padded(os.path.basename(report.path), room)
        print(f"{name} {size(report.bytes_before):>10} → {size(report.bytes_after):>10}")
    saved = sum(report.bytes_before - report.bytes_after for report in planned)
    print(f"{len(planned):,} sessions would give {size(saved)}; nothing to trim in {rest:,}")


# --- two steps -----------------------------------------------------------------------------------


def _in_steps(index: SessionIndex, asked: dict[str, Any]) -> int:
    """For programs: always JSON."""
    if asked["prepare"]:
        prepared = index.prepare_trim(
            index.path_of(asked["session"]),
            leaf=asked["leaf"],
            project=asked["project"],
            trusted=asked["trusted"],
        )
        try:
            _print_json(prepared_answer(prepared))
        except BaseException:  # whoever asked has gone: nobody will use it
            if prepared.token is not None:
                index.discard_trim(prepared.token)
            raise
        report = prepared.report
    else:
        if asked["commit"] is not None:
            report = index.commit_trim(asked["commit"])
        else:
            report = index.discard_trim(asked["discard"])
        _print_json(trim_answer(report))
    if report.outcome == "refused":
        opening.say(report.message)
        return 1
    return 0
