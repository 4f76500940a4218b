"""Random trees, random edits between questions, random questions: three answers, one truth.

    naive     written here: each line with the standard library, the text of each kind, `in`
    brute     the product without its index
    indexed   the product with whatever the index knows by now

Block sizes, page sizes, batches and the racy interval are small here, so that small files reach
what large ones reach in the field.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from build import Builder, append, put, session, stamp
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import without_coverage

from sessionindex import SessionIndex, coverage, entry, files, layout
from sessionindex.access import Policy
from sessionindex.contracts.search_sessions import SearchResult
from sessionindex.index import reader, writer
from sessionindex.model import DEFAULT_KINDS, KINDS, Entry
from sessionindex.timestamps import local_to_utc_ms

PIECES = (
    "alpha", "Beta", "gamma needle", "STRASSE", "Straße", "ΣΑΣ", "σας", "会议三点开", "再実行",
    "😀👩‍💻", "\ud83d", "\udc80x", "e\u0301", "é", "İstanbul", "\x00\x1f", "\u2028\u0085",
    'say "hi"', "back\\slash", "a\tb\nc", "\ufffd", "\ufeff", "#", "{", "a", "Z",
    "null", "1.50", "12345", "tool_result", "unknown", "/path/to/file.py", "needle", "ỆẠ", "K",
    "ﬁ", "  ", "\n",
)  # fmt: skip
COMMON = ("needle", "alpha", "gamma", "e", "al", "mm")
BEFORE = ("needle", "alpha", "middle gamma", "grown")
AFTER = ("noodle", "aleph", "muddle gamna")
"""What edits make of these words: asked apart, or an old candidate would hide a lost new one."""
NOWHERE = ("zzzz", "nowhere to be found", "會", "\ud900", "needles!", "\x01")
CWDS = ("/r/app", "/r/app-fix", "/r/other", "/", "/r/app/")
NAMES = ("one", "two", "three", "four")
CHILDREN = ("run/run-0/session", "forks/f1", "async-1/s", "run/run-0/session/x/session", "x/plain")


class Draw:
    """Draws from hypothesis, in the words of this module."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def one(self, choices: Any) -> Any:
        return self._data.draw(st.sampled_from(choices))

    def number(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))

    def chance(self, of: int = 2) -> bool:
        return self._data.draw(st.integers(0, of - 1)) == of - 1

    def some(self, choices: Any) -> list[Any] | None:
        """One or two of the choices, or no filter at all."""
        if self.chance():
            return None
        return self._data.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=2))

    def text(self) -> str:
        glue = self.one(("", " "))
        said = glue.join(self._data.draw(st.lists(st.sampled_from(PIECES), max_size=3)))
        return said + self.one(("", " needle", " alpha", "gamma"))

    def needle(self) -> str:
        """Cut from what texts are made of, or from nowhere."""
        if self.chance():
            return self.one(COMMON)
        if self.chance(6):
            return self.one(NOWHERE)
        text = self.text() or self.one(PIECES)
        start = self.number(0, len(text) - 1)
        return text[start : start + self.number(1, 6)]

    # --- files -----------------------------------------------------------------------------------

    def grow(self, story: Builder, lines: int) -> Builder:
        for _ in range(lines):
            self.one(_LINES)(story, self)
        return story

    def story(self, name: str) -> Builder:
        header: dict[str, Any] = {"version": self.one((3, 3, 2, 1))}
        if self.chance(8):
            header["parentSession"] = self.text()
        story = session(self.one((name, name + "\ud83d")), cwd=self.one(CWDS), **header)
        if self.chance(4):
            story.crlf()
        if self.chance(3):  # longer than the digests of head and tail together
            story.user("alpha needle " + "filler of a long line " * 600)
            story.user("middle gamma " + "more filler " * 900)
        self.grow(story, self.number(0, 5))
        if self.chance(5):
            story.raw(self.torn())
        return story

    def torn(self) -> bytes:
        """A last line without its end: half of one, or the whole."""
        whole = session("torn").user(self.text()).tail(1).rstrip(b"\n")
        return whole[: self.number(1, len(whole))] if self.chance() else whole


def _escaped(story: Builder, draw: Draw) -> None:
    """A line that JSON need not write so."""
    value = json.loads(session("esc").user(draw.text()).tail(1))
    story.line(json.dumps(value).replace("/", "\\/").encode())


def _copy(story: Builder, draw: Draw) -> None:
    story.user(draw.one(("needle", "alpha")), id="same", timestamp=stamp(5))


_BAD = (b"{", b"[1]", b'"needle"', b"{}", b"\xff\xfe", b'{"type":"session"}')
_LINES: tuple[Callable[[Builder, Draw], Any], ...] = (
    lambda s, d: s.user(d.text()),
    lambda s, d: s.user(d.text(), at=d.one(("2026-09-10T09:00:03", "2026-09-10", stamp(3), "x"))),
    lambda s, d: s.assistant(d.text(), thinking=d.text()),
    lambda s, d: s.call(d.one(("edit", "bash", "ﬁx")), path=d.text(), more=[1.5, {d.text(): "a"}]),
    lambda s, d: s.result(d.text(), details={"diff": d.text(), "n": 12345678901234567890123}),
    lambda s, d: s.bash(d.text(), d.text()),
    lambda s, d: s.system(d.text()),
    lambda s, d: s.custom("notes", {"kept": d.text()}),
    lambda s, d: s.info(d.text()),
    lambda s, d: s.compaction(d.text()),
    lambda s, d: s.line(b""),
    lambda s, d: s.line(d.one(_BAD)),
    lambda s, d: s.line(b'{"type":"label","timestamp":"2026-09-10","label":"alpha \xff\xed\xa0"}'),
    lambda s, d: s.entry(d.one(("label", "x" * 70)), label=d.text()),
    _escaped,
    _copy,
)  # fmt: skip


# --- a tree that changes under the index ---------------------------------------------------------


@dataclass
class Tree:
    """A root on disk and what may be done to it."""

    root: Path
    flat: bool
    draw: Draw

    def spot(self) -> str:
        project = "" if self.flat else self.draw.one(("--r-app--", "--r-other--"))
        name = self.draw.one(NAMES)
        if self.draw.chance(3):
            name = f"{name}/{self.draw.one(CHILDREN)}"
        return os.path.join(project, name)

    def make(self) -> None:
        where = self.spot()
        path = self.root / f"{where}.jsonl"
        if path.is_symlink():
            path.unlink()
        put(self.root, "", where, self.draw.story(Path(where).name))

    def files(self) -> list[Path]:
        found = [path for path in self.root.rglob("*.jsonl") if path.is_file()]
        return sorted(path for path in found if not path.is_symlink())

    def edit(self) -> None:
        there = self.files()
        if not there or self.draw.chance(5):
            self.make()
            return
        path = self.draw.one(there)
        before = path.stat()
        self.draw.one(_EDITS)(self, path)
        if self.draw.chance(3) and path.is_file() and not path.is_symlink():
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    # --- edits of one file -----------------------------------------------------------------------

    def append(self, path: Path) -> None:
        fresh = self.draw.grow(session(path.stem), self.draw.number(1, 3))
        append(str(path), fresh.tail(1))

    def half(self, path: Path) -> None:
        append(str(path), self.draw.torn())

    def complete(self, path: Path) -> None:
        append(str(path), b"\n")

    def rewrite(self, path: Path) -> None:
        """Other text of the same length in the same file."""
        data = path.read_bytes().replace(b"alpha", b"aleph").replace(b"needle", b"noodle")
        path.write_bytes(data)

    def middle(self, path: Path) -> None:
        """A few bytes in place, anywhere; sometimes an append follows."""
        data = path.read_bytes()
        at = self.draw.number(0, len(data) - 1) if data else 0
        with path.open("r+b") as file:
            file.seek(at)
            file.write(self.draw.one((b"alp", b"\n", b'"', b"q", b"\xff")))
        if self.draw.chance():
            self.append(path)

    def deep(self, path: Path) -> None:
        """Text in the middle of a prefix, far from both of its ends."""
        data = path.read_bytes().replace(b"middle gamma", b"muddle gamna", 1)
        with path.open("r+b") as file:
            file.write(data)
        if self.draw.chance():
            self.append(path)

    def over(self, path: Path) -> None:
        """Another file in its place by rename."""
        beside = path.with_name(".beside")
        beside.write_bytes(self.draw.story(path.stem).bytes())
        os.replace(beside, path)

    def rename(self, path: Path) -> None:
        other = self.root / f"{self.spot()}.jsonl"
        other.parent.mkdir(parents=True, exist_ok=True)
        if not other.is_dir():
            os.replace(path, other)

    def delete(self, path: Path) -> None:
        path.unlink()

    def truncate(self, path: Path) -> None:
        os.truncate(path, self.draw.number(0, path.stat().st_size))

    def grow(self, path: Path) -> None:
        """Longer, and nothing of it as it was."""
        path.write_bytes(self.draw.story(path.stem).user("grown gamma " * 40).bytes())

    def again(self, path: Path) -> None:
        """Deleted and made anew: the inode number may be the same."""
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[: self.draw.number(0, len(data))] if self.draw.chance() else data)

    def link(self, path: Path) -> None:
        elsewhere = self.root.parent / "elsewhere.jsonl"
        shutil.move(path, elsewhere)
        path.symlink_to(elsewhere)

    def touch(self, path: Path) -> None:
        path.touch()


_EDITS = (
    Tree.append, Tree.append, Tree.half, Tree.complete, Tree.rewrite, Tree.middle, Tree.deep,
    Tree.deep, Tree.rewrite,
    Tree.over, Tree.rename, Tree.delete, Tree.truncate, Tree.grow, Tree.again, Tree.link,
    Tree.touch,
)  # fmt: skip


# --- the plain scan ------------------------------------------------------------------------------


def strict(word: str) -> None:
    raise ValueError(word)


def lines(path: str, version: int) -> Iterator[Entry]:
    """Every entry of a file, read the plain way."""
    data = Path(path).read_bytes().split(b"\n")
    for line_no, line in enumerate(data, 1):
        try:
            value = json.loads(
                line.decode("utf-8", "replace").strip(" \t\r\n"), parse_constant=strict
            )
        except ValueError:
            continue
        found = entry.understand(value, line_no, version)
        if line_no > 1 and isinstance(found, Entry):
            yield found


def chosen(cwd: str, asked: dict[str, Any]) -> bool:
    """Whether the sessions of a working directory are asked for."""
    trimmed = cwd.rstrip("/") or "/"
    name = cwd.rstrip("/").rsplit("/", 1)[-1]
    if (wanted := asked.get("cwds")) is not None:
        same = {one.rstrip("/") or "/" for one in wanted}
        beside = asked.get("cwd_match") == "sibling-prefix" and any(
            trimmed.startswith(one + "-") and "/" not in trimmed[len(one) :]
            for one in same
            if one != "/"
        )
        if trimmed not in same and not beside:
            return False
    projects = asked.get("projects")
    return projects is None or any(
        bool(name) and (name == one or name.startswith(one + "-")) for one in projects
    )


def wanted(tree: Tree, asked: dict[str, Any]) -> Iterator[layout.Found]:
    """The session files that a question is about."""
    found = layout.discover(str(tree.root), flat=tree.flat, policy=Policy(None)).sessions
    cwd_of = {one.path: one.session.cwd for one in found}
    for one in found:
        if chosen(cwd_of[one.owner], asked) and (asked["include_subagents"] or not one.parent):
            yield one


def naive(tree: Tree, terms: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """The answer without limit and cursor, from nothing but the files."""
    kinds = set(asked.get("kinds") or DEFAULT_KINDS)
    roles, types, mode = asked.get("message_roles"), asked.get("types"), asked.get("match", "any")
    if roles and "system" in roles:
        kinds.add("system")
    sensitive = asked.get("case_sensitive", False)
    needles = [term if sensitive else term.lower() for term in terms]
    hits = []
    for one in wanted(tree, asked):
        here, seen = [], set()
        for item in lines(one.path, one.session.version):
            texts = {kind: entry.searchable(item, kind) for kind in KINDS if kind in kinds}
            low = {kind: text if sensitive else text.lower() for kind, text in texts.items()}
            holds = {needle for needle in needles if any(needle in text for text in low.values())}
            seen |= holds
            instant = local_to_utc_ms(item.instant) if item.floating else item.instant
            stays = (
                (types is None or item.type in types)
                and (roles is None or item.role in roles)
                and asked.get("from_ms", instant) <= instant <= asked.get("to_ms", instant)
            )
            if not stays or not holds or (mode == "all" and len(holds) < len(set(needles))):
                continue
            kind = next(kind for kind in low if any(needle in low[kind] for needle in needles))
            place = (-instant, one.path, item.line_no)
            if asked.get("order") == "path":
                place = (0, *place[1:])
            here.append((place, kind, (item.id, tuple(texts.values()))))
        if mode != "session" or len(seen) == len(set(needles)):
            hits += here
    hits.sort(key=lambda hit: hit[0], reverse=asked.get("order") == "oldest")
    if asked.get("unique"):
        first: dict[Any, Any] = {}
        for hit in hits:
            identity = hit[2] if hit[2][0] is not None else object()
            first.setdefault(identity, hit)
        hits = list(first.values())
    return {
        "places": [(place[1], place[2], kind) for place, kind, _ in hits],
        "total": len(hits),
        "sessions": len({place[1] for place, _, _ in hits}),
    }


def plain(result: SearchResult) -> dict[str, Any]:
    """A product's answer in the naive one's words."""
    return {
        "places": [(hit.session_path, hit.line_no, hit.kind) for hit in result.hits],
        "total": result.total,
        "sessions": result.sessions,
    }


# --- questions -----------------------------------------------------------------------------------


def question(draw: Draw) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Terms, parameters of the product, and the bounds as the naive scan takes them."""
    terms = [draw.needle() for _ in range(draw.one((1, 1, 2, 3)))]
    asked = {
        "match": draw.one(("any", "all", "session")),
        "case_sensitive": draw.chance(3),
        "kinds": draw.some(KINDS),
        "order": draw.one(("newest", "oldest", "path")),
        "unique": draw.chance(4),
        "include_subagents": not draw.chance(4),
    }
    if draw.chance(3):
        asked["types"] = draw.some(("message", "label", "compaction", "x" * 70, "x" * 71))
        asked["message_roles"] = draw.some(("user", "assistant", "toolResult", "system"))
    if draw.chance(3):
        asked["cwds"] = draw.some(CWDS)
        asked["cwd_match"] = draw.one(("exact", "sibling-prefix"))
        asked["projects"] = draw.some(("app", "other", "r"))
    bounds = {}
    if draw.chance(3):
        start, end = sorted((draw.number(0, 8), draw.number(0, 8)))
        asked |= {"start_timestamp": stamp(start), "end_timestamp": stamp(end)}
        began = 1_789_030_800_000
        bounds = {"from_ms": began + 1000 * start, "to_ms": began + 1000 * end}
    return terms, asked, bounds


def walk(
    index: SessionIndex, terms: list[str], asked: dict[str, Any], limit: int, brute: bool
) -> tuple[list[Any], list[SearchResult]]:
    """All hits, page after page, and the pages."""
    hits: list[Any] = []
    pages: list[SearchResult] = []
    cursor = None
    while True:
        page = index.search(*terms, brute=brute, limit=limit, count="page", cursor=cursor, **asked)
        pages.append(page)
        hits += page.hits
        cursor = page.next_cursor
        assert page.has_more == (cursor is not None)
        assert len(page.hits) == limit or not page.has_more
        if cursor is None:
            return hits, pages


def check(tree: Tree, index: SessionIndex) -> None:
    """One question: naive, brute and indexed agree, whole and page by page."""
    for words in (BEFORE, AFTER):
        standing = index.search(*words)
        assert without_coverage(standing) == without_coverage(index.search(*words, brute=True))
    terms, asked, bounds = question(tree.draw)
    whole = index.search(*terms, **asked)
    brute = index.search(*terms, brute=True, **asked)
    assert plain(brute) == naive(tree, terms, asked | bounds)
    assert without_coverage(whole) == without_coverage(brute)
    limit = tree.draw.number(1, 3)
    first = index.search(*terms, limit=limit, count="exact", **asked)
    assert (first.hits, first.total) == (whole.hits[:limit], whole.total)
    if len(whole.hits) <= 12:
        hits, pages = walk(index, terms, asked, limit, brute=False)
        assert tuple(hits) == whole.hits
        _, plain_pages = walk(index, terms, asked, limit, brute=True)
        assert [without_coverage(p) for p in pages] == [without_coverage(p) for p in plain_pages]


@contextmanager
def small(draw: Draw) -> Iterator[None]:
    """Sizes that small files reach."""
    with ExitStack() as stack:
        for module, name, choices in (
            (files, "BLOCK", (4 << 20, 64, 700)),
            (reader, "_FIRST_PAGE", (200, 1, 3)),
            (reader, "_LARGEST_PAGE", (20_000, 4)),
            (writer, "BATCH", (32_000_000, 300)),
            (coverage, "RACY_NS", (coverage.RACY_NS, 25_000_000)),
        ):
            stack.enter_context(mock.patch.object(module, name, draw.one(choices)))
        yield


@settings(max_examples=max(200, settings().max_examples))
@given(data=st.data())
def test_the_index_never_changes_an_answer(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever happens to the files, with or without a refresh, the answer is a plain scan's."""
    draw = Draw(data)
    base = tmp_path_factory.getbasetemp()
    with small(draw), tempfile.TemporaryDirectory(dir=base) as scratch:
        root = Path(scratch, "sessions")
        root.mkdir()
        tree = Tree(root, draw.chance(), draw)
        for _ in range(draw.number(1, 4)):
            tree.make()
        with SessionIndex(
            root,
            layout="flat" if tree.flat else "projects",
            index_dir=os.path.join(scratch, "index"),
            settings={},
            current_session="",
        ) as index:
            for _ in range(draw.number(1, 4)):
                if draw.chance():
                    if coverage.RACY_NS < 2_000_000_000 and draw.chance():
                        time.sleep(0.04)  # identities that prove something
                    index.refresh(rebuild=draw.chance(8))
                check(tree, index)
                for _ in range(draw.number(1, 2)):
                    tree.edit()
                check(tree, index)
