"""The lines of a session file as numbers: what a trim decides on, and never a value.

A row is a physical line after the header. What it says is told as Pi's loader sees it, which is
not how searching sees it: every line that parses to something counts as an entry, without an id
where it has none; blank and broken lines and further headers count as nothing. Ids are tokens
(`fold.token`), 0 for none.

Memory is some 60 bytes a line, whatever its length. Nothing is judged here but what no trim can
work with (`odd`): an id that is no text, a message without a message, a file that Pi would refuse.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Final

from sessionindex import header, jsonline
from sessionindex.fold import token
from sessionindex.model import Line

ENTRY: Final = 1  # Pi counts it: the last one is the leaf
EXTENSION: Final = 2  # custom and custom_message records, but for ide-nested-results
MODEL: Final = 4
THINKING: Final = 8
INFO: Final = 16
LABEL: Final = 32
COMPACTION: Final = 64
ASSISTANT: Final = 128
RESULT: Final = 256
SYSTEM: Final = 512
CHECKPOINT: Final = 1024  # a compaction that holds the complete system message
EDIT: Final = 2048
BROKEN: Final = 4096  # a message entry whose message is no object: Pi cannot build a context

_OF_TYPE: Final = {
    "model_change": MODEL,
    "thinking_level_change": THINKING,
    "session_info": INFO,
    "label": LABEL,
    "compaction": COMPACTION,
    "context_edit": EDIT,
    "custom_message": EXTENSION,
}
_OF_ROLE: Final = {"assistant": ASSISTANT, "toolResult": RESULT, "system": SYSTEM}
_TARGET: Final = {"label": "targetId", "context_edit": "targetId", "compaction": "firstKeptEntryId"}
_RENDERED: Final = "ide-nested-results"
_NOTHING: Final = "no entry"
_BOM: Final = b"\xef\xbb\xbf"
VERSION: Final = 3


@dataclass(slots=True)
class Outline:
    """The rows of a file, one item of each column for a line, in the order of the file.

    `size` is in bytes and ends after a line end; `head` is the header's value. `odd` is why no trim
    can work with the file. Grows by `add`, which `Reading` calls.
    """

    head: dict[str, Any] = field(default_factory=dict)
    head_length: int = 0
    size: int = 0
    odd: str | None = None
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    ids: array[int] = field(default_factory=lambda: array("Q"))
    parents: array[int] = field(default_factory=lambda: array("Q"))
    targets: array[int] = field(default_factory=lambda: array("Q"))
    flags: array[int] = field(default_factory=lambda: array("H"))
    kinds: array[int] = field(default_factory=lambda: array("H"))
    names: list[str] = field(default_factory=list)
    calls: array[int] = field(default_factory=lambda: array("Q"))
    calling: array[int] = field(default_factory=lambda: array("Q"))

    def __len__(self) -> int:
        return len(self.ids)

    def kind(self, row: int) -> str:
        """What a row is called in a report: the role of a message, the type of anything else."""
        return self.names[self.kinds[row]]

    def entries(self) -> int:
        """How many lines Pi counts."""
        return sum(1 for flags in self.flags if flags & ENTRY)

    def add(self, line: Line) -> None:
        """Take the next line of the file, its header first."""
        self.size = line.offset + len(line.data) + (1 if line.complete else 0)
        if line.line_no == 1:
            self._head(line.data)
            return
        try:
            value = jsonline.value(line.data)
        except jsonline.Unreadable as error:
            value = None
            if error.reason == jsonline.TOO_DEEP:  # an entry to Pi, which has no such limit
                self.odd = self.odd or "a line is nested too deep to be read"
        self._row(line, value)

    def _head(self, data: bytes) -> None:
        self.head_length = len(data)
        found = header.opening(data)
        if isinstance(found, str):
            self.odd = found
        elif data.startswith(_BOM):
            self.odd = "it begins with a byte order mark: Pi does not open it"
        elif not isinstance(found.get("id"), str):
            self.odd = "the header has no id: Pi does not open it"
        else:
            self.head = found

    def _row(self, line: Line, value: Any) -> None:
        self.offsets.append(line.offset)
        self.lengths.append(len(line.data))
        ident = parent = target = flags = 0
        kind = _NOTHING
        if isinstance(value, dict) and value.get("type") != "session":
            ident, parent = self._link(value, "id"), self._link(value, "parentId")
            flags, kind, target = self._said(value)
        elif not isinstance(value, dict) and value not in (None, False, 0, ""):
            flags, kind = ENTRY, "value"
        self.ids.append(ident)
        self.parents.append(parent)
        self.targets.append(target)
        self.flags.append(flags)
        self.kinds.append(self._name(kind))

    def _link(self, value: dict[str, Any], name: str) -> int:
        found = value.get(name)
        if found is None or found == "":
            return 0
        if not isinstance(found, str):
            self.odd = self.odd or f"an entry has a {name} that is no text"
            return 0
        return token(found)

    def _said(self, value: dict[str, Any]) -> tuple[int, str, int]:
        """Flags, kind and target of an object that is an entry."""
        kind = value.get("type")
        if not isinstance(kind, str):
            return ENTRY, "value", 0
        if kind == "message":
            return self._message(value)
        flags = ENTRY | _OF_TYPE.get(kind, 0)
        if kind == "custom" and value.get("customType") != _RENDERED:
            flags |= EXTENSION
        if kind == "compaction" and isinstance(value.get("systemMessage"), dict):
            flags |= CHECKPOINT
        target = value.get(_TARGET.get(kind, ""))
        return flags, kind, token(target) if isinstance(target, str) and target else 0

    def _message(self, value: dict[str, Any]) -> tuple[int, str, int]:
        message = value.get("message")
        if not isinstance(message, dict):
            return ENTRY | BROKEN, "message", 0
        role = message.get("role")
        if not isinstance(role, str):
            return ENTRY, "message", 0
        flags = ENTRY | _OF_ROLE.get(role, 0)
        if role == "assistant":
            for call in called(message):
                self.calls.append(token(call))
                self.calling.append(len(self.ids))
        answered = message.get("toolCallId") if role == "toolResult" else None
        target = token(answered) if isinstance(answered, str) and answered else 0
        return flags, role or "message", target

    def _name(self, kind: str) -> int:
        # A file has a handful of kinds; one that makes up more shares the last name.
        if kind not in self.names:
            if len(self.names) >= 200:
                return len(self.names) - 1
            self.names.append(kind)
        return self.names.index(kind)

    # --- walks -----------------------------------------------------------------------------------

    def places(self) -> dict[int, int]:
        """Where each id stands: the last line that has it, as Pi looks ids up."""
        return {ident: row for row, ident in enumerate(self.ids) if ident}

    def leaf(self) -> int | None:
        """The row of the last entry; None where there is none."""
        flags = self.flags
        for row in range(len(flags) - 1, -1, -1):
            if flags[row] & ENTRY:
                return row
        return None

    def path(self, places: dict[int, int], leaf: int) -> list[int]:
        """Rows from the root to the leaf; a cycle ends it, and so does a missing parent."""
        found: list[int] = []
        visited = bytearray(len(self))
        row: int | None = leaf
        while row is not None and not visited[row]:
            visited[row] = 1
            found.append(row)
            row = places.get(self.parents[row]) if self.parents[row] else None
        found.reverse()
        return found


def called(message: dict[str, Any]) -> list[str]:
    """The ids of the tool calls of an assistant's message."""
    blocks = message.get("content")
    found = [
        block.get("id")
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and block.get("type") == "toolCall"
    ]
    return [one for one in found if isinstance(one, str) and one]
