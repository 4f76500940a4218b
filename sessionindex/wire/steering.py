"""mark_steering on the wire: its parameters and its answer.

A text is needed; who sent it and how are any strings, images are given back as they came. Refused
are unknown names and wrong shapes, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sessionindex import steering
from sessionindex.wire.shapes import Shape, anything, shaped, string

SHAPES: Final[dict[str, Shape]] = {
    "text": string,
    "source": string,
    "streamingBehavior": string,
    "images": anything,
}


def answer(params: Any, settings: Mapping[str, object] | None) -> dict[str, Any]:
    """What becomes of a message under the effective settings; raises ParameterError."""
    given = shaped(params, SHAPES)
    text = steering.marked(
        string("text", given.get("text")),
        source=given.get("source"),
        streaming_behavior=given.get("streamingBehavior"),
        settings=settings,
    )
    if text is None:
        return {"action": "continue"}
    answer = {"action": "transform", "text": text}
    return answer | ({"images": given["images"]} if "images" in given else {})
