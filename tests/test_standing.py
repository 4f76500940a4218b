"""The catalog of the last question stands until something moved, and then only then."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from build import PROJECT, append, session
from scratch import Store, ask

from sessionindex import SessionIndex, coverage, files, ingest, layout, standing

OTHER = "--r-other--"
BOUND = {"piRetrospect": {"allowedProjects": ["app", "other"]}}


@pytest.fixture(autouse=True)
def proving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A racy interval that a test can wait for, on whatever the scratch folder lies."""
    monkeypatch.setattr(coverage, "RACY_NS", 30_000_000)
    monkeypatch.setattr(standing, "keeps_folder_times", lambda device: True)


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every walk of a root."""
    seen: list[str] = []
    walked = layout.discover

    def discover(root: str, **how: object) -> layout.Tree:
        seen.append(root)
        return walked(root, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(layout, "discover", discover)
    return seen


def filled(store: Store) -> SessionIndex:
    """A root with a family, a stranger and a file that the bound hides."""
    for name in ("a", "b"):
        store.put(name, session(name).user(f"needle {name}"))
    store.put("a/run/run-0/session", session("child").user("needle child"))
    store.put("c", session("c", cwd="/r/other").user("needle c"), OTHER)
    store.put("d", session("d", cwd="/r/hidden").user("needle d"), OTHER)
    index = store.open(settings=BOUND)
    store.index.refresh()
    return index


def rested(store: Store, index: SessionIndex, walks: list[str]) -> None:
    """Ask until a question needs no walk, nor that of another program."""
    for _ in range(200):
        index.refresh()  # identities that were too young may prove something now
        for _ in range(3):
            walks.clear()
            index.search("needle")
        with SessionIndex(
            store.root, index_dir=store.index_dir, settings=BOUND, current_session=""
        ) as another:
            another.search("needle")
        if not walks:
            return
        time.sleep(0.005)
    raise AssertionError("the catalog never stood")


def test_a_question_like_the_last_walks_nothing(store: Store, walks: list[str]) -> None:
    index = filled(store)
    rested(store, index, walks)
    assert len(index.search("needle").hits) == 4
    assert len(index.list_sessions().sessions) == 3
    assert not walks
    assert len(ask(index, "needle").hits) == 4
    assert len(walks) == 1  # the brute one


def test_another_bound_and_another_commit_walk_nothing(store: Store, walks: list[str]) -> None:
    index = filled(store)
    rested(store, index, walks)
    narrower = index.seen_by(settings={"piRetrospect": {"allowedProjects": ["other"]}})
    assert len(narrower.search("needle").hits) == 1
    assert len(index.seen_by(settings={}).search("needle").hits) == 5
    assert not walks
    store.index.refresh(rebuild=True)
    walks.clear()
    assert len(index.search("needle").hits) == 4
    assert not walks


def rewritten(path: Path, old: str, new: str) -> None:
    """In place, in the same length, with the old mtime."""
    before = path.stat()
    with path.open("r+b") as file:
        data = file.read().replace(old.encode(), new.encode())
        file.seek(0)
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(path: Path, story: bytes) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(story)
    os.replace(beside, path)


def turned_into_a_link(path: Path, root: Path) -> None:
    elsewhere = root.parent / "elsewhere"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)


def story(name: str, needles: int = 1) -> bytes:
    told = session(name)
    for _ in range(needles):
        told.user("needle")
    return told.bytes()


def made_anew(root: Path) -> None:
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    shutil.rmtree(root)
    os.replace(copy, root)


def path_of(root: Path, name: str, project: str = PROJECT) -> Path:
    return root / project / f"{name}.jsonl"


EDITS: list[tuple[str, Callable[[Path], object], int, bool]] = [
    ("append", lambda r: append(str(path_of(r, "a")), story("a").split(b"\n", 1)[1]), 5, False),
    ("rewrite", lambda r: rewritten(path_of(r, "b"), "needle", "noodle"), 3, False),
    ("another header", lambda r: rewritten(path_of(r, "b"), "src/app", "src/apq"), 3, True),
    ("hidden no more", lambda r: rewritten(path_of(r, "d", OTHER), "/hidden", "/hi/app"), 5, True),
    ("deleted", lambda r: path_of(r, "b").unlink(), 3, True),
    ("replaced", lambda r: replaced(path_of(r, "b"), story("b", 2)), 5, True),
    ("new file", lambda r: path_of(r, "e").write_bytes(story("e")), 5, True),
    ("new child", lambda r: path_of(r, "a/run/session").write_bytes(story("f")), 5, True),
    ("new project", lambda r: shutil.copytree(r / OTHER, r / "--r-third--"), 5, True),
    ("project gone", lambda r: shutil.rmtree(r / OTHER), 3, True),
    ("container gone", lambda r: shutil.rmtree(r / PROJECT / "a"), 3, True),
    ("container moved", lambda r: os.replace(r / PROJECT / "a", r / PROJECT / "b"), 4, True),
    ("link for a file", lambda r: turned_into_a_link(path_of(r, "b"), r), 3, True),
    ("link for a folder", lambda r: turned_into_a_link(r / OTHER, r), 3, True),
    ("no session", lambda r: (r / PROJECT / "notes.txt").write_text("needle"), 4, True),
    ("root made anew", made_anew, 4, True),
]  # fmt: skip


@pytest.mark.parametrize("who", ["the same program", "another program"])
@pytest.mark.parametrize(
    ("edit", "hits", "walked"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS]
)
def test_what_moves_is_seen_at_once(
    edit: Callable[[Path], object],
    hits: int,
    walked: bool,
    who: str,
    store: Store,
    walks: list[str],
) -> None:
    """The very next question has it; only where the tree may be another is it walked."""
    index = filled(store)
    rested(store, index, walks)
    edit(store.root)
    if who == "another program":
        index = store.open(settings=BOUND)
    assert len(index.search("needle").hits) == hits
    assert bool(walks) is walked
    assert len(ask(index, "needle").hits) == hits
    assert index.list_sessions() == index.list_sessions(brute=True)


def test_a_young_folder_proves_nothing(store: Store, walks: list[str]) -> None:
    coverage.RACY_NS = 3_600_000_000_000
    index = filled(store)
    for _ in range(4):
        walks.clear()
        index.search("needle")
        assert len(walks) == 1


def test_a_long_refresh_looks_again(
    store: Store, walks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it walked at its beginning was too young to prove anything; its end is not."""
    carry_out = ingest.Execution.carry_out

    def slowly(run: ingest.Execution, *how: object) -> None:
        carry_out(run, *how)  # type: ignore[arg-type]
        began = time.time_ns()
        while time.time_ns() - began <= 2 * coverage.RACY_NS:
            time.sleep(0.001)

    with monkeypatch.context() as patch:
        patch.setattr(ingest.Execution, "carry_out", slowly)
        filled(store)
    for settings, found in (({}, 5), (BOUND, 4)):
        walks.clear()
        another = store.open(settings=settings)
        assert len(another.search("needle").hits) == found
        # Files that a bound hides have to be proven too.
        assert not walks or settings
        assert len(ask(another, "needle").hits) == found


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every child that a look ahead has made, however few files there are."""
    made: list[int] = []
    fork = os.fork

    def forked() -> int:
        pid = fork()
        made.append(pid)
        return pid

    monkeypatch.setattr(os, "fork", forked)
    monkeypatch.setattr(standing, "_MANY", 0)
    monkeypatch.setattr(standing, "is_worth_it", lambda: True)
    return made


# The runner has threads of its own; a child of ours needs none of their locks.
FORKING = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@FORKING
@pytest.mark.parametrize(
    ("edit", "walked"), [(r[1], r[3]) for r in EDITS], ids=[r[0] for r in EDITS]
)
def test_a_look_ahead_sees_what_moved(
    edit: Callable[[Path], object],
    walked: bool,
    store: Store,
    walks: list[str],
    forks: list[int],
) -> None:
    """Half by a child, half here: as the question itself would have seen it."""
    rested(store, filled(store), walks)
    edit(store.root)
    index = store.open()
    index.look_ahead()
    found = index.search("needle")
    assert len(forks) == 1
    assert bool(walks) is walked
    assert ask(index, "needle") == found
    assert index.list_sessions() == index.list_sessions(brute=True)
    assert len(forks) == 1


@FORKING
@pytest.mark.parametrize("share", [0, 50, 100])
def test_whoever_looks_at_a_file_says_the_same(
    share: int, store: Store, walks: list[str], forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_SHARE", share)
    rested(store, filled(store), walks)
    for name in ("a", "b"):
        append(str(path_of(store.root, name)), story(name).split(b"\n", 1)[1])
    index = store.open()
    index.look_ahead()
    assert len(index.search("needle").hits) == 7
    assert (len(forks), walks) == (1, [])


@FORKING
def test_a_look_ahead_of_another_commit_does_not_count(
    store: Store, walks: list[str], forks: list[int]
) -> None:
    rested(store, filled(store), walks)
    index = store.open()
    index.look_ahead()
    store.put("e", session("e").user("needle e"))
    store.index.refresh()
    assert len(ask(index, "needle").hits) == 6
    assert len(forks) == 1


@FORKING
def test_a_look_ahead_that_grew_old_does_not_count(
    store: Store, walks: list[str], forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rested(store, filled(store), walks)
    index = store.open()
    index.look_ahead()
    store.put("e", session("e").user("needle e"))
    monkeypatch.setattr(standing, "_LATEST", -1.0)
    assert len(ask(index, "needle").hits) == 6
    assert len(forks) == 1


@FORKING
def test_a_file_that_went_after_the_look(
    store: Store, walks: list[str], forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is opened before it is believed."""
    monkeypatch.setattr(standing, "_SHARE", 100)
    rested(store, filled(store), walks)
    index = store.open()
    index.look_ahead()
    os.waitid(os.P_PID, forks[0], os.WEXITED | os.WNOWAIT)
    path_of(store.root, "b").unlink()
    assert len(ask(index, "needle").hits) == 4


def test_where_no_look_ahead_is_made(
    store: Store, walks: list[str], forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a bound, for few files, without an index, where settings cannot be read."""
    store.open().look_ahead()
    bound = filled(store)
    rested(store, bound, walks)
    store.open(settings=BOUND).look_ahead()
    store.open(settings={"piRetrospect": {"allowedProjects": 1}}).look_ahead()
    monkeypatch.setattr(standing, "_MANY", 1000)
    few = store.open()
    few.look_ahead()
    assert len(ask(few, "needle").hits) == 5
    assert forks == []


def moved_while(
    monkeypatch: pytest.MonkeyPatch, when: Callable[[str], bool], root: Path
) -> list[str]:
    """Have the root be elsewhere while folders are opened for which `when` holds."""
    away = root.with_name("away")
    seen: list[str] = []
    opened = os.open

    def opening(path: str, *how: int) -> int:
        if not when(str(path)):
            return opened(path, *how)
        seen.append(str(path))
        os.rename(root, away)
        try:
            return opened(path, *how)
        finally:
            os.rename(away, root)

    monkeypatch.setattr(os, "open", opening)
    return seen


@pytest.mark.parametrize("which", ["project", "container"])
def test_a_walk_under_which_the_root_was_away_proves_nothing(
    which: str, store: Store, walks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did not see was there before and after: no folder has moved by its own stat."""
    index = filled(store)
    rested(store, index, walks)
    folder = str(store.root / (OTHER if which == "project" else f"{PROJECT}/a/run"))
    with monkeypatch.context() as patch:
        patch.setattr(standing, "tree", lambda *asked: None)  # a refresh walks
        seen = moved_while(patch, lambda path: path == folder, store.root)
        store.index.refresh()
        assert seen == [folder]
    for _ in range(2):
        assert len(ask(store.open(settings=BOUND), "needle").hits) == 4
        store.index.refresh()
    assert store.index.check().differences == ()


def test_a_root_that_is_another_one_for_a_moment_proves_nothing(
    store: Store, walks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link is turned while the root is opened, and turned back: it was the other's names."""
    index = filled(store)
    rested(store, index, walks)
    other, link = store.root.with_name("other"), store.root.with_name("link")
    other.mkdir()
    link.symlink_to(store.root)

    def turned(target: Path) -> None:
        beside = link.with_name("beside")
        beside.symlink_to(target)
        os.replace(beside, link)

    inside = SessionIndex(
        link, index_dir=store.index_dir, settings={}, current_session="", layout="projects"
    )
    opened = os.open

    def opening(path: str, *how: int) -> int:
        if str(path) != str(link):
            return opened(path, *how)
        turned(other)
        try:
            return opened(path, *how)
        finally:
            turned(store.root)

    with inside, monkeypatch.context() as patch:
        patch.setattr(os, "open", opening)
        for _ in range(3):
            inside.search("needle")
        patch.undo()
        assert len(inside.search("needle").hits) == 5


def test_an_unknown_file_system_proves_nothing(
    store: Store, walks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = filled(store)
    rested(store, index, walks)
    monkeypatch.setattr(standing, "keeps_folder_times", lambda device: False)
    store.put("e", session("e").user("needle"))
    for _ in range(4):
        walks.clear()
        index.search("needle")
        assert len(walks) == 1


@pytest.mark.parametrize(
    ("kind", "trusted"),
    [("ext4", True), ("xfs", True), ("tmpfs", True), ("nfs4", False), ("fuse.sshfs", False)],
)
def test_which_file_systems_are_trusted(
    kind: str, trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the system says is mounted; never a device that it does not name."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - btrfs /dev/sda1 rw\n"
        f"41 22 250:77 / /home/a\\040b rw,noatime shared:9 master:2 - {kind} /dev/x rw\n"
    )
    monkeypatch.setattr(files, "_MOUNTS", str(mounts))
    assert files.keeps_folder_times(os.makedev(250, 77)) is trusted
    assert files.keeps_folder_times(os.makedev(8, 1)) is False
    assert files.keeps_folder_times(os.makedev(8, 2)) is False
    monkeypatch.setattr(files, "_MOUNTS", str(tmp_path / "none"))
    assert files.keeps_folder_times(os.makedev(250, 77)) is False
