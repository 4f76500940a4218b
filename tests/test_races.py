"""Races: whatever changes between two looks, an answer is of one state of a file, and no failure.

Time stands still here: the moment of a change is made by replacing the function that would be
called at that moment, and clocks are numbers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build import Builder, append, session
from scratch import Store, ask, places

from sessionindex import (
    catalog,
    check,
    coverage,
    evidence,
    execution,
    files,
    ingest,
    intake,
    layout,
    library,
    scan,
)
from sessionindex.contracts import searching
from sessionindex.coverage import Identity
from sessionindex.index.reader import Reader
from sessionindex.index.store import Store as Folder

# --- clocks --------------------------------------------------------------------------------------


class Clock:
    """The clocks of a machine: one that programs read, one of this tick that stamps files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick_ns: int) -> None:
        self.now = 1_800_000_000_000_000_000
        self._tick = tick_ns
        self._stamps: dict[str, int] = {}
        self._identity = files.identity
        for module in (files, layout, catalog, evidence, library, check):
            monkeypatch.setattr(module, "identity", self.identity, raising=False)
        monkeypatch.setattr(ingest.time, "time_ns", lambda: self.now)

    def wait(self, milliseconds: float) -> None:
        self.now += int(milliseconds * 1_000_000)

    def write(self, path: str, data: bytes) -> None:
        """Write over what is there, in place."""
        Path(path).write_bytes(data)
        self._stamps[self._key(os.stat(path))] = self.now - self.now % self._tick

    def append(self, path: str, data: bytes) -> None:
        append(path, data)
        self._stamps[self._key(os.stat(path))] = self.now - self.now % self._tick

    def identity(self, found: os.stat_result) -> Identity:
        stamp = self._stamps.get(self._key(found), 0)
        return Identity(found.st_dev, found.st_ino, found.st_size, stamp, stamp)

    def _key(self, found: os.stat_result) -> str:
        return f"{found.st_dev} {found.st_ino}"


TICKS = (1, 4_000_000, 1_000_000_000, 2_000_000_000)


@pytest.mark.parametrize("tick", TICKS)
def test_a_rewrite_within_a_tick(tick: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal stat values prove nothing unless the clock could have told two writes apart."""
    clock = Clock(monkeypatch, tick)
    clock.wait(1999)
    path = store.put("a", b"")
    for before in (0, 3, 1500, 2001):
        for after in (0, 3, 500):
            clock.write(path, session("a").user("before").bytes())
            clock.wait(before)
            store.index.refresh()
            clock.wait(after)
            clock.write(path, session("a").user("beyond").bytes())
            assert ask(store.index, "before").total == 0, (before, after)
            assert places(ask(store.index, "beyond")) == [("a", 2)], (before, after)
    monkeypatch.undo()


@pytest.mark.parametrize("tick", TICKS)
def test_many_changes_under_a_coarse_clock(
    tick: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewrites of equal size, appends and refreshes in any order and at any distance."""
    draw = random.Random(tick)
    clock = Clock(monkeypatch, tick)
    paths = [store.put(name, b"") for name in "ab"]
    for path in paths:
        clock.write(path, session("s").user("needle 0").bytes())
    for _ in range(40):
        path = draw.choice(paths)
        what = draw.choice(("rewrite", "rewrite", "append", "refresh", "refresh", "wait"))
        if what == "rewrite":
            lines = Path(path).read_bytes().splitlines(keepends=True)
            at = draw.randrange(1, len(lines))
            lines[at] = session("s").user(f"needle {draw.randrange(10)}").tail(1)
            clock.write(path, b"".join(lines))
        elif what == "append":
            clock.append(path, session("s").user(f"needle {draw.randrange(10)}").tail(1))
        elif what == "refresh":
            store.index.refresh()
        clock.wait(draw.choice((0, 0, 1, 3, 700, 1100, 2100)))
        ask(store.index, f"needle {draw.randrange(10)}")
    monkeypatch.undo()


def test_a_proven_identity_costs_no_reading(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds after the last write stat alone tells; until then the bytes are asked."""
    clock = Clock(monkeypatch, 4_000_000)
    path = store.put("a", b"")
    clock.write(path, session("a").user("needle").bytes())
    for wait, read in ((0, True), (1900, True), (101, False), (1_000_000, False)):
        clock.wait(wait)
        store.index.refresh()
        reader = store.open()._present.reader()
        assert reader is not None
        assert reader.records()[path].cursor.proven is not read
    monkeypatch.undo()


def test_a_clock_that_is_set_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stamps of the future prove nothing, so a rewrite with the same stamps is seen."""
    clock = Clock(monkeypatch, 1)
    path = store.put("a", b"")
    clock.write(path, session("a").user("before").bytes())
    written = clock.now
    clock.wait(-3_600_000)
    store.index.refresh()
    for _ in range(2):
        assert places(ask(store.index, "before")) == [("a", 2)]
        store.index.refresh()
    clock.now = written
    clock.write(path, session("a").user("beyond").bytes())
    clock.wait(-3_600_000)
    assert ask(store.index, "before").total == 0
    assert places(ask(store.index, "beyond")) == [("a", 2)]
    monkeypatch.undo()


@pytest.mark.parametrize("moment", [-(2**33), 0, 2**33])
def test_files_dated_in_the_past_and_in_the_future(moment: int, store: Store) -> None:
    """A modification time may say anything: it orders nothing and proves nothing."""
    path = store.put("a", session("a").user("before"))
    store.put("b", session("b").user("before"))
    try:
        os.utime(path, (moment, moment))
    except OSError:
        pytest.skip("this file system has no such dates")
    store.index.refresh()
    assert ask(store.index, "before", limit=1).has_more
    Path(path).write_bytes(session("a").user("beyond").bytes())
    os.utime(path, (moment, moment))
    assert places(ask(store.index, "before")) == [("b", 2)]
    assert places(ask(store.index, "beyond")) == [("a", 2)]


# --- between two looks ---------------------------------------------------------------------------


def before_call(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[[], object]
) -> list[str]:
    """Do this once, when a function is called, before it does its work; what is in the answer."""
    function = getattr(owner, name)
    done: list[str] = []

    def changing(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(name)
            change()
        return function(*arguments, **named)

    monkeypatch.setattr(owner, name, changing)
    return done


OLD = session("a").user("needle one").user("straw two").user("needle three")
SAME_SIZE = session("a").user("straw1 one").user("needle two").user("straw3 three")
NEW = {
    "the same size": session("a").user("straws one").user("straw two").user("needle three"),
    "other lines of the same size": session("a")
    .user("straws one")
    .user("straw two")
    .user("straws three"),
    "lines in another order": session("a")
    .user("straw two")
    .user("needle one")
    .user("needle three"),
    "shorter": session("a").user("needle one"),
    "longer": session("a").user("straws").user("needle " + "x" * 500).user("y").user("needle"),
    "longer with the same places": session("a")
    .user("straws one")
    .user("needl two")
    .user("straws three")
    .user("needle four"),
    "another session": session("b").user("straw").user("needle " + "z" * 900),
    "grown": session("a").user("needle one").user("straw two").user("needle three").user("needle"),
}


def in_place(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


def by_rename(path: str, data: bytes) -> None:
    beside = Path(path + ".new")
    beside.write_bytes(data)
    beside.replace(path)


def created_anew(path: str, data: bytes) -> None:
    """Removed and made again: on many file systems with the same inode number."""
    os.unlink(path)
    Path(path).write_bytes(data)


MOMENTS = (
    ("before it is proven", catalog, "open_listed", True),
    ("before candidates are asked for", Reader, "candidates", True),
    ("before it is opened", evidence, "open_listed", True),
    ("before its lines are read", scan, "entries_at", True),
    ("before its header is read", layout, "open_listed", False),
    ("before it is opened", evidence, "open_listed", False),
    ("before it is scanned", scan, "entries", False),
    ("before a block is read", scan, "blocks", False),
)
"""When, which function, and whether the index covers the file."""
moments = pytest.mark.parametrize(("when", "owner", "name", "covered"), MOMENTS)


def seen(store: Store, **filters: Any) -> list[tuple[str, int, str, str]]:
    """What an answer says of each hit."""
    found = store.index.search("needle", **filters)
    return [(hit.session_id, hit.line_no, hit.snippet, hit.timestamp) for hit in found.hits]


@moments
@pytest.mark.parametrize("way", [in_place, by_rename, created_anew])
def test_a_file_that_is_replaced_under_a_question(
    when: str,
    owner: Any,
    name: str,
    covered: bool,
    way: Callable[[str, bytes], None],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer is that of before or of after, never a mixture of both."""
    path = store.put("a", OLD)
    store.put("other", session("other").user("straw"))
    for number, (what, story) in enumerate(NEW.items()):
        filters = ({"order": "path"}, {"limit": 2, "count": "page"})[number % 2]
        way(path, OLD.bytes())
        if covered:
            store.index.refresh()
        old = seen(store, brute=True, **filters)
        with monkeypatch.context() as patch:
            done = before_call(patch, owner, name, lambda story=story: way(path, story.bytes()))
            answered = seen(store, brute=not covered, **filters)
        assert done, when
        assert answered in (old, seen(store, brute=True, **filters)), (when, what)


@moments
def test_a_file_that_is_no_file_any_more(
    when: str,
    owner: Any,
    name: str,
    covered: bool,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What lies there instead is neither followed, nor waited for, nor an error."""
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(session("secret").user("needle of somebody else").bytes())
    path = store.put("a", OLD)
    store.put("b", session("b").user("needle"))

    def change(what: str) -> None:
        os.unlink(path)
        if what == "a folder":
            os.mkdir(path)
        elif what == "a fifo":
            os.mkfifo(path)
        elif what == "a link":
            os.symlink(secret, path)

    for what in ("gone", "a fifo", "a link", "a folder"):
        if os.path.lexists(path):
            os.unlink(path)
        Path(path).write_bytes(OLD.bytes())
        if covered:
            store.index.refresh()
        old = seen(store, brute=True)
        with monkeypatch.context() as patch:
            done = before_call(patch, owner, name, lambda what=what: change(what))
            answered = seen(store, brute=not covered)
        assert done, when
        assert answered in (old, seen(store, brute=True)), (when, what)
        assert "secret" not in {one[0] for one in answered}


@pytest.mark.parametrize("module", [layout, execution])
def test_a_link_swapped_in_under_a_refresh(
    module: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between listing and opening: nothing of what it leads to gets into the index."""
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(session("secret").user("needle of somebody else").bytes())
    path = store.put("a", OLD)
    store.put("b", session("b").user("needle"))

    def swap() -> None:
        os.unlink(path)
        os.symlink(secret, path)

    with monkeypatch.context() as patch:
        done = before_call(patch, module, "open_listed", swap)
        store.index.refresh()
    assert done
    assert places(ask(store.index, "needle")) == [("b", 2)]
    store.index.refresh()
    assert store.index.status().entries == 1


@pytest.mark.parametrize("way", [in_place, by_rename])
@pytest.mark.parametrize(
    "story",
    [session("b", cwd="/elsewhere"), session("b", cwd="/elsewhere").user("needle " + "x" * 9000)],
)
@pytest.mark.parametrize(("module", "name"), [(execution, "open_listed"), (intake, "whole_lines")])
def test_a_header_that_is_rewritten_under_a_refresh(
    module: Any,
    name: str,
    story: Builder,
    way: Callable[[str, bytes], None],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was read when the file was listed, its lines later: both must be of one state."""
    path = store.put("a", OLD)
    for data in (story.bytes(), b"", session("c").bytes()[:-1]):
        with monkeypatch.context() as patch:
            done = before_call(patch, module, name, lambda data=data: way(path, data))
            store.index.refresh(rebuild=True)
        assert done
        assert seen(store) == seen(store, brute=True)
        assert store.index.check().differences == ()
        way(path, OLD.bytes())


def test_a_header_without_a_line_end_vouches_for_nothing(store: Store) -> None:
    """No whole line is indexed then, so no checksum tells that another header took its place."""
    path = store.put("a", session("a", cwd="/old").bytes()[:-1])
    store.index.refresh()
    assert ask(store.index, "needle", cwds=["/new"]).total == 0
    in_place(path, session("b", cwd="/new").user("needle").bytes())
    assert ask(store.index, "needle", cwds=["/old"]).total == 0
    assert ask(store.index, "needle", cwds=["/new"]).total == 1
    store.index.refresh()
    assert ask(store.index, "needle", cwds=["/new"]).coverage.new == 0


# --- the index under a reader --------------------------------------------------------------------


def many_commits(store: Store, path: str) -> None:
    """Enough small commits that segments are merged and taken away."""
    other = store.open()
    for number in range(9):
        append(path, session("x").user(f"needle more {number}").tail(1))
        other.refresh()


def rebuild(store: Store, path: str) -> None:
    store.open().refresh(rebuild=True)


def rebuild_of_a_rewrite(store: Store, path: str) -> None:
    by_rename(path, NEW["longer"].bytes())
    store.open().refresh(rebuild=True)


@pytest.mark.parametrize("change", [many_commits, rebuild, rebuild_of_a_rewrite])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Reader, "__init__"),
        (Reader, "records"),
        (Reader, "candidates"),
        (Reader, "is_wide"),
        (Reader, "has_floating"),
        (Folder, "open"),
        (searching, "search"),
    ],
)
def test_segments_that_are_replaced_under_a_reader(
    owner: Any,
    name: str,
    change: Callable[[Store, str], None],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process merges, rebuilds and sweeps: a question goes on with what it opened."""
    path = store.put("a", OLD)
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    append(path, session("x").user("needle").tail(1))
    store.index.refresh()
    filters: dict[str, Any] = {"limit": 3, "count": "exact" if name == "is_wide" else "page"}
    old = seen(store, brute=True, **filters)
    with monkeypatch.context() as patch:
        done = before_call(patch, owner, name, lambda: change(store, path))
        store.index.close()
        answered = seen(store, **filters)
    assert done
    new = seen(store, brute=True, **filters)
    assert answered in (old, new)
    assert seen(store, **filters) == new


def test_a_searcher_outlives_its_segments(store: Store) -> None:
    """What one commit said stays sayable, however much is merged and deleted meanwhile."""
    path = store.put("a", OLD)
    store.index.refresh()
    reader = store.index._present.reader()
    assert reader is not None
    before = reader.count()
    many_commits(store, path)
    rebuild(store, path)
    assert reader.count() == before == 3
    assert [record.entries for record in reader.all_records()] == [3]
    assert len(reader.entries_of(reader.all_records()[0].key)) == 3


def test_two_seconds() -> None:
    """What the design says, and no less."""
    assert coverage.RACY_NS == 2_000_000_000
