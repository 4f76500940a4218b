"""What a trim says of itself as JSON, in the words of the interface.

Names are camelCase; sizes are bytes. A preparation has its report inside.
"""

from __future__ import annotations

from typing import Any

from sessionindex.trim.report import Prepared, TrimReport


def trim_answer(report: TrimReport) -> dict[str, Any]:
    """A TrimReport as JSON."""
    return {
        "path": report.path,
        "outcome": report.outcome,
        "reason": report.reason,
        "bytesBefore": report.bytes_before,
        "bytesAfter": report.bytes_after,
        "entriesBefore": report.entries_before,
        "entriesAfter": report.entries_after,
        "dropped": {
            kind: {"entries": one.entries, "bytes": one.bytes}
            for kind, one in report.dropped.items()
        },
        "carried": report.carried,
        "backup": report.backup,
        "newPath": report.new_path,
        "message": report.message,
    }


def prepared_answer(prepared: Prepared) -> dict[str, Any]:
    """The answer of the first of two steps."""
    return {
        "token": prepared.token,
        "prepared": prepared.prepared,
        "snapshotBytes": prepared.snapshot_bytes,
        "report": trim_answer(prepared.report),
    }
