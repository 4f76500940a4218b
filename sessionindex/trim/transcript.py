"""The manual rewrite: the active branch as a plain transcript, in a new session file.

The old file is not touched; the new one, with an id of its own, names it as `parentSession`. Of the
branch stay what you and the model said and thought, model and thinking levels, session names,
records of extensions, summaries of branches, labels of what stays, and the newest compaction, whose
first kept entry moves to the next that stays. System prompts, usage, context edits, commands, tool
calls and results go.

An assistant's message is made plain: text and readable thinking only, without what a provider
signed or numbered, and stopped normally; one that is empty then goes. Every entry hangs on the one
before it and keeps its id.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from sessionindex import files, jsonline
from sessionindex.trim import beside
from sessionindex.trim.beside import Replacement
from sessionindex.trim.commit import held
from sessionindex.trim.outline import COMPACTION, Outline
from sessionindex.trim.plan import Dropped, Refusal, sound
from sessionindex.trim.report import TrimReport, sizes
from sessionindex.trim.writing import digest, scanned, values

_STAY: Final = frozenset(
    {
        "model_change",
        "thinking_level_change",
        "session_info",
        "custom",
        "custom_message",
        "branch_summary",
        "label",
    }
)
_PROVIDER: Final = frozenset(
    {
        "responseId",
        "responseModel",
        "deferred",
        "diagnostics",
        "errorMessage",
        "rawStopReason",
        "endTurn",
    }
)


def rewrite(path: str, *, dry_run: bool) -> TrimReport:
    """Write the transcript of a session, or say what it would hold. Raises Refusal, OSError."""
    with held(path, keep=beside.left(path) if dry_run else ()) as source:
        outline = scanned(source.descriptor)
        sound(outline)
        before = digest(source.descriptor, outline.size)
        new = Replacement(path, os.fstat(source.descriptor))
        try:
            ident, stamp = _uuid7(), _stamp()
            rows = _written(outline, source.descriptor, new, _head(outline, path, ident, stamp))
            if digest(source.descriptor, outline.size) != before:
                raise Refusal("the file was rewritten meanwhile")
            size, after = outline.size, new.size
            made = _checked(new, len(rows))
            target = None if dry_run else _placed(path, new, f"{_file_stamp(stamp)}_{ident}.jsonl")
        finally:
            new.discard()
    what = "Transcript would be written" if dry_run else "Transcript written"
    return TrimReport(
        path,
        "planned" if dry_run else "trimmed",
        None,
        size,
        after,
        outline.entries(),
        made,
        _dropped(outline, set(rows)),
        new_path=target,
        message=sizes(what, size, after),
    )


def _placed(path: str, new: Replacement, name: str) -> str:
    target = os.path.join(os.path.dirname(path), name)
    new.finish()
    if os.path.lexists(target):  # the id is random: this is no accident
        raise Refusal("a session of that name is there already")
    os.rename(new.path, target)
    with suppress(OSError):
        files.sync_folder(os.path.dirname(path))
    return target


def _checked(new: Replacement, wanted: int) -> int:
    """The new file read anew: one chain of so many entries."""
    new.sync()
    made = scanned(new.reader, new.size)
    sound(made)
    leaf = made.leaf()
    length = 0 if leaf is None else len(made.path(made.places(), leaf))
    if made.entries() != wanted or length != wanted:
        raise Refusal("the transcript is not what was planned")
    return wanted


def _dropped(outline: Outline, kept: set[int]) -> dict[str, Dropped]:
    counted: dict[str, list[int]] = {}
    for row in range(len(outline)):
        if row not in kept:
            count = counted.setdefault(outline.kind(row), [0, 0])
            count[0] += 1
            count[1] += outline.lengths[row] + 1
    return {kind: Dropped(*counted[kind]) for kind in sorted(counted)}


# --- what stays ----------------------------------------------------------------------------------


def _written(
    outline: Outline, descriptor: int, new: Replacement, head: dict[str, Any]
) -> list[int]:
    """Write the transcript; the rows that are in it."""
    read = values(outline, descriptor)
    leaf = outline.leaf()
    path = outline.path(outline.places(), leaf) if leaf is not None else []
    newest = next((row for row in reversed(path) if outline.flags[row] & COMPACTION), -1)
    staying = _staying(outline, path, newest, descriptor)
    new.write(_line(head))
    parent: str | None = None
    for row in staying:
        value = _plain(read(row))
        assert value is not None
        if "id" not in value:
            raise Refusal("an entry of the branch has no id")
        value["parentId"] = parent
        parent = value["id"]
        if row == newest:
            kept = _first_kept(outline, path, newest, set(staying))
            value["firstKeptEntryId"] = read(kept)["id"]
        new.write(_line(value))
    return staying


def _staying(outline: Outline, path: list[int], newest: int, descriptor: int) -> list[int]:
    read = values(outline, descriptor)
    stay = [
        row
        for row in path
        if (row == newest or not outline.flags[row] & COMPACTION) and _plain(read(row)) is not None
    ]
    ids = {outline.ids[row] for row in stay}
    while True:  # a label may be the target of another
        rest = [row for row in stay if outline.kind(row) != "label" or outline.targets[row] in ids]
        if len(rest) == len(stay):
            return rest
        stay, ids = rest, {outline.ids[row] for row in rest}


def _first_kept(outline: Outline, path: list[int], newest: int, staying: set[int]) -> int:
    """The entry that the compaction keeps first, or the next one that stays."""
    end = path.index(newest)
    wanted = outline.targets[newest]
    begin = next((n for n in range(end) if outline.ids[path[n]] == wanted), end)
    return next((row for row in path[begin:end] if row in staying), newest)


def _plain(value: Any) -> dict[str, Any] | None:
    """An entry as the transcript has it; None where it goes."""
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind == "message":
        message = value["message"]
        if message.get("role") == "user":
            return dict(value)
        if message.get("role") == "assistant":
            spoken = _spoken(message)
            return None if spoken is None else {**value, "message": spoken}
        return None
    if kind == "custom" and value.get("customType") == "ide-nested-results":
        return None
    return dict(value) if kind in _STAY or kind == "compaction" else None


def _spoken(message: dict[str, Any]) -> dict[str, Any] | None:
    blocks = list(_blocks(message.get("content")))
    if not blocks:
        return None
    rest = {name: held for name, held in message.items() if name not in _PROVIDER}
    return {**rest, "content": blocks, "stopReason": "stop"}


def _blocks(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("text", "thinking"):
            said = block.get(kind)
            if isinstance(said, str) and said.strip() and not block.get("redacted"):
                yield {"type": kind, kind: said}


# --- the new session -----------------------------------------------------------------------------


def _head(outline: Outline, path: str, ident: str, stamp: str) -> dict[str, Any]:
    head = outline.head
    own = {"id": ident, "timestamp": stamp, "parentSession": path}
    return {"type": "session", "version": head.get("version"), **head, **own}


def _line(value: dict[str, Any]) -> bytes:
    return jsonline.compact(value).encode("utf-8", "surrogatepass") + b"\n"


def _uuid7() -> str:
    """An id as Pi gives it out: the time in milliseconds, then chance."""
    number = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    told = f"{number:032x}"
    return "-".join((told[:8], told[8:12], told[12:16], told[16:20], told[20:]))


def _stamp() -> str:
    now = time.time_ns() // 1_000_000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 1000)) + f".{now % 1000:03}Z"


def _file_stamp(stamp: str) -> str:
    return stamp.replace(":", "-").replace(".", "-")
