"""One session now: its outline, and lines that are read because they still are what it says."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from build import Builder, append, encoded, put, session, stamp
from hypothesis import given
from hypothesis import strategies as st
from scratch import Store

from sessionindex import files, jsonline
from sessionindex import session as sessions
from sessionindex.files import Changed
from sessionindex.fold import token, told
from sessionindex.model import Line
from sessionindex.session import Gathering, NoSession, OpenSession, Outline, headed, opened


def outlined(path: str) -> Outline:
    with opened(path) as view:
        return view.outline


def names(outline: Outline) -> list[str | None]:
    return [told(number) for number in outline.ids]


def line(**fields: Any) -> bytes:
    return encoded({"type": "label", "timestamp": stamp(1), **fields})


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return lambda story: put(tmp_path, "", "s", story)


STORY = session("s").user("why").assistant("because").call("read", path="a.py").result("ok")


def test_an_outline(place: Any) -> None:
    """Where each entry is, who it is, whose child, and what it says."""
    path = place(STORY)
    outline = outlined(path)
    data = Path(path).read_bytes()
    assert list(outline.line_nos) == [2, 3, 4, 5]
    for row, (offset, length) in enumerate(zip(outline.offsets, outline.lengths, strict=True)):
        value = jsonline.value(data[offset : offset + length])
        assert outline.ids[row] == token(value["id"])
        assert outline.parents[row] == (token(value["parentId"]) if value["parentId"] else 0)
    assert [outline.traits(row).has_text for row in range(4)] == [True, True, False, True]
    assert outline.traits(2).calls == (outline.traits(3).result,)
    assert (outline.session_id, outline.name, outline.version) == ("s", None, 3)
    assert outline.leaf == outline.ids[-1]
    assert outline.torn == -1


@pytest.mark.parametrize(
    ("rule", "data", "ids", "leaf"),
    [
        ("ids as they are", line(id="a") + b"\n" + line(id="b") + b"\n", ["a", "b"], "b"),
        ("a line without an id", line(id="a") + b"\n" + line() + b"\n", ["a"], None),
        ("no timestamp is needed", b'{"type":"x","id":"a"}\n', ["a"], "a"),
        ("nor a parent", line(id="a", parentId=5) + b"\n", ["a"], "a"),
        ("a link without a type", line(id="a") + b'\n{"id":"b"}\n', ["a", "b"], "b"),
        ("a second header", line(id="a") + b'\n{"type":"session","id":"b"}\n', ["a"], "a"),
        ("blank and broken lines", line(id="a") + b'\n\n  \n{"id":\n', ["a"], "a"),
        ("what JavaScript skips", line(id="a") + b'\nnull\n0\nfalse\n""\n', ["a"], "a"),
        ("what it does not", line(id="a") + b"\n[]\n", ["a"], None),
        ("an object without anything", line(id="a") + b"\n{}\n", ["a"], None),
        ("CRLF", line(id="a") + b"\r\n" + line(id="b") + b"\r\n", ["a", "b"], "b"),
        ("repeated ids", line(id="a") + b"\n" + line(id="a") + b"\n", ["a", "a"], "a"),
        ("a torn line that is whole", line(id="a") + b"\n" + line(id="b"), ["a", "b"], "b"),
        ("a torn line that is not", line(id="a") + b"\n" + line(id="b")[:-1], ["a"], "a"),
    ],
)
def test_what_counts(place: Any, rule: str, data: bytes, ids: list[str], leaf: str | None) -> None:
    outline = outlined(place(session("s").raw(data)))
    assert names(outline) == ids, rule
    assert told(outline.leaf) == leaf, rule


def test_every_entry_can_be_read(place: Any) -> None:
    """In any order, torn last line included."""
    path = place(session("s").user("a").user("b").raw(line(id="z")))
    with opened(path) as view:
        assert view.outline.torn == view.outline.offsets[2]
        order = [2, 0, 1, 0]
        read = list(view.read(order))
        assert [row for row, _ in read] == order
        assert [token(value["id"]) for _, value in read] == [view.outline.ids[r] for r in order]


@pytest.mark.parametrize(
    ("story", "name"),
    [
        (session("s").info("one").info("  two "), "two"),
        (session("s").info("one").user("x").info(" \ufeff "), None),
        (session("s").info("one").raw(b'{"type":"session_info","name":"three"}\n'), "three"),
        (session("s").info("one").raw(b'{"type":"session_info","id":"x","name":5}\n'), None),
        (session("s").user("x"), None),
    ],
)
def test_the_name_is_the_last_one(place: Any, story: Builder, name: str | None) -> None:
    assert outlined(place(story)).name == name


@pytest.mark.parametrize(
    ("header", "has_parent", "version", "entries"),
    [
        ({}, False, 3, 1),
        ({"parentSession": "/x"}, True, 3, 1),
        ({"parentSession": ""}, True, 3, 1),
        ({"parentSession": None}, False, 3, 1),
        ({"version": 2}, False, 2, 1),
        ({"version": 1}, False, 1, 0),
        ({"version": "3"}, False, 0, 0),
        ({"timestamp": None}, False, 3, 1),
    ],
)
def test_headers(
    place: Any, header: dict[str, Any], has_parent: bool, version: int, entries: int
) -> None:
    """What listing asks of a header is not asked here; old versions have no ids."""
    outline = outlined(place(session("s", **header).user("x")))
    assert (outline.has_parent, outline.version, len(outline)) == (has_parent, version, entries)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hello\n", "first line is not valid JSON: it cannot be parsed"),
        (b"\n", "first line is empty"),
        (b"[]\n", "first line is not a JSON object"),
        (b'{"type":"message","id":"a"}\n', "first line is not a session header (type: message)"),
    ],
)
def test_no_session(place: Any, data: bytes, reason: str) -> None:
    with pytest.raises(NoSession) as refused, opened(place(data)):
        pass
    assert refused.value.reason == reason


def test_an_empty_file_has_no_entries(place: Any) -> None:
    outline = outlined(place(b""))
    assert (len(outline), outline.session_id, outline.leaf) == (0, None, 0)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "s.jsonl").write_bytes(STORY.bytes())
    (tmp_path / "link").symlink_to(tmp_path / "s.jsonl")
    for name in ("pipe", "link", "."):
        with pytest.raises(NoSession), opened(str(tmp_path / name)):
            pass
    for name in ("gone", "nul\0"):
        with pytest.raises(OSError), opened(str(tmp_path / name)):
            pass


def test_a_line_that_is_no_longer_there(place: Any) -> None:
    """Another id, other traits, another length: never read as what it was."""
    for other in (b"U" * 100, b"\n" * 100, b'{"type":"label","id":"zz"}'):
        path = place(STORY)
        with pytest.raises(Changed), opened(path) as view:
            with open(path, "r+b") as file:
                file.seek(view.outline.offsets[1])
                file.write(other)
            list(view.read([1]))


def test_a_file_that_was_cut(place: Any) -> None:
    path = place(STORY)
    with pytest.raises(Changed), opened(path) as view:
        os.truncate(path, view.outline.offsets[3])
    with opened(place(STORY), strict=False) as view:
        os.truncate(path, view.outline.offsets[3])
        assert next(view.read([0]))[1]["type"] == "message"


def test_a_file_that_grows_is_still_the_same(place: Any) -> None:
    """Even where a torn line is finished meanwhile; but who is strict looks again."""
    path = place(session("s").user("a").raw(line(id="z")))
    with opened(path, strict=False) as view:
        append(path, b"\n" + line(id="y") + b"\n")
        assert [value["id"] for _, value in view.read([1])] == ["z"]
    with pytest.raises(Changed), opened(path):
        append(path, line(id="x") + b"\n")


def test_without_a_file_there_is_nothing_to_read() -> None:
    view = OpenSession(sessions.nothing("/x"), None)
    assert list(view.read([])) == []


def long_story() -> Builder:
    story = session("s", parentSession="/p")
    draw = random.Random(5)
    for number in range(300):
        story.user(f"user {number} " + "x" * draw.randrange(400))
        story.call("edit", path=f"f{number}.py").result("ok", error=number % 7 == 0)
    return story


def test_batches_are_read_in_order(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a batch."""
    path = place(long_story())
    rows = random.Random(3).choices(range(900), k=500)
    for size in (1, 700, 1 << 20):
        monkeypatch.setattr(sessions, "_BATCH_BYTES", size)
        with opened(path) as view:
            found = [(row, token(value["id"])) for row, value in view.read(rows)]
            assert found == [(row, view.outline.ids[row]) for row in rows]


def test_blocks_of_any_size(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An outline does not depend on how the file is cut while it is read."""
    path = place(long_story())
    whole = columns(outlined(path))
    for size in (1000, 4096, 65536):
        monkeypatch.setattr(files, "BLOCK", size)
        assert columns(outlined(path)) == whole


def columns(outline: Outline) -> list[Any]:
    fields = (getattr(outline, name) for name in Outline.__slots__)
    return [list(field) if name in COLUMNS else field for name, field in named(fields)]


COLUMNS = {"line_nos", "offsets", "lengths", "ids", "parents", "shapes", "facts"}


def named(fields: Any) -> Any:
    return zip(Outline.__slots__, fields, strict=True)


@given(st.integers(0, 899))
def test_an_outline_goes_on_from_what_is_known(cut: int) -> None:
    """The first part from somewhere else, the rest from the file: the same outline."""
    data = long_story().bytes()
    lines = [*jsonline.split(data, 1, 0)]
    head = headed("/s", jsonline.value(lines[0].data))

    def gathered(known: Outline, some: list[Line]) -> Outline:
        gathering = Gathering(known)
        for one in some:
            gathering.add(one)
        return gathering.outline()

    whole = gathered(head, lines[1:])
    part = gathered(head, lines[1 : 1 + cut])
    assert columns(gathered(part, lines[1 + cut :])) == columns(whole)


def test_opened_from_what_the_index_knows(store: Store) -> None:
    """Fresh, or with a tail, or rewritten: the outline is that of the file alone."""
    story = long_story()
    path = store.put("a", story)
    store.index.refresh()
    for change in ("none", "append", "torn", "rewrite"):
        if change == "append":
            before = len(story)
            append(path, story.info(" a name ").user("more").tail(before))
        elif change == "torn":
            append(path, story.user("torn").tail(len(story) - 1)[:-1])
        elif change == "rewrite":
            store.put("a", session("b").user("other").compaction("short"))
        reader = store.index._present.reader()
        whole = outlined(path)
        with opened(path, reader=reader, spelled=path) as view:
            assert columns(view.outline) == columns(whole)
            assert (view.covered is None) == (change == "rewrite")
            assert view.one(len(whole) - 1)["id"]
