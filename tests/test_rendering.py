"""An entry in words: as search sees it, as a label, as it is read, and windows into it."""

from __future__ import annotations

from typing import Any

import pytest

from sessionindex.rendering import label, rendered, search_text, short, snippet, truncate

AT = "2026-09-10T09:00:01.000Z"
DETAILS = {"results": [1], "contextGateway": {"representation": "web-recoverable-compact"}}


def entry(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "a1", "parentId": None, "timestamp": AT, **fields}


def message(role: Any, content: Any = None, **fields: Any) -> dict[str, Any]:
    return entry("message", message={"role": role, "content": content, **fields})


def text(string: Any) -> dict[str, Any]:
    return {"type": "text", "text": string}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": "c1", "name": name, **more}


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ("a string", message("user", "hi"), "hi"),
        ("text blocks", message("user", [text("a"), {"type": "image"}, text("b")]), "a\nb"),
        ("odd blocks", message("user", ["x", text(1), None, text("b")]), "b"),
        ("odd content", message("user", {"text": "x"}), ""),
        ("no thinking", message("assistant", [{"type": "thinking", "thinking": "t"}]), ""),
        ("a call", message("assistant", [call("read", arguments={"path": "a", "n": 1.0})]),
         'read\n{"path":"a","n":1}'),
        ("no arguments", message("assistant", [call("read")]), "read"),
        ("odd arguments", message("assistant", [text("x"), call("r", arguments=[1, "é"])]),
         'x\nr\n[1,"é"]'),
        ("a result", message("toolResult", "ok", toolName="read", toolCallId="c1"),
         "ok\ntool_result read#c1"),
        ("a nameless result", message("toolResult"), "tool_result unknown#unknown"),
        ("no details", message("toolResult", "ok", details={"x": "deep"}),
         "ok\ntool_result unknown#unknown"),
        ("no commands", message("bashExecution", command="ls", output="x"), ""),
        ("no sections", message("system", "p", sections={"cwd": "/x"}), "p"),
        ("compaction", entry("compaction", summary="s"), "s"),
        ("branch summary", entry("branch_summary", summary="s"), "s"),
        ("odd summary", entry("compaction", summary=["s"]), ""),
        ("custom message", entry("custom_message", content=[text("x")]), "x"),
        ("custom", entry("custom", data="x"), ""),
        ("a label", entry("label", label="x"), ""),
    ],
)  # fmt: skip
def test_text_as_search_sees_it(rule: str, value: dict[str, Any], expected: str) -> None:
    assert search_text(value) == expected, rule


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (message("user", " a\n\n b "), "a b"),
        (message("user", "x" * 121), "x" * 119 + "…"),
        (message("user", "😀" * 120), "😀" * 120),
        (message("user", " "), "User message"),
        (entry("compaction", summary="done"), "Compaction: done"),
        (entry("compaction"), "Compaction: a1"),
        (entry("branch_summary", summary="left"), "Branch summary: left"),
        (entry("branch_summary", summary="\n"), "Branch summary: a1"),
        (message("assistant", "hello"), "hello"),
        (entry("model_change"), "model_change a1"),
        (entry("x" * 300), "x" * 199 + "… a1"),
    ],
)
def test_labels(value: dict[str, Any], expected: str) -> None:
    assert label(value) == expected


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ("a message", message("user", "hi"), f"[a1] {AT} message user\nhi"),
        ("an empty message", message("user", ""), f"[a1] {AT} message user"),
        ("calls", message("assistant", [call("read", arguments={"b": 1, "a": 2}), call("x")]),
         f'[a1] {AT} message assistant\ntool_call read#c1 {{"b":1,"a":2}}\n'
         "tool_call x#c1 undefined"),
        ("an error", message("toolResult", "no", toolName="b", toolCallId="c", isError=True),
         f"[a1] {AT} message toolResult\nno\ntool_result b#c error"),
        ("web details", message("toolResult", "c", toolName="Web_Fetch", details=DETAILS),
         f"[a1] {AT} message toolResult\nc\ntool_result Web_Fetch#unknown\n"
         'recoverable_raw_details:\n{"results":[1],"contextGateway":'
         '{"representation":"web-recoverable-compact"}}'),
        ("details of others", message("toolResult", "c", toolName="bash", details=DETAILS),
         f"[a1] {AT} message toolResult\nc\ntool_result bash#unknown"),
        ("compaction", entry("compaction", summary="s", firstKeptEntryId="k", tokensBefore=7),
         f"[a1] {AT} compaction\ns\nfirstKeptEntryId: k\ntokensBefore: 7"),
        ("a bare compaction", entry("compaction", tokensBefore=True), f"[a1] {AT} compaction\n"),
        ("branch summary", entry("branch_summary", summary="s", fromId="f"),
         f"[a1] {AT} branch_summary\ns\nfromId: f"),
        ("unknown", entry("zzz", b=1, a=[2]), f'[a1] {AT} zzz\n{{"b":1,"a":[2]}}'),
        ("unknown without fields", entry("zzz"), f"[a1] {AT} zzz"),
        ("no object for a message", entry("message", message="m"),
         f'[a1] {AT} message\n{{"message":"m"}}'),
        ("long unknown", entry("zzz", a="x" * 9000),
         f'[a1] {AT} zzz\n{{"a":"{"x" * 7974}\n…[truncated]'),
    ],
)  # fmt: skip
def test_entries_as_they_are_read(rule: str, value: dict[str, Any], expected: str) -> None:
    assert rendered(value) == expected, rule


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [(1767225600000, "1767225600000 "), (1.5, "1.5 "), (0, ""), ("", ""), (None, ""), (True, ""),
     ([1], ""), ("when?", "when? ")],
)  # fmt: skip
def test_odd_timestamps(stamp: Any, shown: str) -> None:
    """Whatever is readable is shown; nothing else takes its place."""
    value = {"type": "label", "id": "a1", "timestamp": stamp}
    assert rendered(value) == f"[a1] {shown}label"


@pytest.mark.parametrize(
    ("rule", "text", "query", "case", "expected"),
    [
        ("the whole", "a  needle\nhere", "needle", False, "a needle here"),
        ("no match", "a needle", "pin", False, None),
        ("case", "a Needle", "needle", True, None),
        ("without case", "a NEEDLE", "needle", False, "a NEEDLE"),
        ("the first of two", "x" * 400 + "ab" + "y" * 400 + "ab", "ab", False,
         "…" + "x" * 179 + "ab" + "y" * 179 + "…"),
        ("at the end", "x" * 400 + "ab", "ab", False, "…" + "x" * 179 + "ab"),
        ("longer than the window", "a" * 400, "a" * 380, False, "…" + "a" * 360 + "…"),
        ("characters count, not units", "😀" * 400 + "ab", "ab", False, "…" + "😀" * 179 + "ab"),
        ("after many that grow", "İ" * 1000 + "ab", "ab", False, "…" + "İ" * 179 + "ab"),
    ],
)  # fmt: skip
def test_snippets(rule: str, text: str, query: str, case: bool, expected: str | None) -> None:
    assert snippet(text, query, case) == expected, rule


def test_cuts() -> None:
    assert truncate("x" * 50, 50) == "x" * 50
    assert truncate("x" * 51, 50) == "x" * 30 + "\n…[truncated]"
    assert short("x" * 200) == "x" * 200
    assert short("x" * 201) == "x" * 199 + "…"
