"""Who writes to a file that was opened before it was replaced, and until when.

A writer that opened a session before the replacement writes into the old inode, at any time later.
On Linux a read lease on a descriptor that was held all along tells: the system gives it only where
nobody has the inode open for writing, and an inode without a name of its own cannot be opened
again. It is given back at once; what would break it meanwhile sends a signal that is ignored. An
open that found the old name and is under way counts for nothing yet, and a busy machine may leave
it there for a while: so a file that was replaced must not grow, nor be written, for IN_FLIGHT_S.

Elsewhere, and where the file is another user's, time has to do: two seconds without growth.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from typing import Final

QUIET_S: Final = 2.0
"""How long a file must not grow where no lease can tell."""

IN_FLIGHT_S: Final = 0.02
"""How long nobody must write to a file that was replaced, where a lease can tell."""

PATIENCE_S: Final = 10.0
"""How long a writer is waited for that has the file open."""


def is_written(descriptor: int) -> bool | None:
    """Whether anybody has the file open for writing; None where the system cannot tell."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return None
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # SIGIO would end the process
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def wait(descriptor: int, patience: float, still: float = IN_FLIGHT_S) -> bool:
    """Wait until nobody writes to the file any more; whether that came within so many seconds.

    `still` is for how long nobody must write where a lease can tell.
    """
    began = last = time.monotonic()
    size = os.fstat(descriptor).st_size
    while True:
        written, newest = is_written(descriptor), os.fstat(descriptor).st_size
        now = time.monotonic()
        if written or newest != size:
            size, last = newest, now
        quiet = QUIET_S if written is None else still
        if not written and now - last >= quiet:
            return True
        if now - began >= max(patience, quiet):
            return False
        time.sleep(0.002 if now - began < 0.1 else 0.02)
