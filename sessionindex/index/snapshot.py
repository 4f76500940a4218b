"""What the index knows of the files, in one piece: `files.snapshot`, beside the segments.

Goal: a process that asks once should not read a stored document for each of thousands of files, nor
list their folders. It is a cache of file documents and of a walk, and belongs to one state of the
index (`Store.state`): in any other state, or where anything about it is odd, it does not exist, and
the documents are read. Whoever holds the writer lock writes it after a commit; a failure to do so
costs the next reader time.

    a line that names format (it changes with `shelf`) and Python, then blocks:
        length (8 bytes), crc32 (4 bytes), then `marshal`:
    first block         state, records by path in columns (`shelf`), which are local, survey or None
    each block more     the state before it, its own, paths of files that are gone, records that
                        are new or replaced in columns, which of them are local

A block more is appended where a long-lived writer changes few files; when they outgrow the first,
all is written anew. `marshal` is what Python keeps its own compiled modules in: three times as fast
as anything that could be read elsewhere too, which nobody needs. Headers without a zone are read in
that of the reader's host, as they are from documents.

A survey (`layout.Survey`) is in it where its sessions are the records; whether it still stands is
for `standing` to find out.
"""

import marshal
import os
import struct
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sessionindex import files
from sessionindex.index import shelf
from sessionindex.index.record import Record
from sessionindex.index.shelf import PATH, Columns, Records, Sessions, above
from sessionindex.layout import Survey

NAME: Final = "files.snapshot"
_MAGIC: Final = b"sessionindex files 2 python %d.%d\n" % sys.version_info[:2]
_HEAD: Final = struct.Struct("<QI")


class Written(NamedTuple):
    """What lies on disk: how large it is, how large its first block, and the survey in it.

    Sizes are bytes.
    """

    size: int
    first: int
    survey: Survey | None


class Snapshot(NamedTuple):
    """What is known of the files, by path, at a state of the index.

    `zone` is the host's at that moment: headers without one were read in it. `survey` is a walk
    that found just these files, where one is known; `written` says what lies on disk of this state.
    """

    state: object
    zone: tuple[str, str]
    records: Mapping[str, Record]
    survey: Survey | None = None
    written: Written | None = None


def load(folder: str, root: str, state: object) -> Snapshot | None:
    """What was written for this state of the index in a generation's folder; None without."""
    try:
        data = files.read_small(os.path.join(folder, NAME))
        blocks = _blocks(data)
        first, (of, columns, local, spelled) = next(blocks)
        if first + len(_MAGIC) < len(data):
            paths = columns[PATH] if columns else ()
            of, columns, local = _followed((of, columns, local), [block for _, block in blocks])
            if not columns or tuple(paths) != tuple(columns[PATH]):
                spelled = None
        if of != state:
            return None
        records = Records(columns, local, root)
        survey = None if spelled is None else _survey(spelled, records)
        return Snapshot(state, time.tzname, records, survey, Written(len(data), first, survey))
    except (OSError, ValueError, TypeError, LookupError, EOFError, StopIteration):
        return None


_Stand = tuple[object, Columns, Collection[str]]
"""A state, its columns, and which headers are local."""


def _followed(stand: _Stand, blocks: Sequence[Any]) -> _Stand:
    """Where blocks more have led; raises ValueError where one does not follow."""
    of, columns, local = stand
    rows = dict(zip(columns[PATH], zip(*columns, strict=True), strict=True)) if columns else {}
    local = set(local)
    for before, after, gone, changed, local_too in blocks:
        if before != of:
            raise ValueError("not the next")
        of = after
        for path in gone:  # one that was new may be gone before it was written down
            rows.pop(path, None)
        if changed:
            rows.update(zip(changed[PATH], zip(*changed, strict=True), strict=True))
            local.difference_update(changed[PATH])
        local.update(local_too)
    return of, list(zip(*rows.values(), strict=True)), local


def save(folder: str, root: str, snapshot: Snapshot) -> Written:
    """Write all of it, whole or not at all. Raises OSError."""
    records = sorted(snapshot.records.values(), key=lambda record: record.path)
    survey = snapshot.survey
    spelled = None if survey is None else _spelled(survey, records)
    columns = shelf.columns(records, root)
    block = _block(snapshot.state, columns, shelf.local(records, root), spelled)
    data = _MAGIC + block
    files.replace(os.path.join(folder, NAME), data, durable=False)
    return Written(len(data), len(block), survey)


def add(
    folder: str,
    root: str,
    snapshot: Snapshot,
    changed: Collection[str],
    state: object,
    before: Written,
) -> Written | None:
    """Bring what is on disk, of a `state`, to the one that differs from it in `changed` paths.

    None where it had better be written anew. Raises OSError.
    """
    there = [snapshot.records[path] for path in changed if path in snapshot.records]
    gone = [path.removeprefix(above(root)) for path in changed if path not in snapshot.records]
    parts = shelf.columns(there, root), shelf.local(there, root)
    block = _block(state, snapshot.state, gone, *parts)
    size = before.size + len(block)
    if size > _MOST * before.first + _LEAST:
        return None
    if not files.append(os.path.join(folder, NAME), block, before.size):
        return None
    return before._replace(size=size)


_MOST: Final = 2
_LEAST: Final = 64 << 10
"""How large all blocks may become: so many times the first, and some room for small roots."""


def _block(*parts: Any) -> bytes:
    data = marshal.dumps(parts)
    return _HEAD.pack(len(data), zlib.crc32(data)) + data


def _blocks(data: bytes) -> Iterator[tuple[int, Any]]:
    """The length and the content of each block; raises ValueError where one is damaged."""
    if not data.startswith(_MAGIC):
        raise ValueError("another format")
    start = len(_MAGIC)
    view = memoryview(data)
    while start < len(data):
        if len(data) - start < _HEAD.size:
            raise ValueError("damaged")
        length, checksum = _HEAD.unpack_from(data, start)
        start += _HEAD.size
        block = view[start : start + length]
        if len(block) != length or zlib.crc32(block) != checksum:
            raise ValueError("damaged")
        yield _HEAD.size + length, marshal.loads(block)
        start += length


# --- surveys -------------------------------------------------------------------------------------


def _spelled(survey: Survey, records: Sequence[Record]) -> tuple[Any, ...] | None:
    """A survey of just these files, by their places in the list; None where it is of others."""
    at = {record.path: place for place, record in enumerate(records)}
    found = survey.sessions
    if len(found) != len(at) or any(
        one.path not in at or one.session != records[at[one.path]].session for one in found
    ):
        return None
    owners = [at[one.owner] for one in found]
    parents = [-1 if one.parent is None else at[one.parent] for one in found]
    folders, hidden = (
        [(path, tuple(known)) for path, known in some] for some in (survey.folders, survey.hidden)
    )
    return survey.flat, owners, parents, tuple(survey.own), folders, hidden


def _survey(spelled: tuple[Any, ...], records: Records) -> Survey:
    flat, owners, parents, *rest = spelled
    return Survey(flat, Sessions(records, owners, parents), *rest)
