"""mark_steering: which messages get the mark, to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from sessionindex import SessionIndex, SessionIndexError

ON = {"piRetrospect": {"markSteeringMessages": True}}
STEER = {"source": "interactive", "streamingBehavior": "steer"}
CONTINUE = {"action": "continue"}


def marked(text: str) -> dict[str, Any]:
    return {"action": "transform", "text": f"STEERING: {text}"}


def call(params: Any, settings: Any = ON) -> dict[str, Any]:
    """The answer for a root that is not there: none is needed."""
    with SessionIndex("/nowhere", settings=settings, current_session="") as index:
        return index.call("mark_steering", params)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("fix", marked("fix")),
        ("", marked("")),
        ("a\nb", marked("a\nb")),
        ("/compact", CONTINUE),
        ("/", CONTINUE),
        (" /compact", marked(" /compact")),
        ("STEERING: fix", CONTINUE),
        ("STEERING: ", CONTINUE),
        ("STEERING:fix", marked("STEERING:fix")),
        ("STEERING:", marked("STEERING:")),
        ("steering: fix", marked("steering: fix")),
        (" STEERING: fix", marked(" STEERING: fix")),
        ("\ufeff/compact", marked("\ufeff/compact")),
        ("\ud83d half", marked("\ud83d half")),
    ],
)
def test_commands_and_marked_texts_stay(text: str, answer: dict[str, Any]) -> None:
    """The text alone decides, from its first character on; white space is text."""
    assert call({"text": text, **STEER}) == answer


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        ({"source": "interactive", "streamingBehavior": "steer"}, marked("fix")),
        ({"source": "rpc", "streamingBehavior": "steer"}, marked("fix")),
        ({"source": "other", "streamingBehavior": "steer"}, marked("fix")),
        ({"source": "", "streamingBehavior": "steer"}, marked("fix")),
        ({"streamingBehavior": "steer"}, marked("fix")),
        ({"source": "extension", "streamingBehavior": "steer"}, CONTINUE),
        ({"source": "Extension", "streamingBehavior": "steer"}, marked("fix")),
        ({"source": "interactive", "streamingBehavior": "followUp"}, CONTINUE),
        ({"source": "interactive", "streamingBehavior": "Steer"}, CONTINUE),
        ({"source": "interactive", "streamingBehavior": ""}, CONTINUE),
        ({"source": "interactive"}, CONTINUE),
        ({}, CONTINUE),
    ],
)
def test_only_steering_by_others_than_extensions(
    how: dict[str, str], answer: dict[str, Any]
) -> None:
    assert call({"text": "fix", **how}) == answer


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        ({"piRetrospect": {"markSteeringMessages": True}}, marked("fix")),
        ({"piRetrospect": {"markSteeringMessages": True, "allowedProjects": 5}}, marked("fix")),
        ({"piRetrospect": {"markSteeringMessages": True, "allowedProjects": []}}, marked("fix")),
        ({"piRetrospect": {"markSteeringMessages": "true"}}, CONTINUE),
        ({"piRetrospect": {"markSteeringMessages": 1}}, CONTINUE),
        ({"piRetrospect": {"markSteeringMessages": False}}, CONTINUE),
        ({"piRetrospect": {"markSteeringMessages": None}}, CONTINUE),
        ({"piRetrospect": {}}, CONTINUE),
        ({"piRetrospect": None}, CONTINUE),
        ({"piRetrospect": [True]}, CONTINUE),
        ({"markSteeringMessages": True}, CONTINUE),
        ({}, CONTINUE),
        ([], CONTINUE),
        ("no settings", CONTINUE),
    ],
)
def test_only_where_the_setting_is_exactly_true(settings: Any, answer: dict[str, Any]) -> None:
    """What cannot be read asks for nothing; a broken bound has no say."""
    assert call({"text": "fix", **STEER}, settings) == answer


@pytest.mark.parametrize("images", [[], [{"type": "image", "data": "Zm9v"}], None, "odd"])
def test_images_come_back_as_they_were_given(images: Any) -> None:
    assert call({"text": "look", "images": images, **STEER}) == marked("look") | {"images": images}
    assert call({"text": "/look", "images": images, **STEER}) == CONTINUE


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "text must be a string"),
        ({"text": None}, "text must be a string"),
        ({"text": ["fix"]}, "text must be a string"),
        ({"text": "fix", "source": 5}, "source must be a string"),
        ({"text": "fix", "source": None}, "source must be a string"),
        ({"text": "fix", "streamingBehavior": True}, "streamingBehavior must be a string"),
        ({"text": "fix", "colour": "red"}, "unknown parameter: colour"),
        ({"text": 5, "colour": "red"}, "unknown parameter: colour"),
        ("fix", "parameters must be an object"),
        (None, "parameters must be an object"),
    ],
)
def test_what_is_no_message_is_refused(params: Any, message: str) -> None:
    """Unknown names first, then shapes, whether the mark is on or off."""
    for settings in (ON, {}):
        with pytest.raises(SessionIndexError) as refused:
            call(params, settings)
        assert str(refused.value) == message
