"""Hits: filters, modes and kinds of a search, told on a few entries."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sessionindex.entry import understand
from sessionindex.match import Match, Matcher, Mode, matcher
from sessionindex.model import DEFAULT_KINDS, KINDS, Entry, Kind
from sessionindex.timestamps import Window, window

STAMP = "2026-01-05T10:00:00.000Z"
INSTANT = 1767607200000


def entry(kind: str = "message", timestamp: str = STAMP, **fields: Any) -> Entry:
    found = understand({"type": kind, "timestamp": timestamp, **fields}, 2, 3)
    assert isinstance(found, Entry)
    return found


def asked(
    *terms: str,
    mode: Mode = "any",
    case: bool = False,
    kinds: tuple[Kind, ...] = DEFAULT_KINDS,
    types: list[str] | None = None,
    roles: list[str] | None = None,
    window: Window = Window(None, None),  # noqa: B008 (a frozen value)
) -> Matcher:
    return matcher(
        terms, mode=mode, case_sensitive=case, kinds=kinds, types=types, roles=roles, window=window
    )


TALK = entry(
    message={
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "perhaps Fish"},
            {"type": "text", "text": "Bread and butter"},
            {"type": "toolCall", "name": "cook", "arguments": {"dish": "bread soup"}},
        ],
    }
)
TOOLS = 'cook\n{"dish":"bread soup"}'


@pytest.mark.parametrize(
    ("rule", "question", "found"),
    [
        ("a term in the text", asked("butter"), ("text", {0})),
        ("no term, no match", asked("fish", "x"), None),
        ("case is folded on both sides", asked("BREAD"), ("text", {0})),
        ("unless it counts", asked("bread", case=True), ("tools", {0})),
        ("and is wrong", asked("BREAD", case=True), None),
        ("any of the terms", asked("x", "soup"), ("tools", {1})),
        ("the first kind that holds one", asked("soup", "butter"), ("text", {1})),
        ("all of the terms, in any kinds", asked("soup", "butter", mode="all"), ("text", {0, 1})),
        (
            "the kind is the first, not the last",
            asked("soup", "cook", mode="all"),
            ("tools", {0, 1}),
        ),
        ("all means all", asked("soup", "butter", "x", mode="all"), None),
        ("a kind that was not asked for", asked("soup", kinds=("text",)), None),
        ("one that was", asked("fish", kinds=("thinking",)), ("thinking", {0})),
        ("never across kinds", asked('soup"}\nperhaps', kinds=KINDS), None),
        ("across blocks of one", asked('cook\n{"dish'), ("tools", {0})),
        (
            "for session, which terms are there",
            asked("x", "soup", "butter", mode="session"),
            ("text", {1, 2}),
        ),
        ("equal terms are both there", asked("bread", "bread", mode="all"), ("text", {0, 1})),
    ],
)
def test_terms(rule: str, question: Matcher, found: tuple[str, set[int]] | None) -> None:
    match = question.match(TALK)
    assert (match and (match.kind, set(match.terms))) == found, rule


def test_a_match_carries_the_whole_text_of_its_kind() -> None:
    assert asked("soup").match(TALK) == Match(INSTANT, frozenset({0}), True, "tools", TOOLS)


@pytest.mark.parametrize(
    ("rule", "filters", "passes"),
    [
        ("none", {}, True),
        ("its type", {"types": ["custom", "message"]}, True),
        ("another type", {"types": ["custom"]}, False),
        ("its role", {"roles": ["assistant"]}, True),
        ("another role", {"roles": ["user"]}, False),
        ("case counts in names", {"roles": ["Assistant"]}, False),
        ("from its instant on", {"window": Window(INSTANT, None)}, True),
        ("after it", {"window": Window(INSTANT + 1, None)}, False),
        ("up to it", {"window": Window(None, INSTANT)}, False),
        (
            "all of them",
            {"types": ["message"], "roles": ["assistant"], "window": Window(INSTANT, INSTANT + 1)},
            True,
        ),
        ("all but one", {"types": ["message"], "roles": ["user"]}, False),
    ],
)
def test_filters(rule: str, filters: dict[str, Any], passes: bool) -> None:
    """Every filter must hold; only for `session` do the terms of others still count."""
    assert (asked("soup", **filters).match(TALK) is not None) is passes, rule
    assert (asked("soup", mode="all", **filters).match(TALK) is not None) is passes, rule
    counted = asked("soup", mode="session", **filters).match(TALK)
    assert counted == Match(INSTANT, frozenset({0}), passes, "tools", TOOLS), rule


def test_an_entry_without_a_role_has_none_of_the_roles() -> None:
    found = entry("compaction", summary="soup")
    assert asked("soup").match(found) is not None
    assert asked("soup", roles=["user", ""]).match(found) is None


@pytest.fixture
def new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_a_floating_timestamp_is_host_time(new_york: None) -> None:
    """What is 10:00 on the host's wall is 15:00 UTC in New York, for filters and in the match."""
    found = entry("label", "2026-01-05T10:00:00", label="soup")
    match = asked("soup", window=window("2026-01-05T15:00:00Z", "2026-01-05T15:00:00Z")).match(
        found
    )
    assert match is not None
    assert match.instant == INSTANT + 5 * 3_600_000
    assert asked("soup", window=window(STAMP, STAMP)).match(found) is None
