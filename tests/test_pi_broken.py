"""Whatever is wrong with `sessionindex`, Pi works as before: one notice, and it goes on."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from pi_files import users
from pi_rpc import Pi, Place, soon

STEERS: dict[str, Any] = {"piRetrospect": {"markSteeringMessages": True}}
READS = {"tool": "bash", "args": {"command": "seq 1000"}}
CALL = """Promise.allSettled([tools.list_sessions({})])
    .then((all) => all.map((one) => one.reason ? one.reason.message : one.value))"""

BROKEN = {
    "is missing": ("", "ENOENT"),
    "dies at once": ("echo no such module >&2; exit 1", "no such module"),
    "dies when it is asked": ("read line; exit 3", "it ended with status 3"),
    "says nonsense": ('while read line; do echo "nonsense {"; done', "it answers nonsense"),
    "answers what was not asked": (
        """while read line; do echo '{"id": 77, "result": {}}'; done""",
        "it answers nonsense",
    ),
    "says nothing": ("while read line; do :; done", "it takes too long"),
    "closes its input": (
        "exec <&-; while kill -0 $PPID; do sleep 0.1; done 2> /dev/null",
        "it takes too long",
    ),
    "complains more than a pipe holds": (
        "yes no good | head -n 99999 >&2; exit 1",
        "no good",
    ),
}


def a_day(place: Place, pi: Pi) -> list[str]:
    """A prompt, a steering message, a tool, a compaction, a prompt; what is stored of the user."""
    pi.post("prompt", message="Begin.")
    pi.said("A long answer")
    pi.send("steer", message="No, in French.")
    since = pi.mark
    place.open_gate()
    pi.event("agent_settled", since)
    pi.prompt("Please read.")
    said = users(pi.file)
    before = pi.file.stat().st_size
    pi.send("compact")
    assert pi.file.stat().st_size > before
    pi.prompt("And then?")
    return [*said, users(pi.file)[-1]]


@pytest.mark.parametrize("how", BROKEN)
def test_pi_goes_on_when_it(how: str, place: Place) -> None:
    script, reason = BROKEN[how]
    if script:
        place.wrapped(script)
    else:
        place.instead(place.top / "nothing")
    place.settings(**STEERS)
    for name, value in (("CALL_MS = 300_000;", 1000), ("TRIM_MS = 15_000;", 300)):
        place.edited(name, f"{name.split()[0]} = {value};")
    long = ["A long answer", {"wait": place.gate}, " ends."]
    place.script(long, "En français.", READS, "Read.", "And then.")
    with place.pi(PATH=os.defpath) as pi:
        assert a_day(place, pi) == ["Begin.", "No, in French.", "Please read.", "And then?"]
        for _ in range(2):  # the first that waits in vain has it started once more
            [message] = pi.returned(CALL)
        assert message.startswith("sessionindex does not answer: ") and reason in message
        tools = [one for one in pi.notices if one.startswith(message)]
        trims = [one for one in pi.notices if one.startswith("Trimming stopped: ")]
        assert len(tools) == 1 and len(trims) <= 1
        assert len(pi.notices) == len(tools) + len(trims)
    assert place.leftovers() == []


def test_it_is_started_once_more(place: Place) -> None:
    """A server that was killed is not missed."""
    place.wrapped('echo $$ >> "$HOME/pids"; exec "$PYTHON" "$@"')
    with place.pi() as pi:
        assert len(pi.returned("tools.list_sessions({})")["sessions"]) == 3
        first = int((place.top / "pids").read_text())
        os.kill(first, signal.SIGKILL)
        assert len(pi.returned("tools.list_sessions({})")["sessions"]) == 3
        assert pi.notices == []


def test_a_call_that_hangs_ends_when_the_user_wants(place: Place) -> None:
    place.wrapped(BROKEN["says nothing"][0])
    place.script({"tool": "codemode", "args": {"code": "return await tools.list_sessions({})"}})
    with place.pi() as pi:
        pi.send("prompt", message="List them.")
        pi.event("tool_execution_start", toolName="list_sessions")
        pi.send("abort")
        pi.event("agent_settled")


@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "SIGKILL"])
def test_nothing_of_ours_outlives_pi(how: str, place: Place) -> None:
    """The server holds a pipe open as long as it runs."""
    os.mkfifo(place.top / "pipe")
    pipe = os.open(place.top / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    place.wrapped('exec 9> "$HOME/pipe"; exec "$PYTHON" "$@"')
    pi = Pi(place, [], place.env)
    try:
        assert len(pi.returned("tools.list_sessions({})")["sessions"]) == 3
        assert is_held(pipe)
        status = pi.end() if how == "end of input" else pi.signal(signal.Signals[how])
        assert status == {"end of input": 0, "SIGTERM": 143}.get(how, -signal.SIGKILL)
        soon(lambda: not is_held(pipe))
    finally:
        pi.kill()
        os.close(pipe)


def is_held(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True
