"""The command line as people meet it: in a terminal of a given width, or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed (in a terminal, both streams as they came)."""

    status: int
    out: str
    err: str = ""


def environment(home: Path, **more: str) -> dict[str, str]:
    """A process environment that knows only scratch space."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    fixed = {"HOME": str(home), "TZ": "UTC", "PYTHONUTF8": "1", "TERM": "xterm"}
    return {**kept, **fixed, "SESSIONINDEX_DIR": str(home / "index"), **more}


def pipe(arguments: Sequence[str], env: Mapping[str, str], stdin: bytes | None = None) -> Ran:
    """`sessionindex ARGUMENTS` with its output in pipes."""
    done = subprocess.run(
        [sys.executable, "-m", "sessionindex", *arguments],
        env=dict(env),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=120,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def terminal(arguments: Sequence[str], env: Mapping[str, str], columns: int = 80) -> Ran:
    """`sessionindex ARGUMENTS` in a terminal."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-m", "sessionindex", *arguments],
        env=dict(env),
        stdin=inner,
        stdout=inner,
        stderr=inner,
        close_fds=True,
    )
    os.close(inner)
    parts = []
    while True:
        try:
            data = os.read(outer, 65536)
        except OSError:  # Linux: the last writer has gone
            break
        if not data:
            break
        parts.append(data)
    os.close(outer)
    status = child.wait(timeout=120)
    return Ran(status, b"".join(parts).decode("utf-8").replace("\r\n", "\n"))
