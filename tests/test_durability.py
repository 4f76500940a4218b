"""Bad days: kills, full disks, closed folders, torn files, many processes. Nothing lost or doubled.

After each of them, at once: answers equal those of the files alone. After the next refresh: the
whole is covered and `check` finds no difference.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from build import PROJECT, append, put, session
from scratch import Store, ask
from terminal import environment
from test_cases import CASES, NOBODY, in_child

from sessionindex import files
from sessionindex.errors import IndexFolderError, IndexUnusable
from sessionindex.index import segments

COMMAND = [sys.executable, "-m", "sessionindex"]
SLOW = [
    pytest.mark.slow,
    pytest.mark.skipif("SESSIONINDEX_SLOW" not in os.environ, reason="SESSIONINDEX_SLOW"),
]


def proven(store: Store) -> None:
    """Right at once; after a refresh everything is covered, once, and checked."""
    for literal in ("needle 7", "needle"):
        ask(store.open(), literal)
    with suppress(IndexUnusable):  # there is none yet, or it is damaged: both are known
        assert store.open().check(sample=100).differences == ()
    index = store.open()
    index.refresh()
    found = ask(index, "needle")
    assert found.coverage.fresh == found.coverage.files
    assert index.check(sample=200).differences == ()


def sentence(draw: random.Random) -> str:
    return f"needle {draw.randrange(100)} " + draw.randbytes(60).hex()


LINES = 40


def fill(root: Path, files: int, lines: int, seed: int = 1) -> list[str]:
    """Sessions of some 300 bytes a line."""
    draw = random.Random(seed)
    paths = []
    for number in range(files):
        story = session(f"s{number}")
        for _ in range(lines):
            story.user(sentence(draw))
        paths.append(put(root, PROJECT, f"s{number}", story))
    return paths


# --- kills ---------------------------------------------------------------------------------------

INDEXING = """
import sys
from sessionindex import SessionIndex, files
from sessionindex.index import writer
root, folder, rebuild = sys.argv[1:]
writer.BATCH, files.BLOCK = 12_000, 4_000
def told(done, total):
    print(done, flush=True)
with SessionIndex(root, index_dir=folder, settings={}, current_session="") as index:
    print("ready", flush=True)
    index.refresh(progress=told, rebuild=rebuild == "rebuild")
print("done", flush=True)
"""
STEPS = 60
"""Lines that the process above prints when it reads all of the store below, about."""


def killed(store: Store, after: int, *, rebuild: bool) -> bool:
    """Refresh in a process that is killed when it has told so much; whether it was at work."""
    what = "rebuild" if rebuild else "refresh"
    child = subprocess.Popen(
        [sys.executable, "-c", INDEXING, str(store.root), str(store.index_dir), what],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    with child.stdout as told:
        for _ in range(after):
            if told.readline() in (b"done\n", b""):
                break
        child.kill()
    return child.wait(60) == -signal.SIGKILL


def change(store: Store, draw: random.Random) -> None:
    """Much of the store grows, some of it is rewritten, goes or comes."""
    paths = sorted((store.root / PROJECT).glob("*.jsonl"))
    for path in paths:
        what = draw.choice(("grow", "grow", "rewrite", "nothing"))
        lines = session("x")
        for _ in range(draw.randrange(1, 12)):
            lines.user(sentence(draw))
        if what == "grow":
            append(str(path), lines.tail(1))
        elif what == "rewrite":
            path.write_bytes(lines.bytes())
    draw.choice(paths).unlink()
    story = session("new").user(sentence(draw))
    put(store.root, PROJECT, f"new{draw.randrange(10**9)}", story)


MERGING = """
import os, sys
from sessionindex import SessionIndex
from sessionindex.index.writer import Writer
root, folder = sys.argv[1:]
Writer._settle = lambda *_: os._exit(9)  # the commit is made, and its merges have begun
SessionIndex(root, index_dir=folder, settings={}, current_session="").refresh()
"""


@pytest.mark.parametrize("time", range(4))  # which segment comes first there is left to chance
def test_a_rewrite_after_a_kill_while_segments_were_merged(time: int, store: Store) -> None:
    """The next writer merges them while it deletes: no line of the old file is left."""
    grows = store.put("grows", session("grows").user("needle 0"))
    for number in range(7):  # one segment each; eight are merged
        append(grows, session("x").user(f"needle {number}").tail(1))
        other = store.put(f"other{number}", session(f"other{number}").user("needle"))
        store.index.refresh()
    append(other, session("x").user("needle again").tail(1))  # deletes in the segment before
    kept = shutil.copytree(store.index_dir, store.index_dir.with_name("kept"))
    arguments = [sys.executable, "-c", MERGING, str(store.root), str(store.index_dir)]
    while len(segments.committed(str(store.folder / "g1"))) != 8:  # a merge may have been done
        shutil.rmtree(store.index_dir)
        shutil.copytree(kept, store.index_dir)
        assert subprocess.run(arguments, check=False).returncode == 9
    Path(grows).write_bytes(session("grows").user("needle of another").bytes())
    proven(store)


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=SLOW)])
def test_kills_at_many_moments(kills: int, store: Store) -> None:
    """From the first step to the last: a new index, an update, a rebuild beside the old one."""
    draw = random.Random(kills)
    fill(store.root, files=20, lines=LINES)
    at_work = 0
    for number in range(kills):
        kind = ("new", "update", "rebuild")[number % 3]
        if kind == "new" and store.index_dir.exists():
            shutil.rmtree(store.index_dir)
        elif kind == "update":
            change(store, draw)
        after = 1 + STEPS * number // kills if kind != "update" else 1 + draw.randrange(25)
        at_work += killed(store, after, rebuild=kind == "rebuild")
        proven(store)
    assert at_work >= kills // 2


# --- disks ---------------------------------------------------------------------------------------

MOUNTED = 'mount -t tmpfs -o size=$1 none "$2" && shift 2 && exec "$@"'


def on_a_disk_of_its_own(folder: Path, size: str, work: str, *arguments: str) -> None:
    """Run this with a small file system at a folder, which no other process sees."""
    private = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    mounted = [*private, "sh", "-c", MOUNTED, "sh", size, str(folder)]
    try:
        if subprocess.run([*mounted, "true"], capture_output=True).returncode:
            pytest.skip("no file systems can be mounted here")
    except FileNotFoundError:
        pytest.skip("no file systems can be mounted here")
    code = f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]\n"
    code += f"import test_durability; test_durability.{work}(*sys.argv[1:])"
    done = subprocess.run(
        [*mounted, sys.executable, "-c", code, *arguments], capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()


def fill_the_disk(root: str, folder: str) -> None:
    """Refresh on a disk that is too small for it, again and again; then on one that is not."""
    store = Store(Path(root), Path(folder, "index"))
    failed = 0
    for size in (40, 100, 200, 300, 400):
        subprocess.run(["mount", "-o", f"remount,size={size}k", folder], check=True)
        for rebuild in (False, True):
            try:
                store.open().refresh(rebuild=rebuild)
            except IndexFolderError:
                failed += 1
            ask(store.open(), "needle")
    assert failed > 2
    subprocess.run(["mount", "-o", "remount,size=60m", folder], check=True)
    proven(store)


def test_a_full_disk(tmp_path: Path) -> None:
    """Said as what it is, wherever it strikes; the files answer; with room again all is well."""
    fill(tmp_path / "sessions", files=8, lines=200)
    (tmp_path / "disk").mkdir()
    on_a_disk_of_its_own(
        tmp_path / "disk",
        "40k",
        "fill_the_disk",
        str(tmp_path / "sessions"),
        str(tmp_path / "disk"),
    )


def write_on_a_read_only_disk(root: str, folder: str) -> None:
    """Ask and refresh beside an index that cannot be changed any more."""
    store = Store(Path(root), Path(folder, "index"))
    store.open().refresh()
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    path = put(store.root, PROJECT, "more", session("more").user("needle more"))
    assert ask(store.open(), "needle more").total == 1
    for rebuild in (False, True):
        with pytest.raises(IndexFolderError, match=r"EROFS: Read-only file system"):
            store.open().refresh(rebuild=rebuild)
    append(path, session("x").user("needle again").tail(1))
    assert ask(store.open(), "needle").total == 32
    subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
    proven(store)


def test_a_read_only_disk(tmp_path: Path) -> None:
    """tantivy cannot even lock it for reading: the files answer, and writing says why not."""
    fill(tmp_path / "sessions", files=3, lines=10)
    (tmp_path / "disk").mkdir()
    on_a_disk_of_its_own(
        tmp_path / "disk",
        "10m",
        "write_on_a_read_only_disk",
        str(tmp_path / "sessions"),
        str(tmp_path / "disk"),
    )


def read_a_closed_folder(folder: str) -> None:
    """As a user whom permissions bind; runs in a child process."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    store = Store(Path(folder, "sessions"), Path(folder, "index"))
    fill(store.root, files=3, lines=10)
    store.open().refresh()
    closed = [store.index_dir, *(path for path in store.index_dir.rglob("*") if path.is_dir())]
    for path in closed:
        path.chmod(0o500)
    assert ask(store.open(), "needle").coverage.fresh == 3
    assert store.open().check().differences == ()
    store.index_dir.chmod(0o000)
    assert ask(store.open(), "needle").coverage.fresh == 0
    with pytest.raises(IndexFolderError, match="EACCES"):
        store.open().refresh()
    for path in closed:
        path.chmod(0o700)
    proven(store)


def test_a_closed_index_folder() -> None:
    """Answers come from the files; nothing is an error but writing."""
    # Not tmp_path: its parents are closed to everybody but the user of the suite.
    with tempfile.TemporaryDirectory() as scratch:
        if os.geteuid() == 0:
            os.chown(scratch, NOBODY, NOBODY)
        in_child(read_a_closed_folder, scratch)


def write_small_files_only(folder: str) -> None:
    """Refresh where no file may be larger than so much; runs in a child process."""
    store = Store(Path(folder, "sessions"), Path(folder, "index"))
    for size in (0, 100, 5_000, 50_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        with pytest.raises(IndexFolderError):
            store.open().refresh()
        ask(store.open(), "needle")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    proven(store)


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """A limit strikes as a full disk does."""
    fill(tmp_path / "sessions", files=4, lines=300)
    in_child(write_small_files_only, str(tmp_path))


# --- torn files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["truncated", "zeroed", "emptied", "garbage"])
def test_every_file_of_the_index(how: str, store: Store) -> None:
    """One by one, marker and locks included: noticed or harmless, and mended."""
    paths = fill(store.root, files=3, lines=20)
    store.index.refresh()
    append(paths[0], session("x").user("needle more").tail(1))
    store.index.refresh()
    pristine = store.folder.with_name("pristine")
    shutil.copytree(store.folder, pristine)
    names = sorted(path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file())
    assert len(names) >= 8
    for name in names:
        shutil.rmtree(store.folder)
        shutil.copytree(pristine, store.folder)
        path = store.folder / name
        before, data = path.stat(), path.read_bytes()
        path.write_bytes(
            {
                "truncated": data[: len(data) // 2],
                "zeroed": bytes(len(data)),
                "emptied": b"",
                "garbage": random.Random(1).randbytes(len(data)),
            }[how]
        )
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        proven(store)


# --- many processes ------------------------------------------------------------------------------


@contextmanager
def together(commands: list[list[str]], env: dict[str, str]) -> Iterator[list[Any]]:
    """These commands, started at once; killed if they do not end."""
    children = [
        subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    try:
        yield children
    finally:
        for child in children:
            child.kill()
            child.communicate()


def counted(out: str) -> list[int]:
    """The numbers that `search -c` printed."""
    return [int(line.rsplit(":", 1)[1]) for line in out.splitlines()]


def at(store: Store) -> list[str]:
    return ["--root", str(store.root), "--index-dir", str(store.index_dir)]


@pytest.mark.parametrize("arguments", [[], ["--rebuild"]])
def test_two_indexers_at_once(arguments: list[str], store: Store, tmp_path: Path) -> None:
    """One works; the other says so, or finds nothing left to do; no entry is there twice."""
    fill(store.root, files=20, lines=LINES)
    if arguments:
        store.index.refresh()
    index = [*COMMAND, "index", *arguments, *at(store)]
    with together([index] * 3, environment(tmp_path)) as children:
        for child in children:
            out, err = child.communicate(timeout=60)
            busy = err.startswith("sessionindex: the index is being written by process ")
            assert (child.returncode, bool(out)) in ((0, True), (2 if arguments else 0, False))
            assert busy is not bool(out)
    assert store.index.status().entries == 20 * LINES
    assert store.index.check().differences == ()


def test_searches_beside_an_indexer(store: Store, tmp_path: Path) -> None:
    """Readers never wait and never fail, whatever there is of the index."""
    paths = fill(store.root, files=20, lines=LINES)
    search = [*COMMAND, "search", "-c", "needle", *at(store)]
    index = [*COMMAND, "index", *at(store)]
    rebuild = [*COMMAND, "index", "--rebuild", *at(store)]
    for indexing in (index, rebuild):
        with together([indexing, *[search] * 8], environment(tmp_path)) as children:
            for child in children:
                out, err = child.communicate(timeout=60)
                assert child.returncode == 0 or child.args == rebuild, err
                if child.args == search:
                    assert counted(out) == [LINES] * 20
        append(paths[0], session("x").user("no").tail(1))
    proven(store)


def two_hundred(root: Path) -> None:
    """What the case's gen.py writes: 200 sessions of 150 rows."""
    for number in range(200):
        story = session(f"b23n{number}")
        for row in range(150):
            story.user(f"row {number} {row} TWO23")
        put(root, PROJECT, f"b23n{number}", story)


def test_case_23(tmp_path: Path) -> None:
    """Two indexers and eight searches at once; then the holder of the lock is killed."""
    steps = json.loads((CASES / "23" / "case.json").read_bytes())["steps"]
    (made, started, _, _, wanted, _, _, _, again) = steps
    assert [step["do"] for step in steps] == [
        "run",
        "start_daemon",
        "expect_no_error",
        "wait",
        "expect_search_count",
        "kill_holder",
        "start_daemon",
        "wait",
        "expect_search_count",
    ]
    assert made["cmd"] == "python3 gen.py {root}"
    two_hundred(tmp_path / "sessions")
    store = Store(tmp_path / "sessions", tmp_path / "index")
    env = environment(tmp_path)
    search = [*COMMAND, "search", "-c", wanted["query"], *at(store)]
    index = [*COMMAND, "index", *at(store)]
    everything = [index] * started["times"] + [search] * started["together_with_searches"]
    with together(everything, env) as children:
        for child in children:
            out, err = child.communicate(timeout=60)
            assert child.returncode == 0, err
            if child.args == search:
                assert sum(counted(out)) == wanted["count"]
    assert ask(store.index, wanted["query"], limit=1).total == wanted["count"]
    assert store.index.check(sample=100).differences == ()
    with together([[*index, "--rebuild"]], env) as (child,):
        deadline = time.monotonic() + 60
        while not ((holder := store.index.status().writer) and holder.pid == child.pid):
            assert child.poll() is None
            assert time.monotonic() < deadline
        os.kill(holder.pid, signal.SIGKILL)
        child.wait(60)
    assert store.index.status().writer is None
    assert store.index.search(again["query"], limit=1).total == again["count"]
    with together([index], env) as (child,):
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (0, "")
    found = ask(store.index, again["query"], limit=1)
    assert (found.total, found.coverage.fresh) == (again["count"], 200)
    assert store.index.check(sample=100).differences == ()
    store.index.close()


def test_the_marker_is_moved_under_the_lock_only(store: Store) -> None:
    """Whoever comes second to a new folder must not point it back to nothing."""
    store.put("a", session("a").user("needle"))
    late, first = store.open(), store.open()
    inner = files.make_private_folder

    def overtaken(path: str) -> None:
        inner(path)
        with pytest.MonkeyPatch.context() as again:
            again.setattr(files, "make_private_folder", inner)
            first.refresh()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "make_private_folder", overtaken)
        late.refresh()
    assert ask(store.open(), "needle").coverage.fresh == 1
