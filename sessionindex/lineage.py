"""Which entries of a session are on its active branch, and which of those a compaction hides.

Pi's rules (`tree`): the active branch goes from the last entry of the file over the parents to the
root; everything else is abandoned. The newest compaction on the branch hides what stands on it
before the first entry that it keeps, or everything before itself where it keeps none that is
there. Visible is what is active and not hidden.

Entries of version 1 have no ids: Pi makes one chain of them, so all of them are active and, as far
as anybody can tell, visible. An entry without an id hangs nowhere: it is abandoned.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

from sessionindex import session, signals, tree
from sessionindex.catalog import File
from sessionindex.files import Changed
from sessionindex.index.reader import Reader
from sessionindex.session import NoSession, Outline


@dataclass(frozen=True, slots=True)
class Lineage:
    """Lines of a session by where their entries stand; `chained` means that all are active."""

    active: frozenset[int]
    hidden: frozenset[int]
    chained: bool

    def holds(self, line_no: int, branch: str | None, compacted: str | None) -> bool:
        """Whether the entry of a line stands where it is asked for."""
        active = self.chained or line_no in self.active
        hidden = line_no in self.hidden
        return (branch is None or (branch == "active") == active) and (
            compacted is None or (hidden if compacted == "hidden" else active and not hidden)
        )


def of_outline(outline: Outline) -> Lineage:
    """The lineage that an outline tells of."""
    if outline.version < signals.DURABLE:
        return Lineage(frozenset(), frozenset(), True)
    rows = tree.branch(outline.ids, outline.parents, outline.leaf)
    lines = [outline.line_nos[row] for row in rows]
    return Lineage(frozenset(lines), frozenset(lines[: _boundary(outline, rows)]), False)


def _boundary(outline: Outline, rows: list[int]) -> int:
    """How many entries of a branch its newest compaction hides."""
    for place in range(len(rows) - 1, -1, -1):
        if outline.shapes[rows[place]] & signals.COMPACTION:
            kept = outline.traits(rows[place]).kept
            before = (at for at in range(place) if outline.ids[rows[at]] == kept)
            return next(before, place)
    return 0


def of_file(file: File, reader: Reader | None, *, strict: bool) -> Lineage:
    """The lineage of a file of the catalog; raises OSError, and Changed where it has changed."""
    reader = reader if file.record else None
    try:
        with session.opened(file.path, reader=reader, strict=strict) as view:
            if strict and view.identity != file.found.identity:
                raise Changed(file.path)
            return of_outline(view.outline)
    except (Changed, FileNotFoundError, NoSession) as error:
        if strict:
            raise Changed(file.path) from error
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
