"""Any tree, any page size: every section, match and character comes exactly once, in order.

Trees have parents that are missing, stand below, or go in circles, ids that are repeated, and
control entries. What is expected is said by a plain walk over the parsed lines, written here; each
answer is asked of the index and of the file alone, and both must be equal.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from build import PROJECT, append, encoded, put, session, stamp
from hypothesis import given
from hypothesis import strategies as st

from sessionindex import SessionIndex
from sessionindex.errors import NothingFound
from sessionindex.rendering import label, rendered, search_text

NAMES = ["a", "b", "c", "dddddddd", "longer than eight", "é"]
TEXTS = ["needle", "a NEEDLE\nİ", "", " ", "x" * 230, "😀" * 120 + "needle", 'say "needle"']
Value = dict[str, Any]


def blocks(text: str, name: str) -> list[Value]:
    call = {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": text}}
    return [{"type": "text", "text": text}, call]


def fields(kind: str, text: str, name: str) -> Value:
    """What an entry of a kind holds."""
    messages = {
        "user": {"content": text},
        "assistant": {"content": blocks(text, name)},
        "toolResult": {"content": text, "toolCallId": name, "toolName": "read", "isError": True},
        "robot": {"content": blocks(text, name)},
        "bashExecution": {"content": text, "command": "ls"},
    }
    if kind == "untyped":
        return {}
    if kind in messages:
        return {"type": "message", "message": {"role": kind, **messages[kind]}}
    held = {"compaction": "summary", "branch_summary": "summary", "custom_message": "content"}
    if kind in held:
        return {"type": kind, held[kind]: text}
    return {"type": "custom", "customType": kind, "data": text}


KINDS = ["user", "assistant", "toolResult", "robot", "compaction", "branch_summary"]
KINDS += ["custom_message", "dcp-nudge", "dcp-journal", "state", "untyped", "bashExecution"]
ENTRIES = st.lists(
    st.builds(
        lambda kind, text, name, parent, when: {
            **fields(kind, text, name),
            "id": name,
            "parentId": parent,
            "timestamp": when,
        },
        st.sampled_from(KINDS),
        st.sampled_from(TEXTS),
        st.sampled_from(NAMES) | st.integers(0, 30).map("n{:07}".format),
        st.sampled_from([*NAMES, None, "", "missing"]) | st.integers(0, 30).map("n{:07}".format),
        st.sampled_from([stamp(1), stamp(1), None, 5]),
    ),
    min_size=1,
    max_size=14,
)


def chained(entries: list[Value]) -> list[Value]:
    """Mostly a chain: an entry whose parent is missing hangs on the one before it."""
    before: Value = {"id": None}
    for entry in entries:
        if entry["parentId"] == "missing":
            entry["parentId"] = before["id"]
        before = entry
    return entries


TREES = ENTRIES | ENTRIES.map(chained)


def selected(entries: list[Value], scope: str, leaf: str | None) -> list[Value]:
    """The plain walk: the last line with an id counts, and no entry is visited twice."""
    chosen = entries
    if scope == "active":
        by_id = {entry["id"]: entry for entry in entries}
        chosen = []
        entry = by_id.get(entries[-1]["id"] if leaf is None else leaf)
        while entry is not None and not any(entry is one for one in chosen):
            chosen.append(entry)
            entry = by_id.get(entry["parentId"])
        chosen.reverse()
    return [one for one in typed(chosen) if one.get("customType") not in CONTROLS]


CONTROLS = ("dcp-nudge", "dcp-journal")


def typed(entries: list[Value]) -> list[Value]:
    """A line without a type is a link between others and nothing else."""
    return [one for one in entries if "type" in one]


def parted(entries: list[Value]) -> list[list[Value]]:
    """The sections of a selection."""
    sections: list[list[Value]] = []
    for entry in entries:
        role = entry.get("message", {}).get("role")
        starts = role == "user" or entry["type"] in ("compaction", "branch_summary")
        if starts or not sections:
            sections.append([])
        sections[-1].append(entry)
    return sections


@contextmanager
def written(entries: list[Value]) -> Iterator[tuple[SessionIndex, str]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines = [encoded(entry) + b"\n" for entry in entries]
        half = len(lines) // 2
        data = session("s").bytes() + b"".join(lines[:half])
        path = put(Path(folder, "sessions"), PROJECT, "s", data)
        with SessionIndex(
            Path(folder, "sessions"), index_dir=Path(folder, "index"), settings={},
            current_session="",
        ) as index:  # fmt: skip
            index.refresh()
            append(path, b"".join(lines[half:]))
            yield index, path
            if random.Random(len(data)).random() < 0.2:  # now and then, as every test does
                index.refresh()
                assert index.check().differences == ()


def pages(index: SessionIndex, tool: str, path: str, leaf: str | None, **params: Any) -> list[Any]:
    """The results of a whole chain of cursors, equal with and without the index."""
    found = []
    while True:
        ask = getattr(index, tool)
        page = ask(path, leaf_id=leaf, **params)
        assert page == ask(path, leaf_id=leaf, brute=True, **params)
        found.append(page)
        if page.next_cursor is None:
            assert not page.has_more
            return found
        assert len(page.next_cursor) < 400
        params.pop("section_id", None)
        params.pop("entry_id", None)
        params["cursor"] = page.next_cursor
        assert len(found) < 500


LEAVES = st.none() | st.sampled_from([*NAMES, "", "nobody"])
SCOPES = st.sampled_from(["active", "all"])


@given(TREES, SCOPES, LEAVES, st.integers(1, 4))
def test_overview(entries: list[Value], scope: str, leaf: str | None, size: int) -> None:
    expected = parted(selected(entries, scope, leaf))
    with written(entries) as (index, path):
        try:
            found = pages(index, "overview", path, leaf, scope=scope, max_sections=size)
        except NothingFound:
            assert not expected
            return
        sections = [one for page in found for one in page.sections]
        assert [
            (one.start_entry_id, one.end_entry_id, one.entry_count, one.label) for one in sections
        ] == [(part[0]["id"], part[-1]["id"], len(part), label(part[0])) for part in expected]
        assert all(0 < len(page.sections) <= size for page in found)
        whole = found[0]
        assert whole.all_entries == len(selected(entries, "all", None))
        assert whole.active_entries == len(selected(entries, "active", leaf))
        parents = {entry["parentId"] for entry in typed(entries)}
        assert whole.leaves == sum(entry["id"] not in parents for entry in typed(entries))


@given(
    TREES,
    SCOPES,
    LEAVES,
    st.integers(1, 4),
    st.sampled_from(["needle", "NEEDLE", "e", "x\nread", "read\n{", "#a", "tool_result read", "İ"]),
    st.booleans(),
)
def test_search(
    entries: list[Value], scope: str, leaf: str | None, size: int, query: str, sensitive: bool
) -> None:
    def folded(text: str) -> str:
        return text if sensitive else text.lower()

    chosen = selected(entries, scope, leaf)
    expected = [
        (entry["id"], "section:" + part[0]["id"])
        for part in parted(chosen)
        for entry in part
        if folded(query) in folded(search_text(entry))
    ]
    with written(entries) as (index, path):
        how = {"scope": scope, "query": query, "case_sensitive": sensitive, "limit": size}
        try:
            found = pages(index, "session_search", path, leaf, **how)
        except NothingFound:
            assert not chosen
            return
        assert [(one.entry_id, one.section_id) for p in found for one in p.matches] == expected
        assert {page.total for page in found} == {len(expected)}
        assert all(len(page.matches) <= size for page in found)


def joined(found: list[Any], entries: list[Value]) -> list[str]:
    """The entries as their pieces make them up."""
    texts: list[str] = []
    for page in found:
        for piece in page.pieces:
            head, _, rest = piece.partition("\n")
            if " continuation @" in head:
                assert int(head.rpartition("@")[2]) == len(texts[-1])
                texts[-1] += rest
            else:
                texts.append(piece)
    return texts


@given(TREES, SCOPES, LEAVES, st.integers(1, 4), st.integers(100, 160), st.data())
def test_read(
    entries: list[Value], scope: str, leaf: str | None, size: int, body: int, data: st.DataObject
) -> None:
    """A section, and everything from an entry on."""
    chosen = selected(entries, scope, leaf)
    if not chosen:
        return
    parts = parted(chosen)
    number = data.draw(st.integers(0, len(parts) - 1))
    start = data.draw(st.integers(0, len(chosen) - 1))
    how = {"scope": scope, "max_entries": size, "max_body_chars": body}
    first_section = next(
        part for part in parts if part[0]["id"] == parts[number][0]["id"]
    )  # of several with one id the first is meant
    first = next(at for at, one in enumerate(chosen) if one["id"] == chosen[start]["id"])
    with written(entries) as (index, path):
        section_id = f"section:{parts[number][0]['id']}"
        found = pages(index, "read_section", path, leaf, section_id=section_id, **how)
        assert joined(found, entries) == [rendered(entry) for entry in first_section]
        found = pages(index, "read_section", path, leaf, entry_id=chosen[start]["id"], **how)
        assert joined(found, entries) == [rendered(entry) for entry in chosen[first:]]
        assert all(page.pieces for page in found)


@given(TREES, SCOPES, LEAVES)
def test_recovery_context(entries: list[Value], scope: str, leaf: str | None) -> None:
    chosen = selected(entries, scope, leaf)
    with written(entries) as (index, path):
        try:
            found = index.recovery_context(path, leaf_id=leaf, scope=scope)
        except NothingFound:
            assert not chosen
            return
        assert found == index.recovery_context(path, leaf_id=leaf, scope=scope, brute=True)
        roles = [entry.get("message", {}).get("role") for entry in chosen]
        pending: dict[str, str] = {}
        reads: dict[str, None] = {}
        for entry, role in zip(chosen, roles, strict=True):
            if role in ("assistant", "robot"):
                held = entry["message"]["content"]
                pending[held[1]["id"]] = entry["id"]
                if path_of := held[1]["arguments"]["path"].strip():
                    reads[path_of] = None
            elif role == "toolResult":
                pending.pop(entry["message"]["toolCallId"], None)
        assert [(one.id, one.entry_id) for one in found.pending_tool_calls] == [*pending.items()]
        assert list(found.read_files) == list(reads)
        errors = [
            entry["id"] for entry, role in zip(chosen, roles, strict=True) if role == "toolResult"
        ]
        assert [one.entry_id for one in found.recent_errors] == errors[-5:]
        users = [
            entry["id"]
            for entry, role in zip(chosen, roles, strict=True)
            if role == "user" and entry["message"]["content"].strip()
        ]
        first, last = found.original_user_request, found.latest_user_instruction
        assert [one.entry_id for one in (first, last) if one] == (
            [users[0], users[-1]] if users else []
        )
