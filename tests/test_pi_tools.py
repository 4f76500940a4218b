"""The tools in the real Pi, called by scripts of the model, over past sessions: the sample."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from build import DENIED, TOOLS, put, session
from pi_files import lines
from pi_rpc import Place

from sessionindex import SessionIndexError

README = Path(__file__).parent.parent / "README.md"


def of_past(place: Place, name: str) -> str:
    """A past session by a part of its file's name."""
    (found,) = place.agent.rglob(f"*{name}*.jsonl")
    return str(found)


def script(calls: list[tuple[str, Any]]) -> str:
    """All of these at once; of each its answer, or the message it was refused with."""
    spelled = ", ".join(f"tools.{name}({json.dumps(params)})" for name, params in calls)
    return (
        f"Promise.allSettled([{spelled}])"
        ".then((all) => all.map((one) => one.reason ? one.reason.message : one.value))"
    )


def test_pi_starts_quietly_with_all_tools(place: Place) -> None:
    """Wherever the command is: the extension knows who installed it."""
    with place.pi(PATH=os.defpath) as pi:
        assert pi.returned("ALL_TOOLS.map((one) => one.name)")[-len(TOOLS) :] == TOOLS
        assert pi.notices == []
    assert "past-sessions" in place.requests()[0]["system"]


def test_the_tools_answer_what_the_library_answers(place: Place) -> None:
    """All seven in one script; the recovery tools of the session that runs, whatever a Pi around
    this one has left in the environment."""
    station = of_past(place, "5a2c9001")
    calls: list[tuple[str, Any]] = [
        ("search_sessions", {"terms": ["three attempts"]}),
        ("search_sessions", {"terms": ["0.2794 mm", "needle"], "in": ["thinking"], "limit": 3}),
        ("list_sessions", {"sortDirection": "desc"}),
        ("session_entries", {"sessionPath": station, "messageRoles": ["user"]}),
        ("session_overview", {}),
        ("session_search", {"query": "three attempts"}),
        ("session_recovery_context", {}),
        ("session_read_section", {"entry_id": "PROMPT"}),
    ]
    place.script("Which?")
    with place.pi(PI_SESSION_FILE=station) as pi:
        pi.prompt("What did we decide about three attempts?")
        file = pi.file
        [prompt] = [
            one["id"] for one in lines(file) if one.get("message", {}).get("role") == "user"
        ]
        calls[-1] = ("session_read_section", {"entry_id": prompt})
        answers = pi.returned(script(calls))
    call = cut_at_the_call(file)
    with place.library(current_session=str(file)) as index:
        for (tool, params), got in zip(calls, answers, strict=True):
            wanted = index.call(tool, params, session=str(file), tool_call_id=call)
            assert got | {"coverage": 0} == wanted | {"coverage": 0}, tool
    assert {hit["sessionPath"] for hit in answers[0]["hits"]} == {station}
    assert answers[6]["content"]["pendingToolCalls"] == []


def cut_at_the_call(file: Path) -> str:
    """Make a session again what it was when its script ran; the id of that call."""
    stored = file.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(stored):
        content = json.loads(line).get("message", {}).get("content", [])
        for part in content:
            if part["type"] == "toolCall":
                file.write_bytes(b"".join(stored[: number + 1]))
                return str(part["id"])
    raise AssertionError("nothing was called")


def test_the_walk_in_the_readme(place: Place) -> None:
    """Its script, run by the model in the real Pi, gives the answer that is printed there."""
    walk = README.read_text().partition("## In Pi")[2]
    source, answer = (re.search(f"```{kind}\n(.*?)```", walk, re.S) for kind in ("js", "json"))
    assert source is not None and answer is not None
    with place.pi() as pi:
        assert pi.returned(f"(async () => {{ {source[1]} }})()") == json.loads(answer[1])


def test_what_the_contract_refuses_rejects_with_its_message(place: Place) -> None:
    calls: list[tuple[str, Any]] = [
        ("session_entries", {"sessionPath": "/etc/passwd"}),
        ("session_entries", {"sessionPath": of_past(place, "6c1004"), "startTimestamp": "soon"}),
        ("list_sessions", {"startTimestamp": "2026-02-01", "endTimestamp": "2026-01-01"}),
        ("search_sessions", {"terms": ["x"], "cursor": "garbled"}),
    ]
    with place.pi() as pi:
        messages = pi.returned(script(calls))
    with place.library() as index:
        for (tool, params), message in zip(calls, messages, strict=True):
            with pytest.raises(SessionIndexError) as refused:
                index.call(tool, params)
            assert message == str(refused.value)


def test_pis_settings_bound_what_is_reached(place: Place) -> None:
    place.settings(piRetrospect={"allowedProjects": ["recipes"]})
    calls: list[tuple[str, Any]] = [
        ("session_entries", {"sessionPath": of_past(place, "5a2c9001")}),
        ("list_sessions", {}),
    ]
    with place.pi() as pi:
        refused, listed = pi.returned(script(calls))
    assert refused == DENIED
    assert [row["cwd"] for row in listed["sessions"]] == ["/home/ada/code/recipes"]


def test_a_session_folder_that_only_pi_knows(place: Place) -> None:
    """Named on its command line, relative to where Pi was started: that is what is searched."""
    past = put(place.project, "elsewhere", "past", session("a").user("the needle"))
    calls: list[tuple[str, Any]] = [
        ("session_overview", {}),
        ("search_sessions", {"terms": ["the needle"]}),
        ("list_sessions", {}),
    ]
    with place.pi("--session-dir", "elsewhere") as pi:
        overview, found, listed = pi.returned(script(calls))
        file = pi.file
    assert overview["content"]["session"]["id"] == lines(place.project / file)[0]["id"]
    assert [hit["sessionPath"] for hit in found["hits"]] == [past]
    assert [row["path"] for row in listed["sessions"]] == [past]


def test_without_a_session_file_the_recovery_tools_say_so(place: Place) -> None:
    with place.pi("--no-session") as pi:
        told = pi.returned("tools.session_overview({})")
        listed = pi.returned("tools.list_sessions({})")
    assert "session" in told["content"] and len(listed["sessions"]) == 3


def test_a_question_on_the_command_line(place: Place) -> None:
    """Pi without anybody to talk to: it answers and ends."""
    code = "return (await tools.list_sessions({})).sessions.length"
    place.script({"tool": "codemode", "args": {"code": code}}, "These three.")
    assert place.printed("Which sessions are there?") == "These three.\n"
    assert place.requests()[-1]["messages"][-1]["content"][-1]["text"] == "3"


RIVAL = """
export default function (pi) {
	for (const name of ["list_sessions", "session_entries"])
		pi.registerTool({
			name, label: name, description: "Of another", exposure: "codemode",
			parameters: { type: "object", properties: {} },
			execute: async () => ({ content: [{ type: "text", text: "of the other" }] }),
		});
}
"""


@pytest.mark.parametrize("name", ["another", "zz-last"])
def test_names_of_another_extension_are_left_to_it(name: str, place: Place) -> None:
    """Whichever is loaded first."""
    place.extension(name, RIVAL)
    with place.pi() as pi:
        calls: list[tuple[str, Any]] = [("list_sessions", {}), ("session_overview", {})]
        listed, overview = pi.returned(script(calls))
        [notice] = pi.notices
    assert listed == "of the other"
    assert overview["details"]["entryCount"] > 0
    assert "list_sessions" in notice and "session_entries" in notice
