"""What the index knows of the files, in one piece: `files.snapshot`, beside the segments.

Goal: a process that asks once should not read a stored document for each of thousands of files, nor
list their folders. It is a cache of file documents and of a walk, and belongs to one state of the
index (`Store.state`): in any other state, or where anything about it is odd, it does not exist, and
the documents are read. Whoever holds the writer lock writes it after a commit; a failure to do so
costs the next reader time.

    a line that names format and Python, then blocks:
        length (8 bytes), crc32 (4 bytes), then `marshal`:
    first block         state, records in columns by path, survey or None
    each block more     the state before it, its own, paths of files that are gone, records that
                        are new or replaced

A block more is appended where a long-lived writer changes few files; when they outgrow the first,
all is written anew. `marshal` is what Python keeps its own compiled modules in: three times as fast
as anything that could be read elsewhere too, which nobody needs. Headers without a zone are read in
that of the reader's host, as they are from documents.

A survey (`layout.Survey`) is in it where its sessions are the records; whether it still stands is
for `standing` to find out.
"""

from __future__ import annotations

import marshal
import os
import struct
import sys
import time
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

from sessionindex import files
from sessionindex.coverage import Cursor, Identity
from sessionindex.index.schema import Record
from sessionindex.layout import Found, Survey
from sessionindex.model import Session
from sessionindex.timestamps import instant_ms, stored

NAME: Final = "files.snapshot"
_MAGIC: Final = b"sessionindex files 1 python %d.%d\n" % sys.version_info[:2]
_HEAD: Final = struct.Struct("<QI")
_new: Final = tuple.__new__  # spares a call for each of thousands of files


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
        first, (of, columns, spelled) = next(blocks)
        records = {record[1]: record for record in _records(columns, root)}
        for _, (before, after, gone, columns) in blocks:
            if before != of:
                return None
            of = after
            changed = _records(columns, root)
            if gone or any(record[1] not in records for record in changed):
                spelled = None
            for path in gone:  # one that was new may be gone before it was written down
                records.pop(_above(root) + path, None)
            records.update((record[1], record) for record in changed)
        if of != state:
            return None
        survey = None if spelled is None else _survey(spelled, root, list(records.values()))
        return Snapshot(state, time.tzname, records, survey, Written(len(data), first, survey))
    except (OSError, ValueError, TypeError, LookupError, EOFError, StopIteration):
        return None


def save(folder: str, root: str, snapshot: Snapshot) -> Written:
    """Write all of it, whole or not at all. Raises OSError."""
    records = sorted(snapshot.records.values(), key=lambda record: record.path)
    survey = snapshot.survey
    spelled = None if survey is None else _spelled(survey, root, records)
    block = _block(snapshot.state, _columns(records, root), spelled)
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
    gone = [path.removeprefix(_above(root)) for path in changed if path not in snapshot.records]
    block = _block(state, snapshot.state, gone, _columns(there, root))
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


# --- records -------------------------------------------------------------------------------------


def _above(root: str) -> str:
    return root.rstrip("/") + "/"


def _columns(records: Sequence[Record], root: str) -> tuple[Any, ...]:
    """The fields of records, one list for each; paths are kept relative to the root."""
    if not records:
        return ()
    above = _above(root)
    keys, paths, sessions, names, cursors, entries, problems, leaves = zip(*records, strict=True)
    identities, *rest = zip(*cursors, strict=True)
    headers = list(zip(*sessions, strict=True))
    local = [place for place, one in enumerate(sessions) if _is_local(one.timestamp)]
    paths = tuple(path.removeprefix(above) for path in paths)
    places = list(zip(*identities, strict=True))
    return keys, paths, headers, local, names, places, rest, entries, problems, leaves


def _is_local(timestamp: str) -> bool:
    """Whether only the host's zone tells when this was."""
    moment = None if timestamp.endswith("Z") else stored(timestamp)
    return bool(moment and moment[1])


def _records(columns: tuple[Any, ...], root: str) -> list[Record]:
    if not columns:
        return []
    keys, paths, headers, local, names, places, rest, entries, problems, leaves = columns
    above = _above(root)
    sessions = list(map(_new, repeat(Session), zip(*headers, strict=True)))
    for place in local:
        header = sessions[place]
        sessions[place] = header._replace(timestamp_ms=instant_ms(header.timestamp) or 0)
    identities = map(_new, repeat(Identity), zip(*places, strict=True))
    cursors = map(_new, repeat(Cursor), zip(identities, *rest, strict=True))
    paths = [above + path for path in paths]
    rows = zip(keys, paths, sessions, names, cursors, entries, problems, leaves, strict=True)
    return list(map(_new, repeat(Record), rows))


# --- surveys -------------------------------------------------------------------------------------


def _spelled(survey: Survey, root: str, records: Sequence[Record]) -> tuple[Any, ...] | None:
    """A survey of just these files, by their places in the list; None where it is of others."""
    at = {record.path: place for place, record in enumerate(records)}
    found = survey.sessions
    if len(found) != len(at) or any(
        one.path not in at or one.session != records[at[one.path]].session for one in found
    ):
        return None
    owners = [at[one.owner] for one in found]
    parents = [-1 if one.parent is None else at[one.parent] for one in found]
    above = _above(root)
    folders, hidden = (
        [(path.removeprefix(above), tuple(known)) for path, known in some]
        for some in (survey.folders[1:], survey.hidden)
    )
    return survey.flat, owners, parents, tuple(survey.folders[0][1]), folders, hidden


def _survey(spelled: tuple[Any, ...], root: str, records: Sequence[Record]) -> Survey:
    flat, owners, parents, own, folders, hidden = spelled
    above = _above(root)
    paths = [record[1] for record in records]
    rows = zip(
        paths,
        [record[4][0] for record in records],
        [record[2] for record in records],
        [paths[place] for place in owners],
        [None if place < 0 else paths[place] for place in parents],
        strict=True,
    )
    sessions = tuple(map(_new, repeat(Found), rows))
    folders = [(above + path, known) for path, known in folders]
    return Survey(
        flat, sessions, [(root, own), *folders], [(above + path, known) for path, known in hidden]
    )
