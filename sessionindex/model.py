"""The values that travel between modules: frozen, small, without behaviour.

The four nouns of the product are here: a Session (a file's header), a Line (bytes with a place),
an Entry (a line understood) and, beside the contract that returns it, a Hit (an entry that truly
matches). Only what two modules or more share lives here; a result type lives beside the function
that returns it.

They are tuples: a question waits half a millisecond for each frozen dataclass that is imported on
its way, and indexing makes millions of these.

Units: offsets and lengths are bytes, `line_no` counts physical lines from 1 (the header is 1),
instants are whole milliseconds since 1970 UTC.

Their annotations are evaluated, and so are those of every module that makes a tuple on the way of
a plain search (a test says which): as strings each field would be compiled again when the class is
made. Elsewhere they are strings.
"""

from typing import Any, Literal, NamedTuple

Kind = Literal["text", "tools", "shell", "thinking", "details", "system"]

KINDS: tuple[Kind, ...] = ("text", "tools", "shell", "thinking", "details", "system")
"""Every kind of searchable text, in the order in which a hit names the first that matched."""

DEFAULT_KINDS: tuple[Kind, ...] = ("text", "tools", "shell")
"""The kinds searched where a call names none."""


class Session(NamedTuple):
    """What a session file's first line says; `timestamp` is the stored string.

    `version` is 0 where the header holds one that is no positive integer.
    """

    id: str
    cwd: str
    timestamp: str
    timestamp_ms: int
    parent_session: str | None
    version: int


class Line(NamedTuple):
    """One physical line: `data` without its LF; `complete` is false for a torn last line."""

    line_no: int
    offset: int
    data: bytes
    complete: bool = True


class Entry(NamedTuple):
    """A line understood: the fields every view needs, and `value`, the parsed object itself.

    `instant` is in milliseconds; where the stored timestamp names no zone `floating` is true and
    `instant` is its wall clock counted as if it were UTC.
    """

    line_no: int
    id: str | None
    parent_id: str | None
    timestamp: str
    instant: int
    floating: bool
    type: str
    role: str | None
    value: dict[str, Any]


class Problem(NamedTuple):
    """A line that is no entry: the contract's code and reason; `line_no` None is the whole file."""

    line_no: int | None
    code: str
    reason: str


class PathWarning(NamedTuple):
    """A file or folder that could not be read while the rest was."""

    path: str
    reason: str
