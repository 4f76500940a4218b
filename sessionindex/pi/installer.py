"""The extension and the skill are put where Pi looks for them, and taken away again.

Rules:

- A file that this program did not make is never replaced or removed; a link counts as one. Where
  there is one, nothing at all is installed; at a removal it stays, and the rest goes.
- Files are private and written as a whole. Doing it twice is doing it once.
- A running Pi is not told: it sees what changed with its next session, or at /reload.
- Nothing else is kept anywhere: what is in place is what the files say.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from sessionindex import files
from sessionindex.pi.extension import SKILL, ExtensionError, Piece, is_ours

State = Literal["missing", "installed", "outdated", "foreign"]
"""A piece is not there, as it would be written, ours but other, or somebody else's."""


@dataclass(frozen=True, slots=True)
class Found:
    """A piece, how it stands, and the text that is there now."""

    piece: Piece
    state: State
    text: str = ""


def look(piece: Piece) -> Found:
    """How a piece stands; raises ExtensionError where nobody can say."""
    try:
        text = files.read_small(piece.path).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return Found(piece, "missing")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL):  # a link; no regular file
            return Found(piece, "foreign")
        raise _failed("read", piece.path, error) from error
    if not is_ours(text):
        return Found(piece, "foreign")
    return Found(piece, "installed" if text == piece.text else "outdated", text)


def plan(pieces: Sequence[Piece]) -> list[Found]:
    """How each piece stands before an installation; raises ExtensionError where it cannot be."""
    found = [look(piece) for piece in pieces]
    for one in found:
        if one.state == "foreign":
            raise ExtensionError(f"not made by sessionindex, left alone: {one.piece.path}")
    return found


def install(found: Sequence[Found]) -> None:
    """Write what a plan says is missing or outdated. Raises ExtensionError."""
    for one in found:
        if one.state not in ("missing", "outdated"):
            continue
        path = one.piece.path
        try:
            files.make_private_folder(os.path.dirname(path))
            files.replace(path, one.piece.text.encode("utf-8"))
        except OSError as error:
            raise _failed("write", path, error) from error


def uninstall(found: Sequence[Found]) -> None:
    """Remove what is ours, and the folder of the skill where nothing else is in it."""
    for one in found:
        if one.state not in ("installed", "outdated"):
            continue
        path = one.piece.path
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _failed("remove", path, error) from error
        folder = os.path.dirname(path)
        if os.path.basename(folder) == SKILL:
            with suppress(OSError):  # somebody keeps something there
                os.rmdir(folder)


def _failed(what: str, path: str, error: OSError) -> ExtensionError:
    return ExtensionError(f"cannot {what} {path}: {files.spoken(error)}")
