"""The files of one generation: which are committed, whether they are what was written.

tantivy verifies nothing when it opens, and a changed segment gives wrong candidates or a panic. So
before a generation is read, each committed segment file is either the very file that our writer
noted after its commit (inode, size, mtime, ctime: what touches a file moves its ctime), or its
checksum is compared with the one in tantivy's own footer. A merge in the background makes files
that are not noted until the next commit: they are read once a question, and cost time only.

    segments.json   file name -> [inode, size, mtime_ns, ctime_ns], written after each commit

What a disk loses silently under a noted file only `corrupt` finds, which reads everything.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, Final

from sessionindex import files, jsonline
from sessionindex.errors import IndexUnusable

NOTES: Final = "segments.json"
_META: Final = "meta.json"
_OURS: Final = (
    r"[0-9a-f]{32}\..+|meta\.json|\.managed\.json|\.tantivy-.*\.lock|\.tmp.*|segments\.json.*"
    r"|files\.snapshot.*"
)
_HALF: Final = r"(segments\.json|files\.snapshot)\.[0-9]+\.new"
_MAGIC: Final = 1337
_BLOCK: Final = 1 << 20


def committed(folder: str) -> list[dict[str, Any]]:
    """What meta.json says of each committed segment; raises OSError and IndexUnusable."""
    try:
        found = jsonline.strict(files.read_small(os.path.join(folder, _META)))["segments"]
        return [dict(segment) for segment in found]
    except (ValueError, KeyError, TypeError) as error:
        raise IndexUnusable(f"the index is damaged ({_META})", damaged=True) from error


def verify(folder: str) -> None:
    """Raise IndexUnusable where a committed file is not what was written, OSError where none is."""
    notes = _notes(folder)
    with os.scandir(folder) as found:
        odd = [item.name for item in found if not item.is_file(follow_symlinks=False)]
    if odd:  # a FIFO would have tantivy wait for ever
        raise IndexUnusable(f"the index is damaged ({min(odd)})", damaged=True)
    names = _names(folder)
    for name in names:
        path = os.path.join(folder, name)
        if notes.get(name) != _stamp(os.stat(path)) and not _is_sound(path):
            raise IndexUnusable(f"the index is damaged ({name})", damaged=True)
    # tantivy opens some of them only when it needs them.
    prefixes = {name.split(".", 1)[0] for name in names}
    for name in notes.keys() - names:
        if name.split(".", 1)[0] in prefixes and not name.endswith(".del"):
            raise FileNotFoundError(2, "a segment's file is gone", name)


def note(folder: str) -> None:
    """Note the files of the commit that was just made, by whoever made it.

    A file that was noted already never changes: where it did, it is noted anew only if it is sound.
    """
    before = _notes(folder)
    stamps = {}
    try:
        for name in _names(folder):
            path = os.path.join(folder, name)
            stamps[name] = _stamp(os.stat(path))
            if before.get(name, stamps[name]) != stamps[name] and not _is_sound(path):
                stamps[name] = before[name]
    except (FileNotFoundError, IndexUnusable):
        return  # merged away this moment: the next commit notes what is there then
    files.replace(os.path.join(folder, NOTES), jsonline.compact(stamps).encode(), durable=False)


def corrupt(folder: str) -> Iterator[str]:
    """The names of committed files whose bytes are not those that were written; reads them all."""
    for name in _names(folder):
        if not _is_sound(os.path.join(folder, name)):
            yield name


def dead(folder: str) -> tuple[int, int]:
    """Documents that are deleted and still on disk, and all documents there."""
    segments = committed(folder)
    gone = sum((one.get("deletes") or {}).get("num_deleted_docs", 0) for one in segments)
    return gone, sum(one["max_doc"] for one in segments)


def are_ours(folder: str) -> bool:
    """Whether a folder holds nothing that tantivy or we would not have put there."""
    try:
        return all(re.fullmatch(_OURS, name) for name in os.listdir(folder))
    except OSError:
        return False


def sweep(folder: str) -> None:
    """Take away what a kill left half written; only for who holds the lock and writes nothing now.

    tantivy numbers the deletions of its next commit as those that came to nothing, and fails where
    a file has that name. Segments that came to nothing it takes away itself.
    """
    names = os.listdir(folder)
    left = [name for name in names if re.fullmatch(_HALF, name)]
    if any(name.endswith(".del") for name in names):
        used = _deletions(folder).values()
        left += [name for name in names if name.endswith(".del") and name not in used]
    for name in left:
        os.unlink(os.path.join(folder, name))


def remove(folder: str) -> None:
    """Take a generation away, and leave what is not ours."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if re.fullmatch(_OURS, name) and not os.path.isdir(path):
            os.unlink(path)
    os.rmdir(folder)


def _names(folder: str) -> list[str]:
    """The files of the committed segments, deletions of a later commit apart."""
    deletions = _deletions(folder)
    names = [
        name
        for name in os.listdir(folder)
        if (prefix := name.split(".", 1)[0]) in deletions
        and (not name.endswith(".del") or name == deletions[prefix])
    ]
    there = {name.split(".", 1)[0] for name in names}
    for prefix, deleted in deletions.items():
        if prefix not in there or (deleted and deleted not in names):
            raise FileNotFoundError(2, "a segment is gone", deleted or prefix)
    return names


def _deletions(folder: str) -> dict[str, str]:
    """By the name of each committed segment that of its file of deletions, "" without one."""
    deletions = {}
    for segment in committed(folder):
        prefix = str(segment["segment_id"]).replace("-", "")
        deletes = segment.get("deletes")
        deletions[prefix] = f"{prefix}.{deletes['opstamp']}.del" if deletes else ""
    return deletions


def _notes(folder: str) -> dict[str, Any]:
    try:
        notes = jsonline.strict(files.read_small(os.path.join(folder, NOTES)))
        return notes if isinstance(notes, dict) else {}
    except (OSError, ValueError):
        return {}


def _stamp(found: os.stat_result) -> list[int]:
    return [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _is_sound(path: str) -> bool:
    """Whether a segment file has the checksum that its footer names."""
    with open(path, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(max(0, size - 8))
        length, magic = (int.from_bytes(opened.read(4), "little") for _ in range(2))
        body = size - 8 - length
        if magic != _MAGIC or body < 0:
            return False
        opened.seek(body)
        try:
            expected = jsonline.strict(opened.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return False
        opened.seek(0)
        checksum = 0
        while body and (data := opened.read(min(_BLOCK, body))):
            checksum = zlib.crc32(data, checksum)
            body -= len(data)
    return bool(checksum == expected)
