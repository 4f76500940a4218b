"""Which files a tool call reads or modifies, as far as its name and arguments prove it.

Tools are known by name, whatever its case; what an unknown tool or a shell command does is never
guessed. Paths are taken as they are written: trimmed, blank ones left out, not normalised. A call
counts even where it failed. apply_patch is also read for the files that its patch names.

Compactions and branch summaries carry the files of what they stand for in their `details`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from sessionindex.text import BLANKS

_REPO: Final = ("architecture", "structure", "ast", "search", "explain", "deps")
READING: Final = frozenset(
    ("read", "grep", "glob", "find", "ls", "ast_grep", *(f"repo_{name}" for name in _REPO))
)
MODIFYING: Final = frozenset(("write", "edit", "apply_patch", "ast_apply"))
_PATHS: Final = ("path", "file_path", "paths")
_ENDS: Final = re.compile("\r?\n")
_HEADS: Final = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class Touched(NamedTuple):
    """Paths read and paths modified, each in the order met and without repetitions."""

    reads: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


def by_call(name: str, arguments: Any) -> Touched:
    """The files of one call."""
    tool = name.lower()
    if tool not in READING and tool not in MODIFYING:
        return Touched()
    found: list[str] = []
    if isinstance(arguments, dict):
        for field in _PATHS:
            found += _strings(arguments.get(field))
        if tool == "apply_patch":
            found += _patched(arguments)
    paths = tuple(dict.fromkeys(found))
    return Touched(paths, ()) if tool in READING else Touched((), paths)


def by_summary(details: Any) -> Touched:
    """The files that a compaction or a branch summary carries."""
    if not isinstance(details, dict):
        return Touched()
    reads, modified = (_strings(details.get(name)) for name in ("readFiles", "modifiedFiles"))
    return Touched(tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(modified)))


def _strings(value: Any) -> list[str]:
    """A string or an array of them: trimmed, blank ones and what is no string left out."""
    items = value if isinstance(value, list) else [value]
    trimmed = (item.strip(BLANKS) for item in items if isinstance(item, str))
    return [item for item in trimmed if item]


def _patched(arguments: dict[str, Any]) -> list[str]:
    """The files that a patch names, in either of the two notations."""
    patch = arguments.get("input")
    if not isinstance(patch, str):
        patch = arguments.get("patch")
    if not isinstance(patch, str):
        return []
    found = []
    for line in _ENDS.split(patch):
        path = _named(line).strip(BLANKS)
        if path:
            found.append(path)
    return found


def _named(line: str) -> str:
    """The file that a line of a patch names, or nothing."""
    for head in _HEADS:
        if line.startswith(head):
            return line[len(head) :]
    if line.startswith("+++ "):
        path = line[4:]
        if path.strip(BLANKS) != "/dev/null":
            return path.removeprefix("b/")
    return ""
