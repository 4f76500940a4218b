"""`sessionindex daemon`: the watcher as a service of the host."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

import click

from sessionindex import SessionIndex
from sessionindex.cli import options
from sessionindex.cli.render import harmless, local_time, size
from sessionindex.daemon import installer, report
from sessionindex.daemon import service as services
from sessionindex.daemon.report import Report
from sessionindex.daemon.service import Service, ServiceError
from sessionindex.errors import SessionIndexError
from sessionindex.index.lock import Holder
from sessionindex.status import Status
from sessionindex.wire.output import dumps, iso


@click.group(
    epilog="Example: sessionindex daemon install", short_help="The watcher as a service."
)
def command() -> None:
    """Keep the watcher running: as a systemd user unit, or a launchd agent on macOS.

    No answer needs it; it keeps what each question has to read from the files small.
    """


@command.command(
    epilog="Example: sessionindex daemon install --dry-run", short_help="Install and start it."
)
@click.option("--dry-run", is_flag=True, help="Print the unit and what would be done; do nothing.")
@options.root_options
def install(dry_run: bool, **where: Any) -> int:
    """Write the unit and start it, now and with every login.

    Exit status 2 where it could not be started; the unit stays, and what is left to do is said.
    """
    index = SessionIndex(where["root"], layout=where["layout"], index_dir=where["index_dir"])
    service = _service(index, where)
    if dry_run:
        return _tell(service)
    done = installer.install(service)
    word = {"none": "written", "same": "there already", "other": "replaced"}[done.before]
    print(f"{harmless(service.path)}: {word}")
    if done.failure is not None:
        options.say(f"{done.failure}; to start it, run")
        _commands(done.left)
        return 2
    print(f"{service.name} is enabled and started")
    watching = _writer(index) if done.before == "none" else None
    if watching and watching.kind == "watch" and not _is_child(watching):
        options.say(f"where {watching} was watching already, the service ends at once: stop it, and")
        _commands((step.command for step in service.restart[-1:]))
    _hint_at_lingering()
    return 0
