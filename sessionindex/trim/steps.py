"""A trim from beginning to end: at once, in two steps, or the way back from a backup.

Each function answers with a report; what must not be done is the report's outcome and the file is
untouched to the byte. Everything is checked again at the second of two steps: the token names the
prepared replacement and says what it was made of, and is believed in nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from sessionindex import files
from sessionindex.errors import ParameterError
from sessionindex.fold import token
from sessionindex.trim import backup as backups
from sessionindex.trim import beside
from sessionindex.trim.beside import Replacement
from sessionindex.trim.commit import Settled, Source, commit, held
from sessionindex.trim.outline import Outline
from sessionindex.trim.plan import Nothing, Plan, Refusal, plan
from sessionindex.trim.proof import proved, restored
from sessionindex.trim.report import Prepared, TrimReport, sizes, untouched
from sessionindex.trim.writing import digest, planned_size, surveyed, write

_GONE: Final = "the prepared replacement is not there any more"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A session as it was read, and what is to become of it."""

    outline: Outline
    digest: str
    plan: Plan


def guarded(path: str, work: Callable[[], TrimReport]) -> TrimReport:
    """The report of some work, or of why it was not done."""
    try:
        return work()
    except Refusal as refusal:
        return untouched(path, "refused", str(refusal), _size(path), 0)
    except files.Changed:
        return untouched(path, "refused", "the file was replaced meanwhile", _size(path), 0)
    except OSError as error:
        return untouched(path, "refused", files.spoken(error), _size(path), 0)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def trim(path: str, *, dry_run: bool = False, backup: str | None = None) -> TrimReport:
    """Trim a session file, or say what that would do."""

    def work() -> TrimReport:
        with held(path, keep=beside.left(path) if dry_run else ()) as source:
            try:
                snapshot = _snapshot(source, None)
            except _NothingThere as found:
                return found.report
            if dry_run:
                return _planned(source, snapshot)
            new = Replacement(path, os.fstat(source.descriptor))
            try:
                write(snapshot.outline, snapshot.plan, source.descriptor, new)
                return _committed(source, snapshot, new, backup)
            except BaseException:
                new.discard()
                raise

    return guarded(path, work)


class _NothingThere(Exception):
    def __init__(self, report: TrimReport) -> None:
        self.report = report


def _snapshot(source: Source, leaf: str | None, end: int | None = None) -> _Snapshot:
    """Read and decide; raises _NothingThere and Refusal."""
    outline, taken = surveyed(source.descriptor, end)
    if leaf is not None:
        last = outline.leaf()
        if last is None or outline.ids[last] != token(leaf):
            raise Refusal("the live leaf is not the last line")
    try:
        if not outline.size:
            raise Refusal("the file holds no whole line")
        decided = plan(outline)
    except Nothing as nothing:
        report = untouched(source.path, "nothing", str(nothing), source.size, outline.entries())
        raise _NothingThere(report) from nothing
    return _Snapshot(outline, taken, decided)


def _planned(source: Source, snapshot: _Snapshot) -> TrimReport:
    outline, decided = snapshot.outline, snapshot.plan
    size = source.size
    after = planned_size(outline, decided, source.descriptor) + size - outline.size
    entries = outline.entries()
    gone = sum(one.entries for one in decided.dropped.values())
    message = sizes("Compacted session would be trimmed", size, after)
    return TrimReport(
        source.path, "planned", None, size, after, entries, entries - gone, decided.dropped, 0,
        message=message,
    )  # fmt: skip


def _committed(
    source: Source, snapshot: _Snapshot, new: Replacement, folder: str | None
) -> TrimReport:
    outline, decided = snapshot.outline, snapshot.plan
    lines = [0, 0, 0]  # entries before and after, lines carried: of the last look
    saved: list[str] = []

    def judge(size: int, made: Replacement) -> None:
        lines[:] = proved(outline, decided, source.descriptor, size, made)

    def keep(size: int) -> None:
        if folder is not None:
            saved.append(
                backups.save(folder, source.path, source.descriptor, size, new.reader, new.size)
            )

    def unchanged() -> bool:
        return digest(source.descriptor, outline.size) == snapshot.digest

    try:
        settled = commit(source, outline.size, unchanged, new, judge, keep)
    except BaseException:
        for one in saved:
            backups.forget(one)
        raise
    if settled.undone is not None:
        for one in saved:
            backups.forget(one)
    report = TrimReport(
        source.path,
        "trimmed",
        None,
        source.size,
        _size(source.path),
        lines[0],
        lines[1],
        decided.dropped,
        lines[2],
        saved[0] if saved else None,
    )
    return _told(report, settled, "Compacted session trimmed")


def _told(report: TrimReport, settled: Settled, what: str) -> TrimReport:
    if settled.undone is not None:
        size, reason = report.bytes_after, f"{settled.undone}: the file was put back"
        return untouched(report.path, "refused", reason, size, report.entries_before)
    message = sizes(what, report.bytes_before, report.bytes_after)
    if settled.open:
        message += "; another program still writes to the old file: trim again to carry that over"
    return replace(report, message=message)


# --- two steps -----------------------------------------------------------------------------------


def prepare(path: str, leaf: str | None = None) -> Prepared:
    """Leave a checked replacement beside the session; a newer one takes its place.

    `leaf` is the live leaf of the caller, which has to be the last line.
    """
    made: list[tuple[str, str, int]] = []

    def work() -> TrimReport:
        with held(path) as source:
            try:
                snapshot = _snapshot(source, leaf)
            except _NothingThere as found:
                return found.report
            new = Replacement(path, os.fstat(source.descriptor))
            try:
                write(snapshot.outline, snapshot.plan, source.descriptor, new)
                new.finish()
                proved(
                    snapshot.outline, snapshot.plan, source.descriptor, snapshot.outline.size, new
                )
                ready = beside.ready_name(new.path)
                name = _token(path, ready, snapshot, digest(new.reader, new.size))
                os.rename(new.path, ready)
                new.path = ready
                files.sync_folder(os.path.dirname(path))
                report = _planned(source, snapshot)
            except BaseException:
                new.discard()
                raise
            new.close()
            made.append((name, ready, snapshot.outline.size))
            return report

    report = guarded(path, work)
    name, ready, size = made[0] if made and report.outcome == "planned" else (None, None, 0)
    return Prepared(name, ready, size, report)


def _token(path: str, ready: str, snapshot: _Snapshot, made: str) -> str:
    said = [path, os.path.basename(ready), snapshot.outline.size, snapshot.digest, made]
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Named:
    """What a token says."""

    path: str
    ready: str
    size: int
    digest: str
    made: str


def named(given: str) -> Named:
    """What a token says; raises ParameterError where it is none."""
    try:
        said = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
        path, name, size, before, made = said
        found = Named(path, os.path.join(os.path.dirname(path), name), size, before, made)
        sound = beside.is_ready(found.ready, path) and isinstance(size, int) and size >= 0
    except (ValueError, TypeError, binascii.Error) as error:
        raise ParameterError("this is no token of a prepared trim") from error
    if not sound:
        raise ParameterError("this is no token of a prepared trim")
    return found


def commit_prepared(wanted: Named) -> TrimReport:
    """The second step: check everything again, and replace."""

    def work() -> TrimReport:
        with held(wanted.path, keep=(wanted.ready,)) as source:
            try:
                return _from_ready(source, wanted)
            finally:
                _discard(wanted)

    return guarded(wanted.path, work)


def _from_ready(source: Source, wanted: Named) -> TrimReport:
    if source.size < wanted.size or digest(source.descriptor, wanted.size) != wanted.digest:
        raise Refusal("the source no longer starts with the snapshot")
    try:
        snapshot = _snapshot(source, None, wanted.size)
    except _NothingThere as found:
        return found.report
    try:
        ready, _ = files.open_listed(wanted.ready, files.identity(os.lstat(wanted.ready)))
    except (files.Changed, FileNotFoundError) as error:
        raise Refusal(_GONE) from error
    new = Replacement(source.path, os.fstat(source.descriptor))
    try:
        new.copy(ready, 0, os.fstat(ready).st_size)
        if digest(ready, new.size) != wanted.made:
            raise Refusal("the prepared replacement was changed")
        return _committed(source, snapshot, new, None)
    except BaseException:
        new.discard()
        raise
    finally:
        os.close(ready)


def _discard(wanted: Named) -> bool:
    with suppress(FileNotFoundError):
        os.unlink(wanted.ready)
        return True
    return False


def discard(wanted: Named) -> TrimReport:
    """Take a prepared replacement away."""

    def work() -> TrimReport:
        reason = "the prepared replacement was taken away" if _discard(wanted) else _GONE
        return untouched(wanted.path, "nothing", reason, _size(wanted.path), 0)

    return guarded(wanted.path, work)


def tidy(paths: Iterable[str]) -> None:
    """Clear what kills left beside these sessions, and carry what they kept from being carried.

    What is in use, or was prepared a short while ago, stays.
    """
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(os.path.dirname(path), []).append(path)
    for folder, sessions in folders.items():
        if not beside.clear(folder):
            continue
        for path in sessions:
            left = beside.left(path)
            if any(beside.old_of(one) for one in left):
                with suppress(Refusal, OSError, files.Changed), held(path, keep=left):
                    pass


# --- the way back --------------------------------------------------------------------------------


def restore(path: str, folder: str, *, dry_run: bool = False) -> TrimReport:
    """Put the original back, with what was appended to the trimmed file since."""

    def work() -> TrimReport:
        with held(path, keep=beside.left(path) if dry_run else ()) as source:
            found = backups.find(folder, path, source.descriptor)
            size = source.size
            after = found.size + size - found.trimmed
            if dry_run:
                message = sizes("Session would be restored", size, after)
                return TrimReport(path, "planned", None, size, after, 0, 0, message=message)
            before = digest(source.descriptor, size)
            new = Replacement(path, os.fstat(source.descriptor))
            counts = [0, 0]

            def judge(length: int, made: Replacement) -> None:
                counts[:] = restored(source.descriptor, length, made)

            def unchanged() -> bool:
                return digest(source.descriptor, size) == before

            try:
                for block in backups.original(found):
                    new.write(block)
                new.copy(source.descriptor, found.trimmed, size)
                settled = commit(source, size, unchanged, new, judge)
            except BaseException:
                new.discard()
                raise
            report = TrimReport(path, "trimmed", None, size, _size(path), counts[0], counts[1])
            return _told(report, settled, "Session restored")

    return guarded(path, work)
