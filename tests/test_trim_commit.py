"""The replacement of somebody's only copy: kills, late writers, full disks, rivals. Nothing lost.

After each bad day the file is the old one or the trimmed one, whole, and the next trim makes the
trimmed one of it and leaves nothing of ours beside it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build import Builder, append, encoded, put, session
from histories import back, compacted, ids, said, turn, values
from scratch import Store, ask, places
from test_cases import NOBODY, in_child, peak_mb

from sessionindex.trim import beside, commit, late, steps
from sessionindex.trim.report import TrimReport


def tail(story: Builder, word: str = "it came late") -> bytes:
    """A line that Pi would append to the session now."""
    length = len(story)
    return story.user(word).tail(length)


def expected(data: bytes) -> bytes:
    """What a trim makes of these bytes when nothing else happens."""
    with tempfile.TemporaryDirectory() as folder:
        path = put(folder, "", "x", data)
        assert steps.trim(path).outcome == "trimmed"
        return Path(path).read_bytes()


def left(path: str) -> list[str]:
    """What is hidden in the session's folder."""
    return [name for name in os.listdir(os.path.dirname(path)) if name.startswith(".")]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return put(tmp_path, "", "t", compacted())


# --- one trim ------------------------------------------------------------------------------------


def test_what_a_trim_leaves(path: str) -> None:
    """Mode and time of the file stay; what is kept is kept to the byte; nothing lies about."""
    os.chmod(path, 0o640)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    before = compacted().bytes()
    report = steps.trim(path)
    after = Path(path).read_bytes()
    assert (report.outcome, report.bytes_before, report.bytes_after) == (
        "trimmed",
        len(before),
        len(after),
    )
    assert (report.entries_before, report.entries_after) == (len(ids(before)), len(ids(after)))
    assert sum(one.entries for one in report.dropped.values()) == len(ids(before)) - len(ids(after))
    assert report.message == "Compacted session trimmed: 5 KB → 3 KB"
    assert set(before.splitlines()) - set(after.splitlines())
    assert len(set(after.splitlines()) - set(before.splitlines())) == 1  # the line relinked
    found = os.stat(path)
    assert (found.st_mode & 0o777, found.st_mtime) == (0o640, 1_700_000_000)
    assert left(path) == []
    assert steps.trim(path).outcome == "nothing"


def test_a_dry_run_tells_what_would_be(path: str) -> None:
    before = Path(path).read_bytes()
    planned = steps.trim(path, dry_run=True)
    assert (planned.outcome, Path(path).read_bytes(), left(path)) == ("planned", before, [])
    done = steps.trim(path)
    assert (planned.bytes_after, planned.entries_after, planned.dropped) == (
        done.bytes_after,
        done.entries_after,
        done.dropped,
    )


def test_the_index_follows(store: Store) -> None:
    """What is gone is not found any more, what stayed is found at its new line."""
    path = store.put("t", compacted())
    store.put("other", compacted("other"))
    store.index.refresh()
    assert len(places(ask(store.index, "question old 1"))) == 2
    assert store.index.trim(path, force=True).outcome == "trimmed"
    assert store.index.status().fresh == 2
    assert places(ask(store.index, "question old 1")) == [("other", 8)]
    assert places(ask(store.index, "question kept")) == [("other", 17), ("t", 5)]


def test_searches_during_a_trim(store: Store) -> None:
    """Each answers from the old file or from the trimmed one."""
    store.put("t", compacted(turns=300))
    store.index.refresh()
    stop, totals = threading.Event(), set()

    def ask_on() -> None:
        index = store.open()
        while not stop.is_set():
            totals.add(index.search("question old").total)
            totals.add(index.search("question old", brute=True).total)

    asking = threading.Thread(target=ask_on)
    asking.start()
    for _ in range(3):
        path = store.put("t", compacted(turns=300))
        assert store.index.trim(path, force=True).outcome == "trimmed"
    stop.set()
    asking.join()
    assert totals <= {0, 300}


def test_a_trim_leaves_the_index_to_its_writer(store: Store) -> None:
    path = store.put("t", compacted())
    store.index.refresh()
    with store.index._present.store.writing("watch"):
        assert store.index.trim(path, force=True).outcome == "trimmed"
    assert places(ask(store.index, "question kept")) == [("t", 5)]


def trim_what_is_large(folder: str) -> None:
    """A process of its own, whose peak memory is then known."""
    path = os.path.join(folder, "large.jsonl")
    story = compacted()
    head, _, rest = story.bytes().partition(b"\n")
    hidden = values(story)[2]
    with open(path, "wb") as file:
        file.write(head + b"\n")
        for number in range(600):
            old = hidden | {"id": f"{number:08x}", "parentId": None, "pad": "x" * 200_000}
            file.write(encoded(old) + b"\n")
        file.write(rest)
    before = peak_mb()
    assert steps.trim(path).outcome == "trimmed"
    assert peak_mb() - before < 40


def test_memory_is_what_is_kept_and_the_longest_line(tmp_path: Path) -> None:
    """Not the 120 MB of the file."""
    in_child(trim_what_is_large, str(tmp_path))


# --- what lands meanwhile ------------------------------------------------------------------------


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, work: Callable[[], None]) -> None:
    """Have this happen once, before a function of the commit's is called."""
    inner = getattr(commit, name)
    done: list[int] = []

    def first(*given: Any, **more: Any) -> Any:
        if not done:
            done.append(1)
            work()
        return inner(*given, **more)

    monkeypatch.setattr(commit, name, first)


def test_a_line_appended_before_the_replacement_is_carried(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = compacted()
    more = tail(story)
    meanwhile(monkeypatch, "_nobody_writes", lambda: append(path, more))
    report = steps.trim(path)
    assert (report.outcome, report.carried) == ("trimmed", 1)
    assert Path(path).read_bytes() == expected(compacted().bytes()) + more


@pytest.mark.parametrize("torn", [False, True])
def test_a_line_written_to_the_old_file_is_carried_in_its_place(
    path: str, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """A writer that opened before the renaming: its line comes before what came after it."""
    story = compacted()
    first = tail(story, "late")
    if torn:
        first = first[:-9]
    second = tail(story, "after the renaming")
    inner = os.replace

    def renaming(source: str, target: str) -> None:
        writer = os.open(path, os.O_WRONLY | os.O_APPEND)
        inner(source, target)
        monkeypatch.setattr(os, "replace", inner)

        def late_writer() -> None:
            time.sleep(0.05)
            append(path, second)
            os.write(writer, first)
            os.close(writer)

        threading.Thread(target=late_writer).start()

    monkeypatch.setattr(os, "replace", renaming)
    report = steps.trim(path)
    assert report.outcome == "trimmed"
    wanted = expected(compacted().bytes()) + first + (b"\n" if torn else b"") + second
    assert Path(path).read_bytes() == wanted
    assert left(path) == []


def test_an_open_that_was_under_way_when_the_file_was_replaced(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It found the old name, and is no writer yet when the system is asked."""
    line, inner = tail(compacted(), "late"), os.replace
    looks: list[bool] = []

    def renaming(source: str, target: str) -> None:
        monkeypatch.setattr(os, "replace", inner)
        writer = os.open(path, os.O_WRONLY | os.O_APPEND)
        inner(source, target)

        def is_written(descriptor: int) -> bool:
            looks.append(False)
            if len(looks) == 2:
                os.write(writer, line)
                os.close(writer)
            return False

        monkeypatch.setattr(late, "is_written", is_written)

    monkeypatch.setattr(os, "replace", renaming)
    assert steps.trim(path).outcome == "trimmed"
    assert Path(path).read_bytes() == expected(compacted().bytes()) + line
    assert left(path) == []


def refers(story: Builder) -> bytes:
    """A line that hangs on what a trim of the session drops."""
    length = len(story)
    return back(story, ids(story)[4]).user("back again").tail(length)


def test_an_appended_line_that_refers_to_dropped_history(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = refers(compacted())
    meanwhile(monkeypatch, "_nobody_writes", lambda: append(path, more))
    report = steps.trim(path)
    assert (report.outcome, report.reason) == (
        "refused",
        "an appended line refers to dropped history",
    )
    assert Path(path).read_bytes() == compacted().bytes() + more
    assert left(path) == []


def test_a_late_line_that_refers_to_dropped_history_brings_the_old_file_back(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything that was appended to either file."""
    more, after = refers(compacted()), tail(compacted(), "after")
    inner = os.replace

    def renaming(source: str, target: str) -> None:
        writer = os.open(path, os.O_WRONLY | os.O_APPEND)
        inner(source, target)
        monkeypatch.setattr(os, "replace", inner)
        append(path, after)
        os.write(writer, more)
        os.close(writer)

    monkeypatch.setattr(os, "replace", renaming)
    report = steps.trim(path)
    assert report.outcome == "refused"
    assert report.reason == "an appended line refers to dropped history: the file was put back"
    assert Path(path).read_bytes() == compacted().bytes() + more + after
    assert left(path) == []


def test_many_writers_while_a_session_is_trimmed(tmp_path: Path) -> None:
    """Pi appends line by line, each with an open and a close: none is lost, none doubled."""
    draw, outcomes = random.Random(7), []
    for turn_number in range(20):
        story = compacted(f"t{turn_number}", turns=40)
        path = put(tmp_path, "", "t", story)
        stop = threading.Event()
        wrote: list[bytes] = []

        def write(story: Builder = story, path: str = path) -> None:
            while not stop.is_set():  # noqa: B023 - within its own round
                line = tail(story, f"line {len(wrote)}")  # noqa: B023
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
                time.sleep(0.0005)
                os.write(descriptor, line)
                os.close(descriptor)
                time.sleep(draw.random() / 300)
                wrote.append(line)  # noqa: B023

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.003)
        report = steps.trim(path)
        outcomes.append(report.outcome)
        stop.set()
        writer.join()
        found = [word for word in said(Path(path).read_bytes()) if word.startswith("line ")]
        assert found == [f"line {number}" for number in range(len(wrote))], report
        assert left(path) == []
    assert outcomes.count("trimmed") > 10


def test_a_file_that_somebody_holds_open_for_writing(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late, "QUIET_S", 0.1)
    with open(path, "ab"):
        if late.is_written(os.open(path, os.O_RDONLY)) is None:
            pytest.skip("no leases here: only time can tell")
        report = steps.trim(path)
    assert report.reason == "another program has the file open for writing"
    assert Path(path).read_bytes() == compacted().bytes()


def test_without_leases_time_decides(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "is_written", lambda descriptor: None)
    monkeypatch.setattr(late, "QUIET_S", 0.05)
    assert steps.trim(path).outcome == "trimmed"


# --- rivals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["truncated", "replaced", "rewritten", "gone"])
def test_a_file_that_changes_meanwhile(
    path: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    other = compacted("other").bytes()

    def change() -> None:
        target = Path(path)
        if how == "truncated":
            os.truncate(path, 100)
        elif how == "replaced":
            target.with_suffix(".new").write_bytes(other)
            target.with_suffix(".new").replace(target)
        elif how == "rewritten":
            target.write_bytes(target.read_bytes().replace(b"question", b"QUESTION"))
        else:
            target.unlink()

    seen: list[bytes | None] = []

    def work() -> None:
        change()
        seen.append(Path(path).read_bytes() if how != "gone" else None)

    meanwhile(monkeypatch, "_nobody_writes", work)
    report = steps.trim(path)
    assert (report.outcome, report.reason) == (
        "refused",
        "the file was replaced or rewritten meanwhile",
    )
    assert (Path(path).read_bytes() if how != "gone" else None) == seen[0]
    assert left(path) == []


def test_two_trims_at_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rival: list[TrimReport] = []
    meanwhile(monkeypatch, "_nobody_writes", lambda: rival.append(steps.trim(path)))
    assert steps.trim(path).outcome == "trimmed"
    assert rival[0].reason == "another trim of this file is at work"
    assert Path(path).read_bytes() == expected(compacted().bytes())


def test_a_second_trim_waits_for_the_late_writers_of_the_first(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new file is locked before it has its name."""
    rival: list[TrimReport] = []
    meanwhile(monkeypatch, "_settle", lambda: rival.append(steps.trim(path)))
    assert steps.trim(path).outcome == "trimmed"
    assert rival[0].reason == "another trim of this file is at work"


def link(path: str) -> str:
    os.link(path, path + ".second")
    return path


def symlink(path: str) -> str:
    os.symlink(path, path + ".link.jsonl")
    return path + ".link.jsonl"


def read_only(path: str) -> str:
    os.chmod(path, 0o444)
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (link, "the file has another name (a hard link)"),
        (symlink, "it is a link"),
        (read_only, "the file is read-only"),
        (lambda path: os.path.dirname(path), "it is no regular file"),
    ],
)
def test_files_that_are_not_replaced(path: str, make: Callable[[str], str], reason: str) -> None:
    given = make(path)
    report = steps.trim(given)
    assert (report.outcome, report.reason) == ("refused", reason)
    assert Path(path).read_bytes() == compacted().bytes()


def trim_in_closed_folders(folder: str) -> None:
    """As a user whom permissions bind; runs in a child process."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    path = put(folder, "p", "t", compacted())
    os.chmod(os.path.dirname(path), 0o500)
    report = steps.trim(path)
    assert (report.outcome, report.reason) == ("refused", "its folder is read-only")
    os.chmod(os.path.dirname(path), 0o700)
    os.chmod(path, 0o400)
    assert steps.trim(path).reason == "the file is read-only"
    os.chmod(path, 0o000)
    assert steps.trim(path).reason == "EACCES: Permission denied"
    os.chmod(path, 0o600)
    assert steps.trim(path).outcome == "trimmed"


def test_read_only_files_and_folders() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        if os.geteuid() == 0:
            os.chown(scratch, NOBODY, NOBODY)
        in_child(trim_in_closed_folders, scratch)


def trim_with_a_full_disk(folder: str) -> None:
    """Where no file may be larger than so much; runs in a child process."""
    data = compacted(turns=200).bytes()
    path = put(folder, "p", "t", data)
    size = len(expected(data))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for limit in (0, 1, 1000, size - 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for keeping in (None, os.path.join(folder, "backups")):
            report = steps.trim(path, backup=keeping)
            assert (report.outcome, report.reason) == ("refused", "EFBIG: File too large")
        assert Path(path).read_bytes() == data
        assert left(path) == []
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert steps.trim(path).outcome == "trimmed"


def test_no_space_left(tmp_path: Path) -> None:
    in_child(trim_with_a_full_disk, str(tmp_path))


# --- kills ---------------------------------------------------------------------------------------

TRIMMING = """
import os, signal, sys
from sessionindex.trim import steps
path, late, moment, how, backup = sys.argv[1:]
passed = 0
def bounded(name):
    inner = getattr(os, name)
    def call(*given, **more):
        global passed
        passed += 1
        if passed == int(moment) and how == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        writer = None
        if name == "replace" and late:
            with open(late, "rb") as file:
                line = file.read()
            writer = os.open(path, os.O_WRONLY | os.O_APPEND) if line else None
        answer = inner(*given, **more)
        if writer is not None:
            real_write(writer, line)
            os.close(writer)
            open(late, "wb").close()
        if passed == int(moment) and how == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return answer
    setattr(os, name, call)
real_write = os.write
names = "write fsync replace rename link unlink utime fchmod ftruncate".split()
for name in names:
    bounded(name)
if backup == "prepare":
    made = steps.prepare(path)
    report = steps.commit_prepared(steps.named(made.token))
else:
    report = steps.trim(path, backup=backup or None)
print(report.outcome, passed)
"""


def killed(path: str, late_line: str, moment: int, how: str, more: str) -> str | None:
    """Trim in a process that is killed at a boundary; what it said where it lived that long."""
    command = [sys.executable, "-c", TRIMMING, path, late_line, str(moment), how, more]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.stdout.decode() if done.returncode == 0 else None


@pytest.mark.parametrize("how", ["before", "after"])
@pytest.mark.parametrize("way", ["", "late", "backup", "prepare"])
def test_a_kill_at_every_boundary(store: Store, tmp_path: Path, way: str, how: str) -> None:
    """Every write, sync, link and renaming, before it and after it: one of the two files, whole."""
    story = compacted()
    before = story.bytes()
    after = expected(before)
    line = tail(story) if way == "late" else b""
    late_line = tmp_path / "late"
    more = {"backup": str(tmp_path / "backup"), "prepare": "prepare"}.get(way, "")
    moment = 0
    while True:
        moment += 1
        path = store.put("t", before)
        late_line.write_bytes(line)
        told = killed(path, str(late_line) if line else "", moment, how, more)
        late_one = b"" if late_line.read_bytes() else line
        now = Path(path).read_bytes()
        assert now in {before, after, after + late_one, before + late_one}, moment
        if told is not None:
            assert told.startswith("trimmed")
            assert now == after + line
            break
        if moment % 2:
            store.index.check(repair=True)
            if late_one:
                assert Path(path).read_bytes() in {before + late_one, after + late_one}
        assert steps.trim(path).outcome in {"trimmed", "nothing"}
        assert Path(path).read_bytes() == after + late_one, moment
        assert left(path) == [], moment
    assert moment > 8


def test_check_clears_what_a_kill_left(store: Store) -> None:
    """But neither what is being written nor what was prepared a short while ago."""
    path = store.put("t", compacted())
    folder = Path(path).parent
    other = store.put("o", compacted("o"))
    prepared = steps.prepare(other)
    assert prepared.prepared
    being_written = beside.Replacement(path, os.stat(path))
    dead = beside.Replacement(path, os.stat(path))
    dead.close()
    assert len(left(path)) == 3
    store.index.check(repair=True)
    assert sorted(left(path)) == sorted(
        os.path.basename(one) for one in (being_written.path, prepared.prepared)
    )
    being_written.close()
    os.utime(prepared.prepared, (1, 1))
    store.index.check(repair=True)
    assert left(path) == []
    assert folder.is_dir()


# --- two steps -----------------------------------------------------------------------------------


def test_two_steps(path: str) -> None:
    before = Path(path).read_bytes()
    prepared = steps.prepare(path, ids(before)[-1])
    assert prepared.token and prepared.prepared
    assert (prepared.report.outcome, prepared.snapshot_bytes) == ("planned", len(before))
    assert Path(path).read_bytes() == before
    assert Path(prepared.prepared).read_bytes() == expected(before)
    more = tail(compacted())
    append(path, more)
    report = steps.commit_prepared(steps.named(prepared.token))
    assert (report.outcome, report.carried) == ("trimmed", 1)
    assert Path(path).read_bytes() == expected(before) + more
    assert left(path) == []


def test_an_interrupted_preparation_leaves_nothing(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one that is interrupted when it is already in its place."""

    def interrupted(folder: str) -> None:
        assert any(name.endswith(beside.READY) for name in left(path))
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.files, "sync_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        steps.prepare(path)
    assert left(path) == []


def test_prepared_and_not_used(path: str) -> None:
    """A newer one takes the place of an older one; discard and the next trim take both away."""
    first, second = steps.prepare(path), steps.prepare(path)
    assert first.token and second.token and len(left(path)) == 1
    gone = steps.commit_prepared(steps.named(first.token))
    assert gone.reason == "the prepared replacement is not there any more"
    third = steps.prepare(path)
    assert third.token
    assert steps.discard(steps.named(third.token)).outcome == "nothing"
    assert left(path) == []
    assert steps.prepare(path).token
    assert steps.trim(path, dry_run=True).outcome == "planned" and len(left(path)) == 1
    assert steps.trim(path).outcome == "trimmed"
    assert left(path) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path, ready: os.truncate(path, 50), "the source no longer starts with"),
        (lambda path, ready: append(ready, b"x\n"), "the prepared replacement was changed"),
        (lambda path, ready: append(path, refers(compacted())), "an appended line refers to"),
    ],
)
def test_a_commit_checks_everything_again(path: str, change: Any, reason: str) -> None:
    prepared = steps.prepare(path)
    assert prepared.token
    change(path, prepared.prepared)
    now = Path(path).read_bytes()
    report = steps.commit_prepared(steps.named(prepared.token))
    assert report.outcome == "refused"
    assert report.reason and report.reason.startswith(reason)
    assert Path(path).read_bytes() == now
    assert left(path) == []


def test_the_live_leaf_must_be_the_last_line(path: str) -> None:
    report = steps.prepare(path, "somewhere").report
    assert (report.outcome, report.reason) == ("refused", "the live leaf is not the last line")


# --- the way back --------------------------------------------------------------------------------


def test_backup_and_restore(path: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "backups")
    before = Path(path).read_bytes()
    report = steps.trim(path, backup=folder)
    assert report.backup and os.stat(report.backup).st_mode & 0o777 == 0o600
    assert subprocess.run(["gzip", "-dc", report.backup], capture_output=True).stdout == before
    more = tail(compacted())
    append(path, more)
    assert steps.restore(path, folder, dry_run=True).outcome == "planned"
    restored = steps.restore(path, folder)
    assert (restored.outcome, restored.message) == ("trimmed", "Session restored: 3 KB → 6 KB")
    assert Path(path).read_bytes() == before + more
    assert left(path) == []


def test_restore_only_what_was_trimmed(path: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "backups")
    os.mkdir(folder)
    assert steps.restore(path, folder).reason == "no backup of this file in that folder"
    report = steps.trim(path, backup=folder)
    changed = Path(path).read_bytes().replace(b"answer", b"ANSWER")
    Path(path).write_bytes(changed)
    refused = steps.restore(path, folder)
    assert refused.reason and refused.reason.startswith("the trimmed part was changed since")
    assert Path(path).read_bytes() == changed
    Path(path).write_bytes(changed.replace(b"ANSWER", b"answer"))
    assert report.backup
    Path(report.backup).write_bytes(Path(report.backup).read_bytes()[:-20])
    assert steps.restore(path, folder).reason == "the backup is damaged"
    assert left(path) == []


def test_a_refused_trim_leaves_no_backup(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "backups"
    monkeypatch.setattr(late, "QUIET_S", 0.05)
    with open(path, "ab"):
        assert steps.trim(path, backup=str(folder)).outcome == "refused"
    assert list(folder.iterdir()) == []


# --- a plain transcript --------------------------------------------------------------------------


def test_a_transcript(store: Store) -> None:
    """What was said, in a new session; the old one is not touched."""
    story = compacted()
    path = store.put("t", story)
    report = store.index.trim(path, transcript=True, force=True)
    assert report.outcome == "trimmed" and report.new_path
    assert Path(path).read_bytes() == story.bytes()
    data = Path(report.new_path).read_bytes()
    head = json.loads(data.split(b"\n")[0])
    assert (head["parentSession"], head["version"]) == (path, 3)
    assert os.path.basename(report.new_path).endswith(f"_{head['id']}.jsonl")
    made = values(data)
    assert [value["parentId"] for value in made] == [None, *ids(data)[:-1]]
    roles = {value["message"]["role"] for value in made if value["type"] == "message"}
    assert roles == {"user", "assistant"}
    words = [word for word in said(data) if word.startswith(("question", "answer"))]
    assert words == [f"{a} {b}" for b in ("old 0", "old 1", "old 2", "kept", "new")
                     for a in ("question", "answer")]  # fmt: skip
    compaction = next(value for value in made if value["type"] == "compaction")
    assert compaction["firstKeptEntryId"] == values(story)[-9]["id"]
    assert left(path) == []


def test_a_transcript_is_plain(store: Store) -> None:
    story = session("t").user("see", images=1)
    story.message(
        "assistant",
        content=[
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"},
            {"type": "thinking", "thinking": "hidden", "redacted": True},
            {"type": "text", "text": "yes", "textSignature": "s"},
            {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}},
        ],
        responseId="r",
        errorMessage="e",
        stopReason="toolUse",
        provider="p",
    )
    story.message("toolResult", toolCallId="c", toolName="bash", content=[])
    story.entry("label", targetId=ids(story)[-1], label="gone")
    story.entry("label", targetId=ids(story)[0], label="stays")
    story.message("assistant", content=[], stopReason="error").bash("ls", "x").system("s")
    path = store.put("t", story)
    report = store.index.trim(path, transcript=True, force=True)
    assert report.new_path
    made = values(Path(report.new_path).read_bytes())
    assert [value["type"] for value in made] == ["message", "message", "label"]
    assert made[1]["message"] == {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "yes"}],
        "stopReason": "stop",
        "provider": "p",
    }
    turn(story, "on")
