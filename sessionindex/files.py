"""The disk, as this project touches it: opening, reading in place, private folders, replacing.

Rules:

- A session file is opened for reading only, without following a link, without blocking (a FIFO
  must not hang anybody), checked to be a regular file and the very one that was listed.
- Reads are `pread` at given offsets: a mapped file that shrinks would kill the process.
- What we write ourselves is private whatever the umask: folders 0700, files 0600; a small file is
  replaced as a whole (written beside, fsynced, renamed, folder fsynced).
- The system's errors become the contract's texts here: `NAME: what the system says`.

`Changed` says that a file is no longer the one that was listed; who asked lists again.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Final

from sessionindex.coverage import EDGE, Identity, digest

BLOCK: Final = 512 << 10
"""Bytes read at a time where a file is read in order."""


class Changed(Exception):
    """The file at a path is not the one that was listed there (or is gone)."""


def spoken(error: OSError) -> str:
    """The system's reason in the contract's form, without paths: `EACCES: Permission denied`."""
    name = errno.errorcode.get(error.errno or 0, "EIO")
    return f"{name}: {os.strerror(error.errno or errno.EIO)}"


_MOUNTS: Final = "/proc/self/mountinfo"
_LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs"})


def keeps_folder_times(device: int) -> bool:
    """Whether a folder's times on this device are known to move with the names in it.

    True only where the system says that it holds a local file system of the usual kinds: network
    and user-space ones are free to keep times as they like.
    """
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            rows = [line.partition(" - ") for line in mounts]
    except OSError:
        return False
    kinds = {after.split(" ")[0] for before, _, after in rows if before.split(" ")[2] == number}
    return bool(kinds) and kinds <= _LOCAL


def identity(found: os.stat_result) -> Identity:
    return tuple.__new__(  # spares a call for each of thousands of files
        Identity,
        (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
    )


def open_listed(path: str, listed: Identity) -> tuple[int, Identity]:
    """A descriptor of the file that was listed under this path, and its identity now.

    Raises Changed where another file, or none, is there; OSError where it cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise Changed(path) from error
        raise
    now = os.fstat(descriptor)
    same = (now.st_dev, now.st_ino) == (listed.device, listed.inode)
    if not same or not stat.S_ISREG(now.st_mode):
        os.close(descriptor)
        raise Changed(path)
    return descriptor, identity(now)


def open_folder(path: str, *, follow: bool) -> int:
    """A descriptor of a folder; raises OSError, also for a link that must not be followed."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    return os.open(path, flags if follow else flags | os.O_NOFOLLOW)


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Up to `length` bytes at `offset`; fewer only at the end of the file."""
    data = os.pread(descriptor, length, offset)
    if len(data) in (0, length):
        return data
    parts = [data]
    got = len(data)
    while got < length and (data := os.pread(descriptor, length - got, offset + got)):
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def read_from(descriptor: int, offset: int, end: int | None = None) -> Iterator[bytes]:
    """The bytes from `offset` to `end` (or the end of the file), a block at a time."""
    while end is None or offset < end:
        # Room for what is there and one byte more: then a short answer says that it was all.
        there = (os.fstat(descriptor).st_size if end is None else end) - offset
        size = min(BLOCK, max(there + (end is None), 1))
        data = os.pread(descriptor, size, offset)
        if not data:
            return
        offset += len(data)
        yield data
        if len(data) < size:
            return


def whole_lines(
    descriptor: int, offset: int, limit: int | None = None, *, torn: bool = True
) -> Iterator[tuple[int, bytes, bool]]:
    """(offset, bytes, complete): blocks of whole lines from `offset`, then a torn last line.

    Reads up to `limit`, or to the end of the file. Memory is one block, or the longest line where
    that is longer. A torn line can be without end: who does not want one that is `torn` does not
    pay for its length, and a long one that cannot be JSON comes as other bytes that are none.
    """
    for start, data, end, complete in blocks(descriptor, offset, limit, torn=torn):
        yield start, data[:end], complete


def blocks(
    descriptor: int, offset: int, limit: int | None = None, *, torn: bool = True
) -> Iterator[tuple[int, bytes, int, bool]]:
    """(offset, bytes, end, complete): like `whole_lines`, where the lines are those before `end`.

    What a block holds of the line after them is read again with the next: no byte is copied.
    """
    while limit is None or offset < limit:
        size = BLOCK if limit is None else min(BLOCK, limit - offset)
        data = os.pread(descriptor, size, offset)
        if not data:
            return
        cut = data.rfind(b"\n") + 1
        over = len(data) < size or offset + size == limit
        if not cut and not over:  # a longer line: read at one go, once its end is known
            del data
            end = _line_end(descriptor, offset + size, limit)
            if end is None:
                if torn and (data := _torn(descriptor, offset, limit)):
                    yield offset, data, len(data), False
                return
            data = read_at(descriptor, offset, end - offset)
            cut = data.rfind(b"\n") + 1
            over = len(data) < end - offset
        if cut:
            yield offset, data, cut, True
        if over:
            if cut < len(data) and torn:
                yield offset + cut, data[cut:], len(data) - cut, False
            return
        offset += cut
        del data  # its memory is that of the next block


def _line_end(descriptor: int, offset: int, limit: int | None) -> int | None:
    """Where the line ends that goes on at `offset`, its LF included, without keeping any of it."""
    for data in read_from(descriptor, offset, limit):
        cut = data.find(b"\n") + 1
        if cut:
            return offset + cut
        offset += len(data)
    return None


def _torn(descriptor: int, offset: int, limit: int | None) -> bytes:
    """A torn line of more than a block, if a JSON value could end where it does; else no JSON."""
    end = os.fstat(descriptor).st_size if limit is None else limit
    last = read_at(descriptor, max(0, end - 4096), min(end, 4096)).rstrip(b" \t\r\n")[-1:]
    whole = last in b'}]"0123456789el'  # also where blanks are all that is seen
    return read_at(descriptor, offset, max(0, end - offset)) if whole else b"{"


def checksum(descriptor: int, end: int) -> int:
    """crc32 of the first `end` bytes; of fewer where the file is shorter."""
    value = 0
    for data in read_from(descriptor, 0, end):
        value = digest(data, value)
    return value


def edges(descriptor: int, end: int) -> tuple[int, int]:
    """Digests of the first and of the last 4 KiB of the first `end` bytes."""
    head = digest(read_at(descriptor, 0, min(EDGE, end)))
    start = max(0, end - EDGE)
    return head, digest(read_at(descriptor, start, end - start))


# --- what we write ourselves ---------------------------------------------------------------------


def make_private_folder(path: str) -> None:
    """Make the folder and its missing parents, 0700; an existing one of ours is narrowed to it."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        os.chmod(folder, 0o700)


def narrow(folder: str) -> None:
    """Make a folder of ours 0700 and the files directly in it 0600."""
    os.chmod(folder, 0o700)
    with os.scandir(folder) as found:
        for item in found:
            try:
                mode = item.stat(follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) and mode & 0o777 != 0o600:
                    os.chmod(item.path, 0o600)
            except FileNotFoundError:
                continue  # a merge has just taken it away


def read_small(path: str) -> bytes:
    """A file of ours, as long as it is now; raises OSError, also where it is no regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return read_at(descriptor, 0, found.st_size)
    finally:
        os.close(descriptor)


def replace(path: str, data: bytes, *, durable: bool = True) -> None:
    """Put a small private file in place of `path`, whole or not at all.

    `durable` also has it outlive a power cut, which costs two fsyncs.
    """
    beside = f"{path}.{os.getpid()}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    except OSError:
        os.unlink(beside)
        raise
    finally:
        os.close(descriptor)
    os.replace(beside, path)
    if durable:
        sync_folder(os.path.dirname(path))


def append(path: str, data: bytes, size: int) -> bool:
    """Add to a small private file of ours that has this size; False where it has another one.

    Raises OSError, which leaves as much as was written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_size != size:
            return False
        write_all(descriptor, data)
        return True
    finally:
        os.close(descriptor)


def create(path: str) -> int:
    """A descriptor to write a file that was not there, 0600 whatever the umask."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however little the system takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: str) -> None:
    """Have the names in a folder outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
