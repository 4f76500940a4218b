"""The command /session-surgery in the real Pi: preview, confirmation, another session."""

from __future__ import annotations

import pytest
from pi_files import lines, users
from pi_rpc import Place

READS = {"tool": "bash", "args": {"command": "seq 1000"}}


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_new_session_without_tool_calls(confirmed: bool, place: Place) -> None:
    place.script(READS, "I have read it.", "Here I am.")
    with place.pi() as pi:
        pi.prompt("Please read.")
        old, before = pi.file, pi.file.read_bytes()
        files = set(place.agent.rglob("*.jsonl"))
        running = pi.post("prompt", message="/session-surgery")
        asked = pi.event("extension_ui_request", method="confirm")
        assert "KB" in asked["message"]
        pi.reply(asked, confirmed=confirmed)
        pi.answer(running)
        assert old.read_bytes() == before
        new = pi.file
        if not confirmed:
            assert new == old and set(place.agent.rglob("*.jsonl")) == files
        pi.prompt("Are you there?")
    assert users(new) == ["Please read.", "Are you there?"]
    if confirmed:
        assert new.parent == old.parent and new not in files
        told = lines(new)
        assert told[0]["parentSession"] == str(old)
        roles = [one["message"]["role"] for one in told if one["type"] == "message"]
        assert "toolResult" not in roles
        assert new.stat().st_size < len(before)


def test_a_session_that_is_not_there_yet(place: Place) -> None:
    with place.pi() as pi:
        pi.command("/session-surgery")
        assert len(pi.notices) == 1


def test_after_uninstall_pi_starts_without_it(place: Place) -> None:
    ran = place.run("pi", "uninstall")
    assert ran.status == 0, ran
    place.script("Hello.")
    with place.pi() as pi:
        pi.prompt("Hello?")
        commands = [one["name"] for one in pi.send("get_commands")["commands"]]
    assert "session-surgery" not in commands
    [request] = place.requests()
    assert "past-sessions" not in request["system"] and "codemode" not in request["tools"]
