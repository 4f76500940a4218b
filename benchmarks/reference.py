"""What figures are compared with, but for indexing (`cold`): a walk, ripgrep, a bare Python.

Whole processes run with what they print thrown away, none of the user's settings, and the byte
code of the package compiled beforehand, as an installed package has it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

NO_RIPGREP = "ripgrep is not installed"


def environment() -> dict[str, str]:
    """Of a process that is measured: no session runs, and no settings of anybody."""
    without = ("PYTHONDONTWRITEBYTECODE", "RIPGREP_CONFIG_PATH")
    kept = {name: value for name, value in os.environ.items() if name not in without}
    return {**kept, "PI_SESSION_FILE": "", "PI_CODING_AGENT_DIR": tempfile.gettempdir()}


def process(command: Sequence[str]) -> float:
    """Seconds of a whole process; status 1 is "nothing found"."""
    began = time.perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()
    )
    took = time.perf_counter() - began
    if done.returncode not in (0, 1):
        raise SystemExit(f"ended with {done.returncode}: {' '.join(command)}")
    return took


def call(what: Callable[..., object], *arguments: Any, **named: Any) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    what(*arguments, **named)
    return time.perf_counter() - began


def nothing() -> float:
    """Seconds of a Python that does nothing."""
    return process([sys.executable, "-c", "pass"])


def walk(root: str) -> float:
    """Seconds of a bare scandir of the tree with a stat of each file."""
    began = time.perf_counter()
    todo = [root]
    while todo:
        with os.scandir(todo.pop()) as found:
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    todo.append(item.path)
                else:
                    item.stat(follow_symlinks=False)
    return time.perf_counter() - began


def has_ripgrep() -> bool:
    return shutil.which("rg") is not None


def ripgrep(root: str, term: str, *options: str) -> list[str]:
    """`rg -F -i`, which ignores nothing that stands below the root."""
    return ["rg", "-F", "-i", "--no-ignore", *options, "--", term, root]


def sees(command: Sequence[str]) -> bool:
    """Whether a command finds something: a reference that reads nothing would be fast."""
    return subprocess.run(command, stdout=subprocess.DEVNULL, env=environment()).returncode == 0


def spelled(term: str) -> str:
    """A literal as JSON spells it: ripgrep refuses a line break, and sees no escapes."""
    escaped = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
    return "".join(escaped.get(sign, sign) for sign in term)
