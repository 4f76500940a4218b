"""The one writer of an index: a lock that dies with its process, and who holds it.

The lock is the kernel's (flock) on a file of ours, which also says who took it last. Nothing waits
for it: whoever finds it taken is told the holder at once.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import NamedTuple

from sessionindex import jsonline
from sessionindex.errors import IndexLocked


class Holder(NamedTuple):
    """The process that holds the writer lock; `since` in milliseconds."""

    pid: int
    since: int
    kind: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.kind})"


def take(path: str, kind: str) -> int:
    """Take the lock at a path; the descriptor that holds it until it is closed.

    `kind` is what holder() tells others. Raises IndexLocked, OSError.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(lock, 0o600)
    for patience in range(3, -1, -1):  # whoever only asks for the holder has it for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if not patience:
                found = _said(lock)
                os.close(lock)
                raise IndexLocked(str(found)) from error
            time.sleep(0.01)
    said = {"pid": os.getpid(), "since": time.time_ns() // 1_000_000, "kind": kind}
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, jsonline.compact(said).encode(), 0)
    except OSError:
        os.close(lock)
        raise
    return lock


def holder(path: str) -> Holder | None:
    """Who holds the lock at a path now."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except OSError:
        return _said(lock)
    finally:
        os.close(lock)


def _said(lock: int) -> Holder:
    try:
        said = jsonline.strict(os.pread(lock, 4096, 0))
        return Holder(int(said["pid"]), int(said["since"]), str(said["kind"]))
    except (ValueError, KeyError, TypeError):
        return Holder(0, 0, "unknown")
