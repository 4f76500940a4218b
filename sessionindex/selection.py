"""Which of the sessions that are there a question is about.

Everything here is lexical: working directories and paths are compared as text, as the contracts
say, never resolved. A session that another launched follows the top-level session that owns it
where directories and projects choose; the current session goes with everything it launched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Literal

from sessionindex.access import belongs
from sessionindex.catalog import Catalog, Files

CwdMatch = Literal["exact", "sibling-prefix"]


def same_directory(cwd: str, wanted: str) -> bool:
    """Equal but for slashes at the end."""
    return _trimmed(cwd) == _trimmed(wanted)


def is_sibling(cwd: str, wanted: str) -> bool:
    """Equal, or beside it with a name that goes on with a dash (`/r/app-fix` for `/r/app`)."""
    cwd, wanted = _trimmed(cwd), _trimmed(wanted)
    if cwd == wanted:
        return True
    folder, name = _split(cwd)
    wanted_folder, wanted_name = _split(wanted)
    return folder == wanted_folder and name.startswith(wanted_name + "-")


def in_directories(cwd: str, wanted: Iterable[str], match: CwdMatch) -> bool:
    """Whether a working directory is one of those asked for."""
    test = is_sibling if match == "sibling-prefix" else same_directory
    return any(test(cwd, one) for one in wanted)


def _trimmed(path: str) -> str:
    return path.rstrip("/") if len(path) > 1 else path


def _split(path: str) -> tuple[str, str]:
    """Directory and name: the directory is all before the last slash, `.` without one."""
    folder, slash, name = path.rpartition("/")
    return (folder or "/") if slash else ".", name


def without_current(files: Files, current: str | None) -> Files:
    """The files but the current session and everything that it launched."""
    if current is None:
        return files
    parents = {file.path: file.found.parent for file in files}
    gone = {current}

    def is_gone(path: str | None) -> bool:
        chain = []
        while path is not None and path not in gone:
            chain.append(path)
            path = parents.get(path)
        if path is None:
            return False
        gone.update(chain)
        return True

    return Files(file for file in files if not is_gone(file.path))


def select(
    catalog: Catalog,
    *,
    cwds: Sequence[str] | None,
    cwd_match: CwdMatch,
    projects: Sequence[str] | None,
    session_paths: Sequence[str] | None,
    include_subagents: bool,
    current: str | None,
) -> Files:
    """The files of a question; `current` None leaves nothing out."""
    named = None if session_paths is None else frozenset(session_paths)
    if named is not None and current in named:
        current = None
    files = without_current(catalog.files, current)
    if include_subagents and named is None and cwds is None and projects is None:
        return files
    owners = {file.path: file.found.session.cwd for file in catalog.files}
    chosen = []
    for file in files:
        cwd = owners[file.found.owner]
        if (
            (include_subagents or file.found.parent is None)
            and (named is None or file.path in named)
            and (cwds is None or in_directories(cwd, cwds, cwd_match))
            and (projects is None or belongs(cwd, projects))
        ):
            chosen.append(file)
    return Files(chosen)


def named_path(root: str, given: str) -> str | None:
    """A path that a caller gave, as the catalog spells it; None where it leads out of the root.

    Links are followed on both sides, so a file reached through one counts as where its bytes are.
    """
    real_root, real = os.path.realpath(root), os.path.realpath(given)
    if not real.startswith(real_root.rstrip("/") + "/"):
        return None
    return os.path.join(root, os.path.relpath(real, real_root))
