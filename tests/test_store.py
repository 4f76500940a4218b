"""The index folder: ours or refused, private, one writer, damage noticed, kills survived."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from build import append, put, session
from scratch import Store, ask

from sessionindex import SessionIndex, files, layout
from sessionindex.errors import IndexFolderError, IndexLocked
from sessionindex.index import schema, store, writer

SPAWN = multiprocessing.get_context("spawn")


def fill(store: Store, count: int = 3) -> list[str]:
    """Some sessions with something to find and, for later, a segment with deletions."""
    return [
        store.put(f"s{number}", session(f"s{number}").user(f"needle {number}").bash("ls", "out"))
        for number in range(count)
    ]


def generations(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir() if path.name.startswith("g"))


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# --- ours or not ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["thesis.txt", "meta.json", "g1", ".hidden"])
def test_a_foreign_folder_is_refused_and_untouched(name: str, store: Store) -> None:
    """A folder that holds anything and no marker of ours is nobody's to empty."""
    fill(store)
    store.folder.mkdir(parents=True)
    (store.folder / name).write_bytes(b"not ours")
    with pytest.raises(IndexFolderError) as refused:
        store.index.refresh()
    assert str(refused.value) == (
        "not an index folder of sessionindex, left alone"
        f" (take it away, or name another with --index-dir): {store.folder}"
    )
    assert contents(store.folder) == {name: b"not ours"}
    status = store.index.status()
    assert (status.damage, status.index_bytes) == (str(refused.value), 0)
    assert ask(store.index, "needle").total == 3
    (store.folder / name).unlink()


def test_the_folder_of_another_root_is_refused(store: Store) -> None:
    """A marker that names another root is no marker of this one."""
    fill(store)
    store.index.refresh()
    marker = store.folder / "sessionindex.json"
    ours = marker.read_bytes()
    marker.write_bytes(ours.replace(b"sessions", b"elsewhere"))
    with pytest.raises(IndexFolderError) as refused:
        store.index.refresh()
    assert str(refused.value) == f"the index folder belongs to another root: {store.folder}"
    assert store.open().search("needle").total == 3
    assert store.open().status().damage == str(refused.value)
    marker.write_bytes(ours)


@pytest.mark.parametrize("marker", [b"", b"{", b"[]", b'{"generation":"../x"}'])
def test_a_broken_marker_begins_anew(marker: bytes, store: Store) -> None:
    """What a kill or a full disk left of the marker is ours to replace."""
    fill(store)
    store.index.refresh()
    (store.folder / "sessionindex.json").write_bytes(marker)
    assert ask(store.open(), "needle").coverage.new == 3
    store.index.refresh()
    assert ask(store.index, "needle").coverage.new == 0
    assert len(generations(store)) == 1


def test_what_a_kill_leaves_of_the_first_steps(store: Store) -> None:
    """A lock and half a marker are no foreign folder, and they are cleared away."""
    fill(store)
    store.folder.mkdir(parents=True)
    (store.folder / "writer.lock").touch()
    (store.folder / "sessionindex.json.123.new").touch()
    store.index.refresh()
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "g1",
        "sessionindex.json",
        "writer.lock",
    ]


def test_nothing_is_made_by_reading(store: Store) -> None:
    """Searching and asking for the state leave no trace."""
    fill(store)
    assert ask(store.index, "needle").total == 3
    assert store.index.status().writer is None
    assert not store.index_dir.exists()


# --- private -------------------------------------------------------------------------------------


def test_folders_and_files_are_private_whatever_the_umask(store: Store) -> None:
    """0700 and 0600, also of a folder that was there with other rights."""
    paths = fill(store)
    before = os.umask(0)
    try:
        store.folder.mkdir(parents=True, mode=0o755)
        store.index.refresh()
        append(paths[0], session("more").user("needle").tail(1))
        store.index.refresh()
        os.unlink(paths[1])
        store.index.refresh()
    finally:
        os.umask(before)
    for path in (store.folder, *store.folder.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_no_text_of_a_message_is_in_the_folder(store: Store) -> None:
    """Grams stand for texts: no word of seven letters can be read off."""
    spoken = "Grandmother photographs elephants underneath Wellington viaducts"
    story = session("a").user(spoken).call("write", text=spoken).result(spoken, details=spoken)
    store.put("a", story.bash(spoken, spoken).assistant(spoken, thinking=spoken).system(spoken))
    store.index.refresh()
    assert ask(store.index, "photographs elephants").total == 5
    held = b"".join(contents(store.folder).values()).lower()
    for word in spoken.lower().split():
        assert word.encode() not in held


# --- formats and damage --------------------------------------------------------------------------


def test_another_format_is_built_beside(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of another format is not read; the next refresh replaces it."""
    fill(store)
    store.index.refresh()
    assert generations(store) == ["g1"]
    monkeypatch.setattr(schema, "FORMAT", "another")
    index = store.open()
    assert ask(index, "needle").coverage.new == 3
    assert index.status().damage == "the index has the format of another version"
    index.refresh()
    assert generations(store) == ["g2"]
    assert ask(index, "needle").coverage.fresh == 3


def test_a_rebuild_switches_when_it_is_complete(store: Store) -> None:
    """The old generation answers until the new one is whole; then it goes."""
    fill(store)
    store.index.refresh()
    seen = []
    store.index.refresh(rebuild=True, progress=lambda done, total: seen.append(generations(store)))
    assert seen[0] == ["g1", "g2"]
    assert generations(store) == ["g2"]
    assert ask(store.index, "needle").coverage.fresh == 3


def test_what_a_kill_left_half_written_goes_with_the_next_writer(store: Store) -> None:
    fill(store)
    store.index.refresh()
    left = [
        store.folder / "g1" / "segments.json.77.new",
        store.folder / "g1" / "files.snapshot.78.new",
        store.folder / "sessionindex.json.79.new",
    ]
    for path in left:
        path.write_bytes(b"half")
    store.index.refresh()
    assert not any(path.exists() for path in left)


def segment_files(store: Store) -> list[Path]:
    """The files that make up the current generation's segments, deletions among them."""
    (name,) = generations(store)
    beside = ("meta.json", "segments.json", "files.snapshot")
    return sorted(
        path
        for path in (store.folder / name).iterdir()
        if not path.name.startswith(".") and path.name not in beside
    )


def damaged(path: Path, how: str) -> None:
    data = path.read_bytes()
    middle = len(data) // 2
    if how == "truncated":
        path.write_bytes(data[:middle])
    elif how == "zeroed":
        path.write_bytes(b"\0" * len(data))
    elif how == "flipped":
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :])
    else:
        path.unlink()


def test_damage_that_nobody_has_met_is_met_by_a_refresh(store: Store) -> None:
    """An index that is open, whose documents were not read yet: it is begun anew."""
    fill(store)
    store.index.refresh()
    index = store.open()
    assert index.damage() is None
    os.unlink(store.folder / "g1" / "files.snapshot")
    for path in segment_files(store):
        if path.suffix == ".store":
            path.write_bytes(bytes(byte ^ 0xFF for byte in path.read_bytes()))
    index.refresh()
    assert ask(index, "needle").total == 3
    assert index.status().damage is None


@pytest.mark.parametrize("how", ["truncated", "zeroed", "flipped", "removed"])
def test_damage_is_noticed_and_mended(how: str, store: Store) -> None:
    """Whichever segment file it hits: the answer is right, and the next refresh builds anew."""
    paths = fill(store)
    store.index.refresh()
    Path(paths[0]).write_bytes(session("s0").user("needle after").bytes())
    store.index.refresh()
    kinds = {path.suffix for path in segment_files(store)}
    assert {".del", ".store", ".term", ".idx", ".fast"} <= kinds
    for suffix in sorted(kinds):
        path = next(path for path in segment_files(store) if path.suffix == suffix)
        damaged(path, how)
        index = store.open()
        assert ask(index, "needle").total == 3, suffix
        assert index.status().damage is not None, suffix
        index.refresh()
        assert ask(index, "needle").coverage.fresh == 3, suffix
        assert index.status().damage is None, suffix
        Path(paths[0]).write_bytes(session("s0").user("needle again").bytes())
        index.refresh()


def test_deletions_that_were_tampered_with(store: Store) -> None:
    """Which documents count is one bit each: a flipped one would hide lines or raise the dead."""
    paths = fill(store)
    store.index.refresh()
    Path(paths[0]).write_bytes(session("s0").user("needle after").bytes())
    store.index.refresh()
    (path,) = (path for path in segment_files(store) if path.suffix == ".del")
    data = path.read_bytes()
    path.write_bytes(bytes(byte ^ 0xFF for byte in data[:8]) + data[8:])
    index = store.open()
    assert ask(index, "needle").total == 3
    assert index.status().damage is not None
    index.refresh()
    assert ask(index, "needle").coverage.fresh == 3


@pytest.mark.parametrize("how", ["truncated", "zeroed", "removed"])
@pytest.mark.parametrize("suffix", [".store", ".term", ".idx", ".fast", "meta.json"])
def test_damage_that_keeps_its_time(how: str, suffix: str, store: Store) -> None:
    """Where stat values tell nothing, tantivy's own failures do: answers fall back to the files."""
    fill(store)
    store.index.refresh()
    folder = store.folder / generations(store)[0]
    path = next(path for path in folder.iterdir() if path.name.endswith(suffix))
    before = path.stat()
    damaged(path, how)
    if path.exists():
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    index = store.open()
    assert ask(index, "needle").total == 3
    index.refresh()
    assert ask(index, "needle").coverage.fresh == 3


# --- one writer ----------------------------------------------------------------------------------


def hold(home: str, root: str, ready: Any) -> None:
    """Take the writer lock in a process of its own and keep it."""
    with store.Store(home, root).writing("watch"):
        ready.send(os.getpid())
        time.sleep(120)


@contextmanager
def held(store: Store) -> Iterator[int]:
    """Another process writes; its id."""
    here, there = SPAWN.Pipe()
    child = SPAWN.Process(target=hold, args=(str(store.index_dir), str(store.root), there))
    child.start()
    try:
        yield here.recv()
    finally:
        child.kill()
        child.join()
        here.close()
        there.close()


def test_a_second_writer_is_refused_at_once(store: Store) -> None:
    """It is told who works; readers notice nothing; the lock dies with its process."""
    paths = fill(store)
    store.index.refresh()
    append(paths[0], session("more").user("needle").tail(1))
    with held(store) as pid:
        with pytest.raises(IndexLocked) as refused:
            store.index.refresh()
        assert str(refused.value) == f"the index is being written by process {pid} (watch)"
        said = store.index.status().writer
        assert said is not None
        assert (said.pid, said.kind) == (pid, "watch")
        assert ask(store.index, "needle").total == 4
    assert store.index.status().writer is None
    assert store.index.refresh().appended == 1


# --- kills ---------------------------------------------------------------------------------------


def killed(home: str, root: str, owner: str, name: str, number: int, rebuild: bool) -> None:
    """Refresh in small batches, and die at the given call of one function; a child process."""
    module, _, kind = owner.partition(".")
    holder: Any = {"writer": writer, "store": store, "files": files}[module]
    holder = getattr(holder, kind) if kind else holder
    function = getattr(holder, name)
    calls = 0

    def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    with (
        mock.patch.object(writer, "BATCH", 400),
        mock.patch.object(files, "BLOCK", 300),
        mock.patch.object(holder, name, dying),
        SessionIndex(root, index_dir=home, settings={}, current_session="") as index,
    ):
        index.refresh(rebuild=rebuild)


MOMENTS = (
    ("before anything is there", "files", "replace", 1, False, True),
    ("with a marker and no generation", "files", "replace", 2, False, True),
    ("before the first line", "writer.Writer", "add", 1, False, True),
    ("in the middle of the first batch", "writer.Writer", "add", 3, False, True),
    ("before the first commit", "writer.Writer", "commit", 1, False, True),
    ("between commits of one file", "writer.Writer", "commit", 3, False, True),
    ("between a commit and its modes", "files", "narrow", 3, False, True),
    ("before what is stale is dropped", "writer.Writer", "drop", 1, False, False),
    ("after it was dropped", "writer.Writer", "add", 1, False, False),
    ("between commits of an update", "writer.Writer", "commit", 2, False, False),
    ("in a new generation", "writer.Writer", "commit", 2, True, False),
    ("before the switch to it", "files", "replace", 1, True, False),
    ("before the old one is swept", "store.Store", "_sweep", 1, True, False),
)


@pytest.mark.parametrize(
    ("rule", "owner", "name", "number", "rebuild", "first"), MOMENTS, ids=[m[0] for m in MOMENTS]
)
def test_a_kill_at_any_moment(
    rule: str, owner: str, name: str, number: int, rebuild: bool, first: bool, store: Store
) -> None:
    """Answers stay right, the lock is free, and the next refresh gets to the same end."""
    story = session("long")
    for line in range(12):
        story.user(f"needle {line} " + "x" * 90)
    path = store.put("long", story)
    paths = fill(store)
    if not first:
        store.index.refresh()
        append(path, session("more").user("needle more " + "y" * 300).user("needle").tail(1))
        Path(paths[0]).write_bytes(session("s0").user("needle rewritten").bytes())
        os.unlink(paths[1])
    arguments = (str(store.index_dir), str(store.root), owner, name, number, rebuild)
    child = SPAWN.Process(target=killed, args=arguments)
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL, rule
    found = ask(store.open(), "needle")
    assert found.total == (15 if first else 16)
    index = store.open()
    index.refresh()
    after = ask(index, "needle")
    assert (after.total, after.coverage.fresh) == (found.total, after.coverage.files)
    status = index.status()
    assert (status.damage, status.writer, len(generations(store))) == (None, None, 1)
    everything = layout.discover(str(store.root), flat=False, policy=index._present.policy())
    assert status.sessions == len(everything.sessions)
    assert status.entries == sum(
        Path(one.path).read_bytes().count(b"\n") - 1 for one in everything.sessions
    )


def test_deletions_of_a_commit_that_a_kill_prevented(store: Store) -> None:
    """Their files are in the way of the next commit, which has the same numbers: they are taken."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    folder = store.folder / "g1"
    meta = json.loads((folder / "meta.json").read_bytes())
    for segment in meta["segments"]:
        name = segment["segment_id"].replace("-", "")
        for number in range(9):
            (folder / f"{name}.{meta['opstamp'] + number}.del").write_bytes(b"half")
    append(path, session("more").user("needle").tail(1))
    assert store.index.refresh().appended == 1
    assert generations(store) == ["g1"]
    assert ask(store.index, "needle").total == 2


# --- many equal instants -------------------------------------------------------------------------


def test_equal_instants_over_many_segments(store: Store) -> None:
    """Pages of candidates in an order full of ties lose nothing and repeat nothing."""
    for number in range(6):
        story = session(f"t{number}")
        for line in range(80):
            story.user(f"needle {line}", at="2026-09-10T09:00:00.000Z")
        put(store.root, "--p--", f"t{number}", story)
        store.index.refresh()
    cursor, hits = None, []
    while True:
        page = ask(store.index, "needle", limit=170, count="page", cursor=cursor)
        hits += page.hits
        cursor = page.next_cursor
        if cursor is None:
            break
    assert tuple(hits) == ask(store.index, "needle").hits
    assert len(hits) == 480


@pytest.mark.parametrize("name", ["*.pos", "*.store", "meta.json", ".managed.json"])
def test_what_would_block_is_damage(store: Store, name: str) -> None:
    """A FIFO in the place of an index file hangs nobody: the files answer."""
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    victim = next(store.folder.glob(f"g*/{name}"))
    victim.unlink()
    os.mkfifo(victim)
    index = store.open()
    assert ask(index, "needle").total == 1
    assert index.damage() is not None
    index.refresh()
    assert ask(index, "needle").coverage.new == 0
