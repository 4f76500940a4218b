"""What is asked of an index, and the shapes of its answers: numbers in columns, never text.

A `Plan` narrows: every condition may only leave out what cannot be an answer, and None is no
condition. `Candidates` are places of lines, `Columns` is the tree of one file.
"""

from typing import Literal, NamedTuple

from sessionindex.model import Kind

Order = Literal["newest", "oldest"]


class Plan(NamedTuple):
    """What candidates are wanted; terms in their own case, instants half-open in milliseconds.

    `every` wants all terms in an entry, else any; no terms want every entry. `sessions` are file
    keys, `lines` the first and the last, `ids` and `parents` tokens; None is no condition.
    """

    terms: tuple[str, ...]
    every: bool
    kinds: tuple[Kind, ...]
    types: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    sessions: tuple[int, ...] | None = None
    lines: tuple[int, int] | None = None
    ids: frozenset[int] | None = None
    parents: frozenset[int] | None = None
    tools: tuple[str, ...] | None = None
    errors: bool = False
    touched: str | None = None


class Candidates(NamedTuple):
    """Places of lines, column by column; `instants` only where an order was asked for."""

    sessions: list[int]
    line_nos: list[int]
    offsets: list[int]
    lengths: list[int]
    instants: list[int]


class Columns(NamedTuple):
    """What stands in the tree of a file: one item for each entry, in the order of the file."""

    line_nos: list[int]
    offsets: list[int]
    lengths: list[int]
    ids: list[int]
    parents: list[int]
    shapes: list[int]
    facts: list[bytes]
