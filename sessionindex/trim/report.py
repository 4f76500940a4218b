"""What a trim did, would do, or would not do, and why: one frozen value for every surface.

The status line is made here too, so that library, command line and extension say the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sessionindex.trim.plan import Dropped

Outcome = Literal["trimmed", "nothing", "refused", "planned"]


@dataclass(frozen=True, slots=True)
class TrimReport:
    """The outcome for one session file.

    Sizes are those of the whole file, what was appended meanwhile included; `carried` counts the
    lines that were. `message` is the outcome in one line; `reason` why it was refused or nothing.
    """

    path: str
    outcome: Outcome
    reason: str | None
    bytes_before: int
    bytes_after: int
    entries_before: int
    entries_after: int
    dropped: Mapping[str, Dropped] = field(default_factory=dict)
    carried: int = 0
    backup: str | None = None
    new_path: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The first of two steps: `token` names the replacement at `prepared`, None where none is."""

    token: str | None
    prepared: str | None
    snapshot_bytes: int
    report: TrimReport


def kilobytes(size: int) -> str:
    """A size as the status line has it."""
    return f"{(size + 512) // 1024} KB"


def sizes(what: str, before: int, after: int) -> str:
    """The status line: `Compacted session trimmed: 2367 KB → 148 KB`."""
    return f"{what}: {kilobytes(before)} → {kilobytes(after)}"


def untouched(path: str, outcome: Outcome, reason: str, size: int, entries: int) -> TrimReport:
    """The report of a file that stays as it is."""
    said = "Nothing to trim" if outcome == "nothing" else "Not trimmed"
    return TrimReport(
        path, outcome, reason, size, size, entries, entries, message=f"{said}: {reason}"
    )
