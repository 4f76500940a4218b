"""A value that a forked child works out while this process does something else.

Goal: a short command spends half its time on imports, on one processor, while the file system has
thousands of stats to answer. A thread would not help: it waits for the interpreter lock after each
of them. A child has its own, and begins with all that is known here.

    - The child works on what it inherits and sends one value, as `marshal`, through a pipe. It
      writes nothing else, touches no stream, runs no handler, and ends as soon as it is done.
    - It is an offer: where it cannot be made, fails or is killed, the value is worked out here.
    - Only a process with one thread may fork, and only where a second processor is there to use.

What is worked out must depend on nothing that changes by being looked at: it may be done twice.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, NoReturn, TypeVar

_T = TypeVar("_T")

_BLOCK: Final = 1 << 20


def is_worth_it() -> bool:
    """Whether a child could work beside this process, and may be made."""
    if sys.platform != "linux":  # elsewhere what is loaded may not survive a fork
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1 and len(os.sched_getaffinity(0)) > 1
    except OSError:  # no /proc
        return False


class Child(Generic[_T]):
    """A child that works out what a function returns: of what `marshal` can write."""

    def __init__(self, function: Callable[[], _T]) -> None:
        self._function = function
        self._running = _started(function)

    def value(self) -> _T:
        """What the function returns, waited for; raises only what it raises here."""
        data = self._ended()
        with suppress(ValueError, EOFError, TypeError):
            found: list[_T] = marshal.loads(data)
            return found[0]
        return self._function()

    def drop(self) -> None:
        """Let the child go: nobody wants its value."""
        self._ended(wanted=False)

    def _ended(self, wanted: bool = True) -> bytes:
        if self._running is None:
            return b""
        (pid, reading), self._running = self._running, None
        data = bytearray()
        try:
            while wanted and (block := os.read(reading, _BLOCK)):
                data += block
        except OSError:
            data.clear()
        finally:
            os.close(reading)  # a child that still writes fails, and ends
            with suppress(ChildProcessError):  # somebody else waits for all children
                os.waitpid(pid, 0)
        return bytes(data)


def _started(function: Callable[[], Any]) -> tuple[int, int] | None:
    """The id of a new child and where it writes to; None where none can be made."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return None
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if not pid:
        _work(function, reading, writing)
    os.close(writing)
    return pid, reading


def _work(function: Callable[[], Any], reading: int, writing: int) -> NoReturn:
    """In the child: nothing that happens here may leave this function."""
    try:
        os.close(reading)
        data = memoryview(marshal.dumps([function()]))
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)  # what was not sent whole is no value
