"""Every exception of sessionindex, grouped by when it happens.

Rules:

- One root, `SessionIndexError`; a caller catches that name and nothing else.
- `str(error)` is the whole message: where a contract gives a text, that text and no more.
  Facts a program may want (a path, a position) are attributes.
- `exit_status` on the class is what the command line ends with.
- Foreign errors (tantivy, the system) are translated where they are met, with the cause chained:
  `index/store.py` for tantivy, `files.py` and `layout.py` for the system.
- Trouble that leaves the answer usable (one unreadable file, one bad line) is no exception here:
  it is returned as a warning or a problem.
- No message ever quotes the text of a session.
"""

from __future__ import annotations


class SessionIndexError(Exception):
    """The root of all refusals and failures of this package."""

    exit_status = 2


class ParameterError(SessionIndexError):
    """A parameter of a call is unknown, has the wrong shape, or contradicts another."""


class PolicyError(SessionIndexError):
    """The access bound cannot be read, so nothing may be assumed to be allowed."""

    MESSAGE = "piRetrospect.allowedProjects is not a valid project allowlist"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


class AccessDenied(SessionIndexError):
    """A session is outside the access bound; never says whether it exists."""

    MESSAGE = "session is outside the projects allowed by piRetrospect.allowedProjects"

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)


class RootError(SessionIndexError):
    """The sessions root cannot be read; `path` is what was tried, `source` where it came from."""

    def __init__(self, message: str, path: str, source: str) -> None:
        super().__init__(message)
        self.path = path
        self.source = source


class SessionFileError(SessionIndexError):
    """A session file cannot be opened, is not confined to the root, or is no Pi session."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class NotFound(SessionIndexError):
    """What was asked for by name (a line, an entry, a section) is not there."""

    exit_status = 1


class Told(SessionIndexError):
    """A recovery tool says why it has no answer; `details` are what it tells beside the text."""

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details


class NothingFound(Told, NotFound):
    """A recovery tool finds nothing to answer from: no entries, no such entry or section."""


class CallRefused(Told, ParameterError):
    """A recovery tool cannot answer what it was asked, or go on from this cursor."""


class IndexFolderError(SessionIndexError):
    """The index folder is not ours, cannot be made, or cannot be written."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class IndexUnusable(SessionIndexError):
    """There is no index that can be read now: missing, damaged, or of another format.

    `damaged` is false only where there is simply none yet. Reading falls back to the files.
    """

    def __init__(self, message: str, *, damaged: bool) -> None:
        super().__init__(message)
        self.damaged = damaged


class IndexLocked(SessionIndexError):
    """Another writer holds the index; `holder` says who, as far as it is known."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"the index is being written by {holder}")
        self.holder = holder
