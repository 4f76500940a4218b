"""The files of a root in columns, one for each field of a record: how a snapshot holds them.

Goal: who asks a question of thousands of files that are as they were needs the values of a few. So
columns are read at once, and a `Record`, or what a walk found of a file (`Found`), is made when
somebody asks for that one; who goes through all of them has all made together, and kept.

    key, path, the identity in five, proven, offset, lines      what every question looks at
    rest        of each file, as `marshal`: header, name, digests, entries, problems, leaf

Nothing here is checked: what columns are made of was, and a snapshot is what was written.
"""

from __future__ import annotations

import marshal
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, overload

from sessionindex.coverage import Cursor, Identity
from sessionindex.index.record import Record
from sessionindex.layout import Found
from sessionindex.model import Session
from sessionindex.timestamps import instant_ms, stored

Columns = Sequence[Sequence[Any]]

_new: Final = tuple.__new__  # spares a call for each of thousands of files
_KEY, PATH, _IDENTITY, _BOUNDS, _REST = 0, 1, 2, 7, 10
_SIZE: Final = 2


def above(root: str) -> str:
    """What stands before the path of a file that is kept relative to the root."""
    return root.rstrip("/") + "/"


def columns(records: Sequence[Record], root: str) -> Columns:
    """The fields of records; paths are relative to the root."""
    if not records:
        return []
    inside = above(root)
    keys, paths, sessions, names, cursors, entries, problems, leaves = zip(*records, strict=True)
    identities, *bounds, checksums, heads, tails = zip(*cursors, strict=True)
    headers = map(tuple, sessions)
    rest = zip(headers, names, checksums, heads, tails, entries, problems, leaves, strict=True)
    below = [path.removeprefix(inside) for path in paths]
    return [
        keys,
        below,
        *zip(*identities, strict=True),
        *bounds,
        list(map(marshal.dumps, rest)),
    ]


def local(records: Sequence[Record], root: str) -> set[str]:
    """Paths of headers without a zone: only that of the host tells when they were."""
    inside = above(root)
    found = set()
    for record in records:
        stamp = record.session.timestamp
        moment = None if stamp.endswith("Z") else stored(stamp)
        if moment and moment[1]:
            found.add(record.path.removeprefix(inside))
    return found


class Records(Mapping[str, Record]):
    """The records of columns, by path."""

    def __init__(self, columns: Columns, local: Collection[str], root: str) -> None:
        """`local` are the paths of headers that are to be read in the zone of now."""
        self._columns = columns
        self._local = local
        self._inside = above(root)
        self._all: dict[str, Record] | None = None
        self._at: dict[str, int] | None = None
        self.below: Sequence[str] = columns[PATH] if columns else ()
        self.keys_in_order: Sequence[int] = columns[_KEY] if columns else ()

    def __len__(self) -> int:
        return len(self.below)

    def __iter__(self) -> Iterator[str]:
        return iter(self.everything())

    def __getitem__(self, path: str) -> Record:
        if self._all is not None:
            return self._all[path]
        if not path.startswith(self._inside):
            raise KeyError(path)
        return self.record(self._places()[path.removeprefix(self._inside)])

    def _places(self) -> dict[str, int]:
        if self._at is None:
            self._at = dict(zip(self.below, range(len(self)), strict=True))
        return self._at

    def path(self, place: int) -> str:
        """The path at a place, absolute; `below` are paths as they are kept, below the root."""
        return self._inside + self.below[place]

    def places(self, paths: Collection[str]) -> list[int]:
        """The places of those of the paths that are here, ascending."""
        at, inside = self._places(), self._inside
        below = [path.removeprefix(inside) for path in paths if path.startswith(inside)]
        return sorted(at[path] for path in below if path in at)

    def record(self, place: int) -> Record:
        """The record at a place."""
        row = [column[place] for column in self._columns]
        header, *rest = marshal.loads(row[_REST])
        known = _new(Identity, row[_IDENTITY:_BOUNDS])
        name, checksum, head, tail, *ends = rest
        cursor = _new(Cursor, [known, *row[_BOUNDS:_REST], checksum, head, tail])
        session = self._session(row[PATH], header)
        return _new(Record, [row[_KEY], self.path(place), session, name, cursor, *ends])

    def _session(self, below: str, header: Sequence[Any]) -> Session:
        session = _new(Session, header)
        if below in self._local:
            session = session._replace(timestamp_ms=instant_ms(session.timestamp) or 0)
        return session

    def everything(self) -> dict[str, Record]:
        """All of them."""
        if self._all is None and not self.below:
            self._all = {}
        if self._all is None:
            keys, below, *others = self._columns
            paths = [self._inside + path for path in below]
            rows = zip(*map(marshal.loads, others.pop()), strict=True)
            headers, names, checksums, heads, tails, *ends = rows
            known = map(_new, repeat(Identity), zip(*others[: _BOUNDS - 2], strict=True))
            bounds = zip(known, *others[_BOUNDS - 2 :], checksums, heads, tails, strict=True)
            cursors = map(_new, repeat(Cursor), bounds)
            sessions = map(self._session, below, headers)
            firsts = zip(keys, paths, sessions, names, cursors, *ends, strict=True)
            self._all = dict(zip(paths, map(_new, repeat(Record), firsts), strict=True))
        return self._all

    def vouched(self) -> list[tuple[int, ...] | None]:
        """The identity that proves all of a file to be covered; None where none does."""
        if not self.below:
            return []
        known = zip(*self._columns[_IDENTITY:_BOUNDS], strict=True)
        rows = zip(known, *self._columns[_BOUNDS:_REST], strict=True)
        return [
            one if proven and lines and one[_SIZE] == offset else None
            for one, proven, offset, lines in rows
        ]


class Sessions(Sequence[Found]):
    """What a walk found of the files of records, in their order."""

    def __init__(self, records: Records, owners: Sequence[int], parents: Sequence[int]) -> None:
        """Owners and parents by their places; -1 is none."""
        self.records = records
        self._owners = owners
        self._parents = parents
        self._all: tuple[Found, ...] | None = None

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, place: int) -> Found: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Found]: ...
    def __getitem__(self, place: int | slice) -> Found | Sequence[Found]:
        if isinstance(place, slice) or self._all is not None:
            return self._everything()[place]
        return self.found(place, self.records.record(place))

    def __iter__(self) -> Iterator[Found]:
        return iter(self._everything())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def found(self, place: int, record: Record) -> Found:
        """What was found of the file of this record, which has this place."""
        path, up = self.records.path, self._parents[place]
        owner, parent = path(self._owners[place]), path(up) if up >= 0 else None
        return Found(record.path, record.cursor.identity, record.session, owner, parent)

    def _everything(self) -> tuple[Found, ...]:
        if self._all is None:
            records = self.records.everything().values()
            paths = [*self.records.everything(), None]
            rows = zip(
                paths[:-1],
                [record[4][0] for record in records],
                [record[2] for record in records],
                [paths[place] for place in self._owners],
                [paths[place] for place in self._parents],
                strict=True,
            )
            self._all = tuple(map(_new, repeat(Found), rows))
        return self._all
