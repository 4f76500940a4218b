"""How a command ends: its exit status, whatever happened, and streams that bear it.

Exit status 0 is a match (or done), 1 is none, 2 an error; each error of this package knows its own.
Ctrl-C is 130. A reader that has gone away is no error; a disk that is full under the output is one,
said in a line. What nobody thought of is a traceback, and a status that no script takes for
`no match`.

One code for every command, with click (`app`) and without it (a plain search): what click raises
is handled there, before it comes here.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from sessionindex.errors import SessionIndexError

_OUTPUT: Final = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EBADF)


def of(command: Callable[[], int]) -> int:
    """Carry out a command; the exit status."""
    _prepare_streams()
    try:
        status = command()
        sys.stdout.flush()
        return status
    except SessionIndexError as error:
        return failed(str(error), error.exit_status)
    except KeyboardInterrupt:
        with suppress(OSError):
            print(file=sys.stderr)  # the terminal shows ^C: what comes next has a line of its own
        return 130
    except (BrokenPipeError, SystemExit):  # click makes the first into the second
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0  # whoever reads us has read enough
    except OSError as error:
        if error.filename is None and error.errno in _OUTPUT:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return failed(f"cannot write the output: {os.strerror(error.errno)}", 2)
        return _bug()
    except Exception:
        return _bug()


def leave(status: int) -> NoReturn:
    """End the process at once, all output written.

    To take the interpreter apart, module by module, is a twentieth of a short command.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def failed(message: str, status: int) -> int:
    """Say why a command failed; the status that it ends with."""
    from sessionindex.cli.render import harmless

    with suppress(OSError):
        print(f"sessionindex: {harmless(message, lines=True)}", file=sys.stderr)
        sys.stderr.flush()
    return status


def _prepare_streams() -> None:
    """Have all three streams, whatever was closed, and none that fails for a character."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - until the end
            setattr(sys, name, stream)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace" if mode == "w" else "surrogateescape")


def _bug() -> int:
    """What nobody thought of: its traceback."""
    import traceback

    with suppress(OSError):
        traceback.print_exc()
    return 2
