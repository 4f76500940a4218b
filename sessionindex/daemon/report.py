"""What the watcher last failed at: a small private file in the index folder.

    watch.json    {"error": text or null, "at": milliseconds}

The watcher notes what happened, `daemon status` reads it. It is talk and no state: whatever is
wrong with the file, nothing else depends on it, so a note that cannot be written is lost, and what
cannot be read says nothing. Never holds the text of a session.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from typing import Final

from sessionindex import files

NAME: Final = "watch.json"
_LONGEST: Final = 1000
_LAST: Final = 253_402_300_799_999  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class Report:
    """The error that the watcher met last, or None since it went well; `at` in milliseconds."""

    error: str | None
    at: int


def note(folder: str, error: str | None) -> None:
    """Write down an error, or None for "all is well"; that again costs no writing.

    Makes no folder, and never fails.
    """
    before = read(folder)
    if error is None and (before is None or before.error is None):
        return
    said = {"error": error and error[:_LONGEST], "at": time.time_ns() // 1_000_000}
    with contextlib.suppress(OSError):
        files.replace(os.path.join(folder, NAME), json.dumps(said).encode("ascii"), durable=False)


def read(folder: str) -> Report | None:
    """What was noted last; None where nothing was, or nothing that can be read."""
    try:
        said = json.loads(files.read_small(os.path.join(folder, NAME)))
        error, at = said["error"], said["at"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None
    if not (error is None or isinstance(error, str)) or type(at) is not int:
        return None
    return Report(error, at) if 0 <= at <= _LAST else None
