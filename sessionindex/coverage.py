"""A file's identity now against what the index remembers -> how much of the index still holds.

Stat values can prove that a file is unchanged only where the clock could tell two writes apart:
an identity is *proven* when it was taken before reading and its ctime is more than two seconds
older than that moment. Everything else needs the bytes: a checksum of the indexed prefix.

    same identity, proven                     Fresh      no byte is read
    at least as long as what is indexed       Unsure     the prefix checksum decides:
                                                         equal -> Fresh or Behind, else Stale
    shorter, or not one whole line indexed    Stale
    not in the index                          New

`Unsure` is the only verdict that needs I/O; whoever has the file settles it with `settle`.
Small digests of head and tail come first where a file grew: most rewrites differ there.
Pure: stat values and digests in, a verdict out.
"""

import zlib
from typing import Final, Literal, NamedTuple

Verdict = Literal["fresh", "behind", "stale", "new", "unsure"]

RACY_NS: Final = 2_000_000_000
"""How much older than the moment of indexing a ctime must be to prove anything."""

EDGE: Final = 4096
"""Bytes of the indexed prefix whose digest is kept, at each end."""


class Identity(NamedTuple):
    """What stat says of a file; nanoseconds, bytes. (A tuple: thousands are made a question.)"""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Cursor(NamedTuple):
    """How far a file is indexed and how that prefix can be known again.

    `offset` and `lines` are of the complete lines indexed; `checksum` is crc32 of that prefix,
    `head` and `tail` crc32 of its first and last 4 KiB.
    """

    identity: Identity
    proven: bool
    offset: int
    lines: int
    checksum: int
    head: int
    tail: int


def judge(now: Identity, cursor: Cursor | None) -> Verdict:
    """The verdict from stat alone."""
    if cursor is None or not cursor.lines:
        return "new"  # not even the header is vouched for
    if now == cursor.identity and cursor.proven:
        return "fresh" if now.size == cursor.offset else "behind"
    # Without a whole line indexed no byte vouches for the header.
    return "stale" if now.size < cursor.offset or not cursor.offset else "unsure"


def settle(now: Identity, cursor: Cursor, checksum: int) -> Verdict:
    """The verdict once the checksum of the first `cursor.offset` bytes is known."""
    if checksum != cursor.checksum:
        return "stale"
    return "fresh" if now.size == cursor.offset else "behind"


def is_proven(identity: Identity, clock_ns: int) -> bool:
    """Whether an identity taken at this moment, before reading, can later stand for the bytes.

    A ctime in the future (a clock set back) proves nothing.
    """
    return clock_ns - identity.ctime_ns > RACY_NS


def digest(data: bytes, before: int = 0) -> int:
    """crc32, continued from `before`."""
    return zlib.crc32(data, before)
