"""A copy of the original, made before a trim that asks for one, and its way back.

    NAME.STAMP-NONCE.gz     the session file as it was, compressed (`zcat` shows it)
    NAME.STAMP-NONCE.json   which file that was, how large, and what the trimmed one began with

Both are 0600, made exclusively and on the disk before anything is replaced. A backup belongs to a
session file while that begins with exactly what the trim wrote; what follows was appended since,
and stays when the original is put back.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sessionindex import files
from sessionindex.trim.plan import Refusal
from sessionindex.trim.writing import digest

_GZIP: Final = 31  # zlib's name for the format
_FIELDS: Final = {"name": str, "bytes": int, "trimmedBytes": int, "trimmedDigest": str}
NONE: Final = "no backup of this file in that folder"
CHANGED: Final = "the trimmed part was changed since: the original cannot be put back"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup: the compressed original at `path`; of the trimmed file the first bytes."""

    path: str
    size: int
    trimmed: int


def save(folder: str, source: str, descriptor: int, size: int, new: int, new_size: int) -> str:
    """Write the first `size` bytes of a session; the path of the backup. Raises OSError."""
    files.make_private_folder(folder)
    name = os.path.basename(source)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    stem = os.path.join(folder, f"{name}.{stamp}-{secrets.token_hex(4)}")
    said = {
        "name": name,
        "bytes": size,
        "trimmedBytes": new_size,
        "trimmedDigest": digest(new, new_size),
    }
    _written(f"{stem}.gz", _compressed(descriptor, size))
    try:
        _written(f"{stem}.json", iter([json.dumps(said).encode()]))
    except OSError:
        os.unlink(f"{stem}.gz")
        raise
    files.sync_folder(folder)
    return f"{stem}.gz"


def _compressed(descriptor: int, size: int) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    for data in files.read_from(descriptor, 0, size):
        yield packer.compress(data)
    yield packer.flush()


def _written(path: str, blocks: Iterator[bytes]) -> None:
    descriptor = files.create(path)
    try:
        for data in blocks:
            files.write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def forget(path: str) -> None:
    """Take a backup away that was made for a trim which was then refused."""
    for name in (path, path.removesuffix(".gz") + ".json"):
        if os.path.lexists(name):
            os.unlink(name)


def find(folder: str, source: str, descriptor: int) -> Backup:
    """The newest backup that the session file begins with the trimmed part of. Raises Refusal."""
    name = os.path.basename(source)
    known = sorted(_known(folder, name), key=lambda item: item[0], reverse=True)
    if not known:
        raise Refusal(NONE)
    length = os.fstat(descriptor).st_size
    for path, said in known:
        trimmed = said["trimmedBytes"]
        if trimmed <= length and digest(descriptor, trimmed) == said["trimmedDigest"]:
            return Backup(path, said["bytes"], trimmed)
    raise Refusal(CHANGED)


def _known(folder: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in os.listdir(folder):
        path = os.path.join(folder, item)
        if item.startswith(f"{name}.") and item.endswith(".json"):
            try:
                said = json.loads(files.read_small(path))
            except (OSError, ValueError):
                continue
            if isinstance(said, dict) and said.get("name") == name and _is_complete(said):
                yield path.removesuffix(".json") + ".gz", said


def _is_complete(said: dict[str, Any]) -> bool:
    return all(isinstance(said.get(field), kind) for field, kind in _FIELDS.items())


def original(backup: Backup) -> Iterator[bytes]:
    """The bytes of the original. Raises Refusal where they are not all there, OSError."""
    descriptor, _ = files.open_listed(backup.path, files.identity(os.lstat(backup.path)))
    unpacker = zlib.decompressobj(_GZIP)
    size = 0
    try:
        for data in files.read_from(descriptor, 0):
            rest = data
            while rest:
                block = unpacker.decompress(rest, files.BLOCK)
                rest = unpacker.unconsumed_tail
                size += len(block)
                yield block
    except zlib.error as error:
        raise Refusal("the backup is damaged") from error
    finally:
        os.close(descriptor)
    if size != backup.size or not unpacker.eof:
        raise Refusal("the backup is damaged")
