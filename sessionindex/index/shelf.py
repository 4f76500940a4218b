"""The files of a root in columns, one for each field of a record: how a snapshot holds them.

Goal: who asks a question of thousands of files that are as they were needs the values of a few. So
columns are read at once, and a `Record`, or what a walk found of a file (`Found`), is made when
somebody asks for that one; who goes through all of them has all made together, and kept.

Nothing here is checked: what columns are made of was, and a snapshot is what was written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, overload

from sessionindex.coverage import Cursor, Identity
from sessionindex.index.schema import Record
from sessionindex.layout import Found
from sessionindex.model import Session
from sessionindex.timestamps import instant_ms, stored

Columns = list[Sequence[Any]]

_new: Final = tuple.__new__  # spares a call for each of thousands of files
_KEY, _PATH, _SESSION, _NAME, _IDENTITY, _CURSOR, _REST = 0, 1, 2, 8, 9, 14, 20
_STAMP, _INSTANT, _SIZE = _SESSION + 2, _SESSION + 3, _IDENTITY + 2
_PROVEN, _OFFSET, _LINES = _CURSOR, _CURSOR + 1, _CURSOR + 2


def above(root: str) -> str:
    """What stands before the path of a file that is kept relative to the root."""
    return root.rstrip("/") + "/"


def columns(records: Sequence[Record], root: str) -> Columns:
    """The fields of records; paths are relative to the root."""
    if not records:
        return []
    keys, paths, sessions, names, cursors, *rest = zip(*records, strict=True)
    identities, *bounds = zip(*cursors, strict=True)
    inside = above(root)
    below = [path.removeprefix(inside) for path in paths]
    headers, places = zip(*sessions, strict=True), zip(*identities, strict=True)
    return [keys, below, *headers, names, *places, *bounds, *rest]


def local(columns: Columns) -> list[int]:
    """The places of headers without a zone: only that of the host tells when they were."""
    found = []
    for place, stamp in enumerate(columns[_STAMP] if columns else ()):
        moment = None if stamp.endswith("Z") else stored(stamp)
        if moment and moment[1]:
            found.append(place)
    return found


class Records(Mapping[str, Record]):
    """The records of columns, by path."""

    def __init__(self, columns: Columns, local: Sequence[int], root: str) -> None:
        """`local` are places of headers that are to be read in the zone of now."""
        self._columns = list(columns)
        self._all: dict[str, Record] | None = None
        self._at: dict[str, int] | None = None
        self._inside = above(root)
        self._paths: list[str] | None = None
        self.below: Sequence[str] = columns[_PATH] if columns else ()
        if local:
            instants = list(columns[_INSTANT])
            for place in local:
                instants[place] = instant_ms(columns[_STAMP][place]) or 0
            self._columns[_INSTANT] = instants

    def __len__(self) -> int:
        return len(self.below)

    def __iter__(self) -> Iterator[str]:
        return iter(self.everything())

    def __getitem__(self, path: str) -> Record:
        if self._all is not None:
            return self._all[path]
        return self.record(self._places()[path])

    def __contains__(self, path: object) -> bool:
        return path in self._places()

    @property
    def paths(self) -> list[str]:
        """All paths, absolute; as they are kept, relative to the root, they are `below`."""
        if self._paths is None:
            self._paths = [self._inside + path for path in self.below]
        return self._paths

    def path(self, place: int) -> str:
        """The path at a place, absolute."""
        return self._inside + self.below[place]

    def _places(self) -> dict[str, int]:
        if self._at is None:
            self._at = dict(zip(self.paths, range(len(self)), strict=True))
        return self._at

    def places(self, paths: Collection[str]) -> list[int]:
        """The places of those of the paths that are here, ascending."""
        at = self._places()
        return sorted(at[path] for path in paths if path in at)

    @property
    def keys_in_order(self) -> Sequence[int]:
        return self._columns[_KEY] if self.below else ()

    def record(self, place: int) -> Record:
        """The record at a place."""
        row = [column[place] for column in self._columns]
        known = _new(Identity, row[_IDENTITY:_CURSOR])
        cursor = _new(Cursor, [known, *row[_CURSOR:_REST]])
        header = _new(Session, row[_SESSION:_NAME])
        values = [row[_KEY], self.path(place), header, row[_NAME], cursor, *row[_REST:]]
        return _new(Record, values)

    def everything(self) -> dict[str, Record]:
        """All of them."""
        if self._all is None:
            all_of, pick = self._columns, repeat
            if not self.below:
                return {}
            sessions = map(_new, pick(Session), zip(*all_of[_SESSION:_NAME], strict=True))
            known = map(_new, pick(Identity), zip(*all_of[_IDENTITY:_CURSOR], strict=True))
            bounds = zip(known, *all_of[_CURSOR:_REST], strict=True)
            cursors = map(_new, pick(Cursor), bounds)
            firsts = (all_of[_KEY], self.paths, sessions, all_of[_NAME], cursors)
            rows = zip(*firsts, *all_of[_REST:], strict=True)
            made = map(_new, pick(Record), rows)
            self._all = dict(zip(self.paths, made, strict=True))
        return self._all

    def vouched(self) -> list[tuple[int, ...] | None]:
        """The identity that proves all of a file to be covered; None where none does."""
        if not self.below:
            return []
        known = zip(*self._columns[_IDENTITY:_CURSOR], strict=True)
        proven, offsets, lines = (self._columns[at] for at in (_PROVEN, _OFFSET, _LINES))
        size = _SIZE - _IDENTITY
        rows = zip(known, proven, offsets, lines, strict=True)
        return [
            one if sure and count and one[size] == end else None for one, sure, end, count in rows
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
        paths, parent = self.records.paths, self._parents[place]
        owner = paths[self._owners[place]]
        listed = record.cursor.identity
        return Found(
            record.path, listed, record.session, owner, paths[parent] if parent >= 0 else None
        )

    def _everything(self) -> tuple[Found, ...]:
        if self._all is None:
            paths = [*self.records.paths, None]
            records = self.records.everything().values()
            rows = zip(
                self.records.paths,
                [record[4][0] for record in records],
                [record[2] for record in records],
                [paths[place] for place in self._owners],
                [paths[place] for place in self._parents],
                strict=True,
            )
            self._all = tuple(map(_new, repeat(Found), rows))
        return self._all
