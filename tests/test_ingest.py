"""Bringing the index up to the files: no more work than what changed, and nothing forgotten."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from build import append, session
from scratch import Store, ask, places
from test_durability import SLOW

from sessionindex import coverage, ingest, intake, layout
from sessionindex.errors import IndexFolderError, IndexUnusable
from sessionindex.index import segments
from sessionindex.index.reader import Reader


@pytest.fixture
def proving(monkeypatch: pytest.MonkeyPatch) -> None:
    """A racy interval that a test can wait for."""
    monkeypatch.setattr(coverage, "RACY_NS", 30_000_000)


def counts(report: ingest.RefreshReport) -> dict[str, int]:
    named = ("added", "appended", "rebuilt", "dropped", "entries", "bytes")
    return {name: value for name in named if (value := getattr(report, name))}


def test_append_reads_only_the_tail(store: Store) -> None:
    """Bytes read are the bytes that came, however long the file was."""
    story = session("a").user("needle one").user("x" * 100_000)
    path = store.put("a", story)
    assert counts(store.index.refresh()) == {
        "added": 1,
        "entries": 2,
        "bytes": len(story.bytes()),
    }
    tail = story.user("needle two").tail(3)
    append(path, tail)
    assert counts(store.index.refresh()) == {"appended": 1, "entries": 1, "bytes": len(tail)}
    assert counts(store.index.refresh()) == {}
    assert places(ask(store.index, "needle")) == [("a", 4), ("a", 2)]


def test_a_torn_last_line_waits(store: Store) -> None:
    """It stays outside the cursor, and is searched as soon as it is whole."""
    story = session("a").user("needle one")
    path = store.put("a", story)
    line = story.user("needle two").tail(2)
    append(path, line[:40])
    assert store.index.refresh().entries == 1
    assert places(ask(store.index, "needle")) == [("a", 2)]
    assert store.index.status().pending_bytes == 40
    append(path, line[40:-1])
    assert places(ask(store.index, "needle")) == [("a", 3), ("a", 2)]
    append(path, b"\n")
    assert counts(store.index.refresh()) == {"appended": 1, "entries": 1, "bytes": len(line)}
    assert store.index.status().pending_bytes == 0


@pytest.mark.parametrize("wait", [0, 0.08])
def test_a_rewrite_of_the_same_size_and_time(wait: float, store: Store, proving: None) -> None:
    """Neither size nor mtime betrays it; the change time or the bytes do."""
    path = store.put("a", session("a").user("before"))
    stat = os.stat(path)
    time.sleep(wait)
    store.index.refresh()
    Path(path).write_bytes(session("a").user("beyond").bytes())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert os.stat(path).st_size == stat.st_size
    assert ask(store.index, "before").total == 0
    assert ask(store.index, "beyond").total == 1
    assert counts(store.index.refresh())["rebuilt"] == 1
    assert ask(store.index, "beyond").coverage.stale == 0


def test_a_touched_file_is_only_stamped(store: Store, proving: None) -> None:
    """Other stat values over the same bytes: the identity is remembered anew, no byte indexed."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    os.utime(path, ns=(0, 0))
    time.sleep(0.08)
    assert counts(store.index.refresh()) == {}
    (record,) = records(store).values()
    assert record.cursor.proven
    assert record.cursor.identity.mtime_ns == 0


def records(store: Store) -> dict[str, Any]:
    reader = store.open()._present.reader()
    assert reader is not None
    return reader.records()


def test_a_young_identity_proves_nothing(store: Store) -> None:
    """Two writes in one tick of the clock look alike, so the prefix is read once more."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    assert not records(store)[path].cursor.proven
    os.utime(path, ns=(0, 0))  # an mtime may say what it likes: the change time counts
    store.index.refresh()
    assert not records(store)[path].cursor.proven


def test_what_is_gone_is_dropped(store: Store) -> None:
    """A deleted session and its children, which nothing lists any more."""
    path = store.put("a", session("a").user("needle"))
    store.put("a/run/session", session("b").user("needle"))
    store.put("c", session("c").user("needle"))
    store.index.refresh()
    os.unlink(path)
    assert places(ask(store.index, "needle")) == [("c", 2)]
    assert counts(store.index.refresh()) == {"dropped": 2}
    assert store.index.status().entries == 1


def test_a_moved_file_is_known_by_its_new_path(store: Store) -> None:
    """Dropped there and added here."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    os.rename(path, path.replace("a.jsonl", "b.jsonl"))
    report = counts(store.index.refresh())
    assert (report["added"], report["dropped"]) == (1, 1)
    assert places(ask(store.index, "needle")) == [("b", 2)]


def test_a_root_that_is_away_keeps_its_records(store: Store) -> None:
    """An unmounted disk is no deletion: nothing is found, nothing is forgotten."""
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    away = store.root.with_name("away")
    store.root.rename(away)
    report = store.index.refresh()
    assert counts(report) == {}
    assert [one.path for one in report.warnings] == [str(store.root)]
    assert ask(store.index, "needle").total == 0
    away.rename(store.root)
    assert path in records(store)
    assert ask(store.index, "needle").coverage.new == 0


def refusing(inner: Any, folder: str) -> Any:
    """A function of the system that may not touch this folder."""

    def refuse(path: Any, *rest: Any, **how: Any) -> Any:
        if path == folder:
            raise PermissionError(13, "Permission denied")
        return inner(path, *rest, **how)

    return refuse


def test_an_unreadable_folder_keeps_its_records(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be listed is not gone; it is not served either."""
    path = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"), project="--other--")
    store.index.refresh()

    with monkeypatch.context() as patch:
        for name in ("open", "scandir"):
            patch.setattr(os, name, refusing(getattr(os, name), os.path.dirname(path)))
        report = store.index.refresh()
        assert counts(report) == {}
        assert [one.path for one in report.warnings] == [os.path.dirname(path)]
        assert places(ask(store.index, "needle")) == [("b", 2)]
    assert path in records(store)
    assert ask(store.index, "needle").coverage.new == 0


def test_only_these_paths(store: Store) -> None:
    """A watcher names what changed; the rest is left for the next full refresh."""
    a = store.put("a", session("a").user("needle"))
    b = store.put("b", session("b").user("needle"))
    store.index.refresh([a])
    assert set(records(store)) == {a}
    append(a, session("x").user("needle more").tail(1))
    os.unlink(a)
    store.index.refresh([b])
    assert set(records(store)) == {a, b}
    store.index.refresh([os.path.dirname(a)])
    assert set(records(store)) == {b}


def test_problems_are_counted_by_code(store: Store) -> None:
    """Bad lines are met, counted and no obstacle."""
    store.put("a", session("a").line(b"{").line(b"").line(b"[]").user("needle").line(b"{}"))
    assert store.index.refresh().problems == {"invalid_json": 2, "invalid_entry": 2}
    assert places(ask(store.index, "needle")) == [("a", 5)]


def test_progress_counts_up_to_all(store: Store) -> None:
    """Bytes done and bytes in all, ending equal."""
    story = session("a").user("needle")
    store.put("a", story)
    told: list[tuple[int, int]] = []
    store.index.refresh(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(story.bytes()), len(story.bytes()))


@pytest.mark.parametrize(
    ("rule", "story"),
    [
        ("a lone surrogate in the header", session("a", parentSession="\ud83d")),
        ("a lone surrogate in the working directory", session("a", cwd="/r/\udc80")),
        ("a version beyond 64 bits", session("a", version=10**30)),
        ("a version of many digits", session("a").raw(b"")),
        ("a lone surrogate in the session's name", session("a").info("cut \ud83d")),
    ],
)
def test_odd_headers_stop_nothing(rule: str, story: Any, store: Store) -> None:
    """Whatever a header or a name holds, the file is indexed and so is the one beside it."""
    if "digits" in rule:
        head = session("a").bytes().replace(b'"version":3', b'"version":' + b"7" * 5000)
        path = store.put("a", head)
    else:
        path = store.put("a", story)
    append(path, session("more").user("needle").tail(1))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    found = ask(store.index, "needle")
    assert found.total == 2, rule
    assert (found.coverage.new, found.coverage.stale) == (0, 0)


def test_a_read_error_in_the_middle_leaves_no_half_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added of the file before the error goes with it: no line counts twice later."""
    story = session("a").user("needle one")
    path = store.put("a", story)
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    append(path, story.user("needle two").user("needle three").tail(2))
    whole_lines = intake.whole_lines

    def failing(*arguments: Any, **how: Any) -> Iterator[Any]:
        yield next(iter(whole_lines(*arguments, **how)))
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(intake, "whole_lines", failing)
        report = store.index.refresh()
    assert [(one.path, one.reason) for one in report.warnings] == [
        (path, "could not read file: EIO: Input/output error")
    ]
    assert ask(store.index, "needle").total == 4
    store.index.refresh()
    assert ask(store.index, "needle").total == 4
    assert store.index.status().entries == 4


def test_files_that_change_while_they_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read only as far as it reached when it was looked at."""
    story = session("a").user("needle one")
    path = store.put("a", story)
    tail = story.user("needle two").tail(2)
    whole_lines = intake.whole_lines

    def growing(*arguments: Any, **how: Any) -> Iterator[Any]:
        append(path, tail)
        monkeypatch.setattr(intake, "whole_lines", whole_lines)
        yield from whole_lines(*arguments, **how)

    monkeypatch.setattr(intake, "whole_lines", growing)
    assert store.index.refresh().entries == 1
    assert places(ask(store.index, "needle")) == [("a", 3), ("a", 2)]
    assert counts(store.index.refresh()) == {"appended": 1, "entries": 1, "bytes": len(tail)}


def test_a_rewrite_while_it_is_read_is_noticed(
    store: Store, monkeypatch: pytest.MonkeyPatch, proving: None
) -> None:
    """The identity that is kept was taken before reading, so later writes show."""
    path = store.put("a", session("a").user("before"))
    time.sleep(0.08)
    whole_lines = intake.whole_lines

    def rewriting(*arguments: Any, **how: Any) -> Iterator[Any]:
        yield from whole_lines(*arguments, **how)
        Path(path).write_bytes(session("a").user("beyond").bytes())

    with monkeypatch.context() as patch:
        patch.setattr(intake, "whole_lines", rewriting)
        store.index.refresh()
    assert ask(store.index, "before").total == 0
    assert ask(store.index, "beyond").total == 1


def test_a_second_file_of_the_same_batch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits in the middle of a file leave a cursor that says how far it got."""
    from sessionindex.index import writer

    monkeypatch.setattr(writer, "BATCH", 100)
    monkeypatch.setattr("sessionindex.files.BLOCK", 256)
    story = session("a")
    for number in range(20):
        story.user(f"needle {number} " + "x" * 60)
    store.put("a", story)
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    assert ask(store.index, "needle").total == 21
    assert store.index.status().entries == 21


@pytest.mark.parametrize("more", [b"", session("more").user("and more").tail(1)])
def test_an_edit_deep_in_a_long_prefix(more: bytes, store: Store) -> None:
    """Head and tail digests cannot see it: the checksum of the whole prefix does."""
    story = session("a").user("x" * 9000).user("middle").user("y" * 9000)
    path = store.put("a", story)
    store.index.refresh()
    Path(path).write_bytes(story.bytes().replace(b"middle", b"muddle") + more)
    assert ask(store.index, "middle").total == 0
    assert places(ask(store.index, "muddle")) == [("a", 3)]
    assert counts(store.index.refresh())["rebuilt"] == 1


def test_terms_of_a_session_in_prefix_and_tail(store: Store) -> None:
    """One term in what is indexed, the other in what came since: the session has both."""
    path = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    append(path, session("more").user("haystack").tail(1))
    assert places(ask(store.index, "needle", "haystack", match="session", order="path")) == [
        ("a", 2),
        ("a", 3),
    ]


BOUND = {"piRetrospect": {"allowedProjects": ["app"]}}


def test_under_a_bound_a_refresh_tells_only_of_what_is_shown(store: Store) -> None:
    """What a denied session launched is hidden when it is dropped too, and so are its bytes."""
    store.put("a", session("a", cwd="/r/secret").user("x"), "--r-secret--")
    child = store.put("a/run/session", session("c", cwd="/r/app").user("x"), "--r-secret--")
    own = store.put("b", session("b", cwd="/r/app").user("x"))
    launched = store.put("b/run/session", session("d", cwd="/elsewhere").user("x"))
    bounded = store.open(settings=BOUND)
    told: list[tuple[int, int]] = []
    report = bounded.refresh(progress=lambda done, total: told.append((done, total)))
    assert (report.files, report.added, told) == (2, 2, [])
    for path in (child, launched):
        os.unlink(path)
    assert counts(bounded.refresh()) == {"dropped": 1}
    os.unlink(own)
    assert counts(bounded.refresh()) == {"dropped": 1}


def test_a_header_without_its_end_is_read_once(store: Store, proving: None) -> None:
    """Nothing is claimed of it, so there is nothing to do until it changes."""
    whole = session("a").user("needle").bytes()
    path = store.put("a", whole[: whole.index(b"\n")])
    assert counts(store.index.refresh()) == {"added": 1}
    assert counts(store.index.refresh()) == {}
    append(path, whole[whole.index(b"\n") :])
    assert counts(store.index.refresh())["entries"] == 1
    assert ask(store.index, "needle").total == 1


def test_the_end_of_a_refresh_is_noted_and_not_its_beginning(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", session("a").user("needle"))
    with monkeypatch.context() as patch:
        patch.setattr(intake.Intake, "read", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            store.index.refresh()
    assert store.index.status().last_refresh is None
    store.index.refresh()
    noted = store.index.status().last_refresh
    assert noted is not None and abs(noted - time.time() * 1000) < 60_000


def test_a_folder_and_what_is_in_it_are_named_at_once(store: Store) -> None:
    """What was named twice is read once: no line is there twice."""
    path = store.put("a", session("a").user("needle"))
    child = store.put("a/run/session", session("b").user("needle"))
    with store.index.keeping("test") as kept:
        kept.refresh()
        for one in (path, child):
            append(one, session("x").user("needle more").tail(1))
        folder = os.path.dirname(path)
        assert counts(kept.refresh([folder, path, child]))["appended"] == 2
        assert ask(store.index, "needle").total == 4


def test_a_file_that_is_listed_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that changes under a listing may name a file twice: it is read once."""
    path = store.put("a", session("a").user("needle"))
    listed = layout._Walk.listed

    def doubled(*asked: Any, **how: Any) -> Any:
        found = listed(*asked, **how)
        return found._replace(sessions=found.sessions * 2)

    with monkeypatch.context() as patch:
        patch.setattr(layout._Walk, "listed", doubled)
        assert counts(store.index.refresh())["added"] == 1
        append(path, session("x").user("needle more").tail(1))
        assert counts(store.index.refresh())["appended"] == 1
    assert store.index.status().entries == 2
    assert store.index.check().differences == ()


def test_what_is_known_of_the_files_is_not_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next refresh: by the same program, or by one that finds a snapshot of this commit."""
    reads: list[object] = []
    all_records = Reader.all_records
    monkeypatch.setattr(
        Reader, "all_records", lambda reader: reads.append(reader) or all_records(reader)
    )
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    reads.clear()
    for _ in range(3):
        append(path, session("x").user("needle").tail(1))
        assert counts(store.index.refresh())["appended"] == 1
    assert not reads
    assert ask(store.index, "needle").total == 4
    other = store.open()
    append(path, session("x").user("needle").tail(1))
    store.put("b", session("b").user("needle"))
    other.refresh()
    reads.clear()
    append(path, session("x").user("needle").tail(1))
    assert counts(store.index.refresh())["appended"] == 1
    assert not reads
    assert ask(store.index, "needle").total == 7
    assert counts(store.index.refresh(rebuild=True))["added"] == 2
    assert store.index.status().entries == 7
    assert store.index.check(None).differences == ()


def test_an_index_that_was_made_anew_under_whoever_keeps_it(store: Store) -> None:
    """Its folder was taken away and begun again: the old keys are other files' now."""
    path = store.put("b", session("b").user("needle b"))
    with store.index.keeping("test") as kept:
        kept.refresh()
        new = store.put("a", session("a").user("needle a").user("needle a"))
        kept.refresh([new])
        shutil.rmtree(store.folder)
        store.open().refresh()
        append(path, session("x").user("needle more").tail(1))
        for paths in ([path], None):
            with pytest.raises(IndexFolderError, match="taken away"):
                kept.refresh(paths)
        assert ask(store.open(), "needle").total == 4
    with store.index.keeping("test") as kept:
        assert counts(kept.refresh([path]))["appended"] == 1
    assert ask(store.open(), "needle").total == 4


@pytest.mark.parametrize("lost", ["writer.lock", ""])
def test_a_lock_that_others_cannot_see_is_none(lost: str, store: Store) -> None:
    path = store.put("a", session("a").user("needle"))
    with store.index.keeping("test") as kept:
        kept.refresh()
        if lost:
            os.unlink(store.folder / lost)
        else:
            shutil.rmtree(store.folder)
        append(path, session("x").user("needle more").tail(1))
        with pytest.raises(IndexFolderError, match="taken away"):
            kept.refresh([path])
    store.index.refresh()
    assert ask(store.open(), "needle").total == 2


def test_what_a_session_launched_comes_and_goes_with_it(store: Store) -> None:
    """Its children are listed with it only, so the name of the parent is enough."""
    path = store.put("a", session("a").user("needle"))
    child = store.put("a/run/session", session("b").user("needle"))
    with store.index.keeping("test") as kept:
        kept.refresh()
        os.unlink(path)
        assert counts(kept.refresh([path])) == {"dropped": 2}
        assert ask(store.index, "needle").total == 0
        store.put("a", session("a").user("needle"))
        assert counts(kept.refresh([path]))["added"] == 2
        assert set(records(store)) == {path, child}


def test_damage_beside_a_commit_is_not_noted_as_what_was_written(store: Store) -> None:
    """A commit notes its own files; one that somebody cut meanwhile stays what it is."""
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    (generation,) = [path for path in store.folder.iterdir() if path.name.startswith("g")]
    (damaged,) = generation.glob("*.store")
    os.truncate(damaged, damaged.stat().st_size // 2)
    segments.note(str(generation))
    with pytest.raises(IndexUnusable):
        segments.verify(str(generation))
    assert ask(store.open(), "needle").coverage.new == 1


# --- how much work an append is ------------------------------------------------------------------


class Work:
    """What was done below a root: files opened, bytes read of them, folders listed, stats taken."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = str(root)
        self._inside: set[int] = set()
        self.opened = self.bytes = self.listed = self.stats = 0
        for name in ("open", "pread", "scandir", "stat", "lstat"):
            monkeypatch.setattr(os, name, self._counting(name, getattr(os, name)))

    def _counting(self, name: str, inner: Any) -> Any:
        def counted(what: Any, *rest: Any, **how: Any) -> Any:
            found = inner(what, *rest, **how)
            below = not isinstance(what, int) and os.fspath(what).startswith(self._root)
            if name == "open":
                (self._inside.add if below else self._inside.discard)(found)
                self.opened += below and not rest[0] & os.O_DIRECTORY
            elif name == "pread":
                self.bytes += len(found) if what in self._inside else 0
            elif name == "scandir":
                self.listed += below or what in self._inside
            else:
                self.stats += below
            return found

        return counted

    def taken(self) -> dict[str, int]:
        """What was done since this was last asked."""
        done = {
            "opened": self.opened,
            "bytes": self.bytes,
            "listed": self.listed,
            "stats": self.stats,
        }
        self.opened = self.bytes = self.listed = self.stats = 0
        return done


LONG = 200_000
BOUNDS: tuple[Any, ...] = ({}, {"piRetrospect": {"allowedProjects": ["app"]}})


def many(store: Store, count: int) -> list[str]:
    """Sessions in ten projects, the first of them long."""
    return [
        store.put(
            f"s{number}",
            session(f"s{number}", cwd="/r/app").user("needle " + "x" * (0 if number else LONG)),
            f"--p{number % 10}--",
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_work_for_an_append(bound: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows what was appended: not the number of files, and not their length."""
    line = session("x").user("needle " + "y" * 100).tail(1)
    costs = []
    for count in (5, 500):
        paths = many(store, count)
        index = store.open(settings=bound)
        with index.keeping("test") as kept, monkeypatch.context() as patch:
            kept.refresh()
            work = Work(store.root, patch)
            append(paths[0], line)
            assert counts(kept.refresh([paths[0]])) == {
                "appended": 1,
                "entries": 1,
                "bytes": len(line),
            }
            costs.append(work.taken())
            for path in paths[:3]:
                append(path, line)
            assert counts(kept.refresh(paths[:3]))["appended"] == 3
            batch = work.taken()
            assert batch["opened"] <= 3 * costs[-1]["opened"]
            assert batch["bytes"] <= 3 * costs[-1]["bytes"]
            assert (batch["listed"], batch["stats"]) == (0, 3)
        ask(store.index, "needle y")
    assert costs[0] == costs[1]
    assert costs[0]["opened"] <= 2
    assert (costs[0]["listed"], costs[0]["stats"]) == (0, 1)
    assert costs[0]["bytes"] <= len(line) + 4 * coverage.EDGE


def test_an_edit_under_an_append_that_was_told(store: Store, proving: None) -> None:
    """Who reads only the tail vouches for no more: a question and the next walk read the rest."""
    story = session("a").user("x" * 9000).user("middle").user("y" * 9000)
    path = store.put("a", story)
    time.sleep(0.08)
    with store.index.keeping("test") as kept:
        kept.refresh()
        more = session("more").user("and more").tail(1)
        Path(path).write_bytes(story.bytes().replace(b"middle", b"muddle") + more)
        time.sleep(0.08)
        kept.refresh([path])
        assert ask(store.index, "middle").total == 0
        assert places(ask(store.index, "muddle")) == [("a", 3)]
        assert counts(kept.refresh())["rebuilt"] == 1
        assert ask(store.index, "muddle").coverage.stale == 0


def test_the_work_for_a_new_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its project is walked, and no other; the files beside it are not opened."""
    costs = []
    for count in (10, 500):
        many(store, count)
        with store.index.keeping("test") as kept, monkeypatch.context() as patch:
            time.sleep(0.08)
            kept.refresh()
            work = Work(store.root, patch)
            path = store.put("new", session("new").user("needle"), f"--new{count}--")
            work.taken()
            assert counts(kept.refresh([path]))["added"] == 1
            costs.append(work.taken())
            os.unlink(path)
            work.taken()
            assert counts(kept.refresh([path])) == {"dropped": 1}
            assert work.taken()["listed"] == 3  # the root (is it flat? what is in it?), the project
    assert costs[0] == costs[1]
    assert (costs[0]["listed"], costs[0]["opened"]) == (3, 2)


@pytest.mark.parametrize("appends", [200, pytest.param(10_000, marks=SLOW)])
def test_many_small_appends(appends: int, store: Store, proving: None) -> None:
    """Segments stay few, and a question has no more to look at than on a fresh index."""
    draw = random.Random(appends)
    paths = [store.put(f"s{number}", session(f"s{number}").user("x")) for number in range(20)]
    most = 0
    with store.index.keeping("test") as kept:
        kept.refresh()
        for number in range(appends):
            path = draw.choice(paths)
            append(path, session("x").user(f"needle {number}").tail(1))
            assert kept.refresh([path]).entries == 1
            if number % 10 == 0:
                most = max(most, segments_of(store))
    assert most < 20
    assert ask(store.index, "needle 7", limit=5).total == str(list(range(appends))).count(" 7")
    assert most > 1
    dead, documents = store.index._present.store.dead()
    assert documents - dead == appends + 40
    assert dead < documents // 2
    time.sleep(0.08)
    candidates = []
    for rebuild in (False, True):
        store.index.refresh(rebuild=rebuild)
        candidates.append(candidates_of(store))
    assert candidates[0] == candidates[1]


def segments_of(store: Store) -> int:
    return len(
        segments.committed(os.path.join(store.folder, store.index._present.store._current()))
    )


def candidates_of(store: Store) -> list[int]:
    """How many lines each of some questions reads from the files."""
    return [len(reads_of(store, literal)) for literal in ("needle 77", "eedl", "absent")]


def reads_of(store: Store, literal: str) -> list[int]:
    inside: set[int] = set()
    read: list[int] = []
    opening, reading = os.open, os.pread

    def opened(path: Any, *rest: Any, **how: Any) -> int:
        found = opening(path, *rest, **how)
        (inside.add if str(path).endswith(".jsonl") else inside.discard)(found)
        return found

    def pread(descriptor: int, *rest: Any) -> bytes:
        if descriptor in inside:
            read.append(descriptor)
        return reading(descriptor, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        patch.setattr(os, "pread", pread)
        store.index.search(literal)
    return read
