"""Lines understood: what is an entry, what its text is, and where each kind of search looks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessionindex import entry as entries
from sessionindex.model import KINDS, Entry, Kind, Line, Problem

STAMP = "2026-01-05T10:00:00.000Z"


def parsed(value: Any, *, line_no: int = 2, version: int = 3) -> Entry | Problem:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return entries.parse(Line(line_no, 0, data), version)


def entry(kind: str, **fields: Any) -> Entry:
    found = parsed({"type": kind, "timestamp": STAMP, **fields})
    assert isinstance(found, Entry), found
    return found


def message(role: Any, **fields: Any) -> Entry:
    return entry("message", message={"role": role, **fields})


def kinds(found: Entry) -> dict[str, str]:
    """The searchable text of every kind that has one."""
    return {kind: text for kind in KINDS if (text := entries.searchable(found, kind))}


# --- entry or problem --------------------------------------------------------------------------


def test_an_entry() -> None:
    value = {"type": "message", "id": "e2", "parentId": "e1", "timestamp": STAMP}
    value["message"] = {"role": "user", "content": "hi"}
    assert parsed(value, line_no=7) == Entry(
        7, "e2", "e1", STAMP, 1767607200000, False, "message", "user", value
    )


@pytest.mark.parametrize(
    ("value", "code", "reason"),
    [
        (b"", "invalid_json", "line is blank"),
        (b"{", "invalid_json", "line is not valid JSON: it cannot be parsed"),
        (b"[" * 1025, "invalid_json", "line is not valid JSON: nested deeper than 1024 levels"),
        ([], "invalid_entry", "line is not a JSON object"),
        (None, "invalid_entry", "line is not a JSON object"),
        ("a", "invalid_entry", "line is not a JSON object"),
        ({}, "invalid_entry", "entry has no type"),
        ({"type": ""}, "invalid_entry", "entry has no type"),
        ({"type": 1, "timestamp": STAMP}, "invalid_entry", "entry has no type"),
        ({"type": "session"}, "invalid_entry", "a session header belongs on line 1, not line 9"),
        ({"type": "a"}, "invalid_entry", "entry has no readable timestamp"),
        ({"type": "a", "timestamp": 5}, "invalid_entry", "entry has no readable timestamp"),
        ({"type": "a", "timestamp": "now"}, "invalid_entry", "entry has no readable timestamp"),
    ],
)
def test_problems(value: Any, code: str, reason: str) -> None:
    """The contract's codes and reasons; each has a number that gives it back."""
    found = parsed(value, line_no=9)
    assert found == Problem(9, code, reason)
    assert entries.problem(9, entries.reason_number(found)) == found


@pytest.mark.parametrize(
    ("version", "given", "kept"),
    [
        (3, "e1", "e1"),
        (2, "e1", "e1"),
        (1, "e1", None),
        (0, "e1", None),
        (3, "", None),
        (3, 5, None),
        (3, None, None),
        (3, " ", " "),
    ],
)
def test_ids_are_non_empty_strings_of_version_2_and_later(
    version: int, given: Any, kept: str | None
) -> None:
    found = parsed(
        {"type": "a", "timestamp": STAMP, "id": given, "parentId": given}, version=version
    )
    assert isinstance(found, Entry)
    assert (found.id, found.parent_id) == (kept, kept)


def test_a_timestamp_without_a_zone_floats() -> None:
    """It is kept as a wall clock; the stored string stays as it is."""
    found = parsed({"type": "a", "timestamp": "2026-01-05T10:00"})
    assert isinstance(found, Entry)
    assert (found.instant, found.floating, found.timestamp) == (
        1767607200000,
        True,
        "2026-01-05T10:00",
    )


@pytest.mark.parametrize(
    ("value", "role"),
    [
        ({"type": "message", "message": {"role": "user"}}, "user"),
        ({"type": "message", "message": {"role": ""}}, None),
        ({"type": "message", "message": {"role": 5}}, None),
        ({"type": "message", "message": ["role"]}, None),
        ({"type": "message"}, None),
        ({"type": "Message", "message": {"role": "user"}}, None),
        ({"type": "custom", "message": {"role": "user"}}, None),
    ],
)
def test_roles_are_those_of_messages(value: dict[str, Any], role: str | None) -> None:
    found = parsed(value | {"timestamp": STAMP})
    assert isinstance(found, Entry)
    assert found.role == role


# --- the contract's text -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ("a", "a"),
        (" \n", " \n"),
        ("", None),
        ([], None),
        (None, None),
        (5, None),
        ({"type": "text", "text": "a"}, None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": " b "}], "a\n b "),
        (
            [
                {"type": "text", "text": ""},
                {"type": "image", "data": "x"},
                {"type": "Text", "text": "a"},
            ],
            None,
        ),
        (["a", None, 5, {"type": "text"}, {"type": "text", "text": 5}, {"text": "a"}], None),
        ([{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}], "b"),
    ],
)
def test_content(held: Any, text: str | None) -> None:
    """A string as it is, or the text blocks of an array, joined by line breaks."""
    assert entries.content(held) == text
    for role in ("user", "assistant", "toolResult", "custom"):
        assert entries.text(message(role, content=held)) == text
    assert entries.text(entry("custom_message", content=held)) == text
    assert entries.text(entry("context_edit", replacement={"content": held})) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (message("bashExecution", command="ls", output="a"), "ls"),
        (message("branchSummary", summary="s", content="c"), "s"),
        (message("compactionSummary", summary="s"), "s"),
        (message("branchSummary", summary=["s"]), None),
        (message("User", content="a"), None),
        (message("other", content="a"), None),
        (message(None, content="a"), None),
        (entry("message", message="a"), None),
        (entry("message"), None),
        (entry("compaction", summary="s"), "s"),
        (entry("branch_summary", summary="s"), "s"),
        (entry("branch_summary", summary=""), None),
        (entry("session_info", name="n"), "n"),
        (entry("usage", note="n"), "n"),
        (entry("label", label="l"), "l"),
        (entry("label", label=5), None),
        (entry("context_edit", replacement=[{"content": "a"}]), None),
        (entry("context_edit", replacement=None), None),
        (entry("context_edit"), None),
        (entry("custom", data="a", content="b"), None),
        (entry("model_change", model="m"), None),
        (entry("Message", message={"role": "user", "content": "a"}), None),
    ],
)
def test_text(found: Entry, text: str | None) -> None:
    """Each role and each type has its own field, or none."""
    assert entries.text(found) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"content": "a"}, "a"),
        ({"content": "a", "sections": {"x": "b", "y": "c"}}, "a\n\nb\n\nc"),
        ({"content": "", "sections": {"x": "b", "y": "", "z": None, "w": 5, "v": ["a"]}}, "b"),
        (
            {"sections": {"b": "1", "10": "2", "9": "3", "a": "4", "0": "5"}},
            "5\n\n3\n\n2\n\n1\n\n4",
        ),
        (
            {"sections": {"01": "1", "-1": "2", "4294967295": "3", "4294967294": "4"}},
            "4\n\n1\n\n2\n\n3",
        ),
        ({"sections": {"٣": "1", "0": "2", "": "3"}}, "2\n\n1\n\n3"),
        ({"content": "a", "sections": ["b"]}, "a"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": "", "sections": {}}, None),
    ],
)
def test_system_prompts(fields: dict[str, Any], text: str | None) -> None:
    """Content, then sections in JavaScript's order of keys, with an empty line between."""
    assert entries.text(message("system", **fields)) == text


# --- the kinds of search -----------------------------------------------------------------------


def test_text_is_what_a_person_reads() -> None:
    """System prompts and typed commands have kinds of their own."""
    assert kinds(message("user", content="a")) == {"text": "a"}
    assert kinds(entry("compaction", summary="s")) == {"text": "s"}
    assert kinds(message("system", content="a")) == {"system": "a"}
    assert kinds(message("bashExecution", command="ls", output="a\nb")) == {"shell": "ls\na\nb"}
    assert kinds(message("bashExecution", command="", output=5)) == {}
    assert kinds(entry("model_change", model="m")) == {}


def test_what_an_assistant_says_thinks_and_calls() -> None:
    found = message(
        "assistant",
        content=[
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
            {"type": "text", "text": "a", "textSignature": "sig"},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "/x", "n": 1.0}},
            {"type": "thinking", "thinking": ""},
            {"type": "text", "text": "b"},
            {"type": "toolCall", "id": "c2", "name": "ping"},
        ],
    )
    assert kinds(found) == {
        "text": "a\nb",
        "tools": 'read\n{"path":"/x","n":1}\nping',
        "thinking": "hm",
    }


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"name": 5, "arguments": {"a": 1}}, ""),
        ({"name": "", "arguments": 5}, "\n5"),
        ({"name": "n", "arguments": None}, "n\nnull"),
        ({"name": "n", "arguments": "a"}, 'n\n"a"'),
        ({"name": "n", "arguments": {"a": "b/c"}}, 'n\n{"a":"b/c"}'),
        ({"name": "n", "arguments": {"a": 'b"c'}}, 'n\n{"a":"b\\"c"}\nb"c'),
        ({"name": "n", "arguments": {"a\t": "b"}}, 'n\n{"a\\t":"b"}'),
        (
            {"name": "n", "arguments": {"a": ["x\ny", {"b": "\ud800", "c": "plain"}], "d": "\\"}},
            'n\n{"a":["x\\ny",{"b":"\\ud800","c":"plain"}],"d":"\\\\"}\nx\ny\n\ud800\n\\',
        ),
    ],
)
def test_tool_calls(block: dict[str, Any], text: str) -> None:
    """Name, compact arguments, and the strings that these do not show as they are, in order."""
    found = message("assistant", content=[{"type": "toolCall", **block}])
    assert entries.searchable(found, "tools") == text
    assert (
        entries.searchable(message("user", content=[{"type": "toolCall", **block}]), "tools") == ""
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"toolName": "bash", "toolCallId": "c1"}, "tool_result bash#c1"),
        ({"toolName": "", "toolCallId": 5}, "tool_result unknown#unknown"),
        ({}, "tool_result unknown#unknown"),
    ],
)
def test_tool_results(fields: dict[str, Any], text: str) -> None:
    found = message("toolResult", content="out", details={"a": 1}, **fields)
    assert kinds(found) == {"text": "out", "tools": text, "details": '{"a":1}'}


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (entry("custom", data={"a": 1}), '{"a":1}'),
        (entry("custom", data='a"b'), '"a\\"b"\na"b'),
        (entry("custom", data=0), "0"),
        (entry("custom", data=None, details="x"), ""),
        (entry("custom_message", content="", details=[1, 2]), "[1,2]"),
        (entry("compaction", summary="", details={"files": ["a"]}), '{"files":["a"]}'),
        (message("custom", content="", details=False), "false"),
        (entry("message", details="x"), ""),
        (
            message(
                "toolResult", details=[{"type": "image", "data": "QUJD", "mimeType": "image/png"}]
            ),
            '[{"type":"image","mimeType":"image/png"}]',
        ),
        (entry("custom", data={"data": "QUJD", "type": "text"}), '{"data":"QUJD","type":"text"}'),
        (
            entry("custom", data={"a": [{"textSignature": "s", "b": {"thoughtSignature": "s\n"}}]}),
            '{"a":[{"b":{}}]}',
        ),
        (entry("custom", data={"thinkingSignature": {"deep": "x"}, "c": "\n"}), '{"c":"\\n"}\n\n'),
    ],
)
def test_details(found: Entry, text: str) -> None:
    """Structured data as compact JSON and decoded strings, without images and signatures."""
    before = json.dumps(found.value)
    assert entries.searchable(found, "details") == text
    assert json.dumps(found.value) == before  # what is left out is left out of a copy


@pytest.mark.parametrize("kind", KINDS)
def test_odd_shapes_have_no_text(kind: Kind) -> None:
    """Whatever stands where a message or a block should be, nothing is raised."""
    for odd in (None, 5, "a", [], {}, [[]], [None, 5, "a", [], {}]):
        assert entries.searchable(entry("message", message=odd), kind) == ""
        for role in ("assistant", "user", "other"):
            if not isinstance(odd, str) or kind != "text":
                assert entries.searchable(message(role, content=odd), kind) == ""


def test_deep_values_are_no_danger() -> None:
    """As deep as a line may be."""
    inner = b'{"a":[' * 500 + b'"x\\ny"' + b"]}" * 500
    found = parsed(b'{"type":"custom","timestamp":"2026-01-05","data":' + inner + b"}")
    assert isinstance(found, Entry)
    text = entries.searchable(found, "details")
    assert text == inner.decode() + "\nx\ny"
