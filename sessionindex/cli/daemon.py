"""`sessionindex daemon`: the watcher as a service of the host."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from sessionindex import SessionIndex
from sessionindex.cli import opening, options
from sessionindex.cli.render import harmless, local_time, size
from sessionindex.daemon import installer, report
from sessionindex.daemon.report import Report
from sessionindex.daemon.service import Service, ServiceError, service, watch
from sessionindex.index import lock
from sessionindex.index.lock import Holder
from sessionindex.index.store import LOCK
from sessionindex.status import Status
from sessionindex.wire.output import dumps, iso


@click.group(
    epilog="Example: sessionindex daemon install",
    short_help="The watcher as a service.",
    no_args_is_help=False,  # click would make the help an error
)
def command() -> None:
    """Keep the watcher running: as a systemd user unit, or a launchd agent on macOS.

    No answer needs it; it keeps what each question has to read from the files small.
    """


_KIND: Final = "watch"
"""As what the watcher holds the writer lock."""


@command.command(
    epilog="Example: sessionindex daemon install --dry-run", short_help="Install and start it."
)
@click.option("--dry-run", is_flag=True, help="Print the unit; say what would be done, do nothing.")
@options.root_options
def install(dry_run: bool, **where: Any) -> int:
    """Write the unit, and have it started now and at every login.

    Exit status 2 where the host could not start it; the unit stays, and what is left to do is said.
    """
    index = _index(where)
    wanted = _service(index, where)
    if dry_run:
        return _print_only(wanted)
    watching = _watching(lock.holder(os.path.join(index.index_folder, LOCK)))
    done = installer.install(wanted)
    word = {"none": "written", "same": "there already", "other": "replaced"}[done.before]
    print(f"{harmless(wanted.path)}: {word}")
    if done.failure is not None:
        opening.say(f"{done.failure}; what is left to do:")
        _say_commands(done.left)
        return 2
    print(f"{wanted.name} is enabled and started")
    if watching and done.before == "none":
        opening.say(f"{watching} watched before, so the service ends at once; end that, then:")
        _say_commands([wanted.again])
    if installer.lingers() is False:
        opening.say("it ends when you log out; to have it run always: loginctl enable-linger")
    return 0


def _print_only(wanted: Service) -> int:
    before = installer.look(wanted)
    print(harmless(wanted.text, lines=True), end="")
    sys.stdout.flush()
    todo = {"none": "write", "same": "leave as it is", "other": "replace"}[before]
    opening.say(f"would {todo}: {wanted.path}")
    opening.say("would run:")
    _say_commands(step.command for step in installer.steps(wanted, before))
    return 0


@command.command(
    epilog="Example: sessionindex daemon uninstall", short_help="Stop it and take it away."
)
@options.root_options
def uninstall(**where: Any) -> int:
    """Stop the service and remove its unit, if this program made it. The index stays."""
    wanted = _service(_index(where), where)
    done = installer.uninstall(wanted)
    if done.before == "none":
        opening.say(f"nothing to remove: {wanted.path} does not exist")
        return 0
    print(f"{harmless(wanted.path)}: removed")
    if done.failure is None:
        return 0
    if not done.left:
        opening.say(f"{done.failure}, so nothing was stopped")
        return 0
    opening.say(f"{done.failure}; what is left to do:")
    _say_commands(done.left)
    return 2


@command.command(
    epilog="Example: sessionindex daemon status --json", short_help="Is it running, is it well?"
)
@click.option("--json", "as_json", is_flag=True, help="The status as JSON.")
@options.root_options
def status(as_json: bool, **where: Any) -> int:
    """Say whether a watcher runs on the root, how it is, and what it has not read yet.

    Exit status 0 where one runs (as a service or by hand), 1 where none does.
    """
    index = _index(where)
    now = index.status()
    unit = _unit(index, where)
    noted = report.read(now.index_dir)
    running = _watching(now.writer)
    if as_json:
        answer = _answer(now, running, noted, unit)
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if running else 1
    rows = [
        ("root", f"{now.root} ({now.layout})"),
        ("watcher", _said_of(now.writer)),
        ("unit", f"{unit.path} ({unit.state})" if unit.path else unit.state),
        ("last batch", _when(now.last_refresh)),
        (
            "to read",
            f"{now.behind:,} files grown, {now.stale:,} rewritten, {now.new:,} new "
            f"({size(now.pending_bytes)})",
        ),
        ("last error", _error(noted)),
    ]
    if now.damage:
        rows.append(("note", now.damage))
    for name, value in rows:
        print(f"{name:>10}  {harmless(value)}")
    if unit.installed and not running:
        opening.say(f"what it said last: {shlex.join(unit.log)}")
    return 0 if running else 1


def _index(where: dict[str, Any]) -> SessionIndex:
    """The index of these options; the watcher can wait for a root, so it need not be there."""
    return SessionIndex(where["root"], layout=where["layout"], index_dir=where["index_dir"])


def _service(index: SessionIndex, where: dict[str, Any]) -> Service:
    return service(watch(index.root, where["layout"], where["index_dir"]))


def _watching(writer: Holder | None) -> Holder | None:
    return writer if writer and writer.kind == _KIND else None


@dataclass(frozen=True, slots=True)
class _Unit:
    state: str
    path: str | None = None
    log: tuple[str, ...] = ()

    @property
    def installed(self) -> bool:
        return self.state == "installed"


def _unit(index: SessionIndex, where: dict[str, Any]) -> _Unit:
    """How the unit stands; where it could not be made, why."""
    try:
        wanted = _service(index, where)
    except ServiceError as error:
        return _Unit(str(error))
    try:
        state = "not installed" if installer.look(wanted) == "none" else "installed"
    except ServiceError:
        state = "not ours, or not readable"
    return _Unit(state, wanted.path, wanted.log)


def _answer(
    now: Status, running: Holder | None, noted: Report | None, unit: _Unit
) -> dict[str, Any]:
    failed = noted if noted and noted.error else None
    return {
        "root": now.root,
        "layout": now.layout,
        "indexDir": now.index_dir,
        "running": running is not None,
        "pid": running and running.pid,
        "since": running and iso(running.since),
        "lastBatch": iso(now.last_refresh),
        "behind": now.behind,
        "stale": now.stale,
        "new": now.new,
        "pendingBytes": now.pending_bytes,
        "lastError": failed and {"error": failed.error, "at": iso(failed.at)},
        "unit": {"path": unit.path, "installed": unit.installed},
        "damage": now.damage,
    }


def _said_of(writer: Holder | None) -> str:
    if running := _watching(writer):
        return f"process {running.pid}, since {_when(running.since)}"
    return f"not running ({writer} is writing)" if writer else "not running"


def _error(noted: Report | None) -> str:
    return f"{_when(noted.at)}: {noted.error}" if noted and noted.error else "none"


def _when(instant: int | None) -> str:
    return local_time(iso(instant) or "") if instant else "never"


def _say_commands(commands: Iterable[Sequence[str]]) -> None:
    for one in commands:
        print(f"  {harmless(shlex.join(one))}", file=sys.stderr)
