"""list_sessions: hierarchy, exclusion, filters, order, limit, warnings, refusals.

Every answer is asked for with no index, from the files alone, and with an index: one as it is
found, one that cannot yet vouch for files as young as these, and one that can. All are equal.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from build import append, session
from scratch import Store

from sessionindex import SessionIndexError, coverage, layout
from sessionindex.wire.output import dumps

FAMILY = (
    ("parent", "2026-01-01T00:00:00Z"),
    ("parent/b/session", "2026-01-03T00:00:00Z"),
    ("parent/a/run-0/session", "2026-01-02T00:00:00Z"),
    ("parent/a/run-0/session/x/session", "2026-01-05T00:00:00Z"),
    ("parent/c/session", "2026-01-02T00:00:00Z"),
    ("parent/forks/idea", "2026-01-01T12:00:00Z"),
)


def put(store: Store, name: str, stamp: str = "2026-01-01T00:00:00Z", **header: Any) -> str:
    """A session of one message; its id is its name unless the header says otherwise."""
    fields = {"timestamp": stamp} | header
    return store.put(name, session(name.replace("/", "."), **fields).user("hello"))


def ask(store: Store, params: dict[str, Any] | None = None, **opened: Any) -> dict[str, Any]:
    """The contract's answer, in every way that there is to come by it."""
    params = params or {}
    none = store.open(index_dir=store.index_dir.with_name("never"), **opened)
    index = store.open(**opened)
    answers = [
        none.call("list_sessions", params),
        index.call("list_sessions", params),
        index.call("list_sessions", params, brute=True),
    ]
    if store.root.is_dir():
        store.index.refresh()
        answers.append(index.call("list_sessions", params))  # headers are read: files are young
        prove(store)
        answers.append(index.call("list_sessions", params))  # headers come from the index
    assert len({json.dumps(answer) for answer in answers}) == 1  # the order of keys too
    return answers[0]


def prove(store: Store) -> None:
    """Refresh as if no file had changed for long: from now on stat alone vouches for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coverage, "RACY_NS", -1)
        store.index.refresh()


def names(store: Store, rows: list[dict[str, Any]]) -> list[str]:
    """The sessions of an answer, by the place of their files."""
    return [os.path.relpath(row["path"], store.root).partition("/")[2][:-6] for row in rows]


def listed(store: Store, params: dict[str, Any] | None = None, **opened: Any) -> list[str]:
    return names(store, ask(store, params, **opened)["sessions"])


def nested(store: Store, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Names, and below each those of its delegated runs."""
    named = zip(names(store, rows), rows, strict=True)
    return {name: nested(store, row["subagentSessions"]) for name, row in named}


def test_an_answer_as_json(store: Store) -> None:
    """These keys in this order; parentSessionPath last, and only where there is one."""
    path = put(store, "a", parentSession="/else/where.jsonl")
    plain = put(store, "b", parentSession="")
    answer = ask(store)
    assert json.dumps(answer) == json.dumps(
        {
            "sessions": [
                {
                    "id": "a",
                    "path": path,
                    "timestamp": "2026-01-01T00:00:00Z",
                    "cwd": "/home/dev/src/app",
                    "subagentSessions": [],
                    "parentSessionPath": "/else/where.jsonl",
                },
                {
                    "id": "b",
                    "path": plain,
                    "timestamp": "2026-01-01T00:00:00Z",
                    "cwd": "/home/dev/src/app",
                    "subagentSessions": [],
                },
            ],
            "warnings": [],
        }
    )


def test_the_library_speaks_python(store: Store) -> None:
    """Values instead of dicts, snake_case instead of camelCase, None for no filter."""
    put(store, "a", "2026-01-01T00:00:00Z", cwd="/r/app")
    put(store, "a/x/session", "2026-01-02T00:00:00Z")
    put(store, "b", "2026-01-03T00:00:00Z", cwd="/r/app-fix", parentSession="/p.jsonl")
    index = store.index
    found = index.list_sessions(
        cwds=["/r/app"],
        cwd_match="sibling-prefix",
        include_current_session=False,
        start_timestamp="2026-01-01",
        end_timestamp=None,
        sort_by="timestamp",
        sort_direction="desc",
        limit=5,
    )
    assert [row.id for row in found.sessions] == ["b", "a"]
    assert [row.parent_session_path for row in found.sessions] == ["/p.jsonl", None]
    assert [child.id for child in found.sessions[1].children] == ["a.x.session"]
    assert found == index.list_sessions(brute=True, sort_direction="desc")
    with pytest.raises(SessionIndexError, match="unknown parameter: colour"):
        index.list_sessions(colour="red")


# --- hierarchy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_delegated_runs_hang_where_they_were_launched(direction: str, store: Store) -> None:
    """By timestamp, then path, whatever the order of the rest."""
    for name, stamp in FAMILY:
        put(store, name, stamp)
    put(store, "later", "2026-02-01T00:00:00Z")
    answer = ask(store, {"sortDirection": direction})
    tree = nested(store, answer["sessions"])
    assert list(tree) == (["parent", "later"] if direction == "asc" else ["later", "parent"])
    assert tree["later"] == {}
    assert list(tree["parent"]) == [
        "parent/forks/idea",
        "parent/a/run-0/session",
        "parent/c/session",
        "parent/b/session",
    ]
    assert tree["parent"]["parent/a/run-0/session"] == {"parent/a/run-0/session/x/session": {}}


def test_filters_and_limit_are_about_top_level_sessions(store: Store) -> None:
    """A session that matches brings all its runs; one that does not brings none."""
    put(store, "a", "2026-01-01T00:00:00Z", cwd="/r/a")
    put(store, "a/x/session", "2026-03-01T00:00:00Z", cwd="/r/b")
    put(store, "b", "2026-01-02T00:00:00Z", cwd="/r/b")
    put(store, "b/y/session", "2026-01-02T00:00:00Z", cwd="/r/a")
    whole = {"a": {"a/x/session": {}}, "b": {"b/y/session": {}}}
    for params, wanted in (
        ({}, ["a", "b"]),
        ({"cwds": ["/r/a"]}, ["a"]),
        ({"startTimestamp": "2026-01-02"}, ["b"]),
        ({"limit": 1}, ["a"]),
        ({"limit": 2}, ["a", "b"]),
        ({"limit": 1, "sortDirection": "desc"}, ["b"]),
        ({"limit": 1, "cwds": ["/r/b"]}, ["b"]),
    ):
        found = nested(store, ask(store, params)["sessions"])
        assert found == {name: whole[name] for name in wanted}, params


def test_runs_of_runs_as_deep_as_paths_go(store: Store) -> None:
    """No depth ends in an error, neither here nor when it is written as JSON."""
    room = 4000 - len(str(store.root)) - 40
    path = put(store, "a")
    top = path
    for _ in range(room // len("session/")):
        path = f"{path[:-6]}/session.jsonl"
        os.mkdir(os.path.dirname(path))
        Path(path).write_bytes(session("deep").bytes())
    index = store.index
    for answer in (index.call("list_sessions", {}), index.call("list_sessions", {}, brute=True)):
        assert dumps(answer).count(b'"deep"') == room // len("session/")
        assert answer["sessions"][0]["path"] == top


# --- order --------------------------------------------------------------------------------------

ROWS = (  # name of the file, timestamp, cwd, id
    ("m", "2026-01-02T00:00:00Z", "/r/b", "\U0001f600"),
    ("c", "2026-01-01T00:00:00Z", "/r/b/", "\uff5e"),
    ("a", "2026-01-02T02:00:00+02:00", "/r/a", "x"),
    ("z", "2026-01-03T00:00:00Z", "/r/B", "x"),
    ("B", "2026-01-01T00:00:00.000Z", "/r/a", "X"),
)


@pytest.mark.parametrize(
    ("by", "ascending"),
    [
        ("timestamp", ["B", "c", "a", "m", "z"]),
        ("cwd", ["z", "B", "a", "m", "c"]),
        ("path", ["B", "a", "c", "m", "z"]),
        ("id", ["B", "a", "z", "c", "m"]),
    ],
)
def test_order(by: str, ascending: list[str], store: Store) -> None:
    """By the field, then instant, then path, by code point; descending is the mirror of all."""
    for name, stamp, cwd, ident in ROWS:
        put(store, name, stamp, cwd=cwd, id=ident)
    assert listed(store, {"sortBy": by}) == ascending
    assert listed(store, {"sortBy": by, "sortDirection": "asc"}) == ascending
    assert listed(store, {"sortBy": by, "sortDirection": "desc"}) == ascending[::-1]
    assert listed(store, {"sortBy": by, "sortDirection": "desc", "limit": 2}) == ascending[:-3:-1]


# --- directories --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cwd", "wanted", "exact", "sibling"),
    [
        ("/r/app", "/r/app", True, True),
        ("/r/app/", "/r/app", True, True),
        ("/r/app", "/r/app//", True, True),
        ("/r/app-fix", "/r/app", False, True),
        ("/r/app-", "/r/app", False, True),
        ("/r/app-fix/", "/r/app/", False, True),
        ("/r/application", "/r/app", False, False),
        ("/r/App", "/r/app", False, False),
        ("/else/app-fix", "/r/app", False, False),
        ("/r/app/sub", "/r/app", False, False),
        ("/r/./app", "/r/app", False, False),
        ("/-root", "/", False, True),
        ("//", "/", False, False),
        ("//", "//", True, True),
        ("app-x", "app", False, True),
        ("./app-x", "app", False, True),
        ("./app", "app", False, False),
        ("~/app", "/root/app", False, False),
        ("/r/e\u0301", "/r/\u00e9", False, False),
    ],
)
def test_directories(cwd: str, wanted: str, exact: bool, sibling: bool, store: Store) -> None:
    """As text, but for slashes at the end; a sibling goes on with a dash."""
    put(store, "a", cwd=cwd)
    put(store, "other", cwd="/quite/another")
    for match, fits in (("exact", exact), ("sibling-prefix", sibling)):
        params = {"cwds": ["/nowhere", wanted], "cwdMatch": match}
        assert listed(store, params) == (["a"] if fits else [])
    assert listed(store, {"cwds": [wanted]}) == (["a"] if exact else [])


# --- timestamps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (None, None, ["a", "b", "c"]),
        ("2026-01-01T10:00:00.000Z", None, ["a", "b", "c"]),
        ("2026-01-01T10:00:00.001Z", None, ["b", "c"]),
        (None, "2026-01-01T23:59:59.999Z", ["a", "b"]),
        (None, "2026-01-01T23:59:59.998Z", ["a"]),
        (None, "2026-01-01", ["a", "b"]),
        ("2026-01-02", "2026-01-02", ["c"]),
        ("2026-01-02T01:00:00+01:00", None, ["c"]),
    ],
)
def test_bounds_are_inclusive(
    start: str | None, end: str | None, wanted: list[str], store: Store, utc: None
) -> None:
    put(store, "a", "2026-01-01T10:00:00.000Z")
    put(store, "b", "2026-01-01T23:59:59.999Z")
    put(store, "c", "2026-01-02T00:00:00Z")
    given = {"startTimestamp": start, "endTimestamp": end}
    params = {name: bound for name, bound in given.items() if bound}
    assert listed(store, params) == wanted


@pytest.fixture
def utc() -> Iterator[None]:
    """The host's zone is UTC, and afterwards what it was."""
    before = os.environ.get("TZ")
    live_in("UTC")
    yield
    live_in(before)


def live_in(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()


def test_a_header_without_a_zone_is_of_the_zone_of_the_question(store: Store, utc: None) -> None:
    """Also where the index was opened before the host moved."""
    put(store, "fixed", "2026-01-01T12:00:00Z")
    put(store, "floating", "2026-01-01T12:30:00")
    index = store.index
    index.refresh()
    for zone, wanted in (
        ("UTC", ["fixed", "floating"]),
        ("Asia/Tokyo", ["floating", "fixed"]),
        ("America/New_York", ["fixed", "floating"]),
    ):
        live_in(zone)
        for brute in (False, True):
            found = index.call("list_sessions", {}, brute=brute)["sessions"]
            assert names(store, found) == wanted
            params = {"startTimestamp": "2026-01-01T12:00", "endTimestamp": "2026-01-01T13:00"}
            found = index.call("list_sessions", params, brute=brute)["sessions"]
            assert ("floating" in names(store, found), len(found)) == (True, 1 + (zone == "UTC"))


# --- the current session ------------------------------------------------------------------------


def test_the_current_session_is_left_out_with_what_it_launched(store: Store) -> None:
    """Before filters, order and limit; a copy of it under another path stays."""
    paths = {name: put(store, name, stamp) for name, stamp in FAMILY}
    put(store, "copy", "2026-01-01T06:00:00Z", id="parent")
    put(store, "old", "2025-01-01T00:00:00Z")
    current = paths["parent"]
    newest = {"sortDirection": "desc", "limit": 1}
    assert listed(store, current_session=current) == ["old", "copy"]
    assert listed(store, newest, current_session=current) == ["copy"]
    newest["includeCurrentSession"] = True
    assert listed(store, newest, current_session=current) == ["copy"]
    everything = {"includeCurrentSession": True}
    assert listed(store, everything, current_session=current) == ["old", "parent", "copy"]


@pytest.mark.parametrize(
    ("current", "gone"),
    [
        ("parent/b/session", {"parent/b/session"}),
        (
            "parent/a/run-0/session",
            {"parent/a/run-0/session", "parent/a/run-0/session/x/session"},
        ),
        ("parent/a/run-0/session/x/session", {"parent/a/run-0/session/x/session"}),
        ("nobody", set()),
    ],
)
def test_a_current_run_is_taken_out_of_its_parent(
    current: str, gone: set[str], store: Store
) -> None:
    """With its own runs: nothing moves up; the parent stays."""
    paths = {name: put(store, name, stamp) for name, stamp in FAMILY}
    wanted = set(paths) - gone
    path = paths.get(current, str(store.root / "nobody.jsonl"))
    tree = nested(store, ask(store, current_session=path)["sessions"])
    assert set(flat(tree)) == wanted


def flat(tree: dict[str, Any]) -> Iterator[str]:
    for name, below in tree.items():
        yield name
        yield from flat(below)


def test_the_current_session_is_known_by_its_spelling_alone(store: Store, tmp_path: Path) -> None:
    """Slashes and dots do not matter; a link to it is another file, and "" is none."""
    path = put(store, "a")
    folder, name = os.path.split(path)
    link = tmp_path / "link"
    link.symlink_to(store.root)
    for spelled, wanted in (
        (path, []),
        (f"{folder}//{name}", []),
        (f"{folder}/./x/../{name}", []),
        (f"{path}/", []),
        (str(link / os.path.relpath(path, store.root)), ["a"]),
        (path.upper(), ["a"]),
        ("", ["a"]),
    ):
        assert listed(store, current_session=spelled) == wanted, spelled


def test_the_current_session_comes_from_the_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_SESSION_FILE", put(store, "a"))
    put(store, "b")
    assert listed(store, current_session=None) == ["b"]
    assert listed(store, current_session="") == ["a", "b"]


# --- warnings -----------------------------------------------------------------------------------


def test_warnings_are_those_of_the_whole_walk(store: Store) -> None:
    """Whatever is excluded, filtered or cut off; by path, then reason."""
    current = put(store, "a", cwd="/r/a")
    store.put("a/x/session", b"no header\n")
    store.put("z", b"")
    store.put("b", b'{"type":"message"}\n')
    warnings = ask(store)["warnings"]
    assert [
        (os.path.basename(one["path"]), one["reason"].partition(":")[0]) for one in warnings
    ] == [
        ("session.jsonl", "first line is not valid JSON"),
        ("b.jsonl", "first line is not a session header (type"),
        ("z.jsonl", "file is empty"),
    ]
    for params in ({"limit": 1}, {"cwds": ["/nowhere"]}, {"endTimestamp": "1999-01-01"}):
        assert ask(store, params)["warnings"] == warnings
    answer = ask(store, current_session=current)
    assert answer == {"sessions": [], "warnings": warnings}


def test_a_root_that_is_not_there_is_one_warning(store: Store, tmp_path: Path) -> None:
    """Also where nothing may be seen; bad parameters come first all the same."""
    store.root.rmdir()
    for settings in ({}, {"piRetrospect": {"allowedProjects": []}}):
        answer = ask(store, settings=settings)
        assert answer["sessions"] == []
        assert [one["path"] for one in answer["warnings"]] == [str(store.root)]
        assert answer["warnings"][0]["reason"].startswith("sessions root not readable: ENOENT")
        with pytest.raises(SessionIndexError, match="limit must be a positive integer: 0"):
            ask(store, {"limit": 0}, settings=settings)


# --- the bound ----------------------------------------------------------------------------------


def test_a_denied_project_is_not_observable(store: Store) -> None:
    """No row, no run, no warning; filters cannot widen the bound; siblings belong."""
    for name in ("app", "app-fix", "application", "secret"):
        folder = f"--r-{name}--"
        store.put("s", session(name, cwd=f"/r/{name}"), project=folder)
        store.put("s/x/session", session(f"{name} run", cwd="/r/app"), project=folder)
        store.put("bad", b"no header\n", project=folder)
    bound = {"piRetrospect": {"allowedProjects": ["app"]}}
    answer = ask(store, settings=bound)
    assert [row["id"] for row in answer["sessions"]] == ["app", "app-fix"]
    assert [row["subagentSessions"][0]["id"] for row in answer["sessions"]] == [
        "app run",
        "app-fix run",
    ]
    assert {one["path"].split("/")[-2] for one in answer["warnings"]} == {
        "--r-app--",
        "--r-app-fix--",
    }
    denied = ask(store, {"cwds": ["/r/secret"]}, settings=bound)
    assert denied == {"sessions": [], "warnings": answer["warnings"]}
    nothing = ask(store, settings={"piRetrospect": {"allowedProjects": []}})
    assert nothing == {"sessions": [], "warnings": []}
    everything = ask(store, settings={"piRetrospect": {"allowedProjects": ["x", "*"]}})
    assert len(everything["sessions"]) == 4


# --- refusals -----------------------------------------------------------------------------------

ISO = (
    "must be an ISO 8601 date, or an ISO 8601 date-time"
    " (one with no timezone is read in the host timezone)"
)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"colour": 1}, "unknown parameter: colour"),
        ({"colour": 1, "cwds": 1}, "unknown parameter: colour"),
        ({"sessionPath": "/x"}, "unknown parameter: sessionPath"),
        ([], "parameters must be an object"),
        ({"cwds": "/r"}, "cwds must be a list of non-empty strings"),
        ({"cwds": []}, "cwds must be a list of non-empty strings"),
        ({"cwds": ["/r", ""]}, "cwds must be a list of non-empty strings"),
        ({"cwds": ["/r", 5]}, "cwds must be a list of non-empty strings"),
        ({"cwds": None}, "cwds must be a list of non-empty strings"),
        ({"cwdMatch": "prefix"}, "cwdMatch must be one of exact, sibling-prefix"),
        ({"cwdMatch": ["exact"]}, "cwdMatch must be one of exact, sibling-prefix"),
        ({"includeCurrentSession": 1}, "includeCurrentSession must be true or false"),
        ({"includeCurrentSession": "true"}, "includeCurrentSession must be true or false"),
        ({"sortBy": "name"}, "sortBy must be one of timestamp, cwd, path, id"),
        ({"sortDirection": "DESC"}, "sortDirection must be one of asc, desc"),
        ({"startTimestamp": "yesterday"}, f"startTimestamp {ISO}: yesterday"),
        ({"startTimestamp": 5}, f"startTimestamp {ISO}: 5"),
        ({"endTimestamp": ["2026"]}, f"endTimestamp {ISO}: 2026"),
        ({"endTimestamp": {}}, f"endTimestamp {ISO}: [object Object]"),
        ({"endTimestamp": "2026-01-01\n"}, f"endTimestamp {ISO}: 2026-01-01\n"),
        (
            {"startTimestamp": "2026-01-03", "endTimestamp": "2026-01-01"},
            "endTimestamp 2026-01-01 resolves before startTimestamp 2026-01-03",
        ),
        (
            {"startTimestamp": "2026-01-02", "endTimestamp": "2026-01-01"},
            "endTimestamp 2026-01-01 resolves before startTimestamp 2026-01-02",
        ),
        ({"limit": 0}, "limit must be a positive integer: 0"),
        ({"limit": -1}, "limit must be a positive integer: -1"),
        ({"limit": 1.5}, "limit must be a positive integer: 1.5"),
        ({"limit": "1"}, "limit must be a positive integer: 1"),
        ({"limit": True}, "limit must be a positive integer: true"),
        ({"limit": None}, "limit must be a positive integer: null"),
        ({"limit": float("inf")}, "limit must be a positive integer: Infinity"),
        # Several at once: shapes before meaning, then the bounds, the range, the limit.
        ({"limit": 0, "sortBy": "x"}, "sortBy must be one of timestamp, cwd, path, id"),
        ({"limit": 0, "startTimestamp": "x"}, f"startTimestamp {ISO}: x"),
        ({"limit": 0, "endTimestamp": "x", "startTimestamp": "y"}, f"startTimestamp {ISO}: y"),
        (
            {"limit": 0, "startTimestamp": "2026-01-03", "endTimestamp": "2026-01-01"},
            "endTimestamp 2026-01-01 resolves before startTimestamp 2026-01-03",
        ),
    ],
)
def test_what_is_refused(params: Any, message: str, store: Store) -> None:
    """Before anything is walked, with the fixed message."""
    for brute in (False, True):
        with pytest.raises(SessionIndexError) as refused:
            store.index.call("list_sessions", params, brute=brute)
        assert str(refused.value) == message


def test_the_bound_is_read_before_the_parameters(store: Store) -> None:
    broken = store.open(settings={"piRetrospect": {"allowedProjects": "app"}})
    with pytest.raises(SessionIndexError) as refused:
        broken.call("list_sessions", {"limit": 0})
    assert str(refused.value) == "piRetrospect.allowedProjects is not a valid project allowlist"


def test_a_whole_number_with_a_fraction_of_zero_is_a_limit(store: Store) -> None:
    put(store, "a")
    put(store, "b")
    assert listed(store, {"limit": 1.0}) == ["a"]


# --- the index ----------------------------------------------------------------------------------


def test_headers_of_unchanged_files_are_not_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was indexed long enough after its last change is listed from the index alone."""
    paths = [put(store, name, stamp, parentSession="/p.jsonl") for name, stamp in FAMILY]
    wanted = ask(store)  # which leaves an index that vouches for every file
    read: list[str] = []
    really = layout.read_header

    def counted(path: str, listed: coverage.Identity) -> Any:
        read.append(path)
        return really(path, listed)

    with monkeypatch.context() as patch:
        patch.setattr(layout, "read_header", counted)
        patch.setattr("sessionindex.catalog.open_listed", None)  # nor any byte checked
        assert store.index.call("list_sessions", {}) == wanted
        assert read == []
        new = put(store, "new")
        assert len(store.index.call("list_sessions", {})["sessions"]) == 2
        assert read == [new]
        read.clear()
        brute = store.index.call("list_sessions", {}, brute=True)
        assert brute["sessions"][1:] == wanted["sessions"]
        assert sorted(read) == sorted([*paths, new])


def test_a_header_that_was_rewritten_is_read_from_the_file(store: Store) -> None:
    """Grown, shortened or of the same size: what the file says now, index or not."""
    path = put(store, "a", id="first")
    ask(store)
    append(path, b'{"type":"message"}\n')
    assert ask(store)["sessions"][0]["id"] == "first"
    data = Path(path).read_bytes()
    Path(path).write_bytes(data.replace(b'"first"', b'"other"'))
    assert ask(store)["sessions"][0]["id"] == "other"
    Path(path).write_bytes(session("short").bytes())
    assert ask(store)["sessions"][0]["id"] == "short"
    Path(path).write_bytes(b"")
    assert ask(store)["sessions"] == []
    Path(path).unlink()
    assert ask(store) == {"sessions": [], "warnings": []}


def test_an_index_that_cannot_be_read_costs_nothing_but_time(store: Store) -> None:
    put(store, "a")
    store.index.refresh()
    for part in store.folder.rglob("*"):
        if part.is_file() and part.suffix in (".store", ".term", ".fast", ".idx"):
            part.write_bytes(b"\0" * part.stat().st_size)
    for index in (store.index, store.open()):
        assert names(store, index.call("list_sessions", {})["sessions"]) == ["a"]
    store.index.refresh(rebuild=True)
