"""The background indexer as a process: nothing is missed, nobody is in its way, every end is clean.

`settled` is the aim of every story: the index holds the whole lines of every session there is, and
of no other. Where a watcher is given a day between its walks, events alone must have told it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from build import PROJECT, Builder, append, put, session
from scratch import LITERALS, Store, ask, entries, places
from terminal import environment, pipe
from test_cases import CASES, NOBODY, Case, in_child
from test_durability import COMMAND, SLOW, at, counted, fill, sentence, together, two_hundred

from sessionindex import SessionIndex, SessionIndexError
from sessionindex.daemon import report, watch
from sessionindex.daemon.watch import Watcher
from sessionindex.errors import SessionFileError

DAY = 86_400
"""Seconds between walks where nothing but events may tell."""
PATIENCE = 30.0


def until(holds: Callable[[], Any], what: object = "", patience: float = PATIENCE) -> Any:
    """Ask again and again until it holds."""
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, what or "this never came to be"
        time.sleep(0.02)
    return found


class Watching:
    """A watcher in a process of its own, with what it said so far."""

    def __init__(self, store: Store, home: Path, *options: str, every: float, **how: Any) -> None:
        self.store = store
        self._log = home / f"watch-{time.monotonic_ns()}.log"
        command = [*COMMAND, "watch", *at(store), "--every", str(every), *options]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment(home), stderr=log, **how)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def begun(self) -> Watching:
        """When it holds the lock."""
        until(self.holds, self.said)
        return self

    def holds(self) -> bool:
        assert self.process.poll() is None, self.said
        holder = self.store.open().status().writer
        return holder is not None and holder.pid == self.process.pid

    def settled(self) -> None:
        """When the index is what the files are; the watcher must be alive."""
        index = self.store.open()
        try:
            until(lambda: self.process.poll() is not None or settled(index), self.said)
        except AssertionError:
            raise AssertionError(f"{difference(index)}\n{self.said}") from None
        assert self.process.poll() is None, self.said

    def ended(self, number: int = signal.SIGTERM) -> int:
        """Its exit status after a signal."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def whole_lines(path: str) -> int:
    data = Path(path).read_bytes()
    return data.rfind(b"\n") + 1


def difference(index: SessionIndex) -> dict[str, tuple[int | None, int | None]]:
    """By path, how many bytes are indexed and how many ought to be; empty where all is well."""
    reader = index._present.reader()
    records = reader.records() if reader else {}
    now = index._present.catalog(index._present.policy(), reader)
    known = {path: record.cursor.offset for path, record in records.items()}
    covers = {file.path for file in now.files if file.record is not None}
    wanted = {file.path: whole_lines(file.path) for file in now.files}
    return {
        path: (known.get(path), wanted.get(path))
        for path in sorted({*known, *wanted})
        if known.get(path) != wanted.get(path) or (wanted[path] and path not in covers)
    }


def settled(index: SessionIndex) -> bool:
    try:
        return not difference(index)
    except FileNotFoundError:  # one was deleted between two looks
        return False


Start = Callable[..., Watching]


@contextmanager
def starting(store: Store, home: Path) -> Iterator[Start]:
    """Starts watchers of a store, which do not outlive the test."""
    started = []

    def begin(*options: str, every: float = DAY, **how: Any) -> Watching:
        started.append(Watching(store, home, *options, every=every, **how))
        return started[-1]

    try:
        yield begin
    finally:
        for one in started:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def start(store: Store, tmp_path: Path) -> Iterator[Start]:
    """Starts watchers of the store of the test."""
    with starting(store, tmp_path) as begin:
        yield begin


def more(text: str = "needle more") -> bytes:
    return session("more").user(text).tail(1)


# --- what events tell ----------------------------------------------------------------------------


def test_what_is_written_is_indexed(store: Store, start: Start) -> None:
    """A new file, what is appended to it, a second project; nothing but events can have told."""
    watcher = start().begun()
    path = store.put("a", session("a").user("needle"))
    watcher.settled()
    for number in range(5):
        append(path, more(f"needle {number}"))
        watcher.settled()
    store.put("b", session("b").user("needle"), "--other--")
    store.put("a/run/session", session("c").user("needle"))
    watcher.settled()
    status = store.index.status()
    assert (status.pending_bytes, status.entries) == (0, 8)
    assert ask(store.index, "needle").total == 8


def test_a_torn_line_and_its_end(store: Store, start: Start) -> None:
    """The half is waited for, and is indexed with its end."""
    path = store.put("a", session("a").user("needle one"))
    watcher = start().begun()
    watcher.settled()
    line = more("needle two")
    append(path, line[:50])
    watcher.settled()
    assert store.index.status().pending_bytes == 50
    append(path, line[50:])
    watcher.settled()
    assert store.index.status().pending_bytes == 0
    assert ask(store.index, "needle").total == 2


def test_deleted_moved_replaced_rewritten(store: Store, start: Start) -> None:
    """The index follows each of them, children and other projects included."""
    for name in "abcd":
        store.put(name, session(name).user(f"needle {name}"))
    store.put("a/run/session", session("child").user("needle child"))
    watcher = start().begun()
    watcher.settled()
    project = store.root / PROJECT
    (project / "a.jsonl").unlink()
    watcher.settled()
    other = store.root / "--other--"
    other.mkdir()
    (project / "b.jsonl").rename(other / "b.jsonl")
    watcher.settled()
    beside = project / "c.jsonl.new"
    beside.write_bytes(session("c").user("needle c").user("needle replaced").bytes())
    beside.replace(project / "c.jsonl")
    watcher.settled()
    path = project / "d.jsonl"
    before = path.stat()
    path.write_bytes(session("d").user("needle e").bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    until(lambda: store.index.status().stale == 0, watcher.said)
    watcher.settled()
    assert places(ask(store.index, "needle", order="path")) == [
        ("c", 2),
        ("c", 3),
        ("d", 2),
        ("b", 2),
    ]


def test_a_project_that_is_moved_in_and_out(store: Store, start: Start, tmp_path: Path) -> None:
    """A folder that comes with its files gives one event, and so does one that goes."""
    watcher = start().begun()
    put(tmp_path, "--moved--", "a", session("a").user("needle"))
    put(tmp_path, "--moved--", "a/run/session", session("b").user("needle"))
    (tmp_path / "--moved--").rename(store.root / "--moved--")
    watcher.settled()
    append(str(store.root / "--moved--" / "a.jsonl"), more())
    watcher.settled()
    assert ask(store.index, "needle").total == 3
    (store.root / "--moved--").rename(tmp_path / "--away--")
    watcher.settled()
    assert ask(store.index, "needle").coverage.files == 0


def test_folders_in_quick_succession(store: Store, start: Start) -> None:
    """Files made with their folders, at any depth, give no event of their own."""
    watcher = start(every=1).begun()
    for number in range(300):
        project = f"--project-{number}--"
        store.put("a", session(f"a{number}").user("needle"), project)
        store.put(f"a/{number:08x}/run-0/session", session(f"b{number}").user("needle"), project)
    watcher.settled()
    assert ask(store.index, "needle", limit=1).total == 600


# --- roots that come and go ----------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 3])
def test_no_root_at_the_start(levels: int, store: Store, start: Start) -> None:
    """It is waited for, also where what it lies in is missing, and watched when it is there."""
    store.root.rmdir()
    store.root = store.root.joinpath(*"xyz"[: levels - 1])
    watcher = start().begun()
    assert "does not exist" in until(lambda: watcher.said.partition("does not exist")[1])
    path = store.put("a", session("a").user("needle"))
    watcher.settled()
    append(path, more())
    watcher.settled()
    assert ask(store.index, "needle").total == 2
    assert watcher.said.count("does not exist") == 1


@pytest.mark.parametrize("there", [False, True])
def test_a_flat_root_that_fills_later(there: bool, store: Store, start: Start) -> None:
    """Whether a root by hand is flat shows with its first files: the watcher sees it as all do."""
    if not there:
        store.root.rmdir()
    watcher = start(every=1).begun()
    path = store.put("a", session("a").user("needle"), "")
    watcher.settled()
    append(path, more())
    watcher.settled()
    assert ask(store.index, "needle").coverage.fresh == 1


def test_a_root_that_is_made_again(store: Store, start: Start) -> None:
    """Deleted and there again at once (often with its old inode): watched anew."""
    store.put("a", session("a").user("needle"))
    watcher = start().begun()
    watcher.settled()
    for number in range(3):
        shutil.rmtree(store.root)
        path = store.put("b", session(f"b{number}").user("needle"))
        watcher.settled()
        append(path, more())
        watcher.settled()
    assert places(ask(store.index, "needle", order="path")) == [("b", 2), ("b", 3)]


def test_another_root_in_its_place(store: Store, start: Start, tmp_path: Path) -> None:
    """Renamed away, it stays quiet; what is put in its place is watched."""
    store.put("a", session("a").user("needle"))
    watcher = start().begun()
    watcher.settled()
    store.root.rename(tmp_path / "away")
    put(tmp_path / "other", PROJECT, "b", session("b").user("needle"))
    (tmp_path / "other").rename(store.root)
    watcher.settled()
    append(str(store.root / PROJECT / "b.jsonl"), more())
    watcher.settled()
    assert places(ask(store.index, "needle", order="path")) == [("b", 2), ("b", 3)]


# --- beginnings, ends and others -----------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop(number: int, store: Store, start: Start) -> None:
    """What was indexed is committed, the lock is free, the exit status says that all is well."""
    store.put("a", session("a").user("needle"))
    watcher = start().begun()
    watcher.settled()
    began = time.monotonic()
    assert watcher.ended(number) == 0
    assert time.monotonic() - began < 5
    assert watcher.said.endswith("info: stopped\n")
    assert store.index.status().writer is None
    assert ask(store.index, "needle").coverage.fresh == 1


def test_a_stop_at_any_moment(store: Store, start: Start) -> None:
    """In the first walk as well; what the index holds then is right."""
    fill(store.root, files=20, lines=200)
    draw = random.Random(1)
    for _ in range(4):
        watcher = start()
        until(lambda said=watcher: "watching" in said.said)  # type: ignore[misc]
        time.sleep(draw.random() / 4)
        assert watcher.ended() == 0, watcher.said
        if store.index.damage() is None:
            assert store.index.check(sample=50).differences == ()
        ask(store.index, "needle 7")


def test_a_second_watcher(store: Store, start: Start, tmp_path: Path) -> None:
    """It says who watches, and that is no failure."""
    first = start().begun()
    ran = pipe(["watch", *at(store)], environment(tmp_path))
    last = ran.err.splitlines()[-1]
    said = f"sessionindex: already watched by process {first.process.pid} (watch)"
    assert (ran.status, ran.out, last) == (0, "", said)


def test_a_watcher_beside_an_indexer(store: Store, start: Start) -> None:
    """It waits for whoever writes, and takes over."""
    store.put("a", session("a").user("needle"))
    with store.index._present.store.held("refresh"):
        watcher = start()
        until(lambda: f"waiting for process {os.getpid()} (refresh)" in watcher.said)
        assert watcher.process.poll() is None
    watcher.settled()
    assert watcher.said.count("waiting") == 1


def test_others_beside_a_watcher(store: Store, start: Start, tmp_path: Path) -> None:
    """`index` leaves it to the watcher; what must write alone says who is in the way."""
    paths = fill(store.root, files=3, lines=20)
    watcher = start().begun()
    watcher.settled()
    env = environment(tmp_path)
    append(paths[0], more())
    ran = pipe(["index", *at(store)], env)
    assert (ran.status, ran.out, ran.err) == (0, "covered by the watcher\n", "")
    assert store.index.status().pending_bytes == 0
    Path(paths[1]).write_bytes(session("s1").user("needle anew").bytes())
    watcher.settled()
    assert store.index.check().dead
    busy = f"sessionindex: the index is being written by process {watcher.process.pid} (watch)\n"
    for command in (["index", "--rebuild"], ["check", "--repair"]):
        ran = pipe([*command, *at(store)], env)
        assert (ran.status, ran.err) == (2, busy), command


def test_readers_beside_a_watcher(store: Store, start: Start, tmp_path: Path) -> None:
    """They neither wait nor fail while it writes."""
    paths = fill(store.root, files=5, lines=20)
    watcher = start().begun()
    search = [*COMMAND, "search", "-c", "needle", *at(store)]
    with together([search] * 6, environment(tmp_path)) as children:
        for number in range(60):
            append(paths[number % 5], more())
            ask(store.index, "needle more")
        for child in children:
            out, err = child.communicate(timeout=60)
            assert (child.returncode, err) == (0, "")
            assert 100 <= sum(counted(out)) <= 160
    watcher.settled()


@pytest.mark.parametrize("level", ["error", "warning", "info", "debug"])
def test_what_is_logged(level: str, store: Store, start: Start) -> None:
    """Counts and no words of any session, as much of it as was asked for."""
    secret = "xyzzy-plugh"
    path = store.put("a", session("a").user(secret).info(secret).line(b"{" + secret.encode()))
    watcher = start("--log-level", level, every=1).begun()
    watcher.settled()
    append(path, more(secret))
    watcher.settled()
    until(lambda: level != "debug" or watcher.said.count("debug: walk: nothing new") > 1)
    assert watcher.ended() == 0
    assert secret not in watcher.said
    told = {line.split()[1].rstrip(":") for line in watcher.said.splitlines()}
    allowed = ("error", "warning", "info", "debug")
    assert told <= set(allowed[: allowed.index(level) + 1])
    assert ("info" in told) is (level in ("info", "debug"))
    assert ("debug" in told) is (level == "debug")


# --- when watching fails -------------------------------------------------------------------------


@contextmanager
def watched(index: SessionIndex, *, every: float = 0.1) -> Iterator[list[tuple[str, str]]]:
    """A watcher in a thread; what it logs."""
    log: list[tuple[str, str]] = []
    watcher = Watcher(index, lambda *said: log.append(said), every=every)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            watcher.run()
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield log
    finally:
        watcher.stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not failed, failed


@pytest.mark.parametrize(
    "error",
    [
        OSError("OS file watch limit reached. about [...]"),
        RuntimeError("error in underlying watcher: Too many open files"),
        PermissionError(13, "Permission denied"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_no_watches_left(
    error: Exception, there: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing can be watched it looks now and then, and says so."""

    def refused(*_: Any, **__: Any) -> Iterator[Any]:
        raise error
        yield

    monkeypatch.setattr(watch, "watch", refused)
    if not there:
        store.root.rmdir()
    with watched(store.open()) as log:
        for number in range(3):
            path = store.put(f"a{number}", session(f"a{number}").user("needle"))
            append(path, more())
            until(lambda: settled(store.index), log)
    said = [line for level, line in log if level == "warning"]
    assert said and all("only look every 0.1 s" in line for line in said)
    assert len(said) == 1, "a thing that lasts is said once"


def watch_beside_a_closed_project(folder: str) -> None:
    """As a user whom permissions bind; runs in a child process."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = Store(Path(folder, "sessions"), Path(folder, "index"))
    path = store.put("a", session("a").user("needle"))
    closed = store.root / "--closed--"
    closed.mkdir(mode=0)
    with watched(store.open(), every=DAY) as log:
        until(lambda: settled(store.index), log)
        for _ in range(3):
            append(path, more())
            until(lambda: settled(store.index), log)
    assert {level for level, _ in log} <= {"info", "debug"}, log
    closed.chmod(0o700)


def test_a_project_that_cannot_be_read() -> None:
    """What lies beside it is watched all the same."""
    with tempfile.TemporaryDirectory() as scratch:
        if os.geteuid() == 0:
            os.chown(scratch, NOBODY, NOBODY)
        in_child(watch_beside_a_closed_project, scratch)


def test_an_overflow(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that never came are made up for by the next walk, and the watch begins anew."""
    begun = []

    def deaf(*_: Any, stop_event: threading.Event, **__: Any) -> Iterator[set[Any]]:
        begun.append(1)
        while not stop_event.wait(0.02):
            yield set()

    monkeypatch.setattr(watch, "watch", deaf)
    with watched(store.open()) as log:
        for number in range(3):
            told, before = len(log), len(begun)
            until(lambda many=told: len(log) > many + 3)  # the walks with which it begins
            store.put(f"a{number}", session(f"a{number}").user("needle"))
            until(lambda: settled(store.index), log)
            until(lambda many=before: len(begun) > many)  # type: ignore[misc]
    assert {level for level, _ in log} <= {"info", "debug"}


# --- when the index fails ------------------------------------------------------------------------


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limit can be lifted here")
def test_a_full_disk(store: Store, start: Start) -> None:
    """Said and noted once, however often it is tried; with room again all is well."""
    fill(store.root, files=3, lines=100)
    watcher = start(every=1, preexec_fn=small_files)
    until(lambda: " error: " in watcher.said, watcher.said)
    noted = until(lambda: report.read(str(store.folder)))
    assert noted.error and noted.error in watcher.said
    ask(store.open(), "needle")
    time.sleep(2.5)  # for another attempt or two
    assert len(set(errors(watcher))) == len(errors(watcher)) <= 2, watcher.said
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(watcher.process.pid, resource.RLIMIT_FSIZE, infinite)
    until(lambda: "works again" in watcher.said, watcher.said)
    watcher.settled()
    assert report.read(str(store.folder)).error is None  # type: ignore[union-attr]


def errors(watcher: Watching) -> list[str]:
    return [line[9:] for line in watcher.said.splitlines() if " error: " in line]


def watch_a_closed_folder(folder: str) -> None:
    """As a user whom permissions bind; runs in a child process."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = Store(Path(folder, "sessions"), Path(folder, "index"))
    paths = fill(store.root, files=3, lines=10)
    with watched(store.open()) as log:
        until(lambda: settled(store.index), log)
        closed = [store.folder, *(path for path in store.folder.rglob("*") if path.is_dir())]

        def fails() -> bool:
            for path in closed:  # again: a commit that was under way opens its folder once more
                path.chmod(0o500)
            append(paths[0], more())
            return any(level == "error" for level, _ in log)

        until(fails, log)
        ask(store.index, "needle")
        for path in closed:
            path.chmod(0o700)
        until(lambda: settled(store.index), log)
        until(lambda: ("info", "works again") in log, log)
    failures = [line for level, line in log if level in ("error", "warning")]
    assert len(failures) == 1 and "index" in failures[0], failures
    assert store.open().check().differences == ()


def test_a_read_only_index_folder() -> None:
    """Said once, and made up for when it can be written again."""
    # Not tmp_path: its parents are closed to everybody but the user of the suite.
    with tempfile.TemporaryDirectory() as scratch:
        if os.geteuid() == 0:
            os.chown(scratch, NOBODY, NOBODY)
        in_child(watch_a_closed_folder, scratch)


@pytest.mark.parametrize("written", [True, False])
def test_the_index_goes_away_under_it(written: bool, store: Store, start: Start) -> None:
    """It is begun anew, with a lock that others can see."""
    paths = fill(store.root, files=3, lines=20)
    watcher = start(every=1).begun()
    watcher.settled()
    shutil.rmtree(store.folder)
    if written:
        append(paths[0], more())
    watcher.settled()
    until(watcher.holds, watcher.said)
    assert store.open().check().differences == ()


@pytest.mark.parametrize("how", ["truncated", "emptied", "gone"])
@pytest.mark.parametrize("name", [".term", ".store", "meta.json", "sessionindex.json"])
@pytest.mark.parametrize("written", [True, False])
def test_a_file_of_the_index_is_damaged_under_it(
    how: str, name: str, written: bool, store: Store, start: Start
) -> None:
    """Answers are right at once, and it mends itself, whether or not there is something to do."""
    paths = fill(store.root, files=3, lines=200)
    watcher = start(every=1).begun()
    watcher.settled()
    (damaged, *_) = [path for path in store.folder.rglob("*") if path.name.endswith(name)]
    if how == "gone":
        damaged.unlink()
    else:
        os.truncate(damaged, damaged.stat().st_size // 2 if how == "truncated" else 0)
    for path in paths[:2] if written else ():
        append(path, more())
    assert ask(store.open(), "needle more").total == (2 if written else 0)
    watcher.settled()
    assert watcher.ended() == 0
    assert store.open().check().differences == ()


# --- kills ---------------------------------------------------------------------------------------


class Writers:
    """Sessions that grow, tear, are rewritten, trimmed, go and come; `paused` between."""

    def __init__(self, store: Store, seed: int, rest: float) -> None:
        self._store = store
        self._draw = random.Random(seed)
        self._rest = rest
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._torn: dict[Path, bytes] = {}
        self._number = 0
        self.failed: list[BaseException] = []
        self.trims: Counter[str] = Counter()
        self._trimmer = store.open()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        assert not self.failed, self.failed

    @contextmanager
    def paused(self) -> Iterator[None]:
        with self._lock:
            yield

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._rest):
                with self._lock:
                    self._change()
        except BaseException as error:
            self.failed.append(error)
            raise

    def _change(self) -> None:
        draw = self._draw
        paths = sorted(self._store.root.rglob("*.jsonl"))
        what = draw.choices(
            ("append", "tear", "rewrite", "same", "delete", "new", "child", "moved", "trim"),
            (60, 10, 4, 4, 4, 6, 6, 2, 6),
        )[0]
        path = draw.choice(paths) if paths else None
        if path is None or (what == "new" and len(paths) < 60):
            self._number += 1
            project = f"--p{draw.randrange(4)}--"
            self._store.put(f"n{self._number}", self._story(), project)
        elif what == "append":
            append(str(path), self._torn.pop(path, b"") + more(sentence(draw)))
        elif what == "tear" and path not in self._torn:
            line = more(sentence(draw))
            append(str(path), line[:40])
            self._torn[path] = line[40:]
        elif what == "rewrite":
            self._torn.pop(path, None)
            path.write_bytes(self._story().bytes())
        elif what == "same":
            data = path.read_bytes()
            path.write_bytes(data.replace(b"needle 1", b"needle 2"))
        elif what == "delete":
            self._torn.pop(path, None)
            path.unlink()
        elif what == "child" and len(paths) < 60:
            self._number += 1
            folder = path.with_suffix("") / f"{self._number:08x}" / "run-0"
            folder.mkdir(parents=True)
            (folder / "session.jsonl").write_bytes(self._story().bytes())
        elif what == "trim":
            self._trim(path)
        elif what == "moved":
            self._number += 1
            beside = path.with_name(f"m{self._number}.new")
            beside.write_bytes(self._story().bytes())
            beside.replace(path)
            self._torn.pop(path, None)

    def _trim(self, path: Path) -> None:
        if self._draw.random() < 0.5:  # else whatever has become of it
            self._torn.pop(path, None)
            path.write_bytes(self._compacted().bytes())
        self.trims[self._trimmer.trim(str(path), force=True).outcome] += 1

    def _story(self) -> Builder:
        story = session(f"x{self._draw.randrange(10**9)}")
        for _ in range(self._draw.randrange(1, 6)):
            story.user(sentence(self._draw))
        return story

    def _compacted(self) -> Builder:
        story = self._story().user(sentence(self._draw))
        kept = json.loads(story.tail(len(story) - 1))["id"]
        return story.compaction("needle of a summary", keep=kept).user(sentence(self._draw))


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=SLOW)])
def test_kills_at_random_moments(kills: int, store: Store, start: Start) -> None:
    """After each, answers are right at once, and the index after the next refresh."""
    fill(store.root, files=10, lines=20)
    draw = random.Random(kills)
    with Writers(store, kills, rest=0.005) as writers:
        for number in range(kills):
            watcher = start(every=1)
            if number % 2:
                until(lambda one=watcher: "watching" in one.said)  # type: ignore[misc]
            time.sleep(draw.random() * 0.6)
            watcher.process.kill()
            watcher.process.wait()
            with writers.paused():
                same(store, draw)
                index = store.open()
                index.refresh()
                assert index.check(sample=100).differences == ()
                ask(index, "needle 7")
                index.close()
                store.opened.remove(index)


def same(store: Store, draw: random.Random) -> None:
    """Every kind of answer is that of the files, at this moment."""
    index = store.index
    for literal in ("needle", f"needle {draw.randrange(100)}", draw.choice(LITERALS)):
        ask(index, literal)
    assert index.list_sessions() == index.list_sessions(brute=True)
    for path in draw.sample(sorted(store.root.rglob("*.jsonl")), 2):
        with suppress(SessionFileError):
            entries(index, str(path))


# --- everything at once --------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [30, pytest.param(600, marks=SLOW)])
def test_everything_at_once(seconds: int, store: Store, start: Start) -> None:
    """Writers, a watcher and readers; every answer is that of the files at its moment."""
    fill(store.root, files=10, lines=20)
    watcher = start(every=2).begun()
    draw = random.Random(seconds)
    stop = threading.Event()
    failed: list[BaseException] = []

    def read() -> None:
        index = store.open()
        while not stop.wait(0.05):
            try:
                index.search("needle")
                index.list_sessions()
            except SessionIndexError as error:
                failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    end = time.monotonic() + seconds
    try:
        with Writers(store, seconds, rest=0.01) as writers:
            for reader in readers:
                reader.start()
            while time.monotonic() < end:
                time.sleep(0.5)
                assert watcher.process.poll() is None, watcher.said
                with writers.paused():
                    same(store, draw)
    finally:
        stop.set()
        for reader in readers:
            reader.join(PATIENCE)
    assert not failed
    assert writers.trims["trimmed"], writers.trims
    watcher.settled()
    assert not errors(watcher)
    assert watcher.ended() == 0
    index = store.open()
    assert index.check(sample=200).differences == ()


# --- the cases, with a watcher -------------------------------------------------------------------


class Beside(SessionIndex):
    """An index that somebody else refreshes."""

    def refresh(self, *_: Any, **__: Any) -> Any:
        until(lambda: settled(self))


class Watched(Case):
    """A case whose watcher is one."""

    def __init__(self, number: str, scratch: Path) -> None:
        super().__init__(number, scratch)
        given = {"settings": {}, "current_session": "", "index_dir": self.store.index_dir}
        self.store.plain = Beside(self.store.root, **given)
        self.store.opened.append(self.store.plain)


@pytest.mark.parametrize("number", ["01", "02", "03", "12", "14"])
def test_case(number: str, tmp_path: Path) -> None:
    """Every step of it is seen by a watcher to which only events can have told it."""
    case = Watched(number, tmp_path)
    with starting(case.store, tmp_path) as start:
        watcher = start().begun()
        case.run()
        assert watcher.ended() == 0


def test_case_23(tmp_path: Path) -> None:
    """Two watchers and eight searches at once; the one that works is killed, another goes on."""
    store = Store(tmp_path / "sessions", tmp_path / "index")
    with starting(store, tmp_path) as start:
        twice(store, tmp_path, start)


def twice(store: Store, tmp_path: Path, start: Start) -> None:
    steps = json.loads((CASES / "23" / "case.json").read_bytes())["steps"]
    wanted = next(step for step in steps if step["do"] == "expect_search_count")
    two_hundred(store.root)
    search = [*COMMAND, "search", "-c", wanted["query"], *at(store)]
    both = [start(), start()]
    with together([search] * 8, environment(tmp_path)) as children:
        for child in children:
            out, err = child.communicate(timeout=60)
            assert child.returncode == 0, err
            assert sum(counted(out)) == wanted["count"]
    until(lambda: any(one.process.poll() == 0 for one in both))
    (holder,) = [one for one in both if one.process.poll() is None]
    holder.settled()
    assert ask(store.index, wanted["query"], limit=1).total == wanted["count"]
    assert holder.ended(signal.SIGKILL) == -signal.SIGKILL
    assert store.index.status().writer is None
    again = start().begun()
    again.settled()
    found = ask(store.index, wanted["query"], limit=1)
    assert (found.total, found.coverage.fresh) == (wanted["count"], 200)
    assert again.ended() == 0
    assert store.open().check(sample=100).differences == ()
