"""Every bad input and its right answer, the same with the index, without it, and as expected.

Unreadable files and folders, FIFOs and folders with a session's name are case 15 (`test_cases`)
and `test_layout`; here is what is in files, and what happens to them.
"""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from build import CWD, PROJECT, Builder, append, encoded, put, session, stamp
from scratch import Store, ask, places
from terminal import environment, pipe
from test_cases import in_child, peak_mb

from sessionindex import SessionIndex, execution, intake
from sessionindex.contracts import searching
from sessionindex.files import open_listed, whole_lines

NEEDLE = session("n").user("needle").tail(1).rstrip(b"\n")


def answers(store: Store, wanted: list[tuple[str, int]], **filters: Any) -> None:
    """The needle is there and nowhere else, before and after a refresh, and that is the proof."""
    for _ in range(2):
        assert sorted(places(ask(store.index, "needle", **filters))) == sorted(wanted)
        store.index.refresh()
    assert store.index.check().differences == ()


# --- roots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["", PROJECT, "not-a-project"])
def test_an_empty_root(folder: str, store: Store, tmp_path: Path) -> None:
    """Nothing is found, and nothing is wrong."""
    (store.root / folder).mkdir(exist_ok=True)
    answers(store, [])
    assert ask(store.index, "needle").warnings == ()
    report = store.index.refresh()
    assert (report.files, report.warnings) == (0, ())
    where = ["--root", str(store.root), "--index-dir", str(tmp_path / "other")]
    for command, status in (("search needle", 1), ("index", 0), ("check", 0), ("status", 0)):
        ran = pipe([*command.split(), *where], environment(tmp_path))
        assert (ran.status, ran.err) == (status, ""), command


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    """Named, with where it came from; no index is made."""
    where = ["--root", str(tmp_path / "no"), "--index-dir", str(tmp_path / "index")]
    for command in ("search needle", "index", "check", "status"):
        ran = pipe([*command.split(), *where], environment(tmp_path))
        assert (ran.status, ran.out) == (2, "")
        missing = f"the sessions root does not exist: {tmp_path / 'no'}"
        assert ran.err == f"sessionindex: {missing} (from --root / sessions_root)\n"
    assert not (tmp_path / "index").exists()


# --- headers -------------------------------------------------------------------------------------

HEADERS = (
    ("300 KiB", session("bad", more="x" * (300 << 10)).bytes(), None),
    ("2 MiB", session("bad", more="x" * (2 << 20)).bytes(), "is longer than 1048576 bytes"),
    ("none", b"", "is not a session header (type: message)"),
    ("invalid", b"{\n", "is not valid JSON: it cannot be parsed"),
    ("blank", b"\n", "is empty"),
    (
        "20,000 brackets",
        b"[" * 20_000 + b"\n",
        "is not valid JSON: nested deeper than 1024 levels",
    ),
)


@pytest.mark.parametrize(("rule", "head", "reason"), HEADERS, ids=[one[0] for one in HEADERS])
def test_headers(rule: str, head: bytes, reason: str | None, store: Store) -> None:
    """A file without a header is named in the warnings with the reason; the rest is answered."""
    path = store.put("bad", head + NEEDLE + b"\n" + NEEDLE + b"\n")
    store.put("good", session("good").user("needle"))
    wanted = [("good", 2)] + ([] if reason else [("bad", 2), ("bad", 3)])
    answers(store, wanted)
    said = [(one.path, one.reason) for one in ask(store.index, "needle").warnings]
    assert said == ([(path, f"first line {reason}")] if reason else [])


def test_an_event_stream_that_begins_with_a_header(store: Store) -> None:
    """Its lines are judged one by one: those of an entry's shape count, the others are problems."""
    events = [
        {"type": "agent_start"},
        {"type": "message_update", "message": {"role": "assistant", "content": "needle"}},
        {"type": "session", "version": 3, "id": "again", "timestamp": stamp(0), "cwd": CWD},
        {"type": "turn_end", "timestamp": 5, "message": {"role": "user", "content": "needle"}},
        {
            "type": "message",
            "timestamp": stamp(3),
            "message": {"role": "user", "content": "needle"},
        },
    ]
    story = session("events")
    for event in events:
        story.line(encoded(event))
    store.put("events", story)
    answers(store, [("events", 6)])
    assert store.index.status().problems == {"invalid_entry": 4}


# --- lines ---------------------------------------------------------------------------------------


def text(spelled: bytes) -> bytes:
    """An entry whose text stands in the file as these bytes."""
    return NEEDLE.replace(b"needle", spelled)


LINES: tuple[tuple[str, bytes, bool], ...] = (
    ("cut off", NEEDLE[:-1], False),
    ("something after it", NEEDLE + b"}", False),
    ("two in one", NEEDLE + NEEDLE, False),
    ("no JSON", b"needle", False),
    ("NaN", text(b"needle").replace(b'"user"', b"NaN"), False),
    ("blank", b"", False),
    ("white space", b" \t ", False),
    ("an array", b"[" + NEEDLE + b"]", False),
    ("a string", b'"needle"', False),
    ("another header", session("needle").bytes().rstrip(b"\n"), False),
    ("a timestamp that is none", NEEDLE.replace(b"2026-09-10T", b"yesterday "), False),
    ("a carriage return", NEEDLE + b"\r", True),
    ("white space around it", b" \t" + NEEDLE + b"  ", True),
    ("a byte order mark", b"\xef\xbb\xbf" + NEEDLE, False),
    ("a NUL byte", NEEDLE.replace(b"needle", b"needle\0"), False),
    ("NUL bytes before it", b"\0\0\0\0" + NEEDLE, False),
    ("an escaped NUL", text(rb"a\u0000needle\u0000b"), True),
    ("invalid UTF-8", text(b"needle \xff\xfe"), True),
    ("invalid UTF-8 before it", text(b"\x80\xc0needle"), True),
    ("a cut character", text(b"needle \xe4\xbc"), True),
    ("a surrogate as bytes", text(b"\xed\xa0\xbdneedle"), True),
    ("a lone high surrogate", text(rb"\ud83dneedle"), True),
    ("a lone low surrogate", text(rb"needle\udc00"), True),
    ("surrogates the wrong way round", text(rb"\udc00\ud83d needle"), True),
    ("escapes", text(rb"n\u0065\u0065dle"), True),
    ("line separators", text("needle\u2028\u2029\u0085".encode()), True),
    ("200,000 brackets", b"[" * 200_000 + b"]" * 200_000, False),
    ("200,000 open brackets", b"[" * 200_000, False),
    ("200,000 in a string", text(b"needle" + b"[" * 200_000), True),
    ("an entry 200,000 deep", b'{"a":' * 200_000 + NEEDLE + b"}" * 200_000, False),
    ("deep beside a text", NEEDLE[:-1] + b',"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", False),
    ("a number without end", NEEDLE[:-1] + b',"x":' + b"9" * 100_000 + b"}", True),
    ("a key twice", NEEDLE[:-1] + b',"type":"message"}', True),
)


SHORT = tuple(one for one in LINES if len(one[1]) < 200_000)


@pytest.mark.parametrize(("end", "lines"), [(b"\n", LINES), (b"\r\n", SHORT)])
def test_lines(end: bytes, lines: tuple[tuple[str, bytes, bool], ...], store: Store) -> None:
    """A bad line is a problem of its own: those before and after keep their numbers."""
    head = session("a").bytes().rstrip(b"\n")
    between = [part for _, line, _ in lines for part in (line, NEEDLE)]
    store.put("a", end.join([head, NEEDLE, *between, b""]))
    wanted = {"a needle before": 2}
    for number, (rule, _, is_entry) in enumerate(lines):
        wanted |= {rule: 3 + 2 * number} if is_entry else {}
        wanted[f"the needle after {rule}"] = 4 + 2 * number
    answers(store, [("a", line_no) for line_no in wanted.values()])
    bad = sum(not is_entry for _, _, is_entry in lines)
    assert sum(store.index.status().problems.values()) == bad


@pytest.mark.parametrize(("rule", "line", "is_entry"), SHORT, ids=[one[0] for one in SHORT])
def test_last_lines(rule: str, line: bytes, is_entry: bool, store: Store) -> None:
    """Without a line end yet: an entry where it is whole already, and never a problem."""
    path = store.put("a", session("a").line(NEEDLE).raw(line))
    answers(store, [("a", 2)] + [("a", 3)] * is_entry)
    assert store.index.status().problems == {}
    append(path, b"\n" + NEEDLE)
    answers(store, [("a", 2), ("a", 4)] + [("a", 3)] * is_entry)


def test_a_byte_order_mark_before_the_header(store: Store) -> None:
    """It counts as nothing there, as Pi reads it."""
    store.put("a", b"\xef\xbb\xbf" + session("a").user("needle").bytes())
    answers(store, [("a", 2)])


def test_cycles_and_repeated_ids(store: Store) -> None:
    """Search asks no parent: each line counts once, also in circles and under one id."""
    story = session("a")
    story.entry("custom_message", id="one", parentId="two", content="needle 1")
    story.entry("custom_message", id="two", parentId="one", content="needle 2")
    story.entry("custom_message", id="self", parentId="self", content="needle 3")
    story.entry("custom_message", id="self", parentId="nobody", content="needle 4")
    story.entry("custom_message", id="self", parentId="self", content="needle 4")
    story.entry("custom_message", id=5, parentId=[], content="needle 5")
    store.put("a", story)
    answers(store, [("a", number) for number in range(2, 8)])
    assert len(places(ask(store.index, "needle", unique=True))) == 5
    assert len(store.index.around("a", 4, 9)[1]) == 6


# --- long lines ----------------------------------------------------------------------------------


def index_a_long_line(folder: str, allowed_mb: int) -> None:
    """Refresh and search in a process of its own, whose peak memory is then known."""
    with SessionIndex(
        Path(folder, "sessions"), index_dir=Path(folder, "index"), settings={}, current_session=""
    ) as index:
        index.refresh()
        for literal, hits in (("needle in the hay", 1), ("abs", 0), ("hay", 2), ("needle x", 1)):
            found = index.search(literal)
            assert found.total == hits, literal
            assert found.coverage.fresh == 1
            assert found.hits == index.search(literal, brute=True).hits
        status = index.status()
        assert status.index_bytes < 1 << 20
        assert index.check().differences == ()
    assert peak_mb() < allowed_mb, f"{peak_mb()} MB"


@pytest.mark.parametrize(
    "megabytes",
    [
        12,
        pytest.param(
            100,
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(
                    "SESSIONINDEX_SLOW" not in os.environ, reason="a line of 100 MB"
                ),
            ],
        ),
    ],
)
def test_a_long_line(megabytes: int, tmp_path: Path) -> None:
    """Too long for grams: always a candidate, found in its middle; memory is a few such lines."""
    half = "x" * (megabytes * 500_000)
    story = session("a").user("hay").user(f"{half} needle in the hay {half}").user("needle x")
    put(tmp_path / "sessions", PROJECT, "a", story)
    in_child(index_a_long_line, str(tmp_path), 100 + 7 * megabytes)


# --- files that change while they are read -------------------------------------------------------


def vanish(path: str) -> None:
    os.unlink(path)


def shrink(path: str) -> None:
    os.truncate(path, os.path.getsize(path) // 2)


def empty(path: str) -> None:
    os.truncate(path, 0)


def grow(path: str) -> None:
    append(path, NEEDLE + b"\n")


def long_story() -> Builder:
    story = session("a")
    for number in range(40):
        story.user(f"needle {number} " + "x" * 100)
    return story


@pytest.mark.parametrize("change", [vanish, shrink, empty, grow])
@pytest.mark.parametrize("moment", ["opening", "reading"])
def test_a_file_that_changes_under_a_refresh(
    moment: str,
    change: Callable[[str], None],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever was read of it: answers are right at once, and the next refresh is."""
    monkeypatch.setattr("sessionindex.files.BLOCK", 1024)
    path = store.put("a", long_story())
    store.put("b", session("b").user("needle"))

    def opening(asked: str, listed: Any) -> Any:
        if asked == path and not done:
            done.append(change(path))
        return open_listed(asked, listed)

    def reading(*arguments: Any, **how: Any) -> Iterator[Any]:
        for number, block in enumerate(whole_lines(*arguments, **how)):
            if number == 2 and not done:
                done.append(change(path))
            yield block

    for round_ in range(2):
        done: list[None] = []
        with monkeypatch.context() as patch:
            if moment == "opening":
                patch.setattr(execution, "open_listed", opening)
            else:
                patch.setattr(intake, "whole_lines", reading)
            store.index.refresh(rebuild=round_ == 1)
        assert done
        ask(store.index, "needle")
        assert store.index.check().differences == ()
        store.index.refresh()
        assert ask(store.index, "needle").coverage.stale == 0
        store.put("a", long_story())


@pytest.mark.parametrize("change", [vanish, shrink, empty, grow])
@pytest.mark.parametrize("brute", [False, True])
def test_a_file_that_changes_under_a_question(
    brute: bool, change: Callable[[str], None], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of being read: the answer is that of a moment, and no error."""
    monkeypatch.setattr("sessionindex.files.BLOCK", 1024)
    path = store.put("a", long_story())
    store.put("b", session("b").user("needle"))
    if not brute:
        store.index.refresh()
    old = ask(store.index, "needle").hits
    take = searching._Run._take
    taken: list[int] = []

    def changing(run: Any, file: Any, entry: Any) -> None:
        taken.append(1)
        if len(taken) == 20:
            change(path)
        take(run, file, entry)

    with monkeypatch.context() as patch:
        patch.setattr(searching._Run, "_take", changing)
        answered = store.index.search("needle", brute=brute).hits
    assert len(taken) >= 20
    assert answered in (old, ask(store.index, "needle").hits)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a\nb", "a\tb", "\x1b[31mred\x1b[0m", "a\x7fb", "a\x9bb", " ", "-"]
)
def test_names_with_control_characters(name: str, store: Store, tmp_path: Path) -> None:
    """Sessions like any other; on a terminal no control character of theirs arrives."""
    store.put(name, session("odd").user("needle"))
    store.put("x" + name, b"nonsense\n")
    answers(store, [(name, 2)])
    assert len(ask(store.index, "needle").warnings) == 1
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    for command in ("search needle", "search -l needle", "search -c needle", "check", "index"):
        ran = pipe([*command.split(), *where], environment(tmp_path))
        assert ran.status == 0, command
        printed = (ran.out + ran.err).replace("\n", "").replace("\t", "")
        assert printed.isprintable(), command


def test_names_that_are_not_utf8(store: Store) -> None:
    """Named in the warnings, not opened; what is beside and below them is answered."""
    store.put("top", session("top").user("needle"))
    home = os.fsencode(store.root / PROJECT)
    try:
        with open(home + b"/odd\xff.jsonl", "wb") as file:
            file.write(session("odd").user("needle").bytes())
    except OSError:
        pytest.skip("this file system refuses such names")
    for folder in (os.fsencode(store.root) + b"/--\xff--", home + b"/top/run\xfe"):
        os.makedirs(folder)
        with open(folder + b"/session.jsonl", "wb") as file:
            file.write(session("odd").user("needle").bytes())
    answers(store, [("top", 2)])
    said = [one.path.removeprefix(str(store.root)) for one in ask(store.index, "needle").warnings]
    assert said == [
        f"/{PROJECT}/odd\ufffd.jsonl",
        f"/{PROJECT}/top/run\ufffd/session.jsonl",
        "/--\ufffd--",
    ]


def test_ten_thousand_files_in_one_folder(tmp_path: Path) -> None:
    """All of them are there, and one that comes is one file's work."""
    store = Store(tmp_path / "sessions", tmp_path / "index")
    story = session("a").user("needle one").bytes()
    folder = store.root / PROJECT
    folder.mkdir(parents=True)
    for number in range(10_000):
        with open(folder / f"{number}.jsonl", "wb") as file:
            file.write(story if number % 1000 else story.replace(b"one", b"two"))
    assert store.index.refresh().added == 10_000
    found = ask(store.index, "needle two")
    assert (found.total, found.coverage.fresh) == (10, 10_000)
    append(store.put("one", story), NEEDLE + b"\n")
    report = store.index.refresh([str(folder / "one.jsonl")])
    assert (report.added, report.entries) == (1, 2)
    assert store.index.search("needle").total == 10_002
    assert store.index.check(sample=100).differences == ()
    store.index.close()


def test_a_line_that_never_ends_is_not_kept(store: Store) -> None:
    """A torn line of any length costs a refresh reading, not memory, and nothing is lost by it."""
    path = store.put("a", session("a").user("needle"))
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b'{"type":"message","text":"')
        file.truncate(256 << 20)
    tracemalloc.start()
    report = store.index.refresh()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.entries == 1 and peak < 40 << 20
    os.truncate(path, len(session("a").user("needle").bytes()))
    answers(store, [("a", 2)])
