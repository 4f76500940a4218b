"""What the index is told: every gram of the text, in fewer characters."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionindex import entry as entries
from sessionindex.model import KINDS, Entry
from sessionindex.narrowing import narrowing

CODE = 'def say(x):\n\tprint("x \\\\ y", x)\r\n    return {"a": [1, 2]}  # twelve plain letters\n'


def message(role: str, **body: Any) -> Entry:
    value = {
        "type": "message",
        "timestamp": "2026-09-10T09:00:01.000Z",
        "message": {"role": role, **body},
    }
    found = entries.understand(value, 2, 3)
    assert isinstance(found, Entry)
    return found


def told_of(found: Entry) -> dict[str, list[str]]:
    """What each kind tells, details with the text beside them."""
    told = narrowing(found, "text")
    return {
        kind: narrowing(found, kind, told[0] if told else "")
        if kind == "details"
        else narrowing(found, kind)
        for kind in KINDS
    }


def runs(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


def check(found: Entry) -> None:
    """Each run of three in a kind's whole text is told, by the kind or by the text beside it."""
    told = told_of(found)
    beside = set().union(*map(runs, told["text"]))
    for kind in KINDS:
        known = set().union(*map(runs, told[kind]))
        lost = runs(entries.searchable(found, kind)) - known
        assert not (lost - beside if kind == "details" else lost), kind


def test_of_arguments_only_what_json_escapes_is_told_twice() -> None:
    arguments = {
        "path": "src/a b.py",
        "edits": [
            {"oldText": 'say("x")\n\tand \\ go', "newText": "one\ntwo\r\nthree\n\n\nfour five six"},
            {"k": "\ud83d half", "plain": "nothing to escape here", "end": 'quote"'},
        ],
    }
    content = [
        {"type": "toolCall", "id": "c1", "name": "edit", "arguments": arguments},
        {"type": "toolCall", "id": "c2", "name": "bash", "arguments": {"command": "ls\n"}},
    ]
    found = message("assistant", content=content)
    check(found)
    whole = entries.searchable(found, "tools")
    assert sum(map(len, narrowing(found, "tools"))) < len(whole)


@pytest.mark.parametrize(
    ("text", "details", "share"),
    [
        (CODE * 4, {"content": CODE * 4}, 0.5),
        (CODE * 4, {"truncation": [{"content": CODE * 3, "lines": 3}], "n": 1.5}, 0.6),
        ("plain words only " * 9, {"a": "plain words only " * 9}, 0.3),
        (CODE * 4, {"content": CODE.upper() * 4}, 2),
        (CODE, {"content": "short"}, 1.0),
        (CODE * 4, CODE * 4, 0.5),
        (CODE * 4, [CODE * 4, None, [CODE * 4]], 0.5),
        (
            "\x1b[31mred\x1b[0m and more of it \u2028" * 5,
            {"o": "\x1b[31mred\x1b[0m and more of it \u2028" * 5},
            0.9,
        ),
        (
            "\ud83d half of a pair, and then some" * 4,
            {"o": "\ud83d half of a pair, and then some" * 4},
            0.5,
        ),
        ("ΑΣ ΟΔΟΣ " * 20, {"o": "ΑΣ ΟΔΟΣ " * 20}, 0.3),
    ],
)
def test_details_leave_out_what_the_text_says(text: str, details: Any, share: float) -> None:
    found = message("toolResult", content=[{"type": "text", "text": text}], details=details)
    before = repr(found.value)
    check(found)
    told = sum(map(len, told_of(found)["details"]))
    assert told <= share * len(entries.searchable(found, "details"))
    assert repr(found.value) == before


@pytest.mark.parametrize("size", [63, 64, 200])
def test_a_copy_parts_no_neighbours(size: int) -> None:
    """What stands around a copy that JSON shows as it is is joined by a line break."""
    copy = ("plain words of some length " * 9)[:size]
    for details in (
        {"a": "foo\tbar", "b": copy, "c": "quux\tz"},
        {"b": copy, "c": "quux\tz"},
        {"a": "foo\tbar", "b": copy},
        {"b": copy, "n": 1.5, "c": ["quux\tz", copy, '"q']},
    ):
        check(message("toolResult", content=[{"type": "text", "text": copy}], details=details))


@given(
    pieces=st.lists(
        st.sampled_from(
            ["plain words of some length ", '"', "\\", "\n", "\x1b", "é", "Σ", "\ud800", "ab"]
        ),
        min_size=1,
        max_size=40,
    ),
    cuts=st.lists(st.integers(0, 400), min_size=2, max_size=8),
)
def test_whatever_the_text_and_the_pieces_of_it(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    parts = [text[a:b] for a, b in pairwise(sorted(cuts))]
    # Copies stand among strings that JSON shows otherwise: line breaks join these.
    among = [
        part for pair in zip(parts, ["a\tb", "c", '"d"', "\ne"] * 2, strict=False) for part in pair
    ]
    details = {"all": text, "parts": parts, "deep": [{"again": text + "x"}], "among": among}
    check(message("toolResult", content=[{"type": "text", "text": text}], details=details))


def test_the_work_stays_linear() -> None:
    """Many strings are not each looked for in a text that is much longer than they are."""

    class Counting(str):
        looks = 0

        def __contains__(self, part: object) -> bool:
            Counting.looks += 1
            return super().__contains__(part)  # type: ignore[operator]

    details = {
        "lines": ["a line of eighty characters or so, which is enough to be looked for " * 2] * 50
    }
    found = message("toolResult", content="x", details=details)
    narrowing(found, "details", Counting("y" * 1_000_000))
    assert Counting.looks == 0
    narrowing(found, "details", Counting("y" * 1_000))
    assert Counting.looks == 50
