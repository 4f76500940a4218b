"""session_entries: what is refused, filters, problems, paths, the bound, and what is read."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from build import PROJECT, append, encoded, session, stamp
from hypothesis import given, settings
from hypothesis import strategies as st
from scratch import Store, entries

from sessionindex import SessionIndex, SessionIndexError, scan
from sessionindex.contracts import session_entries
from sessionindex.errors import AccessDenied, ParameterError, SessionFileError

BOUND = {"piRetrospect": {"allowedProjects": ["app"]}}
LIST = "must be a list of non-empty strings"

REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "sessionPath must be a non-empty string"),
    ({"sessionPath": ""}, "sessionPath must be a non-empty string"),
    ({"sessionPath": 5}, "sessionPath must be a non-empty string"),
    ({"sessionPath": "a.jsonl"}, "sessionPath must be an absolute path: a.jsonl"),
    ({"sessionPath": "/x", "session": "y"}, "unknown parameter: session"),
    ({"ids": []}, f"ids {LIST}"),
    ({"parentIds": "a"}, f"parentIds {LIST}"),
    ({"types": [""]}, f"types {LIST}"),
    ({"messageRoles": [1]}, f"messageRoles {LIST}"),
    ({"startLineNo": 0}, "startLineNo must be a positive integer: 0"),
    ({"endLineNo": 1.5}, "endLineNo must be a positive integer: 1.5"),
    ({"startLineNo": 3, "endLineNo": 2}, "endLineNo 2 is before startLineNo 3"),
    ({"startLineNo": 3, "endLineNo": 2, "limit": 0}, "endLineNo 2 is before startLineNo 3"),
    (
        {"startTimestamp": "2026-01-02", "endTimestamp": "2026-01-01"},
        "endTimestamp 2026-01-01 resolves before startTimestamp 2026-01-02",
    ),
    (
        {"startTimestamp": None, "endTimestamp": "x"},
        "startTimestamp must be an ISO 8601 date, or an ISO 8601 date-time"
        " (one with no timezone is read in the host timezone): null",
    ),
    (
        {"startTimestamp": "x", "endTimestamp": None},
        "startTimestamp must be an ISO 8601 date, or an ISO 8601 date-time"
        " (one with no timezone is read in the host timezone): x",
    ),
    ({"startLineNo": 1e22, "endLineNo": 1e21}, "endLineNo 1e+21 is before startLineNo 1e+22"),
    ({"startLineNo": 0, "search": 5}, "search must be an object"),
    ({"search": "x"}, "search must be an object"),
    ({"search": {}}, "search.terms must hold at least one term"),
    ({"search": {"terms": []}}, "search.terms must hold at least one term"),
    ({"search": {"terms": ["a", ""]}}, "search.terms[1] must be a non-empty string"),
    ({"search": {"terms": ["a"], "fuzzy": True}}, "unknown parameter: search.fuzzy"),
    (
        {"search": {"terms": ["a"], "caseSensitive": "no"}},
        "search.caseSensitive must be true or false",
    ),
    ({"limit": 0}, "limit must be a positive integer: 0"),
    ({"limit": True}, "limit must be a positive integer: true"),
)


@pytest.mark.parametrize(("params", "message"), REFUSED)
def test_bad_parameters_are_refused_before_anything_is_opened(
    tmp_path: Path, params: dict[str, Any], message: str
) -> None:
    index = SessionIndex(tmp_path / "nowhere", settings={}, current_session="")
    with pytest.raises(ParameterError) as refused:
        index.call("session_entries", params)
    assert str(refused.value) == message


def story() -> Any:
    """Lines 2 to 9: user, assistant, call, result, system, bash, compaction, name."""
    return (
        session("a")
        .user("Why does the deploy fail?")
        .assistant("It waits for the LOCK", thinking="a lock, surely")
        .call("bash", command="grep lock -r")
        .result("no such lock", error=True)
        .system("You are helpful with locks")
        .bash("git lock", "no output")
        .compaction("they talked about locks", keep=None)
        .info("the lock story")
    )


FILTERS: tuple[tuple[dict[str, Any], list[int]], ...] = (
    ({}, [2, 3, 4, 5, 6, 7, 8, 9]),
    ({"start_line_no": 4}, [4, 5, 6, 7, 8, 9]),
    ({"end_line_no": 4}, [2, 3, 4]),
    ({"start_line_no": 3, "end_line_no": 3}, [3]),
    ({"start_line_no": 1, "end_line_no": 1}, []),
    ({"end_line_no": 10**30}, [2, 3, 4, 5, 6, 7, 8, 9]),
    ({"start_line_no": 10**30}, []),
    ({"limit": 2}, [2, 3]),
    ({"limit": 2, "start_line_no": 5}, [5, 6]),
    ({"types": ["compaction", "session_info"]}, [8, 9]),
    ({"types": ["Message"]}, []),
    ({"message_roles": ["user", "toolResult"]}, [2, 5]),
    ({"message_roles": ["user"], "types": ["compaction"]}, []),
    ({"search": {"terms": ["lock"]}}, [3, 5, 6, 7, 8, 9]),
    ({"search": {"terms": ["LOCK"], "caseSensitive": True}}, [3]),
    ({"search": {"terms": ["deploy", "helpful"]}}, [2, 6]),
    ({"search": {"terms": ["surely"]}}, []),
    ({"search": {"terms": ["-r"]}}, []),
    ({"search": {"terms": ["no output"]}}, []),
    ({"search": {"terms": ["?"]}}, [2]),
    ({"search": {"terms": ["lock"]}, "limit": 2}, [3, 5]),
    ({"start_timestamp": stamp(3), "end_timestamp": stamp(4)}, [4, 5]),
    ({"end_timestamp": "2026-09-09"}, []),
)


@pytest.mark.parametrize(("filters", "lines"), FILTERS)
def test_filters(store: Store, filters: dict[str, Any], lines: list[int]) -> None:
    """Categories are ANDed, values ORed; search sees the contract's text and nothing else."""
    path = store.put("a", story())
    for _ in range(2):
        found = entries(store.index, path, **filters)
        assert [row.entry.line_no for row in found.rows] == lines
        store.index.refresh()


def test_ids_and_parents(store: Store) -> None:
    """Ids are compared as strings, whatever their length; a null matches nothing."""
    long, odd = "entry " * 20, "é\0\ud800"
    path = store.put(
        "a",
        session("a").entry("label", id=long).entry("label", id=odd).entry("label", id="12345678"),
    )
    store.index.refresh()
    for name, line in ((long, 2), (odd, 3), ("12345678", 4)):
        assert [row.entry.line_no for row in entries(store.index, path, ids=[name]).rows] == [line]
    assert [row.entry.line_no for row in entries(store.index, path, parent_ids=[odd]).rows] == [4]
    assert entries(store.index, path, ids=["1234567"]).rows == ()
    assert entries(store.index, path, parent_ids=["null"]).rows == ()


def test_problems_are_complete_whatever_the_filters_are(store: Store) -> None:
    """Also past the limit, also of lines that the index has seen, also of a torn last line."""
    path = store.put(
        "a", session("a").user("one").line(b"").line(b"{").line(b"[]").user("two").user("three")
    )
    store.index.refresh()
    append(path, b'{"type":"session"}\n{"type":"mess')
    want = [
        (3, "invalid_json", "line is blank"),
        (4, "invalid_json", "line is not valid JSON: it cannot be parsed"),
        (5, "invalid_entry", "line is not a JSON object"),
        (8, "invalid_entry", "a session header belongs on line 1, not line 8"),
        (9, "invalid_json", "line is not valid JSON: it cannot be parsed"),
    ]
    for filters in ({}, {"limit": 1}, {"types": ["none"]}, {"search": {"terms": ["three"]}}):
        found = entries(store.index, path, **filters)
        assert [(one.line_no, one.code, one.reason) for one in found.problems] == want


def test_a_last_line_without_its_end_counts_once_it_parses(store: Store) -> None:
    whole = session("a").user("one").user("two").bytes()
    path = store.put("a", whole[:-1])
    store.index.refresh()
    found = entries(store.index, path)
    assert [row.entry.line_no for row in found.rows] == [2, 3] and not found.problems
    append(path, b"\n")
    assert entries(store.index, path).rows == found.rows


@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_versions(store: Store, version: int) -> None:
    """Version 1 has no durable ids and says so first; what came after 3 reads like 3."""
    path = store.put("a", session("a", version=version).user("one").line(b"nope").user("two"))
    store.index.refresh()
    found = entries(store.index, path)
    assert [row.entry.line_no for row in found.rows] == [2, 4]
    durable = version > 1
    assert [row.entry.id is not None for row in found.rows] == [durable, durable]
    codes = [one.code for one in found.problems]
    assert codes == (["invalid_json"] if durable else ["legacy_version", "invalid_json"])
    some = entries(store.index, path, ids=["d4e60001"])
    assert durable or not some.rows


def test_raw_is_the_parsed_line_and_for_output_its_own_bytes(store: Store) -> None:
    line = (
        b'{"type":"x", "timestamp":"2026-01-01T00:00:00Z", "n":1.50, "big":123456789012345678901}'
    )
    path = store.put("a", session("a").line(b"  " + line + b"\r"))
    answer = store.index.call("session_entries", {"sessionPath": path})
    assert answer["entries"][0]["raw"] == json.loads(line)
    written = store.index.written("session_entries", {"sessionPath": path})
    assert written["entries"][0]["raw"] == line


def test_only_lines_that_can_match_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rare search in a long session reads its line, not the session."""
    story = session("a")
    for number in range(400):
        story.assistant(f"number {number} " + "filler text " * 40)
    path = store.put("a", story.user("the needle").assistant("more"))
    os.utime(path, ns=(0, 0))
    store.index.refresh()
    read: list[int] = []
    whole = scan.read_at

    def counted(descriptor: int, offset: int, length: int) -> bytes:
        read.append(length)
        return whole(descriptor, offset, length)

    monkeypatch.setattr(scan, "read_at", counted)
    found = store.index.session_entries(path, search={"terms": ["needle"]})
    assert [row.entry.line_no for row in found.rows] == [402]
    assert sum(read) < 1000
    read.clear()
    assert len(store.index.session_entries(path, limit=3).rows) == 3
    assert sum(read) < os.path.getsize(path)


def test_paths_inside_and_outside(store: Store, tmp_path: Path) -> None:
    """Confinement comes first, links count as what they lead to, and reasons are the system's."""
    path = store.put("a", story())
    other = store.put("b", session("b").user("other"))
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(session("o").user("secret").bytes())
    folder = Path(path).parent
    (folder / "link.jsonl").symlink_to(other)
    (folder / "out.jsonl").symlink_to(outside)
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "dir.jsonl").mkdir()
    os.mkfifo(folder / "fifo.jsonl")
    (folder / "empty.jsonl").write_bytes(b"")
    (folder / "event.jsonl").write_bytes(b'{"type":"start"}\n')
    (folder / "version.jsonl").write_bytes(b'{"type":"session","version":"3"}\n')
    under, could = "sessionPath is not under the sessions root", "could not read session file"
    missing = folder / "missing.jsonl"
    table = (
        (outside, f"{under}: {outside}"),
        (folder / "out.jsonl", f"{under}: {folder / 'out.jsonl'}"),
        (store.root, f"{under}: {store.root}"),
        (f"{folder}/../../outside.jsonl", f"{under}: {folder}/../../outside.jsonl"),
        (missing, f"{could}: ENOENT: No such file or directory"),
        (f"{path}/", f"{could}: ENOTDIR: Not a directory"),
        (folder / "loop.jsonl", f"{could}: ELOOP: Too many levels of symbolic links"),
        (f"{path}\0", f"{could}: EINVAL: Invalid argument"),
        (folder, f"{could}: EISDIR: Is a directory"),
        (folder / "dir.jsonl", f"{could}: EISDIR: Is a directory"),
        (folder / "fifo.jsonl", f"{could}: EINVAL: Invalid argument"),
        (folder / "empty.jsonl", "not a Pi session file: first line is empty"),
        (
            folder / "event.jsonl",
            "not a Pi session file: first line is not a session header (type: start)",
        ),
        (
            folder / "version.jsonl",
            "not a Pi session file: session header version is not a positive integer: 3",
        ),
    )
    for _ in range(2):
        for path, message in table:
            with pytest.raises(SessionFileError) as refused:
                entries(store.index, str(path))
            assert str(refused.value) == message
        through = entries(store.index, str(folder / "link.jsonl"))
        assert through.rows == entries(store.index, other).rows
        store.index.refresh()


def test_any_name_under_the_root_will_do(store: Store) -> None:
    """Reading is not listing: a stray file that begins like a session is one here."""
    stray = store.root / "notes.txt"
    stray.write_bytes(b'{"type":"session"}\n' + encoded({"type": "x", "timestamp": stamp(1)}))
    assert [row.entry.type for row in entries(store.index, str(stray)).rows] == ["x"]


def test_under_the_bound_nothing_can_be_told_apart(store: Store) -> None:
    """Denied, missing, unowned, a folder: one refusal; an allowed container is open as a whole."""
    allowed = store.put("a", session("a", cwd="/r/app").user("mine"))
    denied = store.put("b", session("b", cwd="/r/secret").user("theirs"), "--r-secret--")
    child = store.put("a/run/session", session("c", cwd="/r/secret").user("child"))
    artifact = store.put("a/deep/any", session("d", cwd="/x").user("artifact"))
    hidden = store.put("b/run/session", session("e", cwd="/r/app").user("x"), "--r-secret--")
    stray = store.put("stray", session("s", cwd="/r/app").user("x"), "")
    headless = store.put("h", b'{"type":"session","id":"h"}\n')
    bounded = store.open(settings=BOUND)
    store.index.refresh()
    folder = Path(denied).parent
    (folder / "out").symlink_to("/etc/passwd")
    around = f"../{Path(allowed).parent.name}/a.jsonl"
    around_real = f"/proc/self/root{folder}"
    refused = (
        *(denied, hidden, stray, headless, folder, folder / "missing.jsonl", folder / "x/y"),
        *(folder / "out", folder / "in", f"{denied}/", f"{denied}\0", f"{folder}/\ud800"),
        *(f"{around_real}/b.jsonl", f"{around_real}/missing.jsonl"),
    )
    nowhere = folder.with_name("--r-nosuch--")
    for name in (folder, nowhere, f"{folder}/b/run/../..", f"{folder}/b/no/../.."):
        assert len(entries(bounded, f"{name}/{around}").rows) == 1
    for closed in refused:
        with pytest.raises(AccessDenied):
            entries(bounded, str(closed))
    for opened in (allowed, child, artifact):
        assert len(entries(bounded, opened).rows) == 1
    with pytest.raises(SessionFileError, match="not under the sessions root"):
        bounded.session_entries(str(store.root.parent / "elsewhere.jsonl"))


def test_a_name_that_is_not_utf8_is_read_where_it_is_asked_for(store: Store) -> None:
    """Listing warns of it and no index has it, but a path can name it."""
    path = store.put("a", session("a").user("needle"))
    odd = os.fsencode(path)[:-7] + b"\xff.jsonl"
    Path(os.fsdecode(odd)).write_bytes(Path(path).read_bytes())
    store.index.refresh()
    assert len(entries(store.index, os.fsdecode(odd)).rows) == 1


def test_arguments_of_the_library_are_its_own(store: Store) -> None:
    """Names are snake_case, each once; a path is nothing else."""
    path = store.put("a", story())
    for filters in ({"session_path": path}, {"startLineNo": 2}, {"limit_": 2}):
        with pytest.raises(ParameterError, match="unknown parameter"):
            store.index.session_entries(path, **filters)
    with pytest.raises(ParameterError, match="sessionPath must be a non-empty string"):
        store.index.session_entries(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("indexed", [False, True])
def test_no_answer_mixes_two_states_of_a_file(
    store: Store, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    """A rewrite while the file is read, longer and with the same header, is asked again."""
    old, new = session("a"), session("a")
    for number in range(3000):
        old.user(f"old {number} " + "x" * 2000)
        new.user(f"new {number} " + "x" * 2001)
    path = store.put("a", old.bytes()[: 400_000 if indexed else None])
    store.index.refresh()
    append(path, old.bytes()[os.path.getsize(path) :])
    whole = session_entries.whole_lines

    def rewritten(*arguments: Any) -> Any:
        for number, block in enumerate(whole(*arguments)):
            yield block
            if number == 0 and b"old" in block[1]:
                Path(path).write_bytes(new.bytes())

    monkeypatch.setattr(session_entries, "whole_lines", rewritten)
    found = store.index.session_entries(path, brute=not indexed)
    said = {(row.text or "")[:3] for row in found.rows}
    assert said == {"new"} and len(found.rows) == 3000


def test_a_line_without_end_is_not_kept(store: Store) -> None:
    """What cannot be JSON is a problem whatever its length, and costs no memory."""
    path = store.put("a", session("a").user("needle"))
    with open(path, "ab") as file:
        file.write(b'{"type":"message","text":"')
    os.truncate(path, 256 << 20)
    tracemalloc.start()
    found = store.index.session_entries(path, brute=True)
    assert len(store.index.search("needle", brute=True).hits) == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(one.line_no, one.code) for one in found.problems] == [(3, "invalid_json")]
    assert len(found.rows) == 1 and peak < 60 << 20
    os.truncate(path, 1000)


def test_a_flat_root_owns_by_name(tmp_path: Path) -> None:
    root = Store(tmp_path / "sessions", tmp_path / "index")
    root.root.mkdir()
    allowed = root.put("a", session("a", cwd="/r/app").user("mine"), "")
    child = root.put("a/run/session", session("c", cwd="/x").user("child"), "")
    denied = root.put("b", session("b", cwd="/r/secret").user("theirs"), "")
    bounded = root.open(settings=BOUND, layout="flat")
    assert len(entries(bounded, allowed).rows) == len(entries(bounded, child).rows) == 1
    with pytest.raises(AccessDenied):
        entries(bounded, denied)


def test_the_bound_is_asked_before_parameters_and_they_before_paths(store: Store) -> None:
    broken = store.open(settings={"piRetrospect": {"allowedProjects": None}})
    message = "piRetrospect.allowedProjects is not a valid project allowlist"
    with pytest.raises(SessionIndexError, match=message):
        broken.call("session_entries", {"limit": 0})
    with pytest.raises(ParameterError):
        store.index.call("session_entries", {"sessionPath": "/outside", "limit": 0})


def test_paging_by_line_delivers_every_entry_once_while_the_file_grows(store: Store) -> None:
    story = session("a")
    for number in range(20):
        story.user(f"entry {number}")
    path = store.put("a", story)
    store.index.refresh()
    seen: list[int] = []
    start = 2
    while rows := entries(store.index, path, start_line_no=start, limit=7).rows:
        seen += [row.entry.line_no for row in rows]
        start = seen[-1] + 1
        if len(story) < 30:
            before = len(story)
            append(path, story.user("grown").tail(before))
    assert seen == list(range(2, len(story) + 1))


# --- random sessions -----------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        b"",
        b"{",
        b"[1]",
        b'{"type":"session"}',
        b'{"type":"x"}',
        encoded({"type": "x", "timestamp": stamp(5), "id": "a"}),
        encoded({"type": "y", "timestamp": "2026-09-10T09:00:07", "id": "b", "parentId": "a"}),
        encoded(
            {
                "type": "message",
                "timestamp": stamp(9),
                "id": "c",
                "parentId": "b",
                "message": {"role": "user", "content": "An ÄPFEL line\nwith two"},
            }
        ),
        encoded(
            {
                "type": "message",
                "timestamp": stamp(2),
                "id": "a",
                "parentId": "c",
                "message": {"role": "system", "sections": {"b": "äpfel", "1": "first"}},
            }
        ),
    ]
)
ASKED = st.fixed_dictionaries(
    {},
    optional={
        "start_line_no": st.integers(1, 12),
        "ids": st.lists(st.sampled_from("abcd"), min_size=1, max_size=2),
        "parent_ids": st.lists(st.sampled_from("abcd"), min_size=1, max_size=2),
        "types": st.lists(st.sampled_from(["x", "y", "message"]), min_size=1, max_size=2),
        "message_roles": st.lists(st.sampled_from(["user", "system"]), min_size=1, max_size=1),
        "start_timestamp": st.sampled_from([stamp(4), "2026-09-10T09:00:07", "2026-09-11"]),
        "limit": st.integers(1, 5),
        "search": st.fixed_dictionaries(
            {"terms": st.lists(st.sampled_from(["äpf", "l", "e\nw", "st\n\nä", "zz"]), min_size=1)},
            optional={"caseSensitive": st.booleans()},
        ),
    },
)


@settings(max_examples=150)
@given(
    lines=st.lists(LINES, max_size=8),
    tail=st.lists(LINES, max_size=3),
    torn=st.booleans(),
    asked=st.lists(ASKED, min_size=1, max_size=4),
)
def test_the_index_and_the_file_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    tail: list[bytes],
    torn: bool,
    asked: list[dict[str, Any]],
) -> None:
    scratch = tmp_path_factory.mktemp("random")
    store = Store(scratch / "sessions", scratch / "index")
    story = session("a")
    for line in lines:
        story.line(line)
    path = store.put("a", story, PROJECT)
    store.index.refresh()
    append(path, b"\n".join(tail) + (b"" if torn else b"\n"))
    for filters in asked:
        entries(store.index, path, **filters)
    store.index.refresh()
    for filters in asked:
        entries(store.index, path, **filters)
    assert store.index.check().differences == ()
    store.index.close()
