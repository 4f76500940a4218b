"""Random trees, random edits between questions, random questions: three answers, one truth.

    naive     written here: each line with the standard library, the text of each kind, `in`,
              a walk over the parents, the files of each call
    brute     the product without its index
    indexed   the product with whatever the index knows by now

Block sizes, page sizes, batches and the racy interval are small here, so that small files reach
what large ones reach in the field.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from build import Builder, append, put, session, stamp
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import without_coverage

from sessionindex import SessionIndex, coverage, entry, files, layout, rawtest, standing
from sessionindex.access import Policy
from sessionindex.contracts import searching
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
IDS = ("n1", "n2", "n3", "n4", "same", "an id of many letters", "é")
NO_IDS = (None, "", 7, ["n1"])
TOOLS = (
    "edit", "edit", "edit", "read", "read", "Read", "write", "apply_patch", "apply_patch", "grep",
    "bash", "cook", "x" * 70,
)  # fmt: skip
ROLES = ("assistant", "assistant", "assistant", "user", "toolResult", "robot")
PATHS = (
    "a.py", "a.py", "a.py", "src/a.py", "src/a.py", "/r/app/src/a.py", "src/ba.py", "src/a.py/",
    "./src/a.py", "A.py",
    " a.py\ufeff", "a.py\u0085", "Straße/e\u0301.py", 'q"/b\\c.py', "会议/a\nb.py", "x\ud83d/a.py",
    "/", "a", "b.py\t2026", "",
)  # fmt: skip
PATCHES = (
    "*** Begin Patch\n*** Add File: src/a.py\n*** Update File: /r/b.py\r\n*** Move to:  a.py ",
    "--- a/a.py\n+++ b/src/a.py\n+++ /dev/null\n+++ b.py\t2026\n *** Add File: A.py",
    "*** Delete File: 会议/a.py\n*** add file: A.py\n+++ b/",
)
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
        return self.number(0, of - 1) == of - 1

    def some(self, choices: Any) -> list[Any] | None:
        """One or two of the choices, or no filter at all."""
        if self.chance():
            return None
        return self.many(choices, 1, 2)

    def many(self, choices: Any, least: int, most: int) -> list[Any]:
        return [self.one(choices) for _ in range(self.number(least, most))]

    def text(self) -> str:
        glue = self.one(("", " "))
        said = glue.join(self.many(PIECES, 0, 3))
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

    # --- entries ---------------------------------------------------------------------------------

    def place(self, story: Builder) -> dict[str, Any]:
        """An id and a parent for the next entry: its own and the one before, or anything else."""
        fields: dict[str, Any] = {}
        if self.chance(4):
            fields["id"] = self.one(NO_IDS if self.chance(4) else IDS)
        if self.chance(3):
            fields["parentId"] = self.reference(story)
        return fields

    def reference(self, story: Builder) -> Any:
        """An entry of the story, one that may be there, or none."""
        there = re.findall(rb'"id":"([0-9a-f]{8})"', story.bytes())
        if there and self.chance():
            return self.one(there).decode()
        return self.one((*IDS, "gone", None, 5))

    def call(self) -> Any:
        """A tool call that may name files, whole or with something missing."""
        named: dict[str, Any] = {"more": self.text()}
        for field in ("path", "file_path", "paths"):
            if self.chance():
                named[field] = self.one((*PATHS, 5, None, ["b.py", 1, self.one(PATHS)]))
        if self.chance():
            named["input"] = self.one((*PATCHES, 5))
            named["patch"] = self.one(PATCHES)
        block = {"type": "toolCall", "id": "c1", "name": self.one(TOOLS), "arguments": named}
        if self.chance(8):
            block |= self.one(({"id": 5}, {"name": None}, {"arguments": ["a.py"]}, {"type": "x"}))
        return block

    # --- files -----------------------------------------------------------------------------------

    def grow(self, story: Builder, lines: int) -> Builder:
        for _ in range(lines):
            self.one(_LINES)(story, self)
        if self.chance():
            dice = Dice(self.number(0, 2**32))
            for _ in range(self.number(1, 12)):
                dice.one(_TREE)(story, dice)
        return story

    def story(self, name: str) -> Builder:
        header: dict[str, Any] = {"version": self.one((3, 3, 3, 2, 1))}
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


class Dice(Draw):
    """The same from a seed: many draws for the price of one, but they do not shrink."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def one(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def number(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


def _escaped(story: Builder, draw: Draw) -> None:
    """A line that JSON need not write so."""
    value = json.loads(session("esc").user(draw.text()).tail(1))
    story.line(json.dumps(value).replace("/", "\\/").encode())


def _copy(story: Builder, draw: Draw) -> None:
    story.user(draw.one(("needle", "alpha")), id="same", timestamp=stamp(5))


def _spoken(story: Builder, draw: Draw) -> None:
    """A message somewhere in the tree."""
    said = {"role": draw.one(ROLES), "content": draw.text()}
    story.entry("message", message=said, **draw.place(story))


def _called(story: Builder, draw: Draw) -> None:
    """Calls of tools, by the model or by somebody who cannot call any."""
    blocks = [draw.call() for _ in range(draw.number(1, 2))]
    said = {"role": draw.one(ROLES), "toolName": draw.one(TOOLS), "content": blocks}
    story.entry("message", message=said, **draw.place(story))


def _returned(story: Builder, draw: Draw) -> None:
    """What came of a call: an error is one that says true, of a result."""
    said = {
        "role": draw.one(("toolResult", "toolResult", "assistant")),
        "toolName": draw.one((*TOOLS, None, "")),
        "isError": draw.one((True, True, True, False, "true", 1, None)),
        "content": draw.text(),
    }
    story.entry("message", message=said, **draw.place(story))


def _repeated(story: Builder, draw: Draw) -> None:
    """A result whose details say the whole text again, or a part of it."""
    text = "\n".join(draw.text() for _ in range(8))
    story.result(text, details={"content": text, "part": [text[5:-5]], "more": draw.text()})


def _compacted(story: Builder, draw: Draw) -> None:
    """A compaction that keeps from an entry of anywhere on, or from itself."""
    place = draw.place(story)
    kept = place.get("id") if draw.chance(6) else draw.reference(story)
    files = {"readFiles": [draw.one(PATHS)]}
    story.entry("compaction", summary="alpha", firstKeptEntryId=kept, details=files, **place)


_BAD = (
    b"{", b"[1]", b'"needle"', b"{}", b"\xff\xfe", b'{"type":"session"}', b"null", b"0", b"[]",
    b'{"type":"session","id":"n1","parentId":"n2"}', b'{"id":"n2","parentId":"n1"}',
    b'{"type":"message","id":"n3","parentId":"n2","timestamp":"x","message":{"role":"user"}}',
)  # fmt: skip
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
    _repeated,
    *(_spoken, _called, _returned, _compacted) * 2,
)  # fmt: skip
_TREE = (_spoken, _spoken, _called, _called, _called, _returned, _compacted)


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


def values(path: str) -> Iterator[tuple[int, Any]]:
    """Every line after the header that is JSON, read the plain way."""
    data = Path(path).read_bytes().split(b"\n")
    for line_no, line in enumerate(data[1:], 2):
        with suppress(ValueError):
            text = line.decode("utf-8", "replace").strip(" \t\r\n")
            yield line_no, json.loads(text, parse_constant=strict)


def branch(path: str) -> list[tuple[int, dict[str, Any]]]:
    """The active branch from the root to the last entry of the file."""
    last: Any = None
    named = {}
    for line_no, value in values(path):
        if value is None or value is False or value == 0 or value == "":
            continue  # nothing, to JavaScript
        if isinstance(value, dict) and value.get("type") == "session":
            continue
        last = value.get("id") if isinstance(value, dict) else None
        if isinstance(last, str) and last:
            named[last] = (line_no, value)
    walked: list[tuple[int, dict[str, Any]]] = []
    while isinstance(last, str) and last in named and named[last] not in walked:
        walked.insert(0, named[last])
        last = named[last][1].get("parentId")
    return walked


def on_branches(path: str, version: int, line_nos: list[int]) -> dict[str, set[int]]:
    """The lines that each word of `branch` and `compacted` means."""
    if version < 2:
        every = set(line_nos)
        return {"active": every, "abandoned": set(), "hidden": set(), "visible": every}
    walked = branch(path)
    active = [line_no for line_no, _ in walked]
    hidden: list[int] = []
    for place, (_, value) in enumerate(walked):
        if value.get("type") == "compaction":
            ids = [above["id"] for _, above in walked[:place]]
            kept = value.get("firstKeptEntryId")
            hidden = active[: ids.index(kept) if kept in ids else place]
    return {
        "active": set(active),
        "abandoned": set(line_nos) - set(active),
        "hidden": set(hidden),
        "visible": set(active) - set(hidden),
    }


READING = {"read", "grep"}
MODIFYING = {"edit", "write", "apply_patch"}
BLANK = " \t\n\v\f\r\u00a0\ufeff\u2028\u2029"
NAMED = re.compile(r"\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*)|\+\+\+ (?:b/)?(.*)")


def of_calls(value: dict[str, Any]) -> tuple[set[str], set[str]]:
    """The tools that an entry calls or answers, and the files that its calls name."""
    said = value.get("message") if value["type"] == "message" else None
    if not isinstance(said, dict):
        return set(), set()
    tools, paths = set(), []
    content = said.get("content")
    for block in content if isinstance(content, list) else ():
        if not (isinstance(block, dict) and block.get("type") == "toolCall"):
            continue
        name, named = block.get("name"), block.get("arguments")
        if not isinstance(name, str):
            continue
        if said.get("role") == "assistant":
            tools.add(name)
        proves = name.lower() in READING | MODIFYING and isinstance(block.get("id"), str)
        if proves and isinstance(named, dict):
            for field in ("path", "file_path", "paths"):
                given = named.get(field)
                paths += given if isinstance(given, list) else [given]
            both = [named.get(field) for field in ("input", "patch")]
            patches = [patch for patch in both if isinstance(patch, str)]
            if name.lower() == "apply_patch" and patches:
                found = [NAMED.match(line) for line in re.split("\r?\n", patches[0])]
                paths += [one[1] or one[2] for one in found if one]
    if said.get("role") == "toolResult" and isinstance(said.get("toolName"), str):
        tools.add(said["toolName"])
    trimmed = {path.strip(BLANK) for path in paths if isinstance(path, str)}
    return tools, trimmed - {"", "/dev/null"}


def lines(path: str, version: int) -> list[Entry]:
    """Every entry of a file."""
    found = [entry.understand(value, line_no, version) for line_no, value in values(path)]
    return [one for one in found if isinstance(one, Entry)]


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
        if one.parent and not asked.get("include_subagents", True):
            continue
        if chosen(cwd_of[one.owner], asked):
            yield one


def asked_for(item: Entry, asked: dict[str, Any], stands: dict[str, set[int]]) -> bool:
    """Whether the filters of entries hold for one."""
    types, roles = asked.get("types"), asked.get("message_roles")
    instant = local_to_utc_ms(item.instant) if item.floating else item.instant
    tools, paths = of_calls(item.value)
    wanted, touched = asked.get("tools"), asked.get("touched")
    words = (asked.get("branch", "any"), asked.get("compacted", "any"))
    return (
        (types is None or item.type in types)
        and (roles is None or item.role in roles)
        and asked.get("from_ms", instant) <= instant <= asked.get("to_ms", instant)
        and (wanted is None or bool(tools.intersection(wanted)))
        and (touched is None or any(names(path, touched) for path in paths))
        and not (asked.get("errors") and not failed(item))
        and all(word == "any" or item.line_no in stands[word] for word in words)
    )


def names(path: str, touched: str) -> bool:
    """Whether a path is this one, or ends in it at a slash."""
    return path == touched or path.endswith(touched if touched[0] == "/" else f"/{touched}")


def failed(item: Entry) -> bool:
    return item.role == "toolResult" and item.value["message"].get("isError") is True


def first_kind(texts: dict[str, str], needles: list[str]) -> str | None:
    """The kind that holds any of the terms; without terms, the one that is there."""
    for kind, text in texts.items():
        if text and (not needles or any(needle in text for needle in needles)):
            return kind
    return None


def naive(tree: Tree, terms: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """The answer without limit and cursor, from nothing but the files."""
    kinds = set(asked.get("kinds") or DEFAULT_KINDS)
    mode = asked.get("match", "any") if terms else "any"
    if "system" in (asked.get("message_roles") or ()):
        kinds.add("system")
    sensitive = asked.get("case_sensitive", False)
    needles = [term if sensitive else term.lower() for term in terms]
    hits = []
    for one in wanted(tree, asked):
        here, seen = [], set()
        items = lines(one.path, one.session.version)
        stands = on_branches(one.path, one.session.version, [item.line_no for item in items])
        for item in items:
            texts = {kind: entry.searchable(item, kind) for kind in KINDS if kind in kinds}
            low = {kind: text if sensitive else text.lower() for kind, text in texts.items()}
            holds = {needle for needle in needles if any(needle in text for text in low.values())}
            seen |= holds
            kind = first_kind(low, needles)
            missing = mode == "all" and len(holds) < len(set(needles))
            if kind is None or missing or not asked_for(item, asked, stands):
                continue
            instant = local_to_utc_ms(item.instant) if item.floating else item.instant
            place = (0 if asked.get("order") == "path" else -instant, one.path, item.line_no)
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
    if draw.chance(3):
        asked |= filters(draw)
        terms = terms if draw.chance() or not asks(asked) else []
    return terms, asked, bounds


def aimed(draw: Draw) -> tuple[list[str], dict[str, Any]]:
    """A question about the entries themselves, with terms or without, and little else."""
    asked = filters(draw) | {"match": draw.one(("any", "all", "session"))}
    asked["order"] = draw.one(("newest", "oldest", "path"))
    other = draw.one(("kinds", "unique", "types", "message_roles", "", "", "", ""))
    if other:
        asked |= {
            "kinds": {"kinds": draw.some(KINDS)},
            "unique": {"unique": True},
            "types": {"types": ["message", "compaction"]},
            "message_roles": {"message_roles": ["assistant", "toolResult"]},
        }[other]
    if asks(asked) and not draw.chance(3):
        return [], asked
    return draw.many((*COMMON, "a", "py", "read", "src"), 1, 3), asked


FILTERS: dict[str, Any] = {
    "branch": ("active", "abandoned", "active", "abandoned", "any"),
    "compacted": ("hidden", "visible", "hidden", "visible", "any"),
    "tools": (*([tool] for tool in TOOLS), ["READ", "cook"], ["x" * 71], ["nothing", "ﬁx"]),
    "errors": (True, True, False),
    "touched": ("a.py", "a.py", "/a.py", "src/a.py", "b.py", "/r/b.py", "needle", "py"),
}
TOGETHER = (
    *((name,) for name in FILTERS), ("branch", "compacted"), ("branch", "tools"),
    ("compacted", "touched"), ("tools", "errors"), ("tools", "touched"), ("branch", "errors"),
    ("compacted", "tools", "errors", "touched"),
)  # fmt: skip


def asks(asked: dict[str, Any]) -> bool:
    """Whether there is something to find without terms."""
    return any(asked[name] not in ("any", False) for name in FILTERS if name in asked)


def filters(draw: Draw) -> dict[str, Any]:
    """What is asked of the entries themselves, one or several of it."""
    asked: dict[str, Any] = {name: draw.one(FILTERS[name]) for name in draw.one(TOGETHER)}
    if "touched" in asked and draw.chance(3):  # the end of a path
        path = draw.one(PATHS) or "a.py"
        asked["touched"] = path[draw.number(0, len(path) - 1) :]
    return asked


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
    """A few questions: naive, brute and indexed agree; one of them page by page too."""
    for words in (BEFORE, AFTER):
        still = index.search(*words)
        assert without_coverage(still) == without_coverage(index.search(*words, brute=True))
    terms, asked, bounds = question(tree.draw)
    agree(tree, index, terms, asked, bounds)
    dice = Dice(tree.draw.number(0, 2**32))
    for _ in range(2):
        terms, asked = aimed(dice)
        answer = index.search(*terms, brute=True, **asked)
        assert plain(answer) == naive(tree, terms, asked)
        assert without_coverage(index.search(*terms, **asked)) == without_coverage(answer)


def agree(
    tree: Tree,
    index: SessionIndex,
    terms: list[str],
    asked: dict[str, Any],
    bounds: dict[str, Any],
) -> None:
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
            (searching, "_TOGETHER", (1_000, 1, 3)),
            (rawtest, "_FIRST", (32, 0)),
            (standing, "keeps_folder_times", (lambda device: True,)),
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
