"""What Pi reads of us: the extension with Python's words filled in, and the skill.

Goal: decide everything and touch nothing. A Piece is where a file belongs and what is in it;
`installer` carries that out. The same options and surroundings give the same text, so a text that
differs is one of another version or of other options.

Rules:

- Schemas and descriptions are those of `wire.schemas`: the extension asks nobody when Pi starts.
- Paths are absolute. The program is this Python; nothing is looked up in PATH, and no module is
  taken from the folder in which it happens to run (`-P`).
- Of the environment, where indexes are is written down, where it is set. What Pi has a variable
  for is not: the running Pi knows better.
- Each text says in its beginning that it is ours; what does not is somebody else's.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sessionindex import settings
from sessionindex.errors import SessionIndexError
from sessionindex.wire.schemas import TOOLS

SKILL: Final = "past-sessions"
_MARK: Final = "made by sessionindex;"
_HEADS: Final = (f"// {_MARK}", f"---\n# {_MARK}")  # front matter has to begin with its rule
_ANNOTATIONS: Final = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
_COMMAND: Final = re.compile(r"^const COMMAND = (\[.*\]);$", re.M)


class ExtensionError(SessionIndexError):
    """The extension or its skill cannot be described, written or removed."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file that Pi reads: what it is, where it belongs, and its text."""

    what: str
    path: str
    text: str


def is_ours(text: str) -> bool:
    """Whether a file of Pi's was made by this program."""
    return text.startswith(_HEADS)


def pieces(
    options: Sequence[str],
    *,
    python: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> tuple[Piece, ...]:
    """The extension and the skill, for commands with these options, whose paths are absolute.

    Raises ExtensionError for what cannot be written down.
    """
    env = os.environ if env is None else env
    program = os.path.abspath(sys.executable or "") if python is None else python
    if not sys.executable and python is None:
        raise ExtensionError("the extension needs to know where Python is, and it does not say")
    command = [program, "-P", "-m", "sessionindex"]
    known = {
        name: value
        for name, value in settings.surroundings(env, cwd=cwd).items()
        if not name.startswith("PI_")
    }
    for text in (*command, *options, *known.values()):
        if not text.isprintable():
            raise ExtensionError(f"a name like this cannot be written down: {text!a}")
    folder = settings.agent_dir(env, cwd=cwd)
    filled = _filled(COMMAND=command, OPTIONS=list(options), ENVIRONMENT=known, TOOLS=_tools())
    skill = os.path.join(folder, "skills", SKILL, "SKILL.md")
    return (
        Piece("extension", os.path.join(folder, "extensions", "sessionindex.js"), filled),
        Piece("skill", skill, _template("SKILL.md")),
    )


def command(text: str) -> list[str] | None:
    """The command that an extension of ours starts; None where none can be read."""
    found = _COMMAND.search(text)
    try:
        said = json.loads(found[1]) if found else None
    except ValueError:
        return None
    return said if isinstance(said, list) and all(isinstance(one, str) for one in said) else None


def _tools() -> list[dict[str, Any]]:
    """The tools in Pi's words."""
    return [
        {
            "name": tool.name,
            "label": tool.title,
            "description": tool.description,
            "parameters": tool.parameters,
            "outputSchema": tool.result,
            "annotations": _ANNOTATIONS,
        }
        for tool in TOOLS
    ]


def _filled(**values: Any) -> str:
    text = _template("extension.js")
    for name, value in values.items():
        place = f'"@{name}@"'
        assert text.count(place) == 1, name
        text = text.replace(place, _written(value))
    return text


def _written(value: Any) -> str:
    """JSON, which is JavaScript too; a table has a line for each row."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + "".join(f"\t{json.dumps(row)},\n" for row in value) + "]"
    return json.dumps(value)


def _template(name: str) -> str:
    data = pkgutil.get_data(__package__ or "sessionindex.pi", name)  # also out of an archive
    assert data is not None, name
    return data.decode("utf-8")
