"""`sessionindex watch`: index what is written, as it is written."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.cli.render import harmless
from sessionindex.errors import IndexLocked

_LEVELS: Final = ("error", "warning", "info", "debug")


@click.command(epilog="Example: sessionindex watch", short_help="Index in the background.")
@click.option(
    "--every",
    type=click.FloatRange(1, 86_400),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to walk the whole root, whatever was told meanwhile.",
)
@click.option(
    "--log-level", type=click.Choice(_LEVELS), default="info", show_default=True, help="To stderr."
)
@options.root_options
def command(every: float, log_level: str, **where: Any) -> int:
    """Keep the index up to date until interrupted.

    Answers are right without it; with it the part that each question has to scan stays short. The
    root need not exist yet.
    """
    from sessionindex.daemon.watch import Watcher

    told = _LEVELS[: _LEVELS.index(log_level) + 1]

    def log(level: str, line: str) -> None:
        if level in told:
            moment = time.strftime("%H:%M:%S")
            print(f"{moment} {level}: {harmless(line)}", file=sys.stderr, flush=True)

    index = SessionIndex(where["root"], layout=where["layout"], index_dir=where["index_dir"])
    watcher = Watcher(index, log, every=every)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: watcher.stop.set())
    log("info", f"watching {index.root.path}")
    try:
        watcher.run()
    except IndexLocked as locked:
        opening.say(f"already watched by {locked.holder}")
    return 0
