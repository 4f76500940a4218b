"""search_sessions: what may be asked, and what comes back.

The filters of entries (types, roles, tools, errors, files touched, branch, compaction) and those of
sessions are ANDed; values within one are ORed. Terms may be missing where something asks about the
entries themselves. `branch` and `compacted` speak of Pi's tree (`lineage`). How a question is
answered is in `searching`.
"""

from typing import Literal, NamedTuple

from sessionindex.match import Mode
from sessionindex.model import Kind, PathWarning, Session
from sessionindex.ordering import Key, Order
from sessionindex.timestamps import Window

Branch = Literal["active", "abandoned"]
Compacted = Literal["hidden", "visible"]


class Question(NamedTuple):
    """The checked parameters; None does not filter, `limit` None is no limit.

    `session_paths` are paths of the catalog, `after` is where the page before ended. `tools` are
    names, `errors` asks for failed results, `touched` is a path or its last parts.
    """

    terms: tuple[str, ...]
    mode: Mode
    case_sensitive: bool
    kinds: tuple[Kind, ...]
    cwds: tuple[str, ...] | None
    cwd_match: Literal["exact", "sibling-prefix"]
    projects: tuple[str, ...] | None
    session_paths: tuple[str, ...] | None
    types: tuple[str, ...] | None
    roles: tuple[str, ...] | None
    window: Window
    include_current: bool
    include_subagents: bool
    unique: bool
    order: Order
    limit: int | None
    exact: bool
    after: Key | None
    branch: Branch | None = None
    compacted: Compacted | None = None
    tools: tuple[str, ...] | None = None
    errors: bool = False
    touched: str | None = None

    @property
    def asks_of_entries(self) -> bool:
        """Whether there is something to find where no term is given."""
        return bool(self.branch or self.compacted or self.tools or self.errors or self.touched)


class Hit(NamedTuple):
    """An entry that truly matches; `matches` are character ranges of the snippet."""

    session_path: str
    session_id: str
    cwd: str
    session_timestamp: str
    line_no: int
    entry_id: str | None
    timestamp: str
    type: str
    message_role: str | None
    kind: Kind
    snippet: str
    matches: tuple[tuple[int, int], ...]


class CoverageReport(NamedTuple):
    """How the files of the question were answered for; `skipped` could not be read."""

    files: int
    fresh: int
    behind: int
    stale: int
    new: int
    scanned_bytes: int
    skipped: int


class SessionCount(NamedTuple):
    """How many hits a session holds."""

    path: str
    session: Session
    hits: int


class SearchResult(NamedTuple):
    """`total` and `sessions` are None where the page alone was asked for and more follows.

    `by_session` is what they count, newest session first; empty where they are None.
    """

    hits: tuple[Hit, ...]
    total: int | None
    sessions: int | None
    has_more: bool
    next_cursor: str | None
    coverage: CoverageReport
    warnings: tuple[PathWarning, ...]
    by_session: tuple[SessionCount, ...]
