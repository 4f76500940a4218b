"""The files that a question reads, and whether they still are what the question was put to.

A catalog is a moment; reading comes after it. A file is therefore opened as the one that was
listed, and what it is trusted for is asked again wherever its stat has changed: the indexed prefix
by its checksum, a file without one by its header. After reading it is asked once more: what was
read of an indexed prefix stands if the checksum does; what was read beyond it stands only if
nothing has changed meanwhile, so that nothing is taken from two states of a file.

`Changed` says that the question must be put again, to a new catalog. A question that was put too
often gives up being strict: a file that keeps changing is then an OSError of its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sessionindex import layout, scan
from sessionindex.catalog import File
from sessionindex.coverage import Identity
from sessionindex.files import Changed, checksum, identity, open_listed
from sessionindex.index.schema import Record
from sessionindex.model import Entry, Session
from sessionindex.rawtest import RawTest


def verified(
    file: File, places: Sequence[scan.Place], test: RawTest, *, strict: bool
) -> Iterator[Entry]:
    """The entries at places that the index names (ascending), which may match."""
    with opened(
        file.path, file.found.identity, file.record, file.found.session, strict, beyond=False
    ) as there:
        version = file.found.session.version
        yield from scan.entries_at(there, places, test=test, version=version)


def scanned(file: File, test: RawTest, *, whole: bool, strict: bool) -> Iterator[Entry]:
    """The entries of a file, `whole` or past what the index covers, which may match."""
    cursor = file.record.cursor if file.record and not whole else None
    with opened(file.path, file.found.identity, file.record, file.found.session, strict) as there:
        yield from scan.entries(
            there,
            test=test,
            version=file.found.session.version,
            offset=cursor.offset if cursor else 0,
            lines=cursor.lines if cursor else 0,
        )


@contextmanager
def opened(
    path: str,
    listed: Identity,
    record: Record | None,
    head: Session | str,
    strict: bool,
    *,
    beyond: bool = True,
) -> Iterator[int]:
    """A descriptor of a listed file, which must still be what it was when this ends.

    `head` is what `layout.header_in` said of it; `beyond` says that more is read than the indexed
    prefix. Raises Changed and OSError.
    """
    try:
        descriptor, now = open_listed(path, listed)
        try:
            if not _stands(record, head, descriptor, listed, now):
                raise Changed(path)
            yield descriptor
            after = identity(os.fstat(descriptor))
            touched = strict and after != now
            if touched and (beyond or not _stands(record, head, descriptor, now, after)):
                raise Changed(path)
        finally:
            os.close(descriptor)
    except Changed as error:
        if strict:
            raise
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error


def _stands(
    record: Record | None, head: Session | str, descriptor: int, before: Identity, now: Identity
) -> bool:
    """Whether what the file is trusted for has outlived a change of its stat."""
    if now == before:
        return True
    if record is not None:
        cursor = record.cursor
        return now.size >= cursor.offset and (
            checksum(descriptor, cursor.offset) == cursor.checksum
        )
    return layout.header_in(descriptor) == head
