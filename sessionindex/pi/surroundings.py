"""What decides whether an installed extension works: settings, neighbours, and the command itself.

It only looks. Pi's user settings can switch an extension off (`-path`, `!pattern`, undone by
`+path`, in the setting `extensions`); flags of a running Pi (`--no-extensions`) cannot be seen.
Patterns are read as Pi reads them: against the path below the agent folder, the name, and the whole
path, `*` and `?` within a folder, `**` across folders, `{a,b}` one of both.

Rivals are known by their names, in the folder of extensions and in the settings `packages` and
`extensions`. One under another name is not seen here; at run time its tools keep their names all
the same.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sessionindex import files

_PATIENCE: Final = 30
_TOOLS_TWICE: Final = "its tools keep their names, ours with the same names are left out"
_RIVALS: Final = (
    ("retrospect", f"{_TOOLS_TWICE}; steering messages may be marked by both"),
    ("session-surgery", "both would trim after a compaction; one of them should go"),
    ("session-recovery", _TOOLS_TWICE),
    ("steering", "steering messages may be marked by both"),
)


@dataclass(frozen=True, slots=True)
class Rival:
    """Another extension that does what ours does: where it was seen, and what that means."""

    where: str
    why: str


def rivals(agent: str, user: Mapping[str, object]) -> list[Rival]:
    """The extensions of Pi's that get in the way of ours, or ours in theirs."""
    folder = os.path.join(agent, "extensions")
    named = [
        *((os.path.join(folder, name), name) for name in _extensions(folder)),
        *((f"{word} in settings.json", word) for word in _listed(user, "packages")),
        *(
            (f"{word} in settings.json", word)
            for word in _listed(user, "extensions")
            if not word.startswith(("-", "!"))
        ),
    ]
    found = []
    for where, name in named:
        for word, why in _RIVALS:
            if word in name.lower():
                found.append(Rival(where, why))
                break
    return found


def _extensions(folder: str) -> Iterator[str]:
    """What Pi may load there, without what is ours."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        is_code = name.endswith((".js", ".ts")) or os.path.isdir(os.path.join(folder, name))
        if is_code and not name.startswith(".") and name != "sessionindex.js":
            yield name


def _listed(user: Mapping[str, object], key: str) -> Iterator[str]:
    value = user.get(key)
    for item in value if isinstance(value, list) else ():
        named = item.get("source") if isinstance(item, Mapping) else item
        if isinstance(named, str):
            yield named


def switched_off(path: str, agent: str, user: Mapping[str, object]) -> str | None:
    """The entry of the setting `extensions` that keeps Pi from loading the file, or None."""
    entries = list(_listed(user, "extensions"))
    names = (os.path.relpath(path, agent), os.path.basename(path), path)

    def exact(entry: str) -> bool:
        return _expanded(entry[1:].removeprefix("./")) in (names[0], names[2])

    hiding = [
        entry
        for entry in entries
        if entry.startswith("!") and any(_pattern(entry[1:]).fullmatch(name) for name in names)
    ]
    if any(entry.startswith("+") and exact(entry) for entry in entries):
        hiding = []
    hiding = [entry for entry in entries if entry.startswith("-") and exact(entry)] or hiding
    return hiding[0] if hiding else None


def _expanded(path: str) -> str:
    return os.path.expanduser(path) if path.startswith("~/") else path


_PIECES: Final = re.compile(r"\*\*/|\*\*|\*|\?|\{[^{}]*\}|\[[^\]/]+\]|.", re.S)


def _pattern(glob: str) -> re.Pattern[str]:
    """A glob as a regular expression."""
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = []
    for piece in _PIECES.findall(_expanded(glob)):
        if piece in fixed:
            parts.append(fixed[piece])
        elif piece[0] == "{" and len(piece) > 1:
            parts.append(f"(?:{'|'.join(map(re.escape, piece[1:-1].split(',')))})")
        else:
            parts.append(piece if piece[0] == "[" and len(piece) > 2 else re.escape(piece))
    try:
        return re.compile("".join(parts))
    except re.error:
        return re.compile(re.escape(glob))


def failure(command: Sequence[str]) -> str | None:
    """Why the command of an extension cannot be run; None where it can."""
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_PATIENCE} seconds"
    except (OSError, ValueError) as error:
        return files.spoken(error) if isinstance(error, OSError) else str(error)
    if done.returncode == 0:
        return None
    said = done.stderr.decode("utf-8", "replace").strip()
    return said.splitlines()[-1] if said else f"exit status {done.returncode}"
