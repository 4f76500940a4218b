"""A sessions root -> the session files in it, nested as they were delegated, and warnings.

Two layouts: *projects* (folders `--cwd--` that hold session files) and *flat* (session files
directly in the root). A session file X.jsonl owns the folder X beside it; in it, at any depth, are
the transcripts of delegated runs: `session.jsonl`, and `*.jsonl` directly in a folder `forks` or
one that begins with `async-`, `parallel-` or `dynamic-`. `session.jsonl` owns `session/`. Nothing
under `subagent-artifacts` counts, and nothing behind a symbolic link is walked or opened.

Who may see what is asked before a container is walked: a session whose header is unreadable or
whose project is denied has no children here, and a folder in which only denied sessions are known
keeps silent about its unreadable files.

The header of each file comes from a function, so that a caller who knows it already (the index)
reads nothing. Only "does not exist" is absence: every other error is a warning with its path.
"""

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final, NamedTuple

from sessionindex import header
from sessionindex.access import Policy
from sessionindex.coverage import Identity
from sessionindex.files import Changed, identity, open_folder, open_listed, read_at, spoken
from sessionindex.model import PathWarning, Session

Header = Callable[[str, Identity], Session | str]

_LINE_ENDS: Final = "\n\r\u2028\u2029"
_RUNS: Final = ("async-", "parallel-", "dynamic-")
_ARTIFACTS: Final = "subagent-artifacts"
SUFFIX: Final = ".jsonl"
_LOOKS: Final = 4
_new: Final = tuple.__new__  # spares a call for each of thousands of files
_OWN_FOLDER: Final = ("/.jsonl", "/..jsonl", "/...jsonl")


class Found(NamedTuple):
    """A session file: `owner` is the top-level file it belongs to, `parent` what launched it."""

    path: str
    identity: Identity
    session: Session
    owner: str
    parent: str | None


class Notes:
    """What a walk rests on: each folder as it was before it was listed, and files not admitted.

    `whole` is false where something moved under the walk, or was not readable.
    """

    def __init__(self) -> None:
        self.folders: list[tuple[str, Identity]] = []
        self.hidden: list[tuple[str, Identity]] = []
        self.whole = True


class Survey(NamedTuple):
    """A walk of a whole root that found nothing wrong: its sessions, and what it rests on.

    `own` is the root, the folders and what is hidden are named below it. All that stands there had
    an identity that proves it unchanged for as long as it stays the same.
    """

    flat: bool
    sessions: Sequence[Found]
    own: Identity
    folders: Sequence[tuple[str, Identity]]
    hidden: Sequence[tuple[str, Identity]]


class Tree(NamedTuple):
    """What a root holds now: sessions by path, warnings by path and reason.

    `readable` is false where the root itself could not be listed.
    """

    sessions: tuple[Found, ...]
    warnings: tuple[PathWarning, ...]
    readable: bool = True


def read_header(path: str, listed: Identity) -> Session | str:
    """The header of a file, read from it; a reason where it has none. Raises Changed."""
    try:
        descriptor, _ = open_listed(path, listed)
    except OSError as error:
        return f"could not open file: {spoken(error)}"
    try:
        return header_in(descriptor)
    except OSError as error:
        return f"could not read file: {spoken(error)}"
    finally:
        os.close(descriptor)


def header_in(descriptor: int) -> Session | str:
    """The header of an open file; a reason where it has none. Raises OSError."""
    data = b""
    for size in (4096, header.MAX_BYTES + 1):
        data = read_at(descriptor, 0, size)
        if b"\n" in data or len(data) < size:
            break
    return header.parse(data.split(b"\n", 1)[0]) if data else "file is empty"


def _is_project(name: str) -> bool:
    """`--`, anything on one line, and `--`: as Pi names the folder of a working directory."""
    dashed = len(name) >= 4 and name.startswith("--") and name.endswith("--")
    return dashed and not any(end in name for end in _LINE_ENDS)


def is_flat(root: str) -> bool:
    """Whether a root given by hand is flat: no project folder, but session files of its own."""
    own = False
    try:
        with os.scandir(root) as found:
            for item in found:
                if _is_project(item.name) and item.is_dir(follow_symlinks=False):
                    return False
                own = own or item.name.endswith(SUFFIX)
    except OSError:
        return False
    return own


def discover(
    root: str,
    *,
    flat: bool,
    policy: Policy,
    header_of: Header = read_header,
    only: Collection[str] | None = None,
    notes: Notes | None = None,
) -> Tree:
    """Every session of the root that the policy admits; never raises for what it finds.

    `only` names the project folders that are looked into. By path, each once: a folder that changes
    while it is listed may give a name twice.
    """
    walk = _Walk(policy, header_of, notes)
    try:
        if flat:
            walk.project(root, follow=True)
        else:
            for name, is_folder in walk.listed(root, follow=True).kinds.items():
                if only is not None and name not in only:
                    continue
                if is_folder and _is_project(name):
                    walk.project_folder(os.path.join(root, name))
    except OSError as error:
        warning = PathWarning(root, f"sessions root not readable: {spoken(error)}")
        return Tree((), (warning,), readable=False)
    return Tree(
        tuple(sorted({one[0]: one for one in walk.sessions}.values(), key=itemgetter(0))),
        tuple(sorted(walk.warnings, key=lambda warning: (warning.path, warning.reason))),
    )


class _Listing(NamedTuple):
    """What is in a folder: names of session files, and of all files and folders which they are.

    Links and whatever else there is are left out.
    """

    sessions: list[str]
    kinds: dict[str, bool]  # whether it is a folder


def _listing(found: Iterator[os.DirEntry[str]]) -> _Listing:
    sessions = []
    kinds: dict[str, bool] = {}
    for item in found:
        name = item.name
        if item.is_dir(follow_symlinks=False):
            kinds[name] = True
        elif item.is_file(follow_symlinks=False):
            kinds[name] = False
            if name.endswith(SUFFIX):
                sessions.append(name)
    return _Listing(sessions, kinds)


def _is_utf8(name: str) -> bool:
    if name.isascii():
        return True
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(path: str) -> str:
    """A path whose bytes are not UTF-8, as it can be shown."""
    return os.fsencode(path).decode("utf-8", "replace")


def container(path: str) -> str | None:
    """The folder that a session file owns; None for a name that would own its own folder."""
    return None if path.endswith(_OWN_FOLDER) else path.removesuffix(SUFFIX)


def owner(root: str, path: str, *, flat: bool) -> str | None:
    """The top-level file whose directory a path of the root lies in; None where none could be.

    Both are real paths. The file itself need not be there.
    """
    names = path.removeprefix(root.rstrip(os.sep) + os.sep).split(os.sep)
    depth = 1 if flat else 2
    if len(names) < depth or not (flat or _is_project(names[0])):
        return None
    top = names[depth - 1]
    return os.path.join(root, *names[: depth - 1], top.removesuffix(SUFFIX) + SUFFIX)


class _Walk:
    """One walk of a root."""

    def __init__(self, policy: Policy, header_of: Header, notes: Notes | None) -> None:
        self.sessions: list[Found] = []
        self.warnings: list[PathWarning] = []
        self._policy = policy
        self._header_of = header_of
        self._notes = notes

    def _moved(self) -> None:
        if self._notes is not None:
            self._notes.whole = False

    def listed(self, folder: str, *, follow: bool = False) -> _Listing:
        """What is in a folder; noted is the folder that was listed, whatever moves meanwhile."""
        if self._notes is None:
            with os.scandir(folder) as found:
                return _listing(found)
        descriptor = open_folder(folder, follow=follow)
        try:
            self._notes.folders.append((folder, identity(os.fstat(descriptor))))
            with os.scandir(descriptor) as found:
                return _listing(found)
        finally:
            os.close(descriptor)

    def project_folder(self, folder: str) -> None:
        if not _is_utf8(folder):
            reason = "project directory not readable: its name is not UTF-8"
            self.warnings.append(PathWarning(_shown(folder), reason))
            return
        try:
            self.project(folder)
        except FileNotFoundError:
            self._moved()
        except OSError as error:
            reason = f"project directory not readable: {spoken(error)}"
            self.warnings.append(PathWarning(folder, reason))

    def project(self, folder: str, *, follow: bool = False) -> None:
        """The sessions directly in a folder, each with what it launched."""
        names, kinds = self.listed(folder, follow=follow)
        refused = admitted = 0
        unreadable: list[PathWarning] = []
        prefix = folder.rstrip(os.sep) + os.sep
        for name in names:
            path = prefix + name
            found = self._session(path)
            if found is None:
                continue
            listed, session = found
            if not isinstance(session, str) and self._policy.admits(session.cwd):
                admitted += 1
                self.sessions.append(_new(Found, (path, listed, session, path, None)))
                is_folder = kinds.get(name[: -len(SUFFIX)])
                if is_folder is not None:
                    self._container(path, is_folder)
                continue
            if isinstance(session, str):
                unreadable.append(PathWarning(_shown(path), session))
            else:
                refused += 1
            if self._notes is not None:
                self._notes.hidden.append((path, listed))
        if admitted or not refused:
            self.warnings += unreadable

    def _session(self, path: str) -> tuple[Identity, Session | str] | None:
        """A listed file's identity and header; None where it is gone."""
        try:
            listed = identity(os.lstat(path))
            if not (path.isascii() or _is_utf8(path)):
                return listed, "could not open file: its name is not UTF-8"
            return listed, self._header_of(path, listed)
        except (Changed, FileNotFoundError) as error:
            self._moved()
            return self._again(path) if isinstance(error, Changed) else None
        except OSError as error:
            return Identity(0, 0, 0, 0, 0), f"could not open file: {spoken(error)}"

    def _again(self, path: str) -> tuple[Identity, Session | str] | None:
        """The same of a file that was replaced since it was listed, or is gone."""
        listed = Identity(0, 0, 0, 0, 0)
        try:
            for _ in range(_LOOKS):
                found = os.lstat(path)
                if not stat.S_ISREG(found.st_mode):
                    return None
                listed = identity(found)
                with suppress(Changed):
                    return listed, self._header_of(path, listed)
        except FileNotFoundError:
            return None
        except OSError as error:
            return listed, f"could not open file: {spoken(error)}"
        return listed, "could not open file: EAGAIN: it is being replaced again and again"

    def _container(self, path: str, is_folder: bool) -> None:
        """What one top-level session launched, nested by the longest container that holds it."""
        top = container(path)
        if top is None:
            return
        if not is_folder:
            reason = "subagent directory not readable: ENOTDIR: Not a directory"
            self.warnings.append(PathWarning(top, reason))
            return
        holders = {top: path}
        children = []
        for child in self._transcripts(top):
            found = self._session(child)
            if found is None:
                continue
            listed, session = found
            if isinstance(session, str):
                self.warnings.append(PathWarning(_shown(child), session))
                continue
            children.append((child, listed, session))
            if not child.endswith(_OWN_FOLDER):
                holders[child[: -len(SUFFIX)]] = child
        for child, listed, session in children:
            folder = child[: child.rindex("/")]
            while folder not in holders:
                folder = folder[: folder.rindex("/")]
            self.sessions.append(_new(Found, (child, listed, session, path, holders[folder])))

    def _transcripts(self, top: str) -> Iterator[str]:
        """The files of delegated runs below a container, at any depth."""
        todo = [(top, "")]
        while todo:
            folder, name = todo.pop()
            try:
                kinds = self.listed(folder).kinds
            except FileNotFoundError:
                self._moved()
                continue
            except OSError as error:
                reason = f"subagent directory not readable: {spoken(error)}"
                self.warnings.append(PathWarning(_shown(folder), reason))
                continue
            runs = name == "forks" or name.startswith(_RUNS)
            for inner, is_folder in kinds.items():
                if is_folder:
                    if inner != _ARTIFACTS:
                        todo.append((f"{folder}/{inner}", inner))
                elif inner == "session.jsonl" or (runs and inner.endswith(SUFFIX)):
                    yield f"{folder}/{inner}"
