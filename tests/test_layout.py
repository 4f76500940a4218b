"""Finding sessions: two layouts, children at any depth, links left alone, trouble as warnings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from build import put, session

from sessionindex import layout
from sessionindex.access import Policy
from sessionindex.layout import Tree

OPEN = Policy(None)


def look(root: Path, *, flat: bool = False, policy: Policy = OPEN) -> Tree:
    return layout.discover(str(root), flat=flat, policy=policy)


def names(root: Path, tree: Tree) -> list[str]:
    """The paths below the root, without their suffix."""
    return [os.path.relpath(found.path, root).removesuffix(".jsonl") for found in tree.sessions]


def said(root: Path, tree: Tree) -> list[tuple[str, str]]:
    return [(os.path.relpath(one.path, root), one.reason) for one in tree.warnings]


@pytest.mark.parametrize(
    ("rule", "folder", "is_project"),
    [
        ("a working directory between dashes", "--home-dev-app--", True),
        ("nothing between them", "----", True),
        ("three dashes are one too few", "---", False),
        ("no dashes", "app", False),
        ("dashes at one end only", "--app", False),
        ("a line break inside", "--a\nb--", False),
    ],
)
def test_project_folders(rule: str, folder: str, is_project: bool, tmp_path: Path) -> None:
    """In the layout of projects only such folders are looked into."""
    put(tmp_path, folder, "a", session("a"))
    assert bool(look(tmp_path).sessions) is is_project, rule


def test_projects_do_not_show_files_of_the_root(tmp_path: Path) -> None:
    """The layouts exclude each other."""
    put(tmp_path, "", "own", session("own"))
    put(tmp_path, "--p--", "inner", session("inner"))
    assert names(tmp_path, look(tmp_path)) == ["--p--/inner"]
    assert names(tmp_path, look(tmp_path, flat=True)) == ["own"]


@pytest.mark.parametrize(
    ("rule", "paths", "flat"),
    [
        ("nothing there", [], False),
        ("session files of its own", ["a"], True),
        ("a project folder beside them decides", ["a", "--p--/b"], False),
        ("only other folders", ["x/b"], False),
    ],
)
def test_a_root_given_by_hand(rule: str, paths: list[str], flat: bool, tmp_path: Path) -> None:
    """Flat only with session files of its own and no project folder."""
    for path in paths:
        put(tmp_path, "", path, session("s"))
    assert layout.is_flat(str(tmp_path)) is flat, rule


def test_a_root_that_is_not_there_is_not_flat(tmp_path: Path) -> None:
    """Absence is told by `discover`, not here."""
    assert not layout.is_flat(str(tmp_path / "missing"))


CHILDREN = (
    ("a run", "top/run-1/session", True),
    ("at any depth", "top/x/y/z/session", True),
    ("directly in the container", "top/session", True),
    ("another name in a run", "top/run-1/other", False),
    ("another name in the container", "top/other", False),
    ("a fork", "top/forks/f", True),
    ("forks deeper down", "top/x/forks/f", True),
    ("below a folder in forks", "top/forks/x/f", False),
    ("async runs", "top/async-1/f", True),
    ("parallel runs", "top/parallel-1/f", True),
    ("dynamic runs", "top/dynamic-1/f", True),
    ("only at the beginning of the name", "top/my-async-1/f", False),
    ("artifacts are none", "top/subagent-artifacts/session", False),
    ("at any depth", "top/x/subagent-artifacts/forks/f", False),
    ("the container of no session", "other/run-1/session", False),
)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize(("rule", "path", "found"), CHILDREN)
def test_children(rule: str, path: str, found: bool, flat: bool, tmp_path: Path) -> None:
    """What a session launched lies in the folder of its name, in either layout."""
    project = "" if flat else "--p--"
    put(tmp_path, project, "top", session("top"))
    put(tmp_path, project, path, session("child"))
    tree = look(tmp_path, flat=flat)
    wanted = [os.path.join(project, name) for name in sorted(["top"] + [path] * found)]
    assert sorted(names(tmp_path, tree)) == wanted, rule
    assert tree.warnings == ()


def test_parents_are_the_longest_containers(tmp_path: Path) -> None:
    """A child's parent launched it; its owner is the top-level session of all."""
    for path in (
        "top",
        "top/r/session",
        "top/r/session/q/session",
        "top/r/session/q/session/forks/f",
        "top/forks/g",
        "top/forks/g/r/session",
        "top/other/r/session",
    ):
        put(tmp_path, "--p--", path, session(path))
    tree = look(tmp_path)
    home = tmp_path / "--p--"
    parents = {
        os.path.relpath(found.path, home): found.parent and os.path.relpath(found.parent, home)
        for found in tree.sessions
    }
    assert parents == {
        "top.jsonl": None,
        "top/r/session.jsonl": "top.jsonl",
        "top/r/session/q/session.jsonl": "top/r/session.jsonl",
        "top/r/session/q/session/forks/f.jsonl": "top/r/session/q/session.jsonl",
        "top/forks/g.jsonl": "top.jsonl",
        "top/forks/g/r/session.jsonl": "top/forks/g.jsonl",
        "top/other/r/session.jsonl": "top.jsonl",
    }
    assert {found.owner for found in tree.sessions} == {str(home / "top.jsonl")}


def test_a_child_without_header_owns_nothing(tmp_path: Path) -> None:
    """It is a warning, and what lies below it belongs to the next session above."""
    put(tmp_path, "--p--", "top", session("top"))
    put(tmp_path, "--p--", "top/r/session", b"nonsense\n")
    put(tmp_path, "--p--", "top/r/session/q/session", session("deep"))
    tree = look(tmp_path)
    assert names(tmp_path, tree) == ["--p--/top", "--p--/top/r/session/q/session"]
    assert tree.sessions[1].parent == tree.sessions[0].path
    assert [path for path, _ in said(tmp_path, tree)] == ["--p--/top/r/session.jsonl"]


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_own_their_own_folder(name: str, tmp_path: Path) -> None:
    """`.jsonl` and its like are sessions without children."""
    put(tmp_path, "--p--", name, session("odd"))
    put(tmp_path, "--p--", "run/session", session("loose"))
    assert names(tmp_path, look(tmp_path)) == [f"--p--/{name}"]


# --- links and what is no file -------------------------------------------------------------------


def test_nothing_behind_a_link_is_walked_or_opened(tmp_path: Path) -> None:
    """Links to files, projects and containers are silent absences."""
    root, away = tmp_path / "root", tmp_path / "away"
    put(root, "--p--", "top", session("top"))
    outside = put(away, "--q--", "secret", session("secret"))
    put(away, "run", "session", session("run"))
    os.symlink(outside, root / "--p--" / "link.jsonl")
    os.symlink(away / "--q--", root / "--q--")
    os.symlink(away, root / "--p--" / "top")
    os.symlink(tmp_path / "nowhere", root / "--p--" / "broken.jsonl")
    tree = look(root)
    assert names(root, tree) == ["--p--/top"]
    assert tree.warnings == ()


def test_a_link_inside_a_container(tmp_path: Path) -> None:
    """Neither a linked run nor a linked transcript is a child."""
    root = tmp_path / "root"
    put(root, "--p--", "top", session("top"))
    away = put(tmp_path, "away", "session", session("away"))
    (root / "--p--/top/real").mkdir(parents=True)
    os.symlink(tmp_path / "away", root / "--p--/top/run")
    os.symlink(away, root / "--p--/top/real/session.jsonl")
    assert names(root, look(root)) == ["--p--/top"]


def test_a_fifo_and_a_folder_with_a_session_name(tmp_path: Path) -> None:
    """Only regular files are sessions, and nobody waits for a writer."""
    put(tmp_path, "--p--", "top", session("top"))
    os.mkfifo(tmp_path / "--p--" / "pipe.jsonl")
    (tmp_path / "--p--" / "folder.jsonl").mkdir()
    tree = look(tmp_path)
    assert names(tmp_path, tree) == ["--p--/top"]
    assert tree.warnings == ()


# --- warnings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "file is empty"),
        (b"\n", "first line is empty"),
        (b"{", "first line is not valid JSON: it cannot be parsed"),
        (b"[]\n", "first line is not a JSON object"),
        (b'{"type":"message"}\n', "first line is not a session header (type: message)"),
        (b'{"type":"session","cwd":"/"}\n', "session header has no id"),
        (b"x" * (1 << 20) + b"x\n", "first line is longer than 1048576 bytes"),
    ],
)
def test_a_file_without_header(data: bytes, reason: str, tmp_path: Path) -> None:
    """One warning with the reason; the other files are not touched by it."""
    put(tmp_path, "--p--", "bad", data)
    put(tmp_path, "--p--", "good", session("good"))
    tree = look(tmp_path)
    assert names(tmp_path, tree) == ["--p--/good"]
    assert said(tmp_path, tree) == [("--p--/bad.jsonl", reason)]


def test_a_long_header_is_read(tmp_path: Path) -> None:
    """Up to the megabyte that Pi reads."""
    put(tmp_path, "--p--", "long", session("long", more="x" * 900_000).user("hi"))
    assert names(tmp_path, look(tmp_path)) == ["--p--/long"]


def test_a_root_that_cannot_be_listed(tmp_path: Path) -> None:
    """No sessions, one warning, and the tree says that it does not know."""
    tree = look(tmp_path / "missing")
    assert (tree.sessions, tree.readable) == ((), False)
    reason = "sessions root not readable: ENOENT: No such file or directory"
    assert said(tmp_path, tree) == [("missing", reason)]


def test_a_container_that_is_a_file(tmp_path: Path) -> None:
    """Where the folder of children should be, something else lies."""
    put(tmp_path, "--p--", "top", session("top"))
    (tmp_path / "--p--" / "top").write_bytes(b"")
    reason = "subagent directory not readable: ENOTDIR: Not a directory"
    assert said(tmp_path, look(tmp_path)) == [("--p--/top", reason)]


def test_folders_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project and a container that are closed: a warning each, and the rest is there."""
    put(tmp_path, "--p--", "top", session("top"))
    put(tmp_path, "--p--", "top/run/session", session("run"))
    put(tmp_path, "--q--", "other", session("other"))
    closed = {str(tmp_path / "--p--" / "top"), str(tmp_path / "--q--")}
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if folder in closed:
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    tree = look(tmp_path)
    assert names(tmp_path, tree) == ["--p--/top"]
    assert said(tmp_path, tree) == [
        ("--p--/top", "subagent directory not readable: EACCES: Permission denied"),
        ("--q--", "project directory not readable: EACCES: Permission denied"),
    ]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    """One warning with U+FFFD in the path; the file is not opened."""
    put(tmp_path, "--p--", "top", session("top"))
    odd = os.fsencode(tmp_path / "--p--") + b"/odd\xff.jsonl"
    folder = os.fsencode(tmp_path) + b"/--q\xff--"
    try:
        os.mkdir(folder)
        with open(odd, "wb") as file:
            file.write(session("odd").bytes())
    except OSError:
        pytest.skip("this file system refuses such names")
    assert said(tmp_path, look(tmp_path)) == [
        ("--p--/odd\ufffd.jsonl", "could not open file: its name is not UTF-8"),
        ("--q\ufffd--", "project directory not readable: its name is not UTF-8"),
    ]


# --- the bound -----------------------------------------------------------------------------------


def test_a_denied_session_has_no_children_here(tmp_path: Path) -> None:
    """What it launched is asked by its owner's directory, whatever its own says."""
    put(tmp_path, "--p--", "mine", session("mine", cwd="/r/app"))
    put(tmp_path, "--p--", "mine/run/session", session("run", cwd="/r/secret"))
    put(tmp_path, "--q--", "theirs", session("theirs", cwd="/r/secret"))
    put(tmp_path, "--q--", "theirs/run/session", session("run", cwd="/r/app"))
    put(tmp_path, "--q--", "theirs/bad/session", b"nonsense\n")
    tree = look(tmp_path, policy=Policy(("app",)))
    assert names(tmp_path, tree) == ["--p--/mine", "--p--/mine/run/session"]
    assert tree.warnings == ()


def test_a_folder_of_denied_sessions_keeps_silent(tmp_path: Path) -> None:
    """Unreadable files are told of beside an admitted session, or where nothing was denied."""
    put(tmp_path, "--p--", "denied", session("denied", cwd="/r/secret"))
    put(tmp_path, "--p--", "bad", b"nonsense\n")
    bound = Policy(("app",))
    assert look(tmp_path, policy=bound).warnings == ()
    put(tmp_path, "--p--", "mine", session("mine", cwd="/r/app"))
    assert [path for path, _ in said(tmp_path, look(tmp_path, policy=bound))] == ["--p--/bad.jsonl"]
