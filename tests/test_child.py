"""A child is an offer: its value, or the same worked out here, and nothing else of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import NoReturn

import pytest

from sessionindex import child
from sessionindex.child import Child

# The runner of these tests has threads of its own; a child of ours needs none of their locks.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def open_files() -> int:
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


@pytest.fixture(autouse=True)
def nothing_is_left() -> object:
    before = open_files()
    yield
    assert not has_children()
    assert open_files() == before


def test_the_value_is_that_of_the_child() -> None:
    assert Child(os.getpid).value() != os.getpid()


def test_a_value_larger_than_a_pipe_holds() -> None:
    assert Child(lambda: list(range(1_000_000))).value() == list(range(1_000_000))


def test_the_child_begins_with_what_is_known_here() -> None:
    known = {"a": (1, 2)}
    assert Child(lambda: known["a"]).value() == (1, 2)


def killed() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def failing() -> NoReturn:
    raise ValueError("in the child")


def unspeakable() -> object:
    return object()


@pytest.mark.parametrize("how", [killed, interrupted, failing, unspeakable])
def test_what_a_child_does_not_bring_is_worked_out_here(
    how: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever happened to it; nobody hears of that."""
    parent = os.getpid()
    value = Child(lambda: "here" if os.getpid() == parent else how()).value()
    assert value == "here"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("call", ["pipe", "fork"])
def test_where_no_child_can_be_made(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> NoReturn:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, call, refused)
    assert Child(os.getpid).value() == os.getpid()


def test_what_fails_here_too_is_raised() -> None:
    with pytest.raises(ValueError, match="in the child"):
        Child(failing).value()


def test_a_child_that_is_dropped_ends() -> None:
    """Also one that would write for ever: nobody reads."""
    Child(lambda: list(range(1_000_000))).drop()


def test_what_was_not_written_yet_is_written_once() -> None:
    script = (
        "from sessionindex.child import Child\n"
        "print('once', end=' ')\n"
        "print(Child(lambda: 'value').value())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("once value\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="made nowhere else")
def test_when_it_is_worth_it() -> None:
    """One thread, more than one processor."""
    script = (
        "import os, threading\n"
        "from sessionindex.child import is_worth_it\n"
        "print(is_worth_it() == (len(os.sched_getaffinity(0)) > 1))\n"
        "stop = threading.Event()\n"
        "threading.Thread(target=stop.wait).start()\n"
        "print(is_worth_it())\n"
        "stop.set()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\nFalse\n", "")


def test_not_where_threads_cannot_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def listdir(path: str) -> NoReturn:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", listdir)
    worth = child.is_worth_it()
    monkeypatch.undo()  # what counts open files needs it
    assert not worth


def test_not_on_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0}, raising=False)
    assert not child.is_worth_it()
