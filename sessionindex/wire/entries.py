"""session_entries on the wire: its parameters and its rows.

A row's `raw` is either the parsed value (for callers in Python) or the file's own bytes (for
everything that is printed).
"""

from __future__ import annotations

from typing import Any

from sessionindex.model import Entry
from sessionindex.wire.output import Raw


def entry_row(entry: Entry, text: str | None, line: bytes) -> dict[str, Any]:
    """An entry as a row of session_entries; `raw` is the file's own bytes."""
    return {
        "lineNo": entry.line_no,
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
        "type": entry.type,
        "messageRole": entry.role,
        "text": text,
        "raw": Raw(line.strip(b" \t\r\n")),
    }
