"""A path that a caller gave -> the one file it names: inside the root, within the bound, readable.

Rules, in this order:

- The root must be there; the path must lead to something inside it, with every link resolved on
  both sides: a file counts as where its bytes are. The root itself is not inside.
- With a bound, the top-level session that owns the place must be admitted, by its own header;
  whatever the file itself says. What is missing, unowned or denied gets one refusal, so that none
  says whether a path exists.
- It must be a regular file. Any name and any place under the root will do: this is reading, not
  listing.

Nothing is opened here but the owner's header.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

from sessionindex import layout
from sessionindex.access import Policy
from sessionindex.coverage import Identity
from sessionindex.errors import AccessDenied, SessionFileError
from sessionindex.files import Changed, identity, spoken
from sessionindex.model import Session


@dataclass(frozen=True, slots=True)
class Address:
    """A file: `path` has no link in it, `spelled` is the same below the root as it is spelled."""

    path: str
    spelled: str
    identity: Identity


def find(root: str, given: str, *, flat: bool, policy: Policy) -> Address:
    """The file that an absolute path names; raises SessionFileError and AccessDenied."""
    try:
        real_root = os.path.realpath(root, strict=True)
        os.scandir(real_root).close()
    except OSError as error:
        reason = f"sessions root is not readable: {spoken(error)}"
        raise SessionFileError(reason, root) from error
    roots = (root.rstrip("/") + "/", real_root.rstrip("/") + "/")
    if policy.is_bound:
        real = _admitted(real_root, roots, given, flat, policy)
    else:
        real = _resolved(roots, given)
    try:
        found = os.lstat(real)
    except OSError as error:
        raise (AccessDenied() if policy.is_bound else unreadable(error, given)) from error
    if not stat.S_ISREG(found.st_mode):
        kind = errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.EINVAL
        raise unreadable(OSError(kind, os.strerror(kind)), given)
    return Address(real, os.path.join(root, os.path.relpath(real, real_root)), identity(found))


def _resolved(roots: tuple[str, str], given: str) -> str:
    """The path without links; what is not there has to look as if it were inside."""
    try:
        os.stat(given)  # refuses a slash after a file too
        real = os.path.realpath(given, strict=True)
    except (OSError, ValueError) as error:
        if not _normal(given).startswith(roots):
            raise _outside(given) from error
        if not isinstance(error, OSError):  # a NUL, or a surrogate that stands for no byte
            error = OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        raise unreadable(error, given) from error
    if not real.startswith(roots[1]):
        raise _outside(given)
    return real


def _admitted(root: str, roots: tuple[str, str], given: str, flat: bool, policy: Policy) -> str:
    """The same under a bound, where no answer may tell what is there from what is not.

    `..` is taken as text: walking through a folder would tell that it is there.
    """
    path = _normal(given)
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        real = path
    if not real.startswith(roots[1]):
        if path.startswith(roots):
            raise AccessDenied
        raise _outside(given)
    if given.endswith("/") or not _is_admitted(root, real, flat, policy) or not _exists(real):
        raise AccessDenied
    return real


def is_below(root: str, given: str) -> bool:
    """Whether a path says that it is inside the root, wherever it leads."""
    return _normal(given).startswith(root.rstrip("/") + "/")


def _normal(path: str) -> str:
    path = os.path.normpath(path)
    return "/" + path.lstrip("/") if path.startswith("//") else path


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def unreadable(error: OSError, path: str) -> SessionFileError:
    """The refusal of a file that cannot be read."""
    return SessionFileError(f"could not read session file: {spoken(error)}", path)


def _outside(given: str) -> SessionFileError:
    return SessionFileError(f"sessionPath is not under the sessions root: {given}", given)


def _is_admitted(root: str, path: str, flat: bool, policy: Policy) -> bool:
    owner = layout.owner(root, path, flat=flat)
    if owner is None:
        return False
    try:
        session: Session | str = layout.read_header(owner, identity(os.lstat(owner)))
    except (OSError, ValueError, Changed):
        return False
    return isinstance(session, Session) and policy.admits(session.cwd)
