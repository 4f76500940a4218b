"""What an entry says in numbers, and that nothing is lost when it is packed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionindex import signals
from sessionindex.fold import token
from sessionindex.signals import OTHER_ROLE, USER, Traits, pack, traits, unpack


def entry(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "a", "parentId": None, **fields}


def message(role: Any, **fields: Any) -> dict[str, Any]:
    return entry("message", message={"role": role, **fields})


def call(name: Any, identity: Any = "c1", **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": identity, "name": name, "arguments": arguments}


C1, C2, PATH, OTHER = (token(name) for name in ("c1", "c2", "a.py", "other/path.py"))
ASSISTANT = USER + 1
RESULT = USER + 2


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ("user", message("user", content="hi"), Traits(USER, starts_section=True, has_text=True)),
        ("blank user", message("user", content=" \ufeff"), Traits(USER, starts_section=True)),
        ("no content", message("user"), Traits(USER, starts_section=True)),
        ("answer", message("assistant", content="hi"), Traits(ASSISTANT, has_text=True)),
        ("a role of its own", message("robot", content="hi"), Traits(OTHER_ROLE, has_text=True)),
        ("no role", message("", content="hi"), Traits(has_text=True)),
        ("an odd role", message(7), Traits()),
        ("no message", entry("message", message="text"), Traits()),
        ("thinking is no text", message("assistant", content=[{"type": "thinking",
         "thinking": "x"}]), Traits(ASSISTANT)),
        ("a call", message("assistant", content=[call("read", path="a.py")]),
         Traits(ASSISTANT, calls=(C1,), reads=(PATH,))),
        ("two calls", message("assistant", content=[call("edit", path="a.py"),
         call("write", "c2", path="other/path.py", paths=["a.py"])]),
         Traits(ASSISTANT, calls=(C1, C2), modified=(PATH, OTHER))),
        ("calls need an id and a name", message("assistant", content=[call(None), call("x", 1)]),
         Traits(ASSISTANT)),
        ("a result", message("toolResult", toolCallId="c1", content="ok"),
         Traits(RESULT, has_text=True, is_result=True, result=C1)),
        ("an error", message("toolResult", toolCallId="c1", isError=True),
         Traits(RESULT, is_result=True, is_error=True, result=C1)),
        ("true only", message("toolResult", isError="true"), Traits(RESULT, is_result=True)),
        ("errors are of results", message("assistant", isError=True), Traits(ASSISTANT)),
        ("compaction", entry("compaction", summary="s", details={"readFiles": ["a.py"]}),
         Traits(starts_section=True, has_text=True, is_compaction=True, reads=(PATH,))),
        ("kept", entry("compaction", firstKeptEntryId="c1"),
         Traits(starts_section=True, is_compaction=True, kept=C1)),
        ("branch summary", entry("branch_summary", details={"modifiedFiles": "a.py"}),
         Traits(starts_section=True, is_branch_summary=True, modified=(PATH,))),
        ("control", entry("custom", customType="dcp-journal"), Traits(is_control=True)),
        ("control", entry("custom", customType="dcp-nudge"), Traits(is_control=True)),
        ("no control", entry("custom", customType="dcp-state"), Traits()),
        ("odd custom", entry("custom", customType=["dcp-nudge"]), Traits()),
        ("said aloud", entry("custom_message", customType="dcp-nudge", content="x"),
         Traits(has_text=True)),
        ("no type", {"id": "a"}, Traits(is_ignored=True)),
        ("anything else", entry("label", label="x"), Traits()),
    ],
)  # fmt: skip
def test_traits(rule: str, value: dict[str, Any], expected: Traits) -> None:
    assert traits(value) == expected, rule


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (entry("message"), True),
        (entry("session"), False),
        (entry(""), True),
        ({"type": "message"}, False),
        ({"type": "message", "id": ""}, False),
        ({"type": "message", "id": 5}, False),
        ({"type": None, "id": "a"}, True),
        ([], False),
        (None, False),
    ],
)
def test_what_is_an_entry(value: Any, expected: bool) -> None:
    assert signals.is_entry(value) is expected


TOKENS = st.lists(st.integers(1, 2**64 - 1), max_size=5).map(tuple)


@given(
    st.builds(
        Traits,
        st.integers(0, 255),
        *[st.booleans()] * 8,
        st.integers(0, 2**64 - 1),
        TOKENS,
        TOKENS,
        TOKENS,
        st.integers(0, 2**64 - 1),
    )
)
def test_packing_loses_nothing(found: Traits) -> None:
    """What answers a call is no compaction, and only a compaction keeps anything."""
    found = found._replace(**{"result" if found.is_compaction else "kept": 0})
    shape, facts = pack(found)
    assert unpack(shape, facts) == found
    assert 0 <= shape < 2**63
    assert (facts == b"") == (not any(found[9:]))
    assert bool(shape & signals.FACTS) == bool(facts)
    assert bool(shape & signals.CONTROL) == found.is_control
    assert bool(shape & signals.STARTS) == found.starts_section
    assert bool(shape & signals.COMPACTION) == found.is_compaction
    assert shape & signals.ROLE == found.role


def test_many_calls() -> None:
    """As many calls as a line can hold."""
    blocks = [call("read", f"c{number}", path=f"p{number}") for number in range(70_000)]
    found = traits(message("assistant", content=blocks))
    assert unpack(*pack(found)) == found
    assert len(found.calls) == len(found.reads) == 70_000
