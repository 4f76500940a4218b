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
- What a generation is made of is verified before it is read (`segments`); only files that are
  tantivy's or ours are ever taken away.
- tantivy's four ways of failing (ValueError, RuntimeError, OverflowError and a panic that is no
  Exception) are translated here and nowhere else, by `translated`.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from sessionindex import files, jsonline
from sessionindex.errors import IndexFolderError, IndexUnusable
from sessionindex.index import segments, snapshot
from sessionindex.index.snapshot import Snapshot

if TYPE_CHECKING:
    import tantivy

    from sessionindex.index.lock import Holder

MARKER: Final = "sessionindex.json"
_NONE: Final = "g0"
_LOST: Final[dict[str, Any]] = {"format": None, "generation": "g?"}  # ours, but not to be read
LOCK: Final = "writer.lock"
_OWN_FILES: Final = (MARKER, LOCK, "watch.json")
_HALF: Final = f"({re.escape(MARKER)}|watch\\.json)\\.[0-9]+\\.new"
_GENERATION: Final = re.compile(r"g([0-9]{1,9})")


_SYSTEM: Final = (
    "No space left|Read-only file system|Permission denied|Disk quota|Too many open files"
    "|File too large"
    "|index writer was killed"  # what a thread says later of the first of these
)
"""What the system refused: the index itself is as good as it was."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """tantivy's failures, and garbled facts, as IndexUnusable; everything else passes."""
    try:
        yield
    except (ValueError, RuntimeError, OverflowError, TypeError, LookupError) as error:
        if re.search(_SYSTEM, str(error)):
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
        self._held: int | None = None

    # --- reading ---------------------------------------------------------------------------------

    def open(self) -> tantivy.Index:
        """The current generation, checked; raises IndexUnusable where there is none to read."""
        marker = self._marker()
        if marker is None:
            raise IndexUnusable("this root was never indexed", damaged=False)
        if marker.get("generation") == _NONE:
            raise IndexUnusable("this root was never indexed", damaged=False)
        if marker is _LOST:
            raise IndexUnusable("the index has lost its marker", damaged=True)
        from sessionindex.index import schema  # here and below: to ask for a state needs none of it

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

    def snapshot(self, state: object, root: str) -> Snapshot | None:
        """What was written down of the files at a state; `root` as it is spelled now."""
        if not isinstance(state, tuple):
            return None
        return snapshot.load(os.path.join(self.folder, state[0]), root, state)

    def dead(self) -> tuple[int, int]:
        """Documents that are deleted and still on disk, and all documents there."""
        try:
            return segments.dead(os.path.join(self.folder, self._current()))
        except (OSError, IndexFolderError, IndexUnusable):
            return 0, 0

    def corrupt(self) -> list[str]:
        """Files of the current generation whose bytes are not those that were written."""
        folder = os.path.join(self.folder, self._current())
        try:
            return [os.path.join(folder, name) for name in segments.corrupt(folder)]
        except OSError as error:
            raise IndexUnusable(f"the index cannot be read ({error})", damaged=True) from error

    def touch(self) -> None:
        """Note that a refresh has just come to its end."""
        os.utime(os.path.join(self.folder, MARKER))

    def touched(self) -> int | None:
        """When the last refresh came to its end, in milliseconds; None where none has."""
        try:
            if self._current() == _NONE:
                return None
            return os.stat(os.path.join(self.folder, MARKER)).st_mtime_ns // 1_000_000 or None
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
            segments.verify(folder)
        except FileNotFoundError as error:
            name = os.path.basename(str(error.filename))
            raise IndexUnusable(f"the index is damaged ({name} is gone)", damaged=True) from error
        except OSError as error:
            reason = files.spoken(error)
            raise IndexUnusable(f"the index cannot be read ({reason})", damaged=True) from error
        from sessionindex.index import schema

        with translated("open"):
            return schema.opened(folder)

    def _marker(self) -> dict[str, Any] | None:
        """What the marker says; None where the folder is missing or has none yet."""
        try:
            marker = jsonline.strict(files.read_small(os.path.join(self.folder, MARKER)))
        except FileNotFoundError:
            return _LOST if self._is_ours() else None
        except OSError as error:
            raise self._unreadable(error) from error
        except ValueError:
            marker = None
        if not isinstance(marker, dict) or not _GENERATION.fullmatch(str(marker.get("generation"))):
            self._is_ours()
            return _LOST
        if marker.get("root") != self.root:
            raise IndexFolderError(
                f"the index folder belongs to another root: {self.folder}", self.folder
            )
        return marker

    def _is_ours(self) -> bool:
        """Whether a folder without a good marker holds generations, and nothing that is not ours.

        Raises IndexFolderError where it holds anything else.
        """
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreadable(error) from error
        generations = [name for name in names if _GENERATION.fullmatch(name)]
        rest = {name for name in names if not name.startswith(_OWN_FILES)}.difference(generations)
        if rest or not all(segments.are_ours(os.path.join(self.folder, g)) for g in generations):
            raise IndexFolderError(
                "not an index folder of sessionindex, left alone"
                f" (take it away, or name another with --index-dir): {self.folder}",
                self.folder,
            )
        return bool(generations)

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
        with self.held(kind):
            yield self.generation(fresh=fresh)

    @contextmanager
    def held(self, kind: str) -> Iterator[None]:
        """The writer lock, for as many generations as its holder likes; raises as `writing`."""
        from sessionindex.index import lock  # here and below: who reads needs none of it

        try:
            self._marker()  # before anything is made: a folder that is not ours is left alone
            files.make_private_folder(self.folder)
            files.narrow(self.folder)
            held = lock.take(os.path.join(self.folder, LOCK), kind)
        except OSError as error:
            raise IndexFolderError(
                f"cannot write the index folder: {self.folder}: {files.spoken(error)}", self.folder
            ) from error
        try:
            self._held = held
            if self._marker() is None:  # only the holder of the lock moves the marker
                self._point_to(_NONE)
            yield
        except OSError as error:
            raise IndexFolderError(
                f"cannot write the index: {self.folder}: {files.spoken(error)}", self.folder
            ) from error
        finally:
            with suppress(OSError, IndexFolderError, IndexUnusable):  # what is left costs space
                if self.is_held():
                    self._sweep()
            self._held = None
            os.close(held)

    def is_held(self) -> bool:
        """Whether the lock that was taken is the one that others see."""
        try:
            there = os.stat(os.path.join(self.folder, LOCK))
        except OSError:
            return False
        return self._held is not None and os.path.samestat(there, os.fstat(self._held))

    def holder(self) -> Holder | None:
        """Who holds the writer lock now."""
        from sessionindex.index import lock

        return lock.holder(os.path.join(self.folder, LOCK))

    def generation(self, *, fresh: bool = False) -> Generation:
        """The index to write into, for whoever holds the lock."""
        if not fresh:
            try:
                index, current = self.open(), self._current()
                segments.sweep(os.path.join(self.folder, current))
                return Generation(self, index, current, published=True)
            except IndexUnusable:
                pass  # nothing to go on with: begin anew
        numbers = [
            int(found[1]) for name in os.listdir(self.folder) if (found := _GENERATION.match(name))
        ]
        generation = f"g{max(numbers, default=0) + 1}"
        folder = os.path.join(self.folder, generation)
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)
        from sessionindex.index import schema

        with translated("begin"):
            index = schema.begun(folder)
        files.narrow(folder)
        if not fresh:
            self._point_to(generation)
        return Generation(self, index, generation, published=not fresh)

    def _current(self) -> str:
        marker = self._marker()
        return str(marker["generation"]) if marker else _NONE

    def _point_to(self, generation: str) -> None:
        from sessionindex.index import schema

        marker = {"format": schema.FORMAT, "root": self.root, "generation": generation}
        before = (self.touched() or 0) * 1_000_000  # a beginning is no end of a refresh
        path = os.path.join(self.folder, MARKER)
        files.replace(path, jsonline.compact(marker).encode())
        os.utime(path, ns=(before, before))

    def _sweep(self) -> None:
        """Take away the generations that are not current, and markers that a kill left half."""
        current = self._current()
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if _GENERATION.fullmatch(name) and name != current:
                with suppress(OSError):  # something that is not ours may be in it
                    segments.remove(path)
            elif re.fullmatch(_HALF, name):
                os.unlink(path)
        segments.sweep(os.path.join(self.folder, current))


class Generation:
    """An index open for writing; `publish` makes it the current one."""

    __slots__ = ("index", "name", "published", "store")

    def __init__(self, store: Store, index: tantivy.Index, name: str, *, published: bool) -> None:
        self.store = store
        self.index = index
        self.name = name
        self.published = published

    @property
    def folder(self) -> str:
        return os.path.join(self.store.folder, self.name)

    def publish(self) -> None:
        if not self.published:
            self.store._point_to(self.name)
            self.published = True
