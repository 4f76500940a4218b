"""What Pi builds from a file, in Pi's own words, and each way in which a bad trim would show."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from build import Builder, encoded, session
from histories import begun, compacted, ids, outline, turn

from sessionindex.jsonline import value
from sessionindex.trim.outline import Outline
from sessionindex.trim.verify import Read, Seen, Unseen, differences, seen

RECORDED = Path(__file__).parent / "data" / "trim"


def reading(data: bytes) -> tuple[Outline, Read]:
    found = outline(data)

    def read(row: int) -> Any:
        start = found.offsets[row]
        return value(data[start : start + found.lengths[row]])

    return found, read


def look(data: Builder | bytes) -> Seen:
    return seen(*reading(data if isinstance(data, bytes) else data.bytes()))


def differing(before: Builder | bytes, after: Builder | bytes) -> list[str]:
    one, other = ([*reading(d if isinstance(d, bytes) else d.bytes())] for d in (before, after))
    return differences(one[0], one[1], other[0], other[1])


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_the_context_is_what_pi_itself_says(path: Path) -> None:
    """Recorded from Pi 1.6.0: the SHA-256 of its context's JSON, and the rest of what it tells."""
    told = json.loads(path.with_suffix("").with_suffix(".expected.json").read_bytes())
    found = look(gzip.decompress(path.read_bytes()))
    assert found.context == told["contextSha"]
    assert (found.session_id, found.model, found.thinking, list(found.tools), found.messages) == (
        told["sessionId"], told["model"], told["thinkingLevel"], told["tools"], told["messages"]
    )  # fmt: skip
    assert (found.name or "").strip() == (told["name"] or "")
    assert len(found.ids) == told["contextEntries"]


def test_there_are_recorded_files() -> None:
    assert len(list(RECORDED.glob("*.jsonl.gz"))) >= 8


def lines_of(story: Builder) -> list[bytes]:
    return story.bytes().splitlines(keepends=True)


def without(story: Builder, *numbers: int) -> bytes:
    """The session without some entries, the first of them 0; nothing is linked anew."""
    return b"".join(line for n, line in enumerate(lines_of(story)) if n - 1 not in numbers)


def linked(story: Builder, number: int, parent: str | None) -> bytes:
    lines = lines_of(story)
    lines[number + 1] = encoded(json.loads(lines[number + 1]) | {"parentId": parent}) + b"\n"
    return b"".join(lines)


def replaced(story: Builder, old: bytes, new: bytes) -> bytes:
    assert old in story.bytes()
    return story.bytes().replace(old, new)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (lambda s: without(s, 0), "parents"),
        (lambda s: without(s, 1), "thinking level"),
        (lambda s: without(s, len(ids(s)) - 1), "leaf"),
        (lambda s: linked(s, ids(s).index(first(s)), None), "last model change"),
        (lambda s: linked(s, ids(s).index(first(s)), ids(s)[1]), "extension records of the branch"),
        (lambda s: replaced(s, b"answer kept", b"answer lost"), "messages"),
        (lambda s: replaced(s, b"the summary", b"a summary"), "messages"),
        (lambda s: replaced(s, first(s).encode() + b'","tokens', b'x","tokens'), "entries of the"),
        (lambda s: replaced(s, b'"id":"t"', b'"id":"u"'), "session"),
        (lambda s: s.bytes() + session("t").info("n").tail(1), "session name"),
    ],
)
def test_a_bad_trim_is_seen(after: Any, what: str) -> None:
    """None of these files could take the place of the session."""
    story = compacted()
    assert any(one.startswith(what) for one in differing(story, after(story))), what


def first(story: Builder) -> str:
    """The first entry that the compaction keeps."""
    found = [json.loads(line).get("firstKeptEntryId") for line in lines_of(story)]
    return next(one for one in found if one)


def test_a_label_that_is_lost_is_seen() -> None:
    story = begun("t").custom("todo", 1)
    story.entry("label", targetId=ids(story)[-1], label="mark")
    label = len(ids(story)) - 1
    turn(story, "kept").compaction("s", keep=ids(story)[label + 1])
    after = linked(story, label + 1, ids(story)[label - 1])
    lines = after.splitlines(keepends=True)
    del lines[label + 1]
    assert differing(story, b"".join(lines)) == ["labels"]


def test_edits_are_applied_as_pi_applies_them() -> None:
    """The latest for a target counts, a null takes the message away, hidden targets are not met."""
    story = session("t").user("a")
    target = ids(story)[0]
    whole = look(story)
    story.entry("context_edit", targetId=target, replacement={"content": "b"})
    edited = look(story)
    assert (edited.messages, edited.context != whole.context) == (1, True)
    story.entry("context_edit", targetId=target, replacement=None)
    assert look(story).messages == 0
    story.compaction("s").entry("context_edit", targetId=target, replacement={"content": "c"})
    assert look(story).messages == 1


def test_what_pi_cannot_build_is_not_guessed() -> None:
    story = session("t").user("a")
    story.entry("context_edit", targetId=ids(story)[0])
    with pytest.raises(Unseen):
        look(story)
