"""What only a tree and its calls can tell: branch, compacted, tools, errors, touched, each asked
with and without the index, with terms and without.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from build import Builder, append, session
from scratch import Store, ask, places

from sessionindex import SessionIndex, scan
from sessionindex.contracts.search_sessions import SearchResult
from sessionindex.errors import ParameterError

STRINGS = "must be a list of non-empty strings"
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"branch": "main"}, "branch must be one of active, abandoned, any"),
    ({"branch": ["active"]}, "branch must be one of active, abandoned, any"),
    ({"branch": None}, "branch must be one of active, abandoned, any"),
    ({"compacted": True}, "compacted must be one of hidden, visible, any"),
    ({"compacted": "Hidden"}, "compacted must be one of hidden, visible, any"),
    ({"tools": "edit"}, f"tools {STRINGS}"),
    ({"tools": []}, f"tools {STRINGS}"),
    ({"tools": [""]}, f"tools {STRINGS}"),
    ({"tools": ["edit", 1]}, f"tools {STRINGS}"),
    ({"errors": 1}, "errors must be true or false"),
    ({"errors": "true"}, "errors must be true or false"),
    ({"touched": ""}, "touched must be a non-empty string"),
    ({"touched": ["a.py"]}, "touched must be a non-empty string"),
    ({"touched": None}, "touched must be a non-empty string"),
    ({"tool": ["edit"]}, "unknown parameter: tool"),
    ({}, f"terms {STRINGS}"),
    ({"errors": False}, f"terms {STRINGS}"),
    ({"branch": "any"}, f"terms {STRINGS}"),
    ({"branch": "any", "compacted": "any", "errors": False}, f"terms {STRINGS}"),
    ({"types": ["message"], "messageRoles": ["user"]}, f"terms {STRINGS}"),
    ({"startTimestamp": "2026-01-01", "cwds": ["/r/app"]}, f"terms {STRINGS}"),
    ({"terms": [], "errors": True}, f"terms {STRINGS}"),
    ({"terms": [""], "errors": True}, f"terms {STRINGS}"),
)


@pytest.mark.parametrize(("params", "message"), REFUSED)
def test_what_is_refused(params: dict[str, Any], message: str, store: Store) -> None:
    """Wrong shapes in fixed words; no terms only where something asks about the entries."""
    for brute in (False, True):
        with pytest.raises(ParameterError) as refused:
            store.index.call("search_sessions", params, brute=brute)
        assert str(refused.value) == message


def identity(told: Builder) -> str:
    """The id of the last entry."""
    return str(json.loads(told.tail(len(told) - 1))["id"])


def story() -> Builder:
    """A tree of 14 lines: two branches from line 3, a compaction that keeps from line 8 on."""
    told = session("a").user("needle first").assistant("needle plan")  # 2, 3
    fork = identity(told)
    told.call("edit", path="/r/app/src/a.py").result("needle lost", error=True)  # 4, 5
    told.entry("label", label="needle", parentId=fork)  # 6
    told.call("read", path="src/a.py", more="needle").result("needle text")  # 7, 8
    kept = identity(told)
    told.call("bash", command="cat src/a.py").result("needle failed", error=True)  # 9, 10
    told.compaction("needle summary", keep=kept)  # 11
    told.call("write", file_path="b/a.py")  # 12
    return told.result("done").user("needle last")  # 13, 14


ALL = set(range(2, 15))
ACTIVE = ALL - {4, 5}
TABLE: tuple[tuple[str, dict[str, Any], set[int]], ...] = (
    ("the branch of the last entry", {"branch": "active"}, ACTIVE),
    ("what is off it", {"branch": "abandoned"}, {4, 5}),
    ("before the first kept entry", {"compacted": "hidden"}, {2, 3, 6, 7}),
    ("active and not hidden", {"compacted": "visible"}, ACTIVE - {2, 3, 6, 7}),
    ("nothing is hidden off the branch", {"branch": "abandoned", "compacted": "hidden"}, set()),
    ("nor visible there", {"branch": "abandoned", "compacted": "visible"}, set()),
    ("any with another", {"branch": "any", "compacted": "hidden"}, {2, 3, 6, 7}),
    ("a call and its result", {"tools": ["edit"]}, {4, 5}),
    ("any of the tools", {"tools": ["edit", "bash"]}, {4, 5, 9, 10}),
    ("names are whole and have a case", {"tools": ["Edit", "edi", "ash"]}, set()),
    ("results that failed", {"errors": True}, {5, 10}),
    ("any end of a path", {"touched": "a.py"}, {4, 7, 12}),
    ("at a slash", {"touched": "src/a.py"}, {4, 7}),
    ("a slash before it is a part of it", {"touched": "/src/a.py"}, {4}),
    ("the whole path", {"touched": "/r/app/src/a.py"}, {4}),
    ("not more than it", {"touched": "/dev/r/app/src/a.py"}, set()),
    ("not the end of a name", {"touched": ".py"}, set()),
    ("not the beginning", {"touched": "src"}, set()),
    ("case counts", {"touched": "A.py"}, set()),
    ("shell commands prove nothing", {"touched": "a.py", "tools": ["bash"]}, set()),
    ("all of them together", {"branch": "abandoned", "tools": ["edit"], "errors": True}, {5}),
    ("hidden reads", {"compacted": "hidden", "touched": "src/a.py"}, {7}),
    ("errors that are still seen", {"compacted": "visible", "errors": True}, {10}),
    ("with those of other kinds", {"tools": ["edit"], "message_roles": ["toolResult"]}, {5}),
    ("and types", {"branch": "active", "types": ["label", "compaction"]}, {6, 11}),
)
NEEDLES = ALL - {4, 9, 12, 13}


@pytest.mark.parametrize("state", ["no index", "indexed", "appended"])
@pytest.mark.parametrize(("rule", "filters", "expected"), TABLE)
def test_each_filter(
    rule: str, filters: dict[str, Any], expected: set[int], state: str, store: Store
) -> None:
    """Every filter must hold; terms, where there are any, narrow what it leaves."""
    told = story()
    path = store.put("a", told.bytes())
    if state == "appended":
        Path(path).write_bytes(told.bytes()[: -len(told.tail(9))])
    if state != "no index":
        store.index.refresh()
    if state == "appended":
        append(path, told.tail(9))
    found = ask(store.index, **filters)
    assert {line for _, line in places(found)} == expected, rule
    assert (found.total, found.sessions) == (len(expected), bool(expected)), rule
    assert all(not hit.matches for hit in found.hits), rule
    for mode in ("any", "all", "session"):
        narrowed = ask(store.index, "needle", match=mode, **filters)
        assert {line for _, line in places(narrowed)} == expected & NEEDLES, rule
        assert all(hit.matches for hit in narrowed.hits), rule
    assert places(ask(store.index, "nowhere", **filters)) == []


def one(store: Store, builder: Builder, **filters: Any) -> list[tuple[int, str, str]]:
    """Line, kind and snippet of the hits in one session, the oldest first."""
    store.put("a", builder)
    store.index.refresh()
    found = ask(store.index, order="oldest", **filters)
    return [(hit.line_no, hit.kind, hit.snippet) for hit in found.hits]


def test_the_kind_without_terms_is_the_first_that_is_there(store: Store) -> None:
    """In the order of kinds, among those asked for; an entry without any of them is no hit."""
    told = session("a").assistant("said", thinking="thought").call("edit", path="a.py")
    call_id = json.loads(told.tail(2))["message"]["content"][0]["id"]
    told.result("", details={"n": 1}).bash("ls", "out").system("prompt").info("name")
    told.entry("model_change", modelId="m").custom("notes", {"kept": 1})
    call = 'edit {"path":"a.py"}'
    assert one(store, told, branch="active") == [
        (2, "text", "said"),
        (3, "tools", call),
        (4, "tools", "tool_result edit#" + call_id),
        (5, "shell", "ls out"),
        (7, "text", "name"),
    ]
    rare = {"kinds": ["system", "details", "thinking"]}
    assert one(store, told, branch="active", **rare) == [
        (2, "thinking", "thought"),
        (4, "details", '{"n":1}'),
        (6, "system", "prompt"),
        (9, "details", '{"kept":1}'),
    ]
    assert one(store, told, tools=["edit"], kinds=["text"]) == []
    assert one(store, told, branch="active", message_roles=["system"]) == [(6, "system", "prompt")]


def test_the_snippet_without_terms_is_the_start(store: Store) -> None:
    """White space squeezed, 200 characters, no matches."""
    told = session("a").user(" one\n\n two " + "x" * 500)
    ((_, kind, snippet),) = one(store, told, branch="active")
    assert (kind, len(snippet)) == ("text", 200)
    assert snippet.startswith("one two xxx") and snippet.endswith("…")


def test_match_means_nothing_without_terms(store: Store) -> None:
    store.put("a", story())
    store.index.refresh()
    whole = ask(store.index, errors=True)
    for mode in ("any", "all", "session"):
        assert ask(store.index, errors=True, match=mode) == whole


def test_a_session_counts_what_the_filters_leave_out(store: Store) -> None:
    """`match: session`: terms may stand anywhere in the file; only hits must pass the filters."""
    store.put("a", session("a").user("beta").call("edit", path="alpha.py").result("x", error=True))
    store.put("b", session("b").call("edit", path="alpha.py"))
    for _ in range(2):
        asked: dict[str, Any]
        for asked in (
            {"tools": ["edit"]},
            {"touched": "alpha.py"},
            {"branch": "active", "types": ["message"], "message_roles": ["assistant"]},
        ):
            found = ask(store.index, "alpha", "beta", match="session", **asked)
            assert places(found) == [("a", 3)], asked
        for asked in ({"branch": "abandoned"}, {"compacted": "hidden"}, {"errors": True}):
            assert places(ask(store.index, "alpha", "beta", match="session", **asked)) == []
        store.index.refresh()


# --- pages ---------------------------------------------------------------------------------------


def pages(index: SessionIndex, limit: int, **filters: Any) -> list[SearchResult]:
    found: list[SearchResult] = []
    cursor = None
    while not found or cursor is not None:
        found.append(ask(index, limit=limit, count="page", cursor=cursor, **filters))
        cursor = found[-1].next_cursor
    return found


@pytest.mark.parametrize("order", ["newest", "oldest", "path"])
@pytest.mark.parametrize("filters", [{"branch": "active"}, {"errors": True}, {"touched": "a.py"}])
def test_pages_without_terms(filters: dict[str, Any], order: str, store: Store) -> None:
    """Every hit is delivered once, in the order asked for, and the count may be exact."""
    for name in ("a", "b", "c"):
        told = story()
        store.put(name, session(name).raw(told.tail(1)))
    store.index.refresh()
    whole = ask(store.index, order=order, **filters)
    assert whole.total == len(whole.hits) == len(set(places(whole))) > 5
    for limit in (1, 4):
        found = pages(store.index, limit, order=order, **filters)
        assert [hit for page in found for hit in page.hits] == list(whole.hits)
        assert found[0].total is None
    first = ask(store.index, limit=2, count="exact", order=order, **filters)
    assert (first.hits, first.total, first.has_more) == (whole.hits[:2], whole.total, True)


def test_a_cursor_is_of_its_filters(store: Store) -> None:
    """Another branch, tool or path is another question."""
    store.put("a", story())
    asked: dict[str, Any] = {"branch": "active", "touched": "a.py"}
    cursor = store.index.search(limit=1, **asked).next_cursor
    assert cursor is not None
    others: tuple[dict[str, Any], ...] = (
        {"branch": "abandoned"}, {"compacted": "visible"}, {"tools": ["read"]}, {"errors": True},
        {"touched": "src/a.py"}, {"branch": "any"},
    )  # fmt: skip
    for other in others:
        with pytest.raises(ParameterError, match="Invalid or stale search_sessions cursor"):
            store.index.search(cursor=cursor, **asked | other)
    assert ask(store.index, cursor=cursor, **asked, compacted="any", errors=False).hits


def test_the_tool_asks_alike(store: Store) -> None:
    """`call` takes the contract's JSON, no terms in it."""
    store.put("a", story())
    for brute in (False, True):
        answer = store.index.call("search_sessions", {"errors": True, "limit": 1}, brute=brute)
        assert [hit["lineNo"] for hit in answer["hits"]] == [10]
        assert answer["hits"][0]["matches"] == [] and answer["hits"][0]["kind"] == "text"
        assert (answer["total"], answer["hasMore"]) == (None, True)
        asked = {"errors": True, "count": "exact"}
        answer = store.index.call("search_sessions", asked, brute=brute)
        assert (answer["total"], answer["sessions"]) == (2, 1)


# --- sessions that grow, fork and delegate -------------------------------------------------------


@pytest.mark.parametrize("refreshed", [False, True])
def test_a_session_grows_between_two_questions(refreshed: bool, store: Store) -> None:
    """What was active is abandoned when a line of another branch follows, and may come back."""
    told = session("a").user("needle 1").user("needle 2")
    root = identity(told)
    told.user("needle 3")
    path = store.put("a", told)

    def grow(add: Any) -> None:
        before = len(told)
        add()
        append(path, told.tail(before))

    def stands(**asked: Any) -> list[int]:
        return sorted(line for _, line in places(ask(store.index, "needle", **asked)))

    store.index.refresh()
    assert (stands(branch="active"), stands(branch="abandoned")) == ([2, 3, 4], [])
    grow(lambda: told.entry("label", label="needle", parentId=root))
    if refreshed:
        store.index.refresh()
    assert (stands(branch="active"), stands(branch="abandoned")) == ([2, 3, 5], [4])
    assert stands(compacted="hidden") == []
    grow(lambda: told.compaction("needle summary", keep=root))
    if refreshed:
        store.index.refresh()
    assert (stands(compacted="hidden"), stands(compacted="visible")) == ([2], [3, 5, 6])
    grow(lambda: told.line(b"{}"))
    assert (stands(branch="active"), stands(branch="abandoned")) == ([], [2, 3, 4, 5, 6])
    grow(lambda: told.user("needle 4"))
    assert stands(branch="abandoned") == [4]


def test_a_rewritten_session_has_its_new_tree(store: Store) -> None:
    """Same text and same places, another parent: the old lineage is forgotten."""
    told = session("a").user("needle").user("needle").user("needle")
    path = store.put("a", told)
    store.index.refresh()
    assert len(ask(store.index, branch="active").hits) == 3
    data = told.bytes()
    last = data.rindex(b'"parentId":"') + len(b'"parentId":"')
    Path(path).write_bytes(data[:last] + b"gone" + data[last + 4 :])
    assert places(ask(store.index, branch="active")) == [("a", 4)]
    assert places(ask(store.index, branch="abandoned")) == [("a", 3), ("a", 2)]


def test_subagents_have_a_tree_of_their_own(store: Store) -> None:
    """A delegated run is active or not by its own last entry, not by its parent's."""
    store.put("a", story())
    child = session("c").user("needle").call("edit", path="src/a.py")
    store.put("a/run-1/run-0/session", child.entry("label", label="x", parentId=None))
    for _ in range(2):
        assert places(ask(store.index, "needle", branch="abandoned", unique=True)) == [
            ("a", 5),
            ("session", 2),
        ]
        assert places(ask(store.index, branch="abandoned", touched="a.py", order="path")) == [
            ("a", 4),
            ("session", 3),
        ]
        alone = ask(store.index, branch="abandoned", include_subagents=False)
        assert {name for name, _ in places(alone)} == {"a"}
        store.index.refresh()


def test_version_1_is_all_active(store: Store) -> None:
    """No ids, no branches: nothing is abandoned or hidden; calls and errors count all the same."""
    told = session("a", version=1).user("needle").call("edit", path="a.py").result("x", error=True)
    told.compaction("summary", keep="x")
    store.put("a", told)
    for _ in range(2):
        assert len(ask(store.index, branch="active").hits) == 4
        assert len(ask(store.index, compacted="visible").hits) == 4
        assert ask(store.index, branch="abandoned").hits == ()
        assert ask(store.index, compacted="hidden").hits == ()
        assert places(ask(store.index, touched="a.py")) == [("a", 3)]
        assert places(ask(store.index, errors=True)) == [("a", 4)]
        store.index.refresh()


def test_only_calls_touch_and_only_results_fail(store: Store) -> None:
    """Details of summaries, text that looks like a call, other roles, odd flags: no evidence."""
    told = session("a")
    told.entry("compaction", summary="a.py", details={"readFiles": ["a.py"]})
    told.entry("branch_summary", summary="a.py", details={"modifiedFiles": ["a.py"]})
    told.user('{"type":"toolCall","id":"c","name":"edit","arguments":{"path":"a.py"}}')
    told.message("assistant", content="x", isError=True, toolName="edit")
    for flag in ("true", 1, None, False):
        told.message("toolResult", toolName="bash", content="edit a.py", isError=flag)
    store.put("a", told)
    for _ in range(2):
        for asked in ({"touched": "a.py"}, {"errors": True}, {"tools": ["edit"]}):
            assert ask(store.index, **asked).hits == (), asked
        store.index.refresh()


def test_a_call_of_another_role_touches_and_calls_no_tool(store: Store) -> None:
    """File evidence reads the calls of any message; a tool is called by an assistant alone."""
    block = {"type": "toolCall", "id": "c", "name": "edit", "arguments": {"path": "a.py"}}
    store.put("a", session("a").message("user", content=[{"type": "text", "text": "x"}, block]))
    for _ in range(2):
        assert places(ask(store.index, touched="a.py")) == [("a", 2)]
        assert ask(store.index, tools=["edit"]).hits == ()
        store.index.refresh()


@pytest.mark.parametrize(
    ("path", "touched"),
    [
        ("会议/a.py", "会议/a.py"), ("x/Straße.py", "Straße.py"), ('q"/b\\c.py', 'b\\c.py'),
        ('q"/b\\c.py', 'q"/b\\c.py'), ("x/\ud83d.py", "\ud83d.py"), ("a\nb/c\td", "c\td"),
        ("a\nb/c\td", "a\nb/c\td"), (" x/y.py\ufeff", "y.py"), ("x/a", "a"), ("/", "/"),
        ("x/" + "long" * 50, "long" * 50),
    ],
)  # fmt: skip
def test_paths_as_they_are_written(path: str, touched: str, store: Store) -> None:
    """Whatever JSON makes of a path, it is found by its own characters."""
    store.put("a", session("a").call("edit", path=path).call("read", paths=["z", path]))
    store.put("b", session("b").call("apply_patch", input=f"*** Add File: {path}\n+x"))
    for _ in range(2):
        found = places(ask(store.index, touched=touched))
        assert {("a", 2), ("a", 3)} <= set(found)
        assert (("b", 2) in found) is ("\n" not in path)
        store.index.refresh()


@pytest.mark.parametrize(
    "asked", [{"tools": ["edit"]}, {"errors": True}, {"touched": "src/a.py"}, {"touched": "a.py"}]
)
@pytest.mark.parametrize("exact", [False, True])
def test_only_lines_that_can_match_are_read(
    asked: dict[str, Any], exact: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare call in a long session is read at its place; the rest is not looked at."""
    told = session("a")
    for number in range(400):
        told.assistant(f"number {number} edit src/a.py failed " + "filler text " * 40)
    told.call("edit", path="/r/src/a.py").result("no", error=True)
    path = store.put("a", told.assistant("more"))
    os.utime(path, ns=(0, 0))
    store.index.refresh()
    read: list[int] = []
    whole = scan.read_at

    def counted(descriptor: int, offset: int, length: int) -> bytes:
        read.append(length)
        return whole(descriptor, offset, length)

    monkeypatch.setattr(scan, "read_at", counted)
    found = store.index.search(limit=5, count="exact" if exact else "page", **asked)
    assert {hit.line_no for hit in found.hits} <= {402, 403} and found.hits
    assert found.coverage.scanned_bytes == 0
    assert 0 < sum(read) < 1000
