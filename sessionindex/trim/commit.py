"""One file put in the place of another, so that nothing is lost: not what is appended meanwhile,
not what a writer still puts into the old file, and at a kill neither the old file nor the new.

`held` opens a session for a trim: the one and only, not a link, locked by a flock on its inode, and
still at its path when it is locked; what earlier trims left is cleared, and what was written to a
file that they had replaced is carried. `commit` adds what was appended since the snapshot, has the
whole judged, and renames when nothing has changed while that was done and nobody writes. The old
inode keeps a hidden name until nobody can write to it any more; what came late is put in its place,
before what Pi appended to the new file meanwhile, by one more replacement.

Where a late line cannot live with the trimmed file (it refers to what went), the old file is put
back, with everything that was appended to either.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from sessionindex import files
from sessionindex.trim import beside, late
from sessionindex.trim.beside import Old, Replacement
from sessionindex.trim.plan import Refusal

Judge = Callable[[int, Replacement], None]
"""Raises Refusal where the first so many bytes of the source and a replacement differ in effect."""

_ATTEMPTS: Final = 50
_BUSY: Final = "another program has the file open for writing"
_CHANGED: Final = "the file was replaced or rewritten meanwhile"


@dataclass(frozen=True, slots=True)
class Source:
    """A session file that is being trimmed: open for reading, and locked."""

    path: str
    descriptor: int

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def is_there(self) -> bool:
        """Whether the path still leads to this very file, and nothing else does."""
        return _is_at(self.path, self.descriptor) and os.fstat(self.descriptor).st_nlink == 1


@dataclass(frozen=True, slots=True)
class Settled:
    """What came after a replacement: bytes carried late, why it was taken back, if it was."""

    late: int = 0
    undone: str | None = None
    open: bool = False


def _is_at(path: str, descriptor: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    held = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)


@contextmanager
def held(path: str, *, keep: Collection[str] = ()) -> Iterator[Source]:
    """The session at a path, locked; `keep` are prepared replacements that are not cleared.

    Raises Refusal, OSError.
    """
    while True:
        source = _locked(path)
        try:
            if _carried_on(source, keep):
                continue  # another file is at the path now
            _may_be_replaced(source)
            yield source
            return
        finally:
            os.close(source.descriptor)


def _locked(path: str) -> Source:
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode):
        raise Refusal("it is a link" if stat.S_ISLNK(found.st_mode) else "it is no regular file")
    try:
        descriptor, _ = files.open_listed(path, files.identity(found))
    except files.Changed as error:
        raise Refusal(_CHANGED) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Refusal("another trim of this file is at work") from error
    if not _is_at(path, descriptor):
        os.close(descriptor)
        raise Refusal(_CHANGED)
    return Source(path, descriptor)


def _may_be_replaced(source: Source) -> None:
    found = os.fstat(source.descriptor)
    if found.st_nlink > 1:
        raise Refusal("the file has another name (a hard link)")
    # Root may write what is read-only: the mode is what its owner meant.
    if not found.st_mode & 0o222 or not os.access(source.path, os.W_OK):
        raise Refusal("the file is read-only")
    if not os.access(os.path.dirname(source.path), os.W_OK | os.X_OK):
        raise Refusal("its folder is read-only")


# --- the replacement -----------------------------------------------------------------------------


def commit(
    source: Source,
    taken: int,
    unchanged: Callable[[], bool],
    new: Replacement,
    judge: Judge,
    before: Callable[[int], None] | None = None,
) -> Settled:
    """Put `new`, made of the first `taken` bytes of the source, in its place.

    `unchanged` says whether the source still begins as when it was read; `before` is called last of
    all, with the source's size. Raises Refusal, OSError: then the source is as it was.
    """
    for _ in range(_ATTEMPTS):
        now = files.identity(os.fstat(source.descriptor))
        if now.size < taken or not source.is_there() or not unchanged():
            raise Refusal(_CHANGED)
        if now.size > taken:
            new.copy(source.descriptor, taken, now.size)
            taken = now.size
        new.sync()
        judge(taken, new)
        if before is not None:
            before(taken)
            before = None
        _nobody_writes(source.descriptor)
        if files.identity(os.fstat(source.descriptor)) == now:
            break
    else:
        raise Refusal("the file changes faster than it can be copied")
    new.finish()
    second = _put(source.path, source.descriptor, taken, new)
    try:
        return _settle(source.path, source.descriptor, taken, new, second, judge)
    except (OSError, Refusal, files.Changed):
        return Settled(open=True)  # replaced it is; its old name is there for the next trim


def _nobody_writes(descriptor: int) -> None:
    """Pi opens a session only for the moment of an append; whoever stays would write for ever."""
    if late.is_written(descriptor) and not late.wait(descriptor, late.QUIET_S, still=0):
        raise Refusal(_BUSY)


def _put(path: str, old: int, taken: int, new: Replacement) -> Old | None:
    """Rename the replacement over the file; the hidden name of what it replaced."""
    found = os.fstat(old)
    os.utime(new.path, ns=(found.st_atime_ns, found.st_mtime_ns))  # Pi resumes the newest file
    second = beside.second_name(path, taken, new.size)
    try:
        if not _is_at(second.path if second else path, old):
            raise Refusal(_CHANGED)
        os.replace(new.path, path)
    except (OSError, Refusal):
        _forget(second)
        raise
    with suppress(OSError):  # it is done, and nothing that fails now undoes it
        files.sync_folder(os.path.dirname(path))
    return second


def _forget(second: Old | None) -> None:
    if second is not None:
        with suppress(OSError):
            os.unlink(second.path)


# --- what comes late -----------------------------------------------------------------------------


def _settle(
    path: str, old: int, taken: int, new: Replacement, second: Old | None, judge: Judge | None
) -> Settled:
    """Carry what arrives in files that were replaced, until nobody writes to any of them.

    The locks of the replacements end with this, so nobody else trims meanwhile.
    """
    opened = [new]
    carried, undone = 0, None
    try:
        for _ in range(_ATTEMPTS):
            quiet = late.wait(old, late.PATIENCE_S)
            size = os.fstat(old).st_size
            if size <= taken:
                if quiet:
                    _forget(second)
                return Settled(carried, undone, not quiet)
            third, reason = _third(path, old, (taken, size), new, judge)
            opened.append(third)
            copied = _appended(new, third, new.size)
            if not _is_at(path, new.reader):
                third.discard()
                return Settled(carried, undone, True)  # somebody's else: the second name stays
            later = _put(path, new.reader, copied, third)
            _forget(second)
            carried += size - taken
            undone = undone or reason
            old, taken, new, second, judge = new.reader, copied, third, later, None
        return Settled(carried, undone, True)
    finally:
        for one in opened:
            one.close()


def _third(
    path: str, old: int, span: tuple[int, int], new: Replacement, judge: Judge | None
) -> tuple[Replacement, str | None]:
    """The replacement with what came late behind it; or the old file, and why."""
    third = Replacement(path, os.fstat(new.reader))
    try:
        third.copy(new.reader, 0, new.size)
        third.copy(old, *span)
        third.sync()
        if judge is None:
            return third, None
        try:
            judge(span[1], third)
            return third, None
        except Refusal as refusal:
            third.discard()
            third = Replacement(path, os.fstat(new.reader))
            third.copy(old, 0, span[1])
            return third, str(refusal)
    except BaseException:
        third.discard()
        raise


def _appended(new: Replacement, third: Replacement, copied: int) -> int:
    """Add what was appended to the new file behind what came late; how far that was taken."""
    if os.fstat(new.reader).st_size > copied and files.read_at(
        third.reader, third.size - 1, 1
    ) not in (b"\n", b""):
        third.write(b"\n")  # its writer is gone: it must not swallow the next line
    while (size := os.fstat(new.reader).st_size) > copied:
        third.copy(new.reader, copied, size)
        copied = size
        third.sync()
    third.finish()
    return copied


def _carried_on(source: Source, keep: Collection[str]) -> bool:
    """Clear what earlier trims left; whether lines were carried, so that the file is another."""
    for path in beside.left(source.path):
        old = beside.old_of(path)
        if old is None:
            if path not in keep:
                with suppress(OSError):
                    os.unlink(path)
        elif _carried_from(source, old):
            return True
    return False


def _carried_from(source: Source, old: Old) -> bool:
    """Carry what a kill kept from being carried out of a replaced file."""
    if _is_at(old.path, source.descriptor):  # it never was replaced
        os.unlink(old.path)
        return False
    try:
        descriptor, _ = files.open_listed(old.path, files.identity(os.lstat(old.path)))
    except (OSError, files.Changed):
        return False
    try:
        size = os.fstat(descriptor).st_size
        if size <= old.taken or _is_carried(source, descriptor, old, size):
            if late.wait(descriptor, late.QUIET_S):
                os.unlink(old.path)
            return False
        new = _resumed(source, old)
        _settle(source.path, descriptor, old.taken, new, old, None)
        return True
    finally:
        os.close(descriptor)


def _is_carried(source: Source, descriptor: int, old: Old, size: int) -> bool:
    """Whether a kill came only after what was late had been carried, or the old file put back."""
    for start, place in ((old.taken, old.base), (0, 0)):
        pieces = zip(
            files.read_from(descriptor, start, size),
            files.read_from(source.descriptor, place, place + size - start),
            strict=False,
        )
        if source.size >= place + size - start and all(one == other for one, other in pieces):
            return True
    return False


def _resumed(source: Source, old: Old) -> Replacement:
    """The file at the path as the replacement that it was when a kill came."""
    new = Replacement.__new__(Replacement)
    new.path, new.size = source.path, min(old.base, source.size)
    if files.read_at(source.descriptor, new.size - 1, 1) != b"\n":
        new.size = source.size  # another program has been here: then behind everything
    new.reader, new._writer = os.dup(source.descriptor), -1
    return new
