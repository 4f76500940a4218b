"""`sessionindex pi`: the extension and the skill for Pi."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from sessionindex import settings
from sessionindex.cli import opening, options
from sessionindex.cli.render import harmless
from sessionindex.pi import installer, surroundings
from sessionindex.pi.extension import command as started
from sessionindex.pi.extension import pieces
from sessionindex.pi.installer import Found
from sessionindex.pi.surroundings import Rival
from sessionindex.wire.output import dumps


@click.group(
    epilog="Example: sessionindex pi install",
    short_help="The extension for Pi.",
    no_args_is_help=False,  # click would make the help an error
)
def command() -> None:
    """Search from inside Pi: the tools, steering marks, and trimming after a compaction.

    Pi reads both files when a session starts, and at /reload.
    """


_DRY: Final = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
_JSON: Final = click.option("--json", "as_json", is_flag=True, help="The answer as JSON.")
_OFF: Final = '{"autoAfterCompaction": false}'


@command.command(
    epilog="Example: sessionindex pi install --dry-run", short_help="Put it where Pi looks."
)
@_DRY
@_JSON
@options.root_options
def install(dry_run: bool, as_json: bool, **where: Any) -> int:
    """Write the extension and a skill into Pi's folder; again after an update.

    Only with --root is that root searched whatever Pi is started with. Files that this program did
    not make are left alone, and then nothing is written: exit status 2.
    """
    found = installer.plan(pieces(opening.root_words(where)))
    if not dry_run:
        installer.install(found)
    words = _words(dry_run, missing="written", outdated="replaced", installed="there already")
    _told(found, words, as_json, dry_run)
    if as_json:
        return 0
    _say_trimming()
    _say_rivals(_rivals())
    return 0


@command.command(epilog="Example: sessionindex pi uninstall", short_help="Take it away.")
@_DRY
@_JSON
@options.root_options
def uninstall(dry_run: bool, as_json: bool, **where: Any) -> int:
    """Remove the extension and the skill, if this program made them. The index stays."""
    found = [installer.look(piece) for piece in pieces(opening.root_words(where))]
    if not dry_run:
        installer.uninstall(found)
    words = _words(dry_run, missing="not there", outdated="removed", installed="removed")
    _told(found, words, as_json, dry_run)
    return 0


@command.command(
    epilog="Example: sessionindex pi status --json", short_help="Is it there, does it work?"
)
@_JSON
@options.root_options
def status(as_json: bool, **where: Any) -> int:
    """Say how the extension stands, and what else decides whether it works.

    Exit status 0 where Pi loads it and it can start the program, 1 where not.
    """
    found = [installer.look(piece) for piece in pieces(opening.root_words(where))]
    extension = found[0]
    agent, user = settings.agent_dir(), settings.user()
    off = surroundings.switched_off(extension.piece.path, agent, user or {})
    runs = started(extension.text)
    failure = surroundings.failure(runs) if runs else None
    trimming = settings.auto_trim(_project())
    rivals = surroundings.rivals(agent, user or {})
    works = runs is not None and failure is None and off is None
    if as_json:
        _print(
            {
                "agentDir": agent,
                **{one.piece.what: _state(one) for one in found},
                "switchedOffBy": off,
                "command": runs,
                "failure": failure,
                "trimming": trimming is True,
                "trimmingReason": trimming if isinstance(trimming, str) else None,
                "rivals": [{"where": one.where, "why": one.why} for one in rivals],
            }
        )
        return 0 if works else 1
    rows = [(one.piece.what, f"{_spoken(one)}: {one.piece.path}") for one in found]
    if off is not None:
        rows.append(("switched off", f"by {off} in extensions of settings.json"))
    if runs is not None:
        rows.append(("command", (failure and f"cannot be run: {failure}") or "runs"))
    rows.append(
        ("trimming", trimming if isinstance(trimming, str) else "on" if trimming else "off")
    )
    rows += [("rival", f"{one.where}: {one.why}") for one in rivals]
    for name, value in rows:
        print(f"{name:>12}  {harmless(value)}")
    return 0 if works else 1


def _words(dry_run: bool, **done: str) -> dict[str, str]:
    """What is said of a piece in each state."""
    would = {"written": "would be written", "replaced": "would be replaced"}
    would |= {"removed": "would be removed"}
    words = {state: would.get(word, word) if dry_run else word for state, word in done.items()}
    return {**words, "foreign": "not made by sessionindex, left alone"}


def _told(found: Sequence[Found], words: dict[str, str], as_json: bool, dry_run: bool) -> None:
    if as_json:
        rows = [{"path": one.piece.path, "what": words[one.state]} for one in found]
        _print({"files": rows, "dryRun": dry_run})
        return
    for one in found:
        print(f"{harmless(one.piece.path)}: {words[one.state]}")
    sys.stdout.flush()


def _say_trimming() -> None:
    wanted = settings.auto_trim(_project())
    config = os.path.join(settings.agent_dir(), "extensions", "session-surgery.json")
    if isinstance(wanted, str):
        opening.say(wanted)
    elif wanted:
        opening.say(
            "trimming is on: after a compaction, what the model does not see any more goes from the"
            " session's file for good; there are no backups"
        )
        opening.say(f"to turn that off: {_OFF} in {harmless(config)}")
        opening.say("or in .pi/session-surgery.json of a trusted project")
    else:
        opening.say(f"trimming after a compaction is off (by {harmless(config)} or the project's)")


def _rivals() -> list[Rival]:
    return surroundings.rivals(settings.agent_dir(), settings.user() or {})


def _say_rivals(found: Sequence[Rival]) -> None:
    for one in found:
        opening.say(f"beware of {harmless(one.where)}: {one.why}")


def _project() -> str | None:
    """This folder, where its configuration counts."""
    try:
        return os.getcwd() if settings.project_trusted() else None
    except OSError:
        return None


def _state(found: Found) -> dict[str, str]:
    return {"path": found.piece.path, "state": found.state}


def _spoken(found: Found) -> str:
    return {
        "outdated": "of another version or other options (pi install renews it)",
        "foreign": "not made by sessionindex",
    }.get(found.state, found.state)


def _print(value: dict[str, Any]) -> None:
    sys.stdout.buffer.write(dumps(value, pretty=sys.stdout.isatty()) + b"\n")
    sys.stdout.buffer.flush()
