"""What the real Pi left: session files, and the requests to its provider."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pi_rpc import Place, Record


def lines(file: Path) -> list[Record]:
    """A session file, line by line; every parent that is named is there, ids are there once."""
    found = [json.loads(line) for line in file.read_bytes().splitlines()]
    ids = [one["id"] for one in found[1:]]
    assert len(ids) == len(set(ids))
    parents = {one["parentId"] for one in found[1:]} - {None}
    assert parents <= set(ids)
    return found


def users(file: Path) -> list[str]:
    """What users said, as it is stored."""
    messages = [one.get("message", {}) for one in lines(file)]
    return [
        part["text"]
        for message in messages
        if message.get("role") == "user"
        for part in message["content"]
        if part["type"] == "text"
    ]


_MASKS = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "SESSION"),
    (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}[:-][0-9]{2}[:-][0-9]{2}[.-][0-9]{3}Z", "TIME"),
    (r"Wall time [0-9.]+ seconds", "DURATION"),
    (r'("(?:timestamp|durationMs|input|totalTokens)":)[0-9.]+', r"\g<1>0"),
    (r'("(?:id|parentId|entryId|firstKeptEntryId|fromId)":")[0-9a-f]{8}"', r'\g<1>ID"'),
)


def masked(place: Place) -> list[str]:
    """The requests to the provider without what differs from one run to another."""
    text = place.log.read_text().replace(str(place.top), "TOP")
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text.splitlines()
