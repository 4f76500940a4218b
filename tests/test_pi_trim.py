"""Trimming after a compaction, live in the real Pi.

The model reads long output, so that a compaction hides much: the file gets small, and whatever the
provider is asked from then on is what it would have been asked without a trim.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from build import put, session
from pi_files import lines, masked, users
from pi_rpc import Pi, Place

TRIMMED = "Compacted session trimmed: "
SLOWLY = {
    "before it reads": 'touch "$HOME/preparing"; wait; exec "$PYTHON" "$@"',
    "after it answered": '"$PYTHON" "$@"; touch "$HOME/preparing"; wait',
}
WAITING = """
wait() { while [ ! -e "$HOME/go" ] && kill -0 $PPID; do sleep 0.02; done; }
case "$*" in *--prepare*) HOW ;; *) exec "$PYTHON" "$@" ;; esac
"""
STEERS: dict[str, Any] = {"piRetrospect": {"markSteeringMessages": True}}


def reads(count: int = 500) -> dict[str, Any]:
    """A step of the model: a tool call with a result of so many lines, each of 80 characters."""
    return {"tool": "bash", "args": {"command": f"yes '{'x' * 79}' | head -n {count}"}}


def slow(place: Place, when: str) -> None:
    """Have a preparation wait until somebody says `go`."""
    place.wrapped(WAITING.replace("HOW", SLOWLY[when]))


def talk(place: Place, pi: Pi) -> None:
    """Two prompts; the first reads much."""
    place.script(*place.steps, reads(), "I have read it.", "You are welcome.")
    pi.prompt("Please read.")
    pi.prompt("Thank you.")


def compacted(pi: Pi) -> tuple[int, int]:
    """Compact; the sizes of the file just after its compaction line, and in the end."""
    file, before = pi.file, pi.file.stat().st_size
    pi.send("compact")
    return before, file.stat().st_size


def whole_walk(place: Place) -> Path:
    """A session with two compactions, a steering message, commands, and Pi started anew."""
    place.settings(**STEERS)
    place.edited("STEERING_MS = 300;", "STEERING_MS = 30_000;")
    place.script()
    with place.pi() as pi:
        talk(place, pi)
        pi.send("compact")
        long = ["Still answering", {"wait": place.gate}, " and done."]
        place.script(*place.steps, long, "In French.", [reads(5), reads(6)], "Read again.")
        pi.post("prompt", message="Answer at length.")
        pi.said("Still answering")
        pi.send("steer", message="In French, please.")
        since = pi.mark
        place.open_gate()
        pi.event("agent_settled", since)
        pi.send("bash", command="echo by hand")
        pi.send("set_session_name", name="A name")
        pi.prompt("Read again.")
        pi.send("compact")
        talk(place, pi)
        file = pi.file
    place.script("Here I am again.", reads(7), "Read.", "And compacted once more.")
    with place.pi("--continue") as pi:
        pi.prompt("Are you there?")
        pi.prompt("Read.")
        pi.send("compact")
        pi.prompt("And now?")
        assert pi.file == file
    return file


def test_every_request_is_that_of_a_run_without_trimming(place: Place, tmp_path: Path) -> None:
    """Requests to the provider, all of them; and the index finds what came after the trims."""
    other = Place(place.installed, tmp_path / "idle")
    other.install()
    other.surgery(autoAfterCompaction=False)
    with ThreadPoolExecutor() as both:
        file, whole = both.map(whole_walk, (place, other))
    assert len(masked(place)) > 15
    for got, wanted in zip(masked(place), masked(other), strict=True):
        assert got == wanted
    assert file.stat().st_size < whole.stat().st_size / 3
    kinds = [one["type"] for one in lines(file)]
    assert (kinds.count("compaction"), kinds.count("session_info")) == (1, 1)
    assert users(whole)[-1] == users(file)[-1] == "And now?"
    assert place.leftovers() == []
    with place.library() as index:
        index.refresh()
        found = index.search("compacted once more")
        assert [hit.session_path for hit in found.hits] == [str(file)]
        assert found.hits == index.search("compacted once more", brute=True).hits
        assert index.check().differences == ()


def test_a_compaction_makes_the_file_small(place: Place) -> None:
    """Told in the status line; the same file, id and leaf, and it grows on."""
    with place.pi() as pi:
        talk(place, pi)
        pi.send("set_session_name", name="Reading")
        state = pi.send("get_state")
        before, after = compacted(pi)
        told = pi.noticed(TRIMMED)
        known = [one["id"] for one in pi.send("get_entries")["entries"]]
        assert known == [one["id"] for one in lines(pi.file)[1:]]
        assert pi.send("get_state") | {"messageCount": 0} == state | {"messageCount": 0}
        place.script(*place.steps, "Afterwards.")
        pi.prompt("And then?")
        file = pi.file
    assert after < before / 2
    assert told.endswith(f"→ {(after + 512) // 1024} KB")
    assert users(file) == ["Thank you.", "And then?"]
    assert lines(file)[-1]["message"]["content"][0]["text"] == "Afterwards."


@pytest.mark.parametrize("reason", ["threshold", "overflow"])
def test_compactions_that_pi_starts_trim_too(reason: str, place: Place) -> None:
    """In the middle of a run: it goes on."""
    limit = 12_000 if reason == "threshold" else 150_000
    place.settings(
        compaction={"enabled": True, "keepRecentTokens": 20, "reserveTokens": 200_000 - limit}
    )
    full = {"error": "prompt is too long: 213462 tokens > 200000 maximum"}
    place.script(
        "Hello.",
        *[reads(200), reads(200), reads(200)],
        *([full] if reason == "overflow" else []),
        "I have read it all.",
        "Yes.",
    )
    with place.pi() as pi:
        pi.prompt("Hello?")
        pi.prompt("Read three times.")
        pi.event("compaction_end", reason=reason)
        pi.noticed(TRIMMED)
        pi.prompt("All?")
        file = pi.file
    kinds = [one["type"] for one in lines(file)]
    assert kinds.count("compaction") == 1
    assert "Hello?" not in users(file) and users(file)[-1] == "All?"
    assert place.leftovers() == []


@pytest.mark.parametrize("when", SLOWLY)
def test_what_is_said_during_a_trim_is_kept(when: str, place: Place) -> None:
    """A command, a name and another model, while the replacement is prepared."""
    slow(place, when)
    with place.pi() as pi:
        talk(place, pi)
        file = pi.file
        compacting = pi.post("compact")
        place.appears("preparing")
        pi.send("bash", command="echo kept by all means")
        pi.send("set_session_name", name="A new name")
        pi.send("set_model", provider="fake", modelId="fake-2")
        before = file.stat().st_size
        (place.top / "go").touch()
        pi.answer(compacting)
        pi.noticed(TRIMMED)
        assert pi.send("get_state")["sessionName"] == "A new name"
        place.script(*place.steps, "Still there.")
        pi.prompt("Still there?")
    assert file.stat().st_size < before
    told = lines(file)
    [shell] = [
        one["message"] for one in told if one.get("message", {}).get("role") == "bashExecution"
    ]
    assert shell["output"] == "kept by all means\n"
    assert [one["name"] for one in told if one["type"] == "session_info"] == ["A new name"]
    assert [one["modelId"] for one in told if one["type"] == "model_change"][-1] == "fake-2"
    assert place.requests()[-1]["model"] == "fake-2"
    assert place.leftovers() == []


@pytest.mark.parametrize(
    ("how", "when"), [("new_session", "before it reads"), ("switch_session", "after it answered")]
)
def test_another_session_cancels_a_waiting_trim(how: str, when: str, place: Place) -> None:
    """At once, however long it would take; the session that was left stays as it was."""
    slow(place, when)
    past = put(place.agent / "sessions", "--past--", "past", session("a", cwd=str(place.project)))
    with place.pi() as pi:
        talk(place, pi)
        file, before = pi.file, pi.file.read_bytes()
        compacting = pi.post("compact")
        place.appears("preparing")
        pi.send(how, **({"sessionPath": past} if how == "switch_session" else {}))
        pi.answer(compacting)
        assert pi.file != file
        assert not [one for one in pi.notices if TRIMMED in one]
    assert file.read_bytes().startswith(before)
    assert place.leftovers() == []


WALKER = """
export default function (pi) {
	pi.registerCommand("back", {
		description: "Moves the leaf",
		handler: async (id, ctx) => ctx.sessionManager.branch(id),
	});
}
"""


def test_another_leaf_cancels_a_waiting_trim(place: Place) -> None:
    slow(place, "after it answered")
    place.extension("walker", WALKER)
    with place.pi() as pi:
        talk(place, pi)
        file = pi.file
        first = lines(file)[5]["id"]
        compacting = pi.post("compact")
        place.appears("preparing")
        before = file.read_bytes()
        pi.command(f"/back {first}")
        (place.top / "go").touch()
        pi.answer(compacting)
        assert not [one for one in pi.notices if TRIMMED in one]
        place.script(*place.steps, "From there.")
        pi.prompt("Go on.")
    assert file.read_bytes().startswith(before)
    assert place.leftovers() == []


def test_an_abort_cancels_a_waiting_trim(place: Place) -> None:
    """Of a run that was compacted in its middle; the next compaction trims."""
    slow(place, "before it reads")
    place.settings(compaction={"enabled": True, "keepRecentTokens": 20, "reserveTokens": 188_000})
    place.script("Hello.", *[reads(200)] * 3, "I have read it all.", "Yes.")
    with place.pi() as pi:
        pi.prompt("Hello?")
        pi.send("prompt", message="Read three times.")
        place.appears("preparing")
        pi.send("abort")
        pi.event("agent_settled", aborted=True)
        assert pi.notices == [] and place.leftovers() == []
        (place.top / "go").touch()
        pi.prompt("All?")
        pi.send("compact")
        pi.noticed(TRIMMED)


def test_the_end_of_pi_during_a_trim_leaves_a_whole_file(place: Place) -> None:
    slow(place, "before it reads")
    with place.pi() as pi:
        talk(place, pi)
        file = pi.file
        pi.post("compact")
        place.appears("preparing")
        (place.top / "go").touch()
    assert lines(file)[-1]["type"] == "compaction"
    assert place.leftovers() == []


def test_it_can_be_turned_off(place: Place) -> None:
    """For all projects, or for this one."""
    (place.project / ".pi").mkdir()
    (place.project / ".pi" / "session-surgery.json").write_text('{"autoAfterCompaction": false}')
    with place.pi() as pi:
        talk(place, pi)
        before, after = compacted(pi)
        assert after > before
        assert pi.notices == []


@pytest.mark.parametrize("value", ["yes", None])
def test_an_invalid_setting_turns_it_off_with_one_notice(value: Any, place: Place) -> None:
    place.surgery(autoAfterCompaction=value)
    with place.pi() as pi:
        for _ in range(2):
            talk(place, pi)
            before, after = compacted(pi)
            assert after > before
        [notice] = pi.notices
    assert "autoAfterCompaction" in notice


def test_a_file_that_cannot_be_trimmed_turns_it_off_until_it_is_loaded_again(place: Place) -> None:
    """A hard link: another name that would keep the old bytes. Mended, then loaded again."""
    with place.pi() as pi:
        talk(place, pi)
        second = place.top / "second name"
        second.hardlink_to(pi.file)
        for _ in range(2):
            before, after = compacted(pi)
            assert after > before
            talk(place, pi)
        [notice] = pi.notices
        second.unlink()
        before, after = compacted(pi)
        assert after > before
        assert pi.notices == [notice]
        talk(place, pi)
    assert "link" in notice
    with place.pi("--continue") as pi:
        before, after = compacted(pi)
        assert after < before
        pi.noticed(TRIMMED)
