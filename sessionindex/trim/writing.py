"""The file read into an outline, and the replacement written from it.

Both go through the file in blocks. What stays is copied as ranges of bytes; a line with another
parent is the only one that is taken apart (`relink`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import fields
from typing import Any

from sessionindex import jsonline
from sessionindex.files import read_at, read_from, whole_lines
from sessionindex.trim.beside import Replacement
from sessionindex.trim.outline import Outline
from sessionindex.trim.plan import NO_PARENT, Plan, Refusal
from sessionindex.trim.relink import NoParent, relinked, same_but_parent


def scanned(descriptor: int, end: int | None = None) -> Outline:
    """The outline of the whole lines of a file, or of its first `end` bytes."""
    return surveyed(descriptor, end)[0]


def surveyed(descriptor: int, end: int | None = None) -> tuple[Outline, str]:
    """The outline of the whole lines of a file, and the digest of the very bytes it was read of."""
    outline, taken = Outline(), hashlib.blake2b(digest_size=20)
    _add(outline, descriptor, 0, end, taken)
    return outline, taken.hexdigest()


def grown(outline: Outline, descriptor: int, end: int) -> Outline:
    """The outline and what follows it in the file up to `end`, a torn last line too."""
    if end <= outline.size:
        return outline
    longer = Outline()
    for column in fields(Outline):
        setattr(longer, column.name, copy(getattr(outline, column.name)))
    _add(longer, descriptor, outline.size, end, None)
    return longer


def _add(
    outline: Outline, descriptor: int, start: int, end: int | None, taken: hashlib.blake2b | None
) -> None:
    """Add lines from `start` on: whole ones where their digest is `taken`, else a torn one too."""
    line_no = len(outline) + 2 if outline.size else 1
    for offset, block, complete in whole_lines(descriptor, start, end, torn=taken is None):
        if taken is not None:
            taken.update(block)
        for line in jsonline.split(block, line_no, offset, complete=complete):
            outline.add(line)
            line_no += 1


def digest(descriptor: int, end: int) -> str:
    """What tells the first `end` bytes of a file from any others."""
    value = hashlib.blake2b(digest_size=20)
    for data in read_from(descriptor, 0, end):
        value.update(data)
    return value.hexdigest()


def values(outline: Outline, descriptor: int) -> Callable[[int], Any]:
    """How the value of a row is read."""

    def read(row: int) -> Any:
        return jsonline.value(line_of(outline, descriptor, row))

    return read


def line_of(outline: Outline, descriptor: int, row: int) -> bytes:
    """The bytes of a row, without the line end."""
    return read_at(descriptor, outline.offsets[row], outline.lengths[row])


def write(outline: Outline, plan: Plan, descriptor: int, new: Replacement) -> None:
    """Write what the plan keeps of the file into the replacement."""
    read = values(outline, descriptor)
    for start, end, row in _pieces(outline, plan):
        if row is None:
            new.copy(descriptor, start, end)
            continue
        above = plan.relinked[row]
        parent = None if above == NO_PARENT else read(above)["id"]
        try:
            line = relinked(line_of(outline, descriptor, row), parent)
        except NoParent as error:
            raise Refusal("a parent could not be replaced") from error
        new.write(line + b"\n")


def planned_size(outline: Outline, plan: Plan, descriptor: int) -> int:
    """How large the replacement would be."""
    read = values(outline, descriptor)
    size = 0
    for start, end, row in _pieces(outline, plan):
        if row is None:
            size += end - start
        else:
            above = plan.relinked[row]
            parent = None if above == NO_PARENT else read(above)["id"]
            size += len(relinked(line_of(outline, descriptor, row), parent)) + 1
    return size


def _pieces(outline: Outline, plan: Plan) -> Iterator[tuple[int, int, int | None]]:
    """Ranges of the file to copy, and between them rows to be relinked."""
    start, end = 0, outline.head_length + 1
    for row, kept in enumerate(plan.kept):
        if not kept:
            continue
        offset, after = outline.offsets[row], outline.offsets[row] + outline.lengths[row] + 1
        if row in plan.relinked:
            yield start, end, None
            yield offset, after, row
            start = end = after
        elif offset == end:
            end = after
        else:
            yield start, end, None
            start, end = offset, after
    yield start, end, None


def same_lines(outline: Outline, plan: Plan, descriptor: int, after: Outline, new: int) -> bool:
    """Whether the replacement begins with exactly what the plan keeps, line by line."""
    rows = [row for row, kept in enumerate(plan.kept) if kept]
    if len(rows) > len(after) or read_at(descriptor, 0, outline.head_length + 1) != read_at(
        new, 0, outline.head_length + 1
    ):
        return False
    for number, row in enumerate(rows):
        one, other = line_of(outline, descriptor, row), line_of(after, new, number)
        if one != other and not (row in plan.relinked and same_but_parent(one, other)):
            return False
    return True
