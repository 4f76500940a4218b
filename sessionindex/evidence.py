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
from types import TracebackType

from sessionindex import layout, scan
from sessionindex.catalog import File
from sessionindex.coverage import Identity
from sessionindex.files import Changed, checksum, identity, open_listed
from sessionindex.index.record import Record
from sessionindex.model import Entry, Session
from sessionindex.rawtest import RawTest


def verified(
    file: File, places: Sequence[scan.Place], test: RawTest, *, strict: bool
) -> Iterator[Entry]:
    """The entries at places that the index names (ascending), which may match."""
    with _opened(file, strict, beyond=False) as there:
        version = file.found.session.version
        yield from scan.entries_at(there, places, test=test, version=version)


def scanned(file: File, test: RawTest, *, whole: bool, strict: bool) -> Iterator[Entry]:
    """The entries of a file, `whole` or past what the index covers, which may match."""
    cursor = file.record.cursor if file.record and not whole else None
    with _opened(file, strict) as there:
        yield from scan.entries(
            there,
            test=test,
            version=file.found.session.version,
            offset=cursor.offset if cursor else 0,
            lines=cursor.lines if cursor else 0,
        )


class Opened:
    """A descriptor of a listed file, which must still be what it was when the block ends.

    `head` is what `layout.header_in` said of it; `beyond` says that more is read than the indexed
    prefix. Raises Changed and OSError. (Written out: a generator would cost more than the opening,
    and a question may open thousands.)
    """

    __slots__ = ("_about", "_beyond", "_descriptor", "_listed", "_now", "_path", "_strict")

    def __init__(
        self,
        path: str,
        listed: Identity,
        record: Record | None,
        head: Session | str,
        strict: bool,
        *,
        beyond: bool = True,
    ) -> None:
        self._path, self._listed = path, listed
        self._about = record, head
        self._strict, self._beyond = strict, beyond

    def __enter__(self) -> int:
        try:
            self._descriptor, self._now = open_listed(self._path, self._listed)
            try:
                self._stand(self._listed, self._now)
            except BaseException:
                os.close(self._descriptor)
                raise
        except Changed as error:
            self._give_up(error)
            raise
        return self._descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._strict:
                after = identity(os.fstat(self._descriptor))
                if self._beyond and after != self._now:
                    raise Changed(self._path)
                self._stand(self._now, after)
        finally:
            os.close(self._descriptor)
        if isinstance(error, Changed):
            self._give_up(error)

    def _stand(self, before: Identity, now: Identity) -> None:
        if not _stands(*self._about, self._descriptor, before, now):
            raise Changed(self._path)

    def _give_up(self, error: Changed) -> None:
        """A file that keeps changing is an error of its own, for who is not strict."""
        if not self._strict:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error


def _opened(file: File, strict: bool, *, beyond: bool = True) -> Opened:
    found = file.found
    return Opened(found.path, found.identity, file.record, found.session, strict, beyond=beyond)


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
