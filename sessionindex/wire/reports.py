"""The reports of the index as JSON, in the words of the interface.

Instants become ISO 8601 in UTC, names camelCase. What the access bound hides is None already when
it comes here: this module leaves nothing out.
"""

from __future__ import annotations

from typing import Any

from sessionindex.status import Status
from sessionindex.wire.output import iso


def status_answer(status: Status) -> dict[str, Any]:
    """A Status as JSON; instants as ISO 8601."""
    writer = status.writer
    return {
        "root": status.root,
        "layout": status.layout,
        "indexDir": status.index_dir,
        "sessions": status.sessions,
        "entries": status.entries,
        "bytes": status.bytes,
        "indexBytes": status.index_bytes,
        "format": status.format,
        "fresh": status.fresh,
        "behind": status.behind,
        "stale": status.stale,
        "new": status.new,
        "pendingBytes": status.pending_bytes,
        "lastRefresh": iso(status.last_refresh),
        "problems": dict(status.problems),
        "writer": writer and {"pid": writer.pid, "since": iso(writer.since), "kind": writer.kind},
        "damage": status.damage,
    }
