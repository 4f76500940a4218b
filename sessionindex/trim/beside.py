"""Files of ours beside a session file: hidden, never `*.jsonl`, found again after a kill.

    .sessionindex-trim-MARK-NONCE.work            a replacement that is being written
    .sessionindex-trim-MARK-NONCE.ready           one that was prepared and waits for its commit
    .sessionindex-trim-MARK-NONCE-TAKEN-BASE.old  the file that was replaced, while somebody may
                                                  still write to it

MARK stands for the session file's name. The `.old` one is a second name of the inode: what is
written there after the replacement outlives a kill of ours. Of it the first TAKEN bytes are in the
new file, whose first BASE bytes were written by us. Whoever writes a file holds a flock on it, so
what a kill left can be told from what is in use.

A replacement is made exclusively, 0600, and gets the mode and owner of the file it is to replace
before anything of the session is in it that the owner could not read already.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from sessionindex import files

_NAME: Final = re.compile(
    r"\.sessionindex-trim-([0-9a-f]{16})-[0-9a-f]{16}(?:\.work|\.ready|-([0-9]+)-([0-9]+)\.old)"
)
READY: Final = ".ready"
WAITING_S: Final = 600
"""How long a prepared replacement may wait before `check --repair` takes it for abandoned."""


def _stem(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".sessionindex-trim-{_mark(name)}-{secrets.token_hex(8)}")


def _mark(name: str) -> str:
    return blake2b(os.fsencode(name), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Old:
    """A second name of a file that was replaced, and how much of it the new one has."""

    path: str
    taken: int
    base: int


class Replacement:
    """A file that is to take the place of another.

    `reader` is its descriptor, which also holds the lock; it outlives the renaming.
    """

    def __init__(self, source: str, like: os.stat_result) -> None:
        """Made beside `source`; raises OSError."""
        self.path = _stem(source) + ".work"
        self.size = 0
        self.reader = -1
        self._writer = files.create(self.path)
        try:
            made = os.fstat(self._writer)
            self.reader, _ = files.open_listed(self.path, files.identity(made))
            fcntl.flock(self.reader, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(self._writer, like.st_uid, like.st_gid)
            os.fchmod(self._writer, stat.S_IMODE(like.st_mode))
        except (OSError, files.Changed):
            self.discard()
            raise

    def write(self, data: bytes) -> None:
        files.write_all(self._writer, data)
        self.size += len(data)

    def copy(self, descriptor: int, start: int, end: int) -> None:
        """Add a range of another file."""
        for data in files.read_from(descriptor, start, end):
            self.write(data)

    def sync(self) -> None:
        os.fsync(self._writer)

    def finish(self) -> None:
        """Nothing more is written by us: from now on a lease can tell whether anybody does."""
        os.fsync(self._writer)
        os.close(self._writer)
        self._writer = -1

    def discard(self) -> None:
        """Take it away; also where it is half made."""
        with suppress(OSError):
            os.unlink(self.path)
        self.close()

    def close(self) -> None:
        for descriptor in (self._writer, self.reader):
            if descriptor >= 0:
                os.close(descriptor)
        self._writer = self.reader = -1


def ready_name(path: str) -> str:
    """The name of a replacement that waits."""
    return path.removesuffix(".work") + READY


def is_ready(path: str, source: str) -> bool:
    """Whether a path is the name of a prepared replacement of this session."""
    folder, name = os.path.split(path)
    found = _NAME.fullmatch(name)
    own = found is not None and found[1] == _mark(os.path.basename(source))
    return own and name.endswith(READY) and folder == os.path.dirname(source)


def second_name(path: str, taken: int, base: int) -> Old | None:
    """Give the file a hidden second name; None where the file system has no hard links."""
    old = Old(f"{_stem(path)}-{taken}-{base}.old", taken, base)
    try:
        os.link(path, old.path, follow_symlinks=False)
    except (OSError, NotImplementedError):
        return None
    return old


def left(path: str) -> list[str]:
    """What trims of this session left beside it."""
    folder, name = os.path.split(path)
    mark = _mark(name)
    found = [item for item in _ours(folder) if (got := _NAME.fullmatch(item)) and got[1] == mark]
    return [os.path.join(folder, item) for item in found]


def old_of(path: str) -> Old | None:
    """What the name of a second name says; None for any other file of ours."""
    found = _NAME.fullmatch(os.path.basename(path))
    if found is None or found[2] is None:
        return None
    return Old(path, int(found[2]), int(found[3]))


def clear(folder: str) -> bool:
    """Take away replacements that nobody works on; whether second names are left for a trim."""
    olds = False
    for name in _ours(folder):
        path = os.path.join(folder, name)
        if name.endswith(".old"):
            olds = True
        elif _is_abandoned(path):
            with suppress(OSError):
                os.unlink(path)
    return olds


def _ours(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (name for name in names if _NAME.fullmatch(name))


def _is_abandoned(path: str) -> bool:
    try:
        found = os.lstat(path)
        if path.endswith(READY) and time.time() - found.st_mtime < WAITING_S:
            return False
        descriptor, _ = files.open_listed(path, files.identity(found))
    except (OSError, files.Changed):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
