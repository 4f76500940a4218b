"""SessionIndex at its door: what is refused and how, who may be named, what the bound hides."""

from __future__ import annotations

import base64
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from build import PROJECT, append, session
from scratch import Store, ask, places, without_coverage

from sessionindex import SessionIndex, SessionIndexError
from sessionindex.errors import AccessDenied, ParameterError, PolicyError, SessionFileError

BOUND = {"piRetrospect": {"allowedProjects": ["app"]}}
LIST = "must be a list of non-empty strings"
KINDS = "text, tools, shell, thinking, details, system"
ISO = (
    "must be an ISO 8601 date, or an ISO 8601 date-time"
    " (one with no timezone is read in the host timezone)"
)

REFUSED: tuple[tuple[Any, str], ...] = (
    (None, "parameters must be an object"),
    ([], "parameters must be an object"),
    ({}, f"terms {LIST}"),
    ({"terms": "needle"}, f"terms {LIST}"),
    ({"terms": []}, f"terms {LIST}"),
    ({"terms": [""]}, f"terms {LIST}"),
    ({"terms": [1]}, f"terms {LIST}"),
    ({"case_sensitive": True}, "unknown parameter: case_sensitive"),
    ({"terms": 1, "query": "x"}, "unknown parameter: query"),
    ({"match": "every"}, "match must be one of any, all, session"),
    ({"match": None}, "match must be one of any, all, session"),
    ({"caseSensitive": 1}, "caseSensitive must be true or false"),
    ({"in": []}, f"in {LIST}"),
    ({"in": ["text", "images"]}, f"in must be one of {KINDS}"),
    ({"cwds": []}, f"cwds {LIST}"),
    ({"cwdMatch": "prefix"}, "cwdMatch must be one of exact, sibling-prefix"),
    ({"projects": "app"}, f"projects {LIST}"),
    ({"sessionPaths": ["a.jsonl"]}, "sessionPaths must be absolute paths: a.jsonl"),
    ({"types": [""]}, f"types {LIST}"),
    ({"messageRoles": {}}, f"messageRoles {LIST}"),
    ({"startTimestamp": "yesterday"}, f"startTimestamp {ISO}: yesterday"),
    ({"endTimestamp": 5}, f"endTimestamp {ISO}: 5"),
    (
        {"startTimestamp": "2026-01-02", "endTimestamp": "2026-01-01"},
        "endTimestamp 2026-01-01 resolves before startTimestamp 2026-01-02",
    ),
    ({"includeCurrentSession": "no"}, "includeCurrentSession must be true or false"),
    ({"includeSubagents": 0}, "includeSubagents must be true or false"),
    ({"unique": "yes"}, "unique must be true or false"),
    ({"order": "relevance"}, "order must be one of newest, oldest, path"),
    ({"limit": 0}, "limit must be a positive integer: 0"),
    ({"limit": 2.5}, "limit must be a positive integer: 2.5"),
    ({"limit": True}, "limit must be a positive integer: true"),
    ({"limit": "5"}, "limit must be a positive integer: 5"),
    ({"count": "some"}, "count must be one of page, exact"),
    ({"cursor": 5}, "cursor must be a string"),
)


@pytest.mark.parametrize(("params", "message"), REFUSED)
def test_what_is_refused(params: Any, message: str, store: Store) -> None:
    """Unknown names, then shapes, then meanings; each with its fixed text, index or not."""
    if isinstance(params, dict) and params and "terms" not in params:
        params = {"terms": ["needle"], **params}
    for brute in (False, True):
        with pytest.raises(ParameterError) as refused:
            store.index.call("search_sessions", params, brute=brute)
        assert str(refused.value) == message


def test_unknown_names(store: Store) -> None:
    """A tool, a keyword and a layout that do not exist."""
    with pytest.raises(ParameterError, match=r"^unknown tool: grep$"):
        store.index.call("grep", {})
    with pytest.raises(ParameterError, match=r"^unknown parameter: fuzzyMatch$"):
        store.index.search("needle", fuzzy_match=True)
    with pytest.raises(ParameterError, match=r"^layout must be one of projects, flat$"):
        store.open(layout="nested")


def test_a_whole_number_with_a_fraction_of_zero(store: Store) -> None:
    """3.0 is 3, as JSON has one kind of number."""
    store.put("a", session("a").user("needle").user("needle"))
    assert (
        len(store.index.call("search_sessions", {"terms": ["needle"], "limit": 1.0})["hits"]) == 1
    )


def test_the_tool_has_other_defaults_than_the_library(store: Store) -> None:
    """50 hits and no exact count there; all of them here."""
    story = session("a")
    for _ in range(60):
        story.user("needle")
    store.put("a", story)
    answer = store.index.call("search_sessions", {"terms": ["needle"]})
    assert (len(answer["hits"]), answer["total"], answer["hasMore"]) == (50, None, True)
    rest = store.index.call(
        "search_sessions", {"terms": ["needle"], "cursor": answer["nextCursor"]}
    )
    assert (len(rest["hits"]), rest["total"], rest["hasMore"]) == (10, None, False)
    assert rest["nextCursor"] is None
    result = store.index.search("needle")
    assert (len(result.hits), result.total, result.sessions) == (60, 60, 1)


def test_an_answer_as_json(store: Store) -> None:
    """The contract's spelling, and nothing that JSON cannot hold."""
    path = store.put("a", session("a").user("a  needle\nhere"))
    answer = store.index.call("search_sessions", {"terms": ["needle"]})
    assert json.loads(json.dumps(answer))["hits"] == [
        {
            "sessionPath": path,
            "sessionId": "a",
            "cwd": "/home/dev/src/app",
            "sessionTimestamp": "2026-09-10T09:00:00.000Z",
            "lineNo": 2,
            "entryId": answer["hits"][0]["entryId"],
            "timestamp": "2026-09-10T09:00:01.000Z",
            "type": "message",
            "messageRole": "user",
            "kind": "text",
            "snippet": "a needle here",
            "matches": [[2, 8]],
        }
    ]


# --- cursors -------------------------------------------------------------------------------------

STALE = "Invalid or stale search_sessions cursor for this question."


def forged(cursor: str, **fields: Any) -> str:
    body = json.loads(base64.urlsafe_b64decode(cursor + "=="))
    return base64.urlsafe_b64encode(json.dumps(body | fields).encode()).rstrip(b"=").decode()


def test_cursors_continue_their_question_only(store: Store) -> None:
    """Limit and count may change on the way, nothing else may."""
    store.put("a", session("a").user("needle 1").user("needle 2").user("needle 3"))
    store.index.refresh()
    cursor = store.index.search("needle", limit=1, count="page").next_cursor
    assert cursor is not None
    assert places(ask(store.index, "needle", limit=2, cursor=cursor)) == [("a", 3), ("a", 2)]
    others: tuple[dict[str, Any], ...] = (
        {"order": "oldest"},
        {"match": "all"},
        {"unique": True},
        {"case_sensitive": True},
        {"include_current_session": True},
    )
    for other in others:
        with pytest.raises(ParameterError) as refused:
            store.index.search("needle", cursor=cursor, **other)
        assert str(refused.value) == STALE
    for garbled in ("x", cursor[:-3], "é", cursor + "A" * 20_000, forged(cursor, after=[1, 2])):
        with pytest.raises(ParameterError) as refused:
            store.index.search("needle", cursor=garbled)
        assert str(refused.value) == STALE


@pytest.mark.parametrize(
    "place", [-(2**62), 2**62, -(2**63), 2**63, 2**64 - 1, 1 - 2**64, -(10**30), 0]
)
@pytest.mark.parametrize("order", ["newest", "oldest", "path"])
def test_a_forged_place_is_only_a_place(place: int, order: str, store: Store) -> None:
    """Whatever number somebody writes into a cursor, both paths give one answer or one refusal."""
    store.put("a", session("a").user("needle 1").user("needle 2").user("needle 3"))
    store.index.refresh()
    cursor = store.index.search("needle", limit=1, order=order).next_cursor
    assert cursor is not None
    odd = forged(cursor, after=[place, "/", 1])
    try:
        ask(store.index, "needle", limit=1, count="page", order=order, cursor=odd)
    except ParameterError as refused:
        assert str(refused) == STALE


# --- which sessions ------------------------------------------------------------------------------


def test_session_paths_are_confined(store: Store, tmp_path: Path) -> None:
    """Only sessions of the root, however the path is spelled; links count as where they lead."""
    path = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(session("o").user("needle").bytes())
    inner = store.root / PROJECT / "link.jsonl"
    inner.symlink_to(outside)
    linked = tmp_path / "linked.jsonl"
    linked.symlink_to(path)
    odd = path.replace(PROJECT, f"{PROJECT}/../{PROJECT}")
    for spelled in (path, odd, str(linked)):
        assert places(ask(store.index, "needle", session_paths=[spelled])) == [("a", 2)]
    away = "sessionPath is not under the sessions root: "
    missing = str(store.root / PROJECT / "missing.jsonl")
    stranger = store.put("x", b"nonsense\n")
    for given, message in (
        (str(outside), away + str(outside)),
        (str(inner), away + str(inner)),
        (str(store.root), away + str(store.root)),
        ("/nul\0", away + "/nul\0"),
        (missing, f"could not read session file: ENOENT: no such file: {missing}"),
        (
            stranger,
            f"could not read session file: not a session of this root: {stranger}",
        ),
    ):
        with pytest.raises(SessionFileError) as refused:
            store.index.search("needle", session_paths=[path, given])
        assert str(refused.value) == message
        assert refused.value.path == given


def family(store: Store) -> dict[str, str]:
    """An allowed project with a child, a denied one with a child, trouble in both."""
    return {
        "mine": store.put("mine", session("mine", cwd="/r/app").user("needle")),
        "run": store.put("mine/run/session", session("run", cwd="/elsewhere").user("needle")),
        "sibling": store.put("fix", session("fix", cwd="/r/app-fix").user("needle")),
        "denied": store.put("d", session("d", cwd="/r/secret").user("needle"), "--r-secret--"),
        "child": store.put(
            "d/run/session", session("c", cwd="/r/app").user("needle"), "--r-secret--"
        ),
        "broken": store.put("broken", b"nonsense\n", "--r-secret--"),
        "trouble": store.put("trouble", b"nonsense\n"),
    }


@pytest.mark.parametrize("refreshed", [False, True])
def test_the_bound_holds_everywhere(refreshed: bool, store: Store) -> None:
    """Hits, counts, coverage, warnings, status: nothing of a denied project shows."""
    paths = family(store)
    if refreshed:
        store.index.refresh()
    bound = store.open(settings=BOUND)
    found = ask(bound, "needle")
    assert {hit.session_path for hit in found.hits} == {
        paths["mine"],
        paths["run"],
        paths["sibling"],
    }
    assert (found.total, found.sessions, found.coverage.files) == (3, 3, 3)
    assert [one.path for one in found.warnings] == [paths["trouble"]]
    assert found.coverage.skipped == 1
    status = bound.status()
    seen = sum(os.path.getsize(paths[name]) for name in ("mine", "run", "sibling"))
    assert (status.sessions, status.bytes) == (3, seen)
    assert status.entries == (3 if refreshed else 0)
    assert ask(bound, "needle", cwds=["/r/secret"]).total == 0
    assert ask(bound, "needle", projects=["secret"]).total == 0
    assert ask(store.index, "needle").total == 5


@pytest.mark.parametrize("name", ["denied", "child", "broken", "missing"])
def test_a_refusal_never_says_whether_a_path_exists(name: str, store: Store) -> None:
    """With a bound, what is denied, broken or not there is refused in the same words."""
    paths = family(store) | {"missing": str(store.root / "--r-secret--" / "missing.jsonl")}
    store.index.refresh()
    for brute in (False, True):
        with pytest.raises(AccessDenied) as refused:
            store.open(settings=BOUND).search("needle", session_paths=[paths[name]], brute=brute)
        assert str(refused.value) == AccessDenied.MESSAGE


def test_a_bound_that_cannot_be_read_refuses_everything(store: Store) -> None:
    """Before parameters are looked at; refreshing goes on, and tells nothing."""
    store.put("a", session("a").user("needle"))
    index = store.open(settings={"piRetrospect": {"allowedProjects": "app"}})
    for call in (
        lambda: index.search("needle"),
        lambda: index.call("search_sessions", {"nonsense": 1}),
        index.status,
    ):
        with pytest.raises(PolicyError) as refused:
            call()
        assert str(refused.value) == PolicyError.MESSAGE
    assert index.refresh().added == 0
    assert store.open().status().fresh == 1


def test_an_empty_bound_admits_nothing(store: Store) -> None:
    """A decision, not an absence."""
    family(store)
    index = store.open(settings={"piRetrospect": {"allowedProjects": []}})
    assert ask(index, "needle").total == 0
    assert index.status().sessions == 0


def test_the_current_session_is_left_out_with_what_it_launched(store: Store) -> None:
    """Unless it is asked for, or named."""
    current = store.put("a", session("a").user("needle"))
    child = store.put("a/run/session", session("c").user("needle"))
    store.put("b", session("b").user("needle"))
    for refreshed in (False, True):
        if refreshed:
            store.index.refresh()
        index = store.open(current_session=current)
        assert places(ask(index, "needle")) == [("b", 2)]
        assert ask(index, "needle", include_current_session=True).total == 3
        assert places(ask(index, "needle", session_paths=[current])) == [("a", 2)]
        assert ask(index, "needle", session_paths=[child]).total == 0
        inner = store.open(current_session=child)
        assert sorted(places(ask(inner, "needle"))) == [("a", 2), ("b", 2)]


def test_the_current_session_comes_from_the_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Pi tells its shell tools; an empty name says that there is none."""
    current = store.put("a", session("a").user("needle"))
    monkeypatch.setenv("PI_SESSION_FILE", current)
    assert ask(store.open(current_session=None), "needle").total == 0
    assert ask(store.open(current_session=""), "needle").total == 1


def test_a_missing_root_gives_nothing_and_says_so(store: Store, tmp_path: Path) -> None:
    """Zero hits and one warning, with and without a bound."""
    for settings in ({}, BOUND):
        index = SessionIndex(
            tmp_path / "nowhere",
            index_dir=store.index_dir,
            settings=settings,
            current_session="",
        )
        found = ask(index, "needle")
        assert (found.total, found.has_more) == (0, False)
        assert [(one.path, one.reason) for one in found.warnings] == [
            (
                str(tmp_path / "nowhere"),
                "sessions root not readable: ENOENT: No such file or directory",
            )
        ]
        assert index.status().sessions == 0


# --- lifetime ------------------------------------------------------------------------------------


def test_what_another_process_commits_is_seen(store: Store) -> None:
    """An open index follows every commit and every new generation."""
    path = store.put("a", session("a").user("needle"))
    reading = store.open()
    assert ask(reading, "needle").coverage.new == 1
    store.index.refresh()
    assert ask(reading, "needle").coverage.new == 0
    append(path, session("more").user("needle").tail(1))
    assert ask(reading, "needle").coverage.behind == 1
    store.index.refresh()
    assert ask(reading, "needle").coverage.fresh == 1
    store.index.refresh(rebuild=True)
    assert ask(reading, "needle").coverage.fresh == 1


def test_closing_is_no_end(store: Store) -> None:
    """A later call opens the index again."""
    store.put("a", session("a").user("needle"))
    with store.index as index:
        index.refresh()
    assert ask(store.index, "needle").coverage.new == 0


def test_many_readers_beside_a_writer(store: Store) -> None:
    """Threads of one SessionIndex search while it refreshes; each answer is of one moment."""
    path = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    failed: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                found = store.index.search("needle")
                assert [hit.line_no for hit in found.hits if hit.session_id == "b"] == [2]
                lines = sorted(hit.line_no for hit in found.hits if hit.session_id == "a")
                assert lines == list(range(2, 2 + len(lines)))
        except BaseException as error:
            failed.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(8):
        append(path, session("more").user(f"needle {number}").tail(1))
        store.index.refresh(rebuild=number == 4)
    done.set()
    for reader in readers:
        reader.join()
    assert failed == []
    assert without_coverage(store.index.search("needle")) == without_coverage(
        store.index.search("needle", brute=True)
    )


def test_errors_have_one_root(store: Store) -> None:
    """A caller catches one name."""
    for refused in (ParameterError, AccessDenied, SessionFileError, PolicyError):
        assert issubclass(refused, SessionIndexError)
