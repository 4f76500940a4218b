"""The four recovery tools as a caller sees them: stories, and what each tool says of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from build import CWD, PROJECT, Builder, append, encoded, session
from scratch import Store

from sessionindex import SessionIndex, recovery
from sessionindex.errors import (
    AccessDenied,
    CallRefused,
    NothingFound,
    ParameterError,
    PolicyError,
    SessionFileError,
)
from sessionindex.session import OpenSession
from sessionindex.text import compact_json
from sessionindex.tools import RECOVERY
from sessionindex.wire.recovery import MAX_CHARS

TOOLS = ("overview", "read_section", "search", "recovery_context")
OTHER = {"piRetrospect": {"allowedProjects": ["other"]}}
EMPTY = (
    "No raw session entries are available for scope {}. The session may be new, ephemeral, or"
    " unavailable in this context."
)


def asked(tool: str) -> dict[str, Any]:
    """The least that a tool has to be asked."""
    return {"read_section": {"section_id": "section:x"}, "search": {"query": "x"}}.get(tool, {})


def call(index: SessionIndex, tool: str, path: str | None, **params: Any) -> dict[str, Any]:
    return index.call(f"session_{tool}", params, session=path)


def ids(story: Builder) -> list[str]:
    return [json.loads(line)["id"] for line in story.bytes().splitlines()[1:]]


def long_story(count: int) -> Builder:
    story = session("long")
    for number in range(count):
        story.user(f"question {number}").assistant("needle " + "answer " * number)
    return story


# --- what comes out ------------------------------------------------------------------------------


def test_a_session_is_recovered(store: Store) -> None:
    """The task, what was touched, what failed, what is open, and what was done last."""
    story = (
        session("s", parentSession="/p")
        .user("Fix the parser")
        .call("read", path="parser.py")
        .result("code")
        .call("edit", path="parser.py")
        .result("no such file", error=True)
        .compaction("Parser work so far")
        .user("Now the tests")
        .call("write", path="tests.py")
        .info("parsing")
    )
    path = store.put("s", story)
    first, second, last = (ids(story)[place] for place in (0, 5, 6))
    answer = call(store.index, "recovery_context", path)["content"]
    assert answer["originalUserRequest"] == {
        "entryId": first,
        "sectionId": f"section:{first}",
        "text": "Fix the parser",
    }
    assert answer["latestUserInstruction"]["entryId"] == last
    assert (answer["readFiles"], answer["modifiedFiles"]) == (
        ["parser.py"],
        ["parser.py", "tests.py"],
    )
    assert [error["message"] for error in answer["recentErrors"]] == ["no such file"]
    assert [pending["name"] for pending in answer["pendingToolCalls"]] == ["write"]
    assert answer["lastMeaningfulAction"]["toolCalls"][0]["name"] == "write"
    overview = call(store.index, "overview", path)["content"]
    assert overview["session"] == {
        "id": "s",
        "name": "parsing",
        "persisted": True,
        "hasParentSession": True,
    }
    assert [section["id"] for section in overview["sections"]] == [
        f"section:{one}" for one in (first, second, last)
    ]
    assert overview["sections"][1]["label"] == "Compaction: Parser work so far"
    found = call(store.index, "search", path, query="PARSER")["content"]
    assert found["totalMatches"] == 4
    read = call(store.index, "read_section", path, section_id=f"section:{last}")["content"]
    assert read.startswith(f"Section section:{last}: Now the tests\n\n[{last}] ")


def test_methods_of_the_library(store: Store) -> None:
    """One for each tool, with values; what a tool says instead of an answer is raised."""
    path = store.put("s", long_story(3))
    index = store.index
    page = index.overview(path, max_sections=2)
    assert (len(page.sections), page.section_count, page.has_more) == (2, 3, True)
    assert len(index.overview(path, cursor=page.next_cursor).sections) == 1
    assert index.session_search(path, "needle", limit=1).total == 3
    assert index.read_section(path, entry_id=page.sections[0].start_entry_id).entry_count == 6
    assert index.recovery_context(path, scope="all").entry_count == 6
    with pytest.raises(NothingFound, match="was not found in scope active"):
        index.read_section(path, entry_id="gone")
    with pytest.raises(CallRefused, match="must not be empty"):
        index.session_search(path, " ")
    assert NothingFound.exit_status == 1 and CallRefused.exit_status == 2


def test_branches(store: Store) -> None:
    """The active one from the last line, or from the leaf that is given; all of them in order."""
    story = session("s").user("root")
    root = ids(story)[0]
    story.user("left", at=None)
    story.entry("message", parentId=root, message={"role": "user", "content": "right"})
    path = store.put("s", story)
    root, left, _ = ids(story)

    def labels(**more: Any) -> list[str]:
        answer = store.index.call("session_overview", more.pop("params", {}), session=path, **more)
        content = answer["content"]
        return [one["label"] for one in content["sections"]] if content != EMPTY else []

    assert labels() == ["root", "right"]
    assert labels(leaf_id=left) == ["root", "left"]
    assert labels(leaf_id=root) == ["root"]
    assert labels(params={"scope": "all"}) == ["root", "left", "right"]
    for leaf in ("", "gone"):
        answer = store.index.call("session_overview", {}, session=path, leaf_id=leaf)
        assert answer["content"] == EMPTY.format("active")
    counts = call(store.index, "overview", path)["content"]["counts"]
    assert (counts["leaves"], counts["otherBranches"]) == (2, 1)
    assert call(store.index, "search", path, query="left")["content"]["totalMatches"] == 0


def test_control_entries_are_counted_as_leaves_only(store: Store) -> None:
    story = session("s").user("a").custom("dcp-nudge", {"x": "hidden"}).assistant("b")
    path = store.put("s", story)
    counts = call(store.index, "overview", path)["content"]["counts"]
    assert counts["allEntries"] == 2
    assert (counts["leaves"], counts["otherBranches"]) == (1, 0)
    assert "hidden" not in compact_json(call(store.index, "overview", path))


def test_the_call_that_asks_is_not_pending(store: Store) -> None:
    story = session("s").user("a").call("session_recovery_context")
    path = store.put("s", story)
    executing = json.loads(story.bytes().splitlines()[-1])["message"]["content"][0]["id"]
    answer = store.index.call("session_recovery_context", {}, session=path, tool_call_id=executing)[
        "content"
    ]
    assert answer["pendingToolCalls"] == []
    assert answer["lastMeaningfulAction"]["preview"] == "a"


@pytest.mark.parametrize("count", [50, 51, 195])
def test_long_lists_keep_their_ends(store: Store, count: int) -> None:
    """50 calls, 200 files: the first half and the last half, the rest counted."""
    story = session("s").user("a")
    for number in range(count):
        story.call("read", paths=[f"{number}-{part}" for part in range(5)])
    answer = call(store.index, "recovery_context", store.put("s", story))["content"]
    assert len(answer["pendingToolCalls"]) + answer["omittedPendingToolCalls"] == count
    assert len(answer["pendingToolCalls"]) == min(count, 50)
    assert len(answer["readFiles"]) + answer["omittedReadFiles"] == 5 * count
    assert (answer["readFiles"][0], answer["readFiles"][-1]) == ("0-0", f"{count - 1}-4")


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "returned"),
    [(1, 1), (2.9, 2), (0, 1), (-5, 1), (1e9, 30), ("2", 20), (None, 20), (True, 20), ([], 20),
     (float("nan"), 20), (float("inf"), 20), (10**400, 20)],
)  # fmt: skip
def test_limits_fall_back_and_clamp(store: Store, value: Any, returned: int) -> None:
    path = store.put("s", long_story(30))
    answer = call(store.index, "overview", path, max_sections=value)["details"]
    assert answer["returnedSections"] == returned


@pytest.mark.parametrize(
    ("tool", "params", "message"),
    [
        ("overview", {"scope": "both"}, "scope must be one of active, all"),
        ("overview", {"scope": None}, "scope must be one of active, all"),
        ("overview", {"session": "/x"}, "unknown parameter: session"),
        ("overview", {"maxSections": 3}, "unknown parameter: maxSections"),
        ("overview", {"cursor": 5}, "cursor must be a string"),
        ("read_section", {"section_id": None}, "section_id must be a string"),
        ("read_section", {"query": "x"}, "unknown parameter: query"),
        ("search", {}, "query must be a string"),
        ("search", {"query": 5}, "query must be a string"),
        ("search", {"query": "x", "case_sensitive": "yes"}, "case_sensitive must be true or false"),
        ("recovery_context", {"cursor": "x"}, "unknown parameter: cursor"),
        ("recovery_context", {"tool_call_id": "x"}, "unknown parameter: tool_call_id"),
    ],
)
def test_parameters_are_refused_before_anything_is_opened(
    store: Store, tool: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        store.index.call(f"session_{tool}", params, session=str(store.root / "--p--" / "x.jsonl"))
    assert str(refused.value) == message


def chain(index: SessionIndex, tool: str, path: str, **params: Any) -> list[dict[str, Any]]:
    """All pages of a question."""
    pages = []
    first: dict[str, Any] = params
    while True:
        page = call(index, tool, path, **first)
        pages.append(page)
        cursor = page["details"].get("nextCursor")
        if cursor is None:
            return pages
        keep = {"scope", "query", "max_sections", "max_entries", "max_body_chars", "limit"}
        first = {k: v for k, v in params.items() if k in keep} | {"cursor": cursor}
        assert len(pages) < 2000


def test_no_answer_is_longer_than_allowed(store: Store) -> None:
    """A page holds less instead, and the next goes on where it ended."""
    story = session("s").info("n" * 5000)
    for number in range(120):
        story.user(f"\x01 needle {number} " + "\x01" * 400)
        for one in range(3):
            tool = f"tool{number}" + "\x01" * 40
            story.call(tool, path="\x01" * 50 + str(one)).call(
                "read", path=f"{number}/" + "x" * 300
            )
        story.result("\x01" * 600, error=True)
    path = store.put("s", story)
    pages = chain(store.index, "overview", path, max_sections=100)
    sections = [one["id"] for page in pages for one in page["content"]["sections"]]
    assert len(sections) == len(set(sections)) == 121
    assert all(len(compact_json(page["content"])) <= MAX_CHARS for page in pages)
    pages = chain(store.index, "search", path, query="needle", limit=50)
    matches = [one["entryId"] for page in pages for one in page["content"]["matches"]]
    assert len(matches) == len(set(matches)) == 120
    assert all(len(compact_json(page["content"])) <= MAX_CHARS for page in pages)
    answer = call(store.index, "recovery_context", path, recent_error_limit=20)
    assert len(compact_json(answer["content"])) <= MAX_CHARS
    content = answer["content"]
    assert len(content["readFiles"]) + content["omittedReadFiles"] == 120
    assert content["originalUserRequest"]["text"].startswith("\x01 needle 0")
    for page in chain(store.index, "read_section", path, entry_id=ids(story)[1], max_entries=50):
        assert len(page["content"]) <= MAX_CHARS


def test_reading_ends_with_its_cursor(store: Store) -> None:
    path = store.put("s", session("s").user("x" * 500))
    section = call(store.index, "overview", path)["content"]["sections"][0]["id"]
    page = call(store.index, "read_section", path, section_id=section, max_body_chars=100)
    cursor = page["details"]["nextCursor"]
    assert page["content"].endswith(f"\n\n… more available; continue with next_cursor: {cursor}")


# --- cursors -------------------------------------------------------------------------------------

INVALID = {
    "overview": "Invalid or stale session_overview cursor for this scope.",
    "read_section": "Invalid or stale session_read_section cursor for this scope.",
    "search": "Invalid or stale session_search cursor for this scope/query.",
}
CHANGED = {
    "overview": "The session changed and the overview cursor no longer resolves on this branch.",
    "read_section": INVALID["read_section"],
    "search": "The session changed and the search cursor no longer resolves on this branch.",
}
FIRST = {
    "overview": {"max_sections": 1},
    "read_section": {"entry_id": "00000001", "max_entries": 1},
    "search": {"query": "needle", "limit": 1},
}


def plain(texts: list[str], **header: Any) -> Builder:
    """User messages with the ids 00000001, 00000002, ..."""
    story = session("s", **header)
    for number, text in enumerate(texts, 1):
        parent = f"{number - 1:08}" if number > 1 else None
        content = {"role": "user", "content": text}
        story.entry("message", id=f"{number:08}", parentId=parent, message=content)
    return story


def cursor_of(index: SessionIndex, tool: str, path: str, **more: Any) -> str:
    return str(call(index, tool, path, **FIRST[tool], **more)["details"]["nextCursor"])


def again(index: SessionIndex, tool: str, path: str, cursor: str, **more: Any) -> dict[str, Any]:
    params = {"query": "needle"} if tool == "search" else {}
    return call(index, tool, path, **(params | more), cursor=cursor)


@pytest.mark.parametrize("tool", INVALID)
def test_cursors_that_are_refused(store: Store, tool: str) -> None:
    """Garbled, too long, of another tool, scope, query, session: never guessed."""
    texts = ["a needle", "b needle", "c needle"]
    path = store.put("s", plain(texts))
    twin = store.put("twin", plain(texts))
    index = store.index
    cursor = cursor_of(index, tool, path)
    assert again(index, tool, path, cursor)["details"].get("cursorValid") is None
    assert len(cursor) < 400
    others = [cursor_of(index, other, path) for other in FIRST if other != tool]
    forged = [cursor[:-1], cursor[1:], cursor + "A", "!!!!", "é", "x", "A" * 2001, cursor * 9]
    for wrong in (*others, *forged, cursor_of(index, tool, twin)):
        answer = again(index, tool, path, wrong)
        assert answer["content"] == INVALID[tool]
        assert answer["details"]["cursorValid"] is False
    answer = again(index, tool, path, cursor, scope="all")
    assert answer["content"] == INVALID[tool]
    if tool == "search":
        for more in ({"query": "Needle"}, {"case_sensitive": True}):
            assert again(index, tool, path, cursor, **more)["content"] == INVALID[tool]


@pytest.mark.parametrize("tool", INVALID)
@pytest.mark.parametrize(
    ("rule", "after"),
    [
        ("another id", plain(["a needle", "b needle"]).bytes().replace(b"0000", b"1111")),
        ("a file that is shorter", plain(["a needle"]).bytes()[:-2]),
        ("a line before it", plain([]).raw(b"\n").raw(plain(["a needle"] * 3).tail(1)).bytes()),
    ],
)  # fmt: skip
def test_stale_cursors(store: Store, tool: str, rule: str, after: bytes) -> None:
    """Refused where the line no longer carries the entry."""
    path = store.put("s", plain(["a needle", "b needle", "c needle"]))
    first = FIRST[tool]
    second = call(store.index, tool, path, **first)["details"]["nextCursor"]
    Path(path).write_bytes(after)
    answer = again(store.index, tool, path, second)
    assert answer["content"] in (CHANGED[tool], EMPTY.format("active")), rule
    store.put("s", b"")  # an empty file is no problem to anybody


def test_a_search_whose_last_match_went(store: Store) -> None:
    path = store.put("s", plain(["a needle", "b needle"]))
    cursor = cursor_of(store.index, "search", path)
    store.put("s", plain(["a nothing", "b needle"]))
    assert again(store.index, "search", path, cursor)["content"] == CHANGED["search"]


def test_another_branch_is_another_selection(store: Store) -> None:
    """A cursor does not outlive its branch."""
    story = plain(["a needle", "b needle", "c needle"])
    path = store.put("s", story)
    overview = call(store.index, "overview", path, max_sections=2)["details"]["nextCursor"]
    append(path, encoded({"type": "message", "id": "z", "parentId": "00000001",
                          "message": {"role": "user", "content": "d needle"}}) + b"\n")  # fmt: skip
    assert again(store.index, "overview", path, overview)["content"] == CHANGED["overview"]


@pytest.mark.parametrize("scope", ["active", "all"])
@pytest.mark.parametrize("tool", INVALID)
def test_a_session_that_grows_between_pages(store: Store, tool: str, scope: str) -> None:
    """Every section, match and entry comes once, the new ones too."""
    story = plain([f"{number} needle" for number in range(1, 6)])
    path = store.put("s", story)
    page = call(store.index, tool, path, **FIRST[tool], scope=scope)
    seen = [page]
    grown = plain([f"{number} needle" for number in range(1, 9)])
    append(path, grown.tail(6))
    while cursor := seen[-1]["details"].get("nextCursor"):
        seen.append(again(store.index, tool, path, cursor, scope=scope))
    text = compact_json([page["content"] for page in seen])
    for number in range(1, 9):
        assert text.count(f"{number} needle") == 1


def test_repeated_ids(store: Store) -> None:
    """Sections, matches and entries that share an id each come once."""
    story = session("s")
    for number in range(6):
        content = {"role": "user", "content": f"{number} needle"}
        story.entry("message", id="same", parentId=None, message=content)
    path = store.put("s", story)
    for tool, first in FIRST.items():
        params = first | ({"entry_id": "same"} if tool == "read_section" else {})
        pages = chain(store.index, tool, path, scope="all", **params)
        text = compact_json([page["content"] for page in pages])
        assert [text.count(f"{number} needle") for number in range(6)] == [1] * 6
        assert len(pages) == 6


# --- sessions without anything -------------------------------------------------------------------

NOTHING = {
    "an empty file": b"",
    "only a header": session("s").bytes(),
    "version 1": session("s", version=1).user("x").bytes(),
    "control entries only": session("s").custom("dcp-journal", 1).custom("dcp-nudge", 2).bytes(),
    "a torn line": session("s").raw(b'{"type":"message","id":"a"').bytes(),
    "no ids": session("s").line(b'{"type":"message","message":{"role":"user"}}').bytes(),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", NOTHING)
def test_sessions_without_entries_explain_themselves(store: Store, name: str, tool: str) -> None:
    path = store.put("s", NOTHING[name])
    for scope in ("active", "all"):
        answer = call(store.index, tool, path, scope=scope, **asked(tool))
        assert answer == {
            "content": EMPTY.format(scope),
            "details": {"scope": scope, "entryCount": 0},
        }


@pytest.mark.parametrize("tool", TOOLS)
def test_without_a_session(store: Store, tool: str) -> None:
    """No current session, or one that has no file yet: the same normal answer."""
    for current in ("", str(store.root / PROJECT / "new.jsonl")):
        index = store.open(current_session=current)
        answer = call(index, tool, None, **asked(tool))
        assert answer["content"] == EMPTY.format("active")


# --- which session -------------------------------------------------------------------------------


def test_the_current_session_is_exempt(store: Store, tmp_path: Path) -> None:
    """From the bound, from the root, and from a policy that cannot be read."""
    inside = store.put("s", long_story(2))
    outside = tmp_path / "elsewhere.jsonl"
    outside.write_bytes(long_story(2).bytes())
    for bound in (OTHER, {"piRetrospect": {"allowedProjects": None}}):
        for path in (inside, str(outside)):
            index = store.open(settings=bound, current_session=path)
            for named in (None, path):
                assert call(index, "overview", named)["details"]["entryCount"] == 4


def test_other_sessions_are_bound(store: Store) -> None:
    """Denied, unowned and missing look the same."""
    mine = store.put("mine", session("mine").user("x"))
    path = store.put("s", session("s").user("x"))
    owned = store.put("s/async-1/session", session("child").user("x"))
    deep = store.put("deep", session("deep").user("x"), f"{PROJECT}/a/b")
    gone = str(store.root / PROJECT / "gone.jsonl")
    index = store.open(settings=OTHER, current_session=mine)
    for tool in TOOLS:
        for denied in (path, owned, deep, gone):
            with pytest.raises(AccessDenied):
                call(index, tool, denied, **asked(tool))
    broken = store.open(settings={"piRetrospect": 5}, current_session=mine)
    with pytest.raises(PolicyError):
        call(broken, "overview", path, scope="neither")
    allowed = store.open(settings={"piRetrospect": {"allowedProjects": [os.path.basename(CWD)]}})
    for admitted in (path, owned, "child"):
        assert call(allowed, "overview", admitted)["details"]["entryCount"] == 1
    with pytest.raises(AccessDenied):
        call(allowed, "overview", deep)
    assert call(store.index, "overview", deep)["details"]["entryCount"] == 1


@pytest.mark.parametrize("bound", [{}, OTHER])
def test_other_sessions_are_confined(store: Store, tmp_path: Path, bound: dict[str, Any]) -> None:
    outside = tmp_path / "elsewhere.jsonl"
    outside.write_bytes(session("s").user("x").bytes())
    link = store.root / PROJECT / "link.jsonl"
    link.parent.mkdir()
    link.symlink_to(outside)
    index = store.open(settings=bound)
    for path in (str(outside), f"{store.root}/../elsewhere.jsonl", "/x\0.jsonl"):
        with pytest.raises(SessionFileError, match="is not under the sessions root"):
            call(index, "overview", path)
    with pytest.raises(AccessDenied if bound else SessionFileError):  # it may be a denied one's
        call(index, "overview", str(link))
    link.unlink()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "could not read session file: ENOENT: No such file or directory"),
        (b"hello\n", "not a Pi session file: first line is not valid JSON: it cannot be parsed"),
        (b'{"type":"x"}\n', "not a Pi session file: first line is not a session header (type: x)"),
    ],
)
def test_files_that_are_no_sessions(store: Store, data: bytes | None, reason: str) -> None:
    path = str(store.root / PROJECT / "s.jsonl")
    if data is not None:
        store.put("s", data)
    with pytest.raises(SessionFileError) as refused:
        call(store.index, "overview", path)
    assert str(refused.value) == reason


def test_the_names_of_the_tools() -> None:
    """Known without loading what they do."""
    assert set(recovery.TOOLS) == RECOVERY == {f"session_{tool}" for tool in TOOLS}


@pytest.mark.parametrize("times", [1, 5, 6, 99])
def test_a_file_that_is_rewritten_under_the_question(
    store: Store, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """The question is put again; where that never ends, it is an error, not a mixture."""
    path = store.put("s", plain(["0 needle"] * 3))
    read, left = OpenSession.read, [times]

    def rewriting(self: OpenSession, *how: Any) -> Any:
        if left[0]:
            left[0] -= 1
            store.put("s", plain(["o" * (left[0] + 1)] * 2))
        return read(self, *how)

    monkeypatch.setattr(OpenSession, "read", rewriting)
    if times < 6:
        answer = call(store.index, "overview", path)["content"]
        assert [one["label"] for one in answer["sections"]] == ["o"] * 2
    else:
        with pytest.raises(SessionFileError, match="changes faster than it can be read"):
            call(store.index, "overview", path)


def test_unknown_tools(store: Store) -> None:
    with pytest.raises(ParameterError, match="unknown tool: session_reading"):
        store.index.call("session_reading", {})
