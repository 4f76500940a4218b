"""What is to be done with each file so that the index follows it; a value, before anything is done.

    Nothing   the index holds for the whole file, and its identity proves it
    Stamp     it holds, but only the bytes said so: remember the identity of now
    Append    the file grew: read on from the cursor
    Rebuild   new, rewritten or replaced: read from the start
    Drop      the file is gone (a file that cannot be read, or lies in a folder that cannot be
              listed, is not gone: what the index has of it stays, and is not served)

Pure: a tree, verdicts and records in, decisions out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from sessionindex import layout
from sessionindex.coverage import Verdict, judge
from sessionindex.index.record import Record
from sessionindex.layout import Found, Tree

Action = Literal["nothing", "stamp", "append", "rebuild", "drop"]


class Decision(NamedTuple):
    """What is to be done with one file, and why it costs what it costs."""

    path: str
    action: Action
    found: Found | None
    record: Record | None

    @property
    def bytes(self) -> int:
        """Bytes that carrying it out will read, checksums apart."""
        if self.found is None or self.action in ("nothing", "stamp", "drop"):
            return 0
        start = self.record.cursor.offset if self.record and self.action == "append" else 0
        return self.found.identity.size - start


def decide(
    tree: Tree, verdicts: Mapping[str, Verdict], records: Mapping[str, Record]
) -> list[Decision]:
    """The decision for every file of the tree and of the index, by path."""
    decisions = []
    there = set()
    for found in tree.sessions:
        if found.path in there:
            continue  # a folder that changes while it is listed may name a file twice
        there.add(found.path)
        record = records.get(found.path)
        decisions.append(Decision(found.path, _action(found, verdicts, record), found, record))
    unread = [warning.path for warning in tree.warnings]
    unread += [path.removesuffix(layout.SUFFIX) for path in unread]  # and what it launched
    for path, record in records.items():
        if path not in there and not is_under(path, unread):
            decisions.append(Decision(path, "drop", None, record))
    return decisions


def _action(found: Found, verdicts: Mapping[str, Verdict], record: Record | None) -> Action:
    verdict = verdicts.get(found.path, "new")
    if record and not record.cursor.lines and record.cursor.identity == found.identity:
        return "nothing"  # not one whole line yet: nothing is claimed of it
    if record is None or verdict in ("new", "stale"):
        return "rebuild"
    if verdict == "behind":
        # Behind its own identity: what follows the cursor was torn then, and is so still.
        still = record.cursor.proven and record.cursor.identity == found.identity
        return "nothing" if still else "append"
    return "nothing" if judge(found.identity, record.cursor) == "fresh" else "stamp"


def is_under(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)
