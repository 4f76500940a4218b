"""The root as it is now: every session, and how much of the index still holds for it.

One walk of the tree and one stat a file; no file is opened that the index covers and whose
identity proves it unchanged. A header comes from the index where the file is covered, else from
the file. Where only the bytes can tell (`unsure`), the checksum of the indexed prefix decides.

The catalog never writes and never waits. With no records (no index, or `brute`) every file is
`new`: the same walk, the same sessions, the same warnings, from the files alone.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple, overload

from sessionindex import layout
from sessionindex.access import Policy
from sessionindex.coverage import Cursor, Identity, Verdict, judge, settle
from sessionindex.files import Changed, checksum, edges, identity, open_listed
from sessionindex.index.record import Record
from sessionindex.index.shelf import Sessions
from sessionindex.layout import Found, Notes
from sessionindex.model import PathWarning, Session


class File(NamedTuple):
    """A session file now; `record` is there where the index still holds for a prefix of it.

    `checked` bytes were read to find that out.
    """

    found: Found
    verdict: Verdict
    record: Record | None
    checked: int

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def uncovered(self) -> int:
        """Bytes that the index says nothing of."""
        return self.found.identity.size - (self.record.cursor.offset if self.record else 0)


class Files(Sequence[File]):
    """Files, by path; equal to any that holds the same."""

    def __init__(self, files: Iterable[File]) -> None:
        self._files = tuple(files)

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, place: int) -> File: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[File]: ...
    def __getitem__(self, place: int | slice) -> File | Sequence[File]:
        return tuple(self)[place] if isinstance(place, slice) else self._one(place)

    def __iter__(self) -> Iterator[File]:
        return iter(self._files)

    def _one(self, place: int) -> File:
        return self._files[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # they are compared, never looked up

    def doubtful(self) -> Iterable[File]:
        """Those of which stat alone did not say that the index has all of them, at least."""
        return self

    def replaced(self, others: Mapping[int, File]) -> "Files":
        """The same with others in some places."""
        files = list(self)
        for place, file in others.items():
            files[place] = file
        return Files(files)

    def covered(self) -> Mapping[int, File]:
        """Those of which the index still has something, by their keys."""
        return {file[2][0]: file for file in self if file[2]}

    def at(self, paths: Collection[str]) -> Iterable[File]:
        """Those at some of these paths."""
        return (file for file in self if file[0][0] in paths)


class Shelved(Files):
    """Files that are as a snapshot has them but for some, and made when somebody asks for them."""

    def __init__(self, sessions: Sessions, others: Mapping[int, File]) -> None:
        self._sessions = sessions
        self._others = others
        self._single: dict[int, File] = {}  # made so far
        self._made: tuple[File, ...] | None = None

    def __len__(self) -> int:
        return len(self._sessions)

    def _one(self, place: int) -> File:
        if self._made is not None:
            return self._made[place]
        if place in self._others:
            return self._others[place]
        file = self._single.get(place)
        if file is None:
            record = self._sessions.records.record(place)
            file = File(self._sessions.found(place, record), "fresh", record, 0)
            self._single[place] = file
        return file

    def __iter__(self) -> Iterator[File]:
        if self._made is None:
            records = self._sessions.records.everything().values()
            rows = zip(self._sessions, repeat("fresh"), records, repeat(0))
            made = list(map(tuple.__new__, repeat(File), rows))
            for place, file in self._others.items():
                made[place] = file
            self._made = tuple(made)
        return iter(self._made)

    def doubtful(self) -> Iterable[File]:
        return self._others.values()

    def replaced(self, others: Mapping[int, File]) -> Files:
        files = Shelved(self._sessions, {**self._others, **others})
        files._single = self._single
        return files

    def at(self, paths: Collection[str]) -> Iterable[File]:
        places = self._sessions.records.places(paths)
        return (self[place] for place in places)

    def covered(self) -> Mapping[int, File]:
        return _ByKey(self, self._sessions.records.keys_in_order, self._others)


class _ByKey(Mapping[int, File]):
    """Shelved files by their keys."""

    def __init__(self, files: Shelved, keys: Sequence[int], others: Mapping[int, File]) -> None:
        self._files = files
        self._at = dict(zip(keys, range(len(keys)), strict=True))
        for place, file in others.items():
            if file.record is None:
                del self._at[keys[place]]

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[int]:
        return iter(self._at)

    def __contains__(self, key: object) -> bool:
        return key in self._at

    def __getitem__(self, key: int) -> File:
        return self._files[self._at[key]]


class Catalog(NamedTuple):
    """Files by path; `readable` is false where the root could not be listed."""

    files: Files
    warnings: tuple[PathWarning, ...]
    readable: bool

    @property
    def unknown(self) -> int:
        """Bytes that the index says nothing of, or that were read to find out that it does."""
        return sum(file.uncovered + file.checked for file in self.files.doubtful())


Judged = tuple[Verdict, Record | None, int]
"""How much of the index holds for a file: verdict, record, bytes checked (see `File`)."""


def take(
    root: str,
    *,
    flat: bool,
    policy: Policy,
    records: Mapping[str, Record],
    headers_only: bool = False,
    notes: Notes | None = None,
) -> Catalog:
    """The catalog of a root at this moment.

    Who wants `headers_only` need not know how far a file is covered: where stat cannot tell, the
    header is read, not the indexed prefix. `notes` are taken of what the walk rests on.
    """
    seen: dict[str, Judged] = {}  # of all that is not fresh at sight

    def header_of(path: str, listed: Identity) -> Session | str:
        record = records.get(path)
        if record is not None and at_sight(listed, record):
            return record.session
        seen[path], head = judged(path, listed, record, headers_only=headers_only)
        return head

    tree = layout.discover(root, flat=flat, policy=policy, header_of=header_of, notes=notes)
    new = tuple.__new__  # spares a call for each of thousands of files
    files = []
    for found in tree.sessions:
        path = found[0]
        known = seen.get(path)
        about = (found, "fresh", records[path], 0) if known is None else (found, *known)
        files.append(new(File, about))
    return Catalog(Files(files), tree.warnings, tree.readable)


def at_sight(listed: Identity, record: Record) -> bool:
    """Whether `judge` would say fresh, without thousands of calls of it."""
    known, proven, offset, lines, *_ = record.cursor
    return bool(proven and lines and known == listed and offset == listed[2])


def judged(
    path: str, listed: Identity, record: Record | None, *, headers_only: bool = False
) -> tuple[Judged, Session | str]:
    """What holds for a listed file, and its header (a reason where it has none). Raises Changed."""
    if record is None:
        return ("new", None, 0), layout.read_header(path, listed)
    cursor = record.cursor
    verdict, checked = judge(listed, cursor), 0
    if verdict == "unsure" and not headers_only:
        verdict, checked = verdict_of(path, listed, cursor), cursor.offset
    if verdict in ("fresh", "behind"):
        return (verdict, record, checked), record.session
    verdict = "stale" if verdict == "unsure" else verdict
    return (verdict, None, 0), layout.read_header(path, listed)


def verdict_of(
    path: str, listed: Identity, cursor: Cursor | None, *, by_edges: bool = False
) -> Verdict:
    """The verdict on one listed file, its bytes asked where stat cannot tell.

    `by_edges`: for a file that grew, head and tail of what is indexed are enough to read on from
    there. The checksum goes on too, so that whoever reads the whole sees what they did not.
    """
    verdict = judge(listed, cursor)
    if verdict != "unsure" or cursor is None:
        return verdict
    try:
        descriptor, now = open_listed(path, listed)
    except (Changed, OSError):
        return "stale"
    try:
        if now.size < cursor.offset or edges(descriptor, cursor.offset) != (
            cursor.head,
            cursor.tail,
        ):
            return "stale"
        if by_edges and listed.size > cursor.offset:
            return "behind"
        return settle(listed, cursor, checksum(descriptor, cursor.offset))
    except OSError:
        return "stale"
    finally:
        os.close(descriptor)


def at(path: str, records: Mapping[str, Record], header_of: layout.Header) -> Found | None:
    """A file that the index knows already, as it is now; None for whatever needs a walk."""
    record = records.get(path)
    if record is None:
        return None
    try:
        listed = os.lstat(path)
        if not stat.S_ISREG(listed.st_mode):
            return None
        session = header_of(path, identity(listed))
    except (OSError, Changed):
        return None
    return None if isinstance(session, str) else Found(path, identity(listed), session, path, None)
