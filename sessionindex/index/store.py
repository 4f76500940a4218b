"""The folder of an index: ours or refused, opened or begun anew, one writer at a time.

    <index dir>/<root's name>-<crc of the resolved root>/
        sessionindex.json   the marker: format, root, current generation
        writer.lock         flock'ed by the one writer; says who it is
        g1/, g2/ ...        generations: tantivy indexes, one of them current

Rules:

- A folder that holds anything and no marker of ours is refused, never emptied.
- An index of another format, or a damaged one, is not mended: a new generation is begun beside it
  and the marker is moved. A rebuild of a good one moves the marker only when it is complete.
- The lock is ours and dies with its process; who finds it taken is told the holder at once.
- Folders are 0700, files 0600 after every commit: the folder is what protects.
- tantivy verifies nothing when it opens. Its segment files are written once and before the commit
  that names them, so a segment file younger than the commit was tampered with: damaged.
- tantivy's four ways of failing (ValueError, RuntimeError, OverflowError and a panic that is no
  Exception) are translated here and nowhere else, by `translated`.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson
import tantivy

from sessionindex import files
from sessionindex.errors import IndexFolderError, IndexLocked, IndexUnusable
from sessionindex.index import schema

MARKER: Final = "sessionindex.json"
LOCK: Final = "writer.lock"
_NONE: Final = "g0"
_GENERATION: Final = re.compile(r"g([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds the writer lock; `since` in milliseconds."""

    pid: int
    since: int
    kind: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.kind})"


_SYSTEM: Final = re.compile(
    "No space left|Read-only file system|Permission denied|Disk quota|Too many open files"
    "|index writer was killed"  # what a thread says later of the first of these
)
"""What the system refused: the index itself is as good as it was."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """tantivy's failures as IndexUnusable; everything else passes."""
    try:
        yield
    except (ValueError, RuntimeError, OverflowError) as error:
        if _SYSTEM.search(str(error)):
            raise IndexFolderError(f"cannot use the index folder ({what}: {error})", "") from error
        raise IndexUnusable(f"the index is damaged ({what}: {error})", damaged=True) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise IndexUnusable(f"the index is damaged ({what})", damaged=True) from error


class Store:
    """One root's index folder. Nothing is made before something is written."""

    def __init__(self, home: str, root: str) -> None:
        self.root = os.path.realpath(root)
        slug = re.sub(r"[^A-Za-z0-9]+", "-", os.path.basename(self.root))[:40].strip("-") or "root"
        name = f"{slug}-{zlib.crc32(os.fsencode(self.root)):08x}"
        self.folder = os.path.join(home, name)

    # --- reading ---------------------------------------------------------------------------------

    def open(self) -> tantivy.Index:
        """The current generation, checked; raises IndexUnusable where there is none to read."""
        marker = self._marker()
        if marker is None:
            raise IndexUnusable("this root was never indexed", damaged=False)
        if marker.get("generation") == _NONE:
            raise IndexUnusable("this root was never indexed", damaged=False)
        if marker.get("format") != schema.FORMAT:
            raise IndexUnusable("the index has the format of another version", damaged=True)
        return self._open_generation(str(marker["generation"]))

    def state(self) -> object:
        """What changes with every commit and every new generation; None where nothing is."""
        try:
            marker = self._marker()
            if marker is None:
                return None
            name = str(marker["generation"])
            found = os.stat(os.path.join(self.folder, name, "meta.json"))
        except OSError:
            return None
        return name, marker.get("format"), found.st_ino, found.st_mtime_ns, found.st_size

    def dead(self) -> tuple[int, int]:
        """Documents that are deleted and still on disk, and all documents there."""
        try:
            meta = os.path.join(self.folder, self._current(), "meta.json")
            with open(meta, "rb") as opened:
                segments = orjson.loads(opened.read())["segments"]
            gone = sum((one["deletes"] or {}).get("num_deleted_docs", 0) for one in segments)
            return gone, sum(one["max_doc"] for one in segments)
        except (OSError, ValueError, KeyError, TypeError, IndexFolderError):
            return 0, 0

    def touch(self) -> None:
        """Note that a refresh has just come to its end."""
        os.utime(os.path.join(self.folder, MARKER))

    def touched(self) -> int | None:
        """When the last refresh came to its end, in milliseconds; None where none has."""
        try:
            if self._current() == _NONE:
                return None
            return os.stat(os.path.join(self.folder, MARKER)).st_mtime_ns // 1_000_000
        except (OSError, IndexFolderError):
            return None

    def size(self) -> int:
        """Bytes of the current generation on disk."""
        try:
            with os.scandir(os.path.join(self.folder, self._current())) as found:
                return sum(item.stat().st_size for item in found)
        except (OSError, IndexFolderError):
            return 0

    def _open_generation(self, generation: str) -> tantivy.Index:
        folder = os.path.join(self.folder, generation)
        try:
            self._check_segments(folder)
        except FileNotFoundError as error:
            name = os.path.basename(str(error.filename))
            raise IndexUnusable(f"the index is damaged ({name} is gone)", damaged=True) from error
        except OSError as error:
            reason = files.spoken(error)
            raise IndexUnusable(f"the index cannot be read ({reason})", damaged=True) from error
        with translated("open"):
            index = tantivy.Index.open(folder)
            index.config_reader("manual", 0)
            schema.register_tokenizer(index)
        return index

    def _check_segments(self, folder: str) -> None:
        """Whether every committed segment file is as old as its commit, or older."""
        meta = os.path.join(folder, "meta.json")
        for _ in range(3):
            committed = os.stat(meta).st_mtime_ns
            with open(meta, "rb") as opened:
                try:
                    segments = orjson.loads(opened.read())["segments"]
                    names = {_segment(one): _deletions(one) for one in segments}
                except (ValueError, KeyError, TypeError) as error:
                    raise IndexUnusable("the index is damaged (meta.json)", damaged=True) from error
            young = self._younger(folder, names, committed)
            if young is None:
                return
            if os.stat(meta).st_mtime_ns == committed:
                raise IndexUnusable(f"the index is damaged ({young} was changed)", damaged=True)

    def _younger(self, folder: str, names: dict[str, str], committed: int) -> str | None:
        """A file of these segments that was written after the commit, or one that is gone."""
        seen = set()
        with os.scandir(folder) as found:
            for item in found:
                segment = item.name.split(".", 1)[0]
                if segment not in names:
                    continue
                seen.add(segment)
                # Deletions of the next commit are written before it: they name a later state.
                if item.name.endswith(".del") and item.name != names[segment]:
                    continue
                try:
                    if item.stat().st_mtime_ns > committed:
                        return item.name
                except FileNotFoundError:
                    return item.name
        return next(iter(names.keys() - seen), None)

    def _marker(self) -> dict[str, Any] | None:
        """What the marker says; None where the folder is missing or empty."""
        try:
            with open(os.path.join(self.folder, MARKER), "rb") as opened:
                marker = orjson.loads(opened.read())
        except FileNotFoundError:
            self._refuse_if_foreign()
            return None
        except OSError as error:
            raise self._unreadable(error) from error
        except ValueError:
            marker = None
        if not isinstance(marker, dict) or not _GENERATION.fullmatch(str(marker.get("generation"))):
            return {"format": None, "generation": "g?"}  # ours, but not to be read
        if marker.get("root") != self.root:
            raise IndexFolderError(
                f"the index folder belongs to another root: {self.folder}", self.folder
            )
        return marker

    def _refuse_if_foreign(self) -> None:
        """A folder without a marker may hold what a kill left of our first steps, nothing else."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unreadable(error) from error
        if any(not name.startswith((MARKER, LOCK)) for name in names):
            raise IndexFolderError(
                f"not an index folder of sessionindex, left alone: {self.folder}", self.folder
            )

    def _unreadable(self, error: OSError) -> IndexFolderError:
        reason = files.spoken(error)
        return IndexFolderError(
            f"cannot read the index folder: {self.folder}: {reason}", self.folder
        )

    # --- writing ---------------------------------------------------------------------------------

    @contextmanager
    def writing(self, kind: str, *, fresh: bool = False) -> Iterator[Generation]:
        """The index to write into, under the lock; `fresh` begins anew beside a good one.

        Raises IndexLocked at once where another writer works, IndexFolderError where the folder
        is not ours or cannot be written.
        """
        try:
            self._marker()  # before anything is made: a folder that is not ours is left alone
            files.make_private_folder(self.folder)
            files.narrow(self.folder)
            if not os.path.exists(os.path.join(self.folder, MARKER)):
                self._point_to(_NONE)
            lock = self._lock(kind)
        except OSError as error:
            raise IndexFolderError(
                f"cannot write the index folder: {self.folder}: {files.spoken(error)}", self.folder
            ) from error
        try:
            yield self._generation(fresh)
            self._sweep()
        except OSError as error:
            raise IndexFolderError(
                f"cannot write the index: {self.folder}: {files.spoken(error)}", self.folder
            ) from error
        finally:
            os.close(lock)

    def holder(self) -> Holder | None:
        """Who holds the writer lock now."""
        try:
            lock = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        except OSError:
            return self._said(lock)
        finally:
            os.close(lock)

    def _said(self, lock: int) -> Holder:
        try:
            said = orjson.loads(os.pread(lock, 4096, 0))
            return Holder(int(said["pid"]), int(said["since"]), str(said["kind"]))
        except (ValueError, KeyError, TypeError):
            return Holder(0, 0, "unknown")

    def _lock(self, kind: str) -> int:
        path = os.path.join(self.folder, LOCK)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        for patience in range(3, -1, -1):  # whoever only asks for the holder has it for a moment
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if not patience:
                    holder = self._said(lock)
                    os.close(lock)
                    raise IndexLocked(str(holder)) from error
                time.sleep(0.01)
        said = {"pid": os.getpid(), "since": time.time_ns() // 1_000_000, "kind": kind}
        os.ftruncate(lock, 0)
        os.pwrite(lock, orjson.dumps(said), 0)
        return lock

    def _generation(self, fresh: bool) -> Generation:
        if not fresh:
            try:
                return Generation(self, self.open(), self._current(), published=True)
            except IndexUnusable:
                pass  # nothing to go on with: begin anew
        numbers = [
            int(found[1]) for name in os.listdir(self.folder) if (found := _GENERATION.match(name))
        ]
        generation = f"g{max(numbers, default=0) + 1}"
        folder = os.path.join(self.folder, generation)
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)
        with translated("begin"):
            index = tantivy.Index(schema.build(), path=folder)
            index.config_reader("manual", 0)
            schema.register_tokenizer(index)
        files.narrow(folder)
        if not fresh:
            self._point_to(generation)
        return Generation(self, index, generation, published=not fresh)

    def _current(self) -> str:
        marker = self._marker()
        return str(marker["generation"]) if marker else _NONE

    def _point_to(self, generation: str) -> None:
        marker = {"format": schema.FORMAT, "root": self.root, "generation": generation}
        files.replace(os.path.join(self.folder, MARKER), orjson.dumps(marker))

    def _sweep(self) -> None:
        """Take away the generations that are not current, and markers that a kill left half."""
        current = self._current()
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if _GENERATION.fullmatch(name) and name != current:
                shutil.rmtree(path, ignore_errors=True)
            elif name.startswith(MARKER + "."):
                os.unlink(path)


def _segment(meta: dict[str, Any]) -> str:
    """What the names of a segment's files begin with."""
    return str(meta["segment_id"]).replace("-", "")


def _deletions(meta: dict[str, Any]) -> str:
    """The file that says which documents of a segment are deleted; "" where none is."""
    deletes = meta.get("deletes")
    return f"{_segment(meta)}.{deletes['opstamp']}.del" if deletes else ""


@dataclass(slots=True)
class Generation:
    """An index open for writing; `publish` makes it the current one."""

    store: Store
    index: tantivy.Index
    name: str
    published: bool

    @property
    def folder(self) -> str:
        return os.path.join(self.store.folder, self.name)

    def publish(self) -> None:
        if not self.published:
            self.store._point_to(self.name)
            self.published = True
