"""A service is put where the host looks for it, made known, and taken away again.

Rules:

- A file that this program did not make is never replaced or removed; a link counts as one.
- The file is private and written as a whole. Doing it twice is doing it once.
- The host's commands run without a shell. Where they are missing or fail, the file is what it
  should be all the same, and who asked is told what is left to do (`Outcome.left`).
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from sessionindex import files
from sessionindex.daemon.service import Service, ServiceError, Step, is_ours

_PATIENCE: Final = 90  # as long as systemd itself waits for a service to stop

Found = Literal["none", "same", "other"]
"""What is there of a service: nothing, its file, or one that we made with other options."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was there before, and where a command failed: why, and the commands left to do.

    `missing`: the host has no such command at all.
    """

    before: Found
    failure: str | None = None
    missing: bool = False
    left: tuple[tuple[str, ...], ...] = ()


def look(service: Service) -> Found:
    """What is there; raises ServiceError for a file that is not ours or cannot be read."""
    try:
        text = files.read_small(service.path).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return "none"
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EINVAL):  # a link; no regular file
            raise _failed("read", service, error) from error
        text = ""
    if not is_ours(text):
        raise ServiceError(f"not made by sessionindex, left alone: {service.path}")
    return "same" if text == service.text else "other"


def install(service: Service) -> Outcome:
    """Write the file and have the host start it. Raises ServiceError."""
    before = look(service)
    if before != "same":
        try:
            files.make_private_folder(os.path.dirname(service.path))
            files.replace(service.path, service.text.encode("utf-8"))
        except OSError as error:
            raise _failed("write", service, error) from error
    return _carried_out(before, steps(service, before))


def steps(service: Service, before: Found) -> tuple[Step, ...]:
    """The steps that `install` takes once the file is written."""
    return service.start if before == "none" else service.restart


def uninstall(service: Service) -> Outcome:
    """Have the host stop it and remove the file. Raises ServiceError."""
    before = look(service)
    if before == "none":
        return Outcome(before)
    stopped = _carried_out(before, service.stop)
    try:
        os.unlink(service.path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed("remove", service, error) from error
    if stopped.failure is None:
        return _carried_out(before, service.forget)
    _unlink_enabled(service)
    left = () if stopped.missing else tuple(step.command for step in service.halt)
    return Outcome(before, stopped.failure, stopped.missing, left)


def _unlink_enabled(service: Service) -> None:
    """Take away the link that `disable` would have taken away."""
    with suppress(OSError):
        if service.link and os.readlink(service.link).endswith("/" + service.name):
            os.unlink(service.link)


def lingers() -> bool | None:
    """Whether the user's services outlive the last session; None where nobody can say."""
    said = _run(("loginctl", "show-user", str(os.getuid()), "--property=Linger"))
    return {"Linger=yes": True, "Linger=no": False}.get(said.out.strip())


@dataclass(frozen=True, slots=True)
class _Ran:
    failure: str | None
    missing: bool = False
    out: str = ""


def _carried_out(before: Found, wanted: Sequence[Step]) -> Outcome:
    for number, step in enumerate(wanted):
        ran = _tried(step)
        if ran.failure is not None and not step.tolerated:
            left = tuple(later.command for later in wanted[number:] if not later.tolerated)
            return Outcome(before, ran.failure, ran.missing, left)
    return Outcome(before)


def _tried(step: Step) -> _Ran:
    ran = _run(step.command)
    for _ in range(step.attempts - 1):
        if ran.failure is None or ran.missing:
            break
        time.sleep(1)
        ran = _run(step.command)
    return ran


def _run(command: Sequence[str]) -> _Ran:
    """Run a command of the host's to its end."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except FileNotFoundError:
        return _Ran(f"there is no {command[0]} here", missing=True)
    except subprocess.TimeoutExpired:
        return _Ran(f"{command[0]} did not end within {_PATIENCE} seconds")
    except OSError as error:
        return _Ran(f"{command[0]} cannot be run: {files.spoken(error)}")
    if done.returncode == 0:
        return _Ran(None, out=done.stdout.decode("utf-8", "replace"))
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
    reason = said.splitlines()[0] if said else f"exit status {done.returncode}"
    return _Ran(f"{command[0]} failed: {reason}")


def _failed(what: str, service: Service, error: OSError) -> ServiceError:
    return ServiceError(f"cannot {what} {service.path}: {files.spoken(error)}")
