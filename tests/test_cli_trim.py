"""`sessionindex trim`: what people see, what programs read, and how each way ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from build import session
from histories import compacted, ids, turn
from scratch import Store
from terminal import Ran, environment, pipe, terminal

from sessionindex import SessionIndexError
from sessionindex.errors import AccessDenied, ParameterError

REST = 1_700_000_000


@pytest.fixture
def path(store: Store) -> str:
    found = store.put("t", compacted())
    os.utime(found, (REST, REST))
    store.index.refresh()
    return found


def trim(store: Store, *arguments: str, **env: str) -> Ran:
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    return pipe(["trim", *arguments, *where], environment(store.root.parent, **env))


def test_trimmed(store: Store, path: str) -> None:
    before = Path(path).read_bytes()
    ran = trim(store, "t", "--yes")
    assert ran == Ran(0, "Compacted session trimmed: 5 KB → 3 KB\n", "")
    assert len(Path(path).read_bytes()) < len(before)
    again = trim(store, path, "--yes")
    assert again.status == 0
    assert again.out.startswith("Nothing to trim: nothing is hidden from the model")


def test_what_would_go(store: Store, path: str) -> None:
    """By kind, the largest first; nothing is touched."""
    before = Path(path).read_bytes()
    ran = trim(store, "t", "--dry-run")
    rows = [line.split()[:3] for line in ran.out.splitlines()[:-1]]
    assert rows == [["assistant", "6", "entries"], ["toolResult", "3", "entries"],
                    ["user", "3", "entries"]]  # fmt: skip
    assert ran.out.endswith("Compacted session would be trimmed: 5 KB → 3 KB\n")
    assert (ran.status, Path(path).read_bytes()) == (0, before)


def test_a_report_for_programs(store: Store, path: str) -> None:
    before = Path(path).read_bytes()
    report = json.loads(trim(store, "t", "--yes", "--json").out)
    after = Path(path).read_bytes()
    assert set(report.pop("dropped")) == {"user", "assistant", "toolResult"}
    assert report == {
        "path": path,
        "outcome": "trimmed",
        "reason": None,
        "bytesBefore": len(before),
        "bytesAfter": len(after),
        "entriesBefore": len(ids(before)),
        "entriesAfter": len(ids(after)),
        "carried": 0,
        "backup": None,
        "newPath": None,
        "message": "Compacted session trimmed: 5 KB → 3 KB",
    }


def test_asked_first(store: Store, path: str) -> None:
    """Without somebody to ask nothing is done; --yes answers beforehand."""
    before = Path(path).read_bytes()
    ran = trim(store, "t")
    assert ran.status == 2
    assert ran.err.endswith(
        "nobody is there to ask: say --yes ('sessionindex trim --help' tells more)\n"
    )
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("current", "it is the running session: close it, or use --force"),
        ("recent", "it was written in the last 2 minutes: close it, or use --force"),
    ],
)
def test_sessions_in_use(store: Store, path: str, how: str, reason: str) -> None:
    env = {"PI_SESSION_FILE": path} if how == "current" else {}
    if how == "recent":
        os.utime(path)
    before = Path(path).read_bytes()
    ran = trim(store, path, "--yes", **env)
    assert (ran.status, ran.out, ran.err) == (
        1,
        "",
        f"sessionindex: Not trimmed: {reason} ({path})\n",
    )
    assert Path(path).read_bytes() == before
    assert trim(store, path, "--yes", "--force", **env).status == 0


def test_refused(store: Store) -> None:
    """One line on stderr, the file as it was, exit status 1."""
    story = turn(compacted(), "x")
    bad = story.bytes().replace(b'"firstKeptEntryId":"', b'"firstKeptEntryId":"no')
    path = store.put("t", bad)
    os.utime(path, (REST, REST))
    ran = trim(store, path, "--yes")
    assert (ran.status, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert Path(path).read_bytes() == bad


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["t", "--all"],
        ["t", "--older-than", "7d"],
        ["--all", "--older-than", "soon"],
        ["t", "--restore"],
        ["t", "--transcript", "--backup", "x"],
        ["--all", "--force"],
        ["t", "--commit", "x"],
        ["--commit", "x", "--discard", "x"],
        ["--commit", "nonsense"],
        ["nobody"],
        ["t", "--settings", "[]"],
    ],
)
def test_errors(store: Store, path: str, arguments: list[str]) -> None:
    before = Path(path).read_bytes()
    assert trim(store, *arguments).status == 2
    assert Path(path).read_bytes() == before


def test_all_at_rest(store: Store, path: str, tmp_path: Path) -> None:
    """A table of what each would give, then the trims; young and current sessions are left."""
    large, young = store.put("large", compacted("large", 40)), store.put("young", compacted("y"))
    current = store.put("current", compacted("c"))
    store.put("plain", session("plain").user("x"))
    for one in (large, current, str(Path(path).with_name("plain.jsonl"))):
        os.utime(one, (REST, REST))
    before = {one: Path(one).read_bytes() for one in (young, current)}
    ran = trim(store, "--all", "--older-than", "7d", "--dry-run", PI_SESSION_FILE=current)
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["large.jsonl", "t.jsonl"]
    assert lines[-1].endswith("; nothing to trim in 1")
    backups = str(tmp_path / "backups")
    ran = trim(store, "--all", "--yes", "--backup", backups, PI_SESSION_FILE=current)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[-1].startswith("2 sessions trimmed: ")
    assert len([name for name in os.listdir(backups) if name.endswith(".gz")]) == 2
    assert {one: Path(one).read_bytes() for one in (young, current)} == before
    found = json.loads(trim(store, "--all", "--json", "--yes", PI_SESSION_FILE=current).out)
    assert found == {"reports": []}


def test_backup_and_restore(store: Store, path: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    folder = str(tmp_path / "kept")
    assert (
        trim(store, "t", "--yes", "--backup", folder).out.splitlines()[1].startswith("original: ")
    )
    assert store.index.search("question old 1").total == 0
    ran = trim(store, "t", "--yes", "--restore", "--backup", folder)
    assert (ran.status, ran.out) == (0, "Session restored: 3 KB → 5 KB\n")
    assert Path(path).read_bytes() == before
    assert store.index.search("question old 1").total == 1


def test_a_transcript_is_shown_first(store: Store, path: str) -> None:
    before = Path(path).read_bytes()
    ran = trim(store, "t", "--transcript", "--yes")
    assert ran.status == 0
    assert "toolResult" in ran.err
    made = ran.out.splitlines()[1].removeprefix("new session: ")
    assert Path(made).is_file()
    assert Path(path).read_bytes() == before
    assert store.index.search("question old 1").total == 2


# --- two steps, as the extension takes them ------------------------------------------------------


def prepared(store: Store, path: str, *more: str, **env: str) -> tuple[int, dict[str, Any]]:
    ran = trim(store, path, "--prepare", "--settings", "{}", *more, **env)
    return ran.status, json.loads(ran.out)


def test_a_preparation_that_nobody_hears_of_is_taken_back(store: Store, path: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    command = [sys.executable, "-m", "sessionindex", "trim", path, "--prepare", *where]
    subprocess.run(command, env=environment(store.root.parent), stdout=writer, check=False)
    os.close(writer)
    assert [name for name in os.listdir(Path(path).parent) if name.startswith(".")] == []


def test_two_steps(store: Store, path: str) -> None:
    """The running session, written just now, is its caller's own."""
    os.utime(path)
    status, answer = prepared(store, path, "--leaf", ids(Path(path).read_bytes())[-1],
                              PI_SESSION_FILE=path)  # fmt: skip
    assert (status, answer["report"]["outcome"]) == (0, "planned")
    assert answer["snapshotBytes"] == os.stat(path).st_size
    assert Path(answer["prepared"]).is_file()
    ran = trim(store, "--commit", answer["token"], PI_SESSION_FILE=path)
    assert (ran.status, json.loads(ran.out)["message"]) == (
        0,
        "Compacted session trimmed: 5 KB → 3 KB",
    )
    assert trim(store, "--commit", answer["token"]).status == 1


def test_discarded(store: Store, path: str) -> None:
    before = Path(path).read_bytes()
    _, answer = prepared(store, path)
    assert trim(store, "--discard", answer["token"]).status == 0
    assert not Path(answer["prepared"]).exists()
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize(
    ("user", "project", "trusted", "outcome"),
    [
        (None, None, True, "planned"),
        ("true", None, True, "planned"),
        ("false", None, True, "nothing"),
        ("false", "true", True, "planned"),
        ("false", "true", False, "nothing"),
        ("true", "false", True, "nothing"),
        ('"yes"', None, True, "refused"),
        ("true", "1", True, "refused"),
        ("true", "1", False, "planned"),
        ("nonsense", None, True, "refused"),
    ],
)
def test_configuration(
    store: Store, path: str, user: str | None, project: str | None, trusted: bool, outcome: str
) -> None:
    """The project's word over the user's, if it is trusted; what is neither yes nor no is off."""
    agent, folder = store.root.parent / "agent", store.root.parent / "project"
    for word, file in (
        (user, agent / "extensions" / "session-surgery.json"),
        (project, folder / ".pi" / "session-surgery.json"),
    ):
        if word is not None:
            file.parent.mkdir(parents=True)
            file.write_text(f'{{"autoAfterCompaction": {word}}}')
    more = ["--project", str(folder), *(["--trusted"] if trusted else [])]
    status, answer = prepared(store, path, *more, PI_CODING_AGENT_DIR=str(agent))
    assert answer["report"]["outcome"] == outcome
    assert status == (1 if outcome == "refused" else 0)
    assert (answer["token"] is None) == (outcome != "planned")


# --- the bound -----------------------------------------------------------------------------------


def test_the_bound_holds(store: Store, path: str) -> None:
    """What it hides is not trimmed, nor said to be there.

    The running session prepares its own, and may be rewritten where that was wanted by force.
    """
    settings = {"piRetrospect": {"allowedProjects": ["other"]}}
    before = Path(path).read_bytes()
    index = store.open(settings=settings)
    for one in (path, path.replace("t.jsonl", "missing.jsonl")):
        with pytest.raises(AccessDenied):
            index.trim(one, force=True)
        with pytest.raises(AccessDenied):
            index.prepare_trim(one)
    assert index.at_rest(0) == []
    own = store.open(settings=settings, current_session=path)
    for how in ({"force": True}, {"transcript": True}):
        with pytest.raises(AccessDenied):
            own.trim(path, **how)
    assert own.trim(path, transcript=True, force=True, dry_run=True).outcome == "planned"
    token = own.prepare_trim(path).token
    assert token
    with pytest.raises(AccessDenied):
        index.commit_trim(token)
    assert Path(path).read_bytes() == before
    assert own.commit_trim(token).outcome == "trimmed"


def test_wrong_arguments(store: Store, path: str) -> None:
    for given in ({"restore": True}, {"transcript": True, "backup": "x"}):
        with pytest.raises(ParameterError):
            store.index.trim(path, **given)
    with pytest.raises(SessionIndexError, match="not under the sessions root"):
        store.index.trim("/etc/passwd")


def test_on_a_terminal_somebody_is_asked(store: Store, path: str) -> None:
    """No answer is no: the question is put, and the end of input ends it."""
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    ran = terminal(["trim", "t", "--dry-run", *where], environment(store.root.parent))
    assert ran.status == 0
    assert "would be trimmed" in ran.out
