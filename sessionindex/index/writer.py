"""Putting files into the index: entries and the file's cursor move in one commit.

A batch is at most BATCH characters of text, and ends wherever it is full: every commit leaves each
file either as it was or with a cursor that says exactly which of its lines the index holds. A kill
between commits loses the batch and nothing else.

The writer adds; it decides nothing (`ingest` does) and reads no session file. It must be closed:
closing waits for merges, without which every short-lived writer would leave a segment for ever.

A killed writer leaves merges undone. The next one begins them with its first segment, and tantivy
may lose a deletion there that has the number of the last commit, which the first operation of every
writer has. So the first operation here is a deletion of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple

from tantivy import Document, Query

from sessionindex import files
from sessionindex.errors import IndexFolderError, SessionIndexError
from sessionindex.index import segments
from sessionindex.index.record import Record, file_document, problem_document
from sessionindex.index.store import Generation, translated

BATCH: Final = 48_000_000
"""Characters of text after which a commit must come: tantivy queues without regard to size."""


_NOBODY: Final = 2**63
"""A key that no file has."""


class Scale(NamedTuple):
    """How much to take for an amount of work; `heap` in bytes, `batch` in characters."""

    threads: int
    heap: int
    batch: int


def scale(expected: int) -> Scale:
    """What fits `expected` bytes of session files.

    A small update cannot earn a second thread back. A medium one ends in few segments through
    merging. A large one is given bigger segments: merges of merges would map hundreds of megabytes.
    """
    if expected <= 16_000_000:
        return Scale(1, 15_000_000, BATCH * 2 // 3)
    if expected <= 800_000_000:
        return Scale(2, 64_000_000, BATCH)
    return Scale(2, 112_000_000, BATCH)


class Writer:
    """One writing session on a generation; a context manager that commits nothing by itself."""

    def __init__(self, generation: Generation, root: str, *, expected: int) -> None:
        """`expected` is how many bytes of session files are to come, about."""
        self._generation = generation
        self._schema = generation.index.schema
        self._root = root
        self._pending = 0
        self._scale = scale(expected)
        with translated("write"):
            self._writer = generation.index.writer(
                heap_size=self._scale.heap, num_threads=self._scale.threads
            )
        self._delete("file", _NOBODY)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            with suppress(SessionIndexError), translated("roll back"):
                self._writer.rollback()
            with suppress(SessionIndexError), translated("merge"):
                self._writer.wait_merging_threads()
            return
        with translated("merge"):
            self._writer.wait_merging_threads()
        self._settle()

    @property
    def is_full(self) -> bool:
        """Whether enough text waits for a commit."""
        return self._pending >= self._scale.batch

    def add(self, fields: dict[str, Any], size: int) -> None:
        """Add an entry's document, `documents.document` made it; `size` counts for the batch."""
        try:
            self._writer.add_document(Document.from_dict(fields, self._schema))
        except BaseException:  # entered only to be translated: this runs for every entry
            with translated("add"):
                raise
        self._pending += size + 64

    def drop(self, key: int) -> None:
        """Take away a file: its entries, its record and its problems."""
        self._delete("session", key)
        self._delete("file", key)
        self._delete("problems", key)

    def put(self, record: Record) -> None:
        """Replace the record of a file by this one."""
        self._delete("file", record.key)
        with translated("add"):
            fields = file_document(record, self._root)
            self._writer.add_document(Document.from_dict(fields, self._schema))

    def add_problems(self, key: int, problems: Sequence[tuple[int, int]]) -> None:
        """Add to the problems of a file: (line_no, number of the reason), ascending."""
        fields = problem_document(key, problems)
        self.add(fields, len(fields["facts"]))

    def commit(self) -> None:
        """Make everything so far visible and durable, at once."""
        with translated("commit"):
            self._writer.commit()
        self._settle()
        self._pending = 0
        if self._scale.threads > 1:
            _give_back()

    def _settle(self) -> None:
        folder = self._generation.folder
        try:
            files.narrow(folder)
            segments.note(folder)
        except OSError as error:
            raise IndexFolderError(
                f"cannot write the index: {folder}: {files.spoken(error)}", folder
            ) from error

    def _delete(self, field: str, key: int) -> None:
        # By query: deleting by term does nothing, silently, on unsigned fields.
        with translated("delete"):
            query = Query.term_query(self._schema, field, key, "basic")
            self._writer.delete_documents_by_query(query)


def _give_back() -> None:
    """Hand freed memory back to the system, which glibc would keep (a third of the peak)."""
    import ctypes  # only where much is written

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
