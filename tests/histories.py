"""Sessions that a trim has something to do with, and what can be read off their bytes."""

from __future__ import annotations

import json
from typing import Any

from build import Builder, session

from sessionindex.jsonline import split
from sessionindex.trim.outline import Outline


def begun(name: str, turns: int = 3) -> Builder:
    """Settings and a few turns: what a compaction will hide."""
    story = session(name)
    story.entry("model_change", provider="maker", modelId="m-1")
    story.entry("thinking_level_change", thinkingLevel="high")
    for number in range(turns):
        turn(story, f"old {number}")
    return story


def turn(story: Builder, word: str) -> Builder:
    """A question, a call with its result, an answer."""
    story.user(f"question {word}").call("bash", command=f"ls {word}").result(f"output {word} " * 9)
    return story.assistant(f"answer {word}", provider="maker", model="m-1")


def compacted(name: str = "t", turns: int = 3) -> Builder:
    """A session whose compaction hides turns `old N` and keeps `kept`; `new` comes after it."""
    story = begun(name, turns)
    story.custom("todo", {"open": 3})
    first = len(story)
    turn(story, "kept")
    story.compaction("the summary", keep=ids(story)[first - 1])
    return turn(story, "new")


def values(data: Builder | bytes) -> list[dict[str, Any]]:
    """The entries of a file, those lines that parse to one."""
    whole = data if isinstance(data, bytes) else data.bytes()
    return [json.loads(line) for line in whole.split(b"\n")[1:] if line.startswith(b"{")]


def ids(data: Builder | bytes) -> list[str]:
    return [value["id"] for value in values(data)]


def outline(data: Builder | bytes) -> Outline:
    """The outline of whole lines."""
    found = Outline()
    for line in split(data if isinstance(data, bytes) else data.bytes(), 1, 0):
        found.add(line)
    return found


def said(data: bytes) -> list[str]:
    """What each entry is, in words that a test can name: its text, or its type."""
    words = []
    for value in values(data):
        content = value.get("message", {}).get("content")
        block = content[0] if isinstance(content, list) and content else {}
        words.append(block.get("text", block.get("type", value["type"])))
    return words


def back(story: Builder, parent: str | None) -> Builder:
    """The session, its next entry hanging on this one."""
    story._parent = parent
    return story
