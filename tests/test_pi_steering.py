"""Steering marks in the real Pi: which messages are stored with the mark."""

from __future__ import annotations

from typing import Any

import pytest
from pi_files import users
from pi_rpc import Place

ON: dict[str, Any] = {"piRetrospect": {"markSteeringMessages": True}}
IMAGE = {
    "type": "image",
    "mimeType": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhf"
    "DwAChwGA60e6kgAAAABJRU5ErkJggg==",
}
SPEAKER = """
export default function (pi) {
	pi.registerCommand("say", {
		description: "Says something for the user",
		handler: async (text) => pi.sendUserMessage(text, { deliverAs: "steer" }),
	});
}
"""


@pytest.fixture
def streaming(place: Place) -> Place:
    """The first answer goes on until the gate opens."""
    place.settings(**ON)
    place.edited("STEERING_MS = 300;", "STEERING_MS = 30_000;")  # however busy this machine is
    place.script(["A long answer", {"wait": place.gate}, " ends."], *["Yes."] * 12)
    return place


def test_what_steers_a_running_answer_is_marked(streaming: Place) -> None:
    """And nothing else is: idle prompts, follow-ups, commands, what an extension says. The index
    finds the marks."""
    streaming.extension("speaker", SPEAKER)
    with streaming.pi() as pi:
        pi.post("prompt", message="Begin.")
        pi.said("A long answer")
        pi.send("steer", message="No, in French.")
        pi.send("prompt", message="And short.", streamingBehavior="steer")
        pi.send("steer", message="/unknown command")
        pi.send("steer", message="STEERING: by hand")
        pi.command("/say I am an extension.")
        pi.send("follow_up", message="Then say goodbye.")
        pi.send("prompt", message="And rest.", streamingBehavior="followUp")
        since = pi.mark
        streaming.open_gate()
        pi.event("agent_settled", since)
        pi.send("steer", message="Nothing runs.")
        pi.prompt("One more.")
        file = pi.file
        said = users(file)
    assert said == [
        "Begin.",
        "STEERING: No, in French.",
        "STEERING: And short.",
        "/unknown command",
        "STEERING: by hand",
        "I am an extension.",
        "Then say goodbye.",
        "And rest.",
        "One more.",
        "Nothing runs.",
    ]
    with streaming.library() as index:
        index.refresh()
        for brute in (False, True):
            hits = index.search("STEERING: ", case_sensitive=True, brute=brute).hits
            assert {hit.session_path for hit in hits} == {str(file)}
            assert sorted(hit.snippet for hit in hits) == sorted(said[1:3] + said[4:5])


def test_images_stay_with_the_marked_message(streaming: Place) -> None:
    with streaming.pi() as pi:
        pi.post("prompt", message="Begin.")
        pi.said("A long answer")
        pi.send("steer", message="Look.", images=[IMAGE])
        since = pi.mark
        streaming.open_gate()
        pi.event("agent_settled", since)
        content = pi.send("get_messages")["messages"][-2]["content"]
    assert [part["type"] for part in content] == ["text", "image"]
    assert content[0]["text"] == "STEERING: Look."


def test_messages_keep_their_order(streaming: Place) -> None:
    """Also those that are sent before the ones before them were answered."""
    texts = [f"Number {number}." for number in range(8)]
    with streaming.pi() as pi:
        pi.post("prompt", message="Begin.")
        pi.said("A long answer")
        for one in [pi.post("steer", message=text) for text in texts]:
            pi.answer(one)
        since = pi.mark
        streaming.open_gate()
        pi.event("agent_settled", since)
        said = users(pi.file)
    assert said == ["Begin.", *(f"STEERING: {text}" for text in texts)]


def test_without_the_setting_nothing_is_marked(streaming: Place) -> None:
    streaming.settings()
    with streaming.pi() as pi:
        pi.post("prompt", message="Begin.")
        pi.said("A long answer")
        pi.send("steer", message="No, in French.")
        since = pi.mark
        streaming.open_gate()
        pi.event("agent_settled", since)
        assert users(pi.file) == ["Begin.", "No, in French."]
