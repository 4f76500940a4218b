"""File evidence: which paths a call or a summary proves."""

from __future__ import annotations

from typing import Any

import pytest

from sessionindex.touched import by_call, by_summary

PATCH = """*** Begin Patch
*** Add File: new.py
*** Update File: old name.py
*** Move to:  moved.py
*** Delete File: gone.py
 *** Add File: indented.py
*** add file: lower.py
--- a/left.py
+++ b/right.py
+++ plain.py\t2026-01-01
+++ /dev/null
+++ b/
*** End Patch"""


@pytest.mark.parametrize(
    ("rule", "tool", "arguments", "reads", "modified"),
    [
        ("a path that is read", "read", {"path": "a.py"}, ["a.py"], []),
        ("whatever the case of the tool", "READ", {"path": "a.py"}, ["a.py"], []),
        ("a path that is written", "write", {"file_path": "a.py"}, [], ["a.py"]),
        ("all three fields, in order", "edit", {"paths": "c", "path": "a", "file_path": "b"}, [],
         ["a", "b", "c"]),
        ("arrays of strings", "grep", {"paths": ["a", 1, None, "b"]}, ["a", "b"], []),
        ("an array in path", "ls", {"path": ["a", "b"]}, ["a", "b"], []),
        ("trimmed, blank ones skipped", "ls", {"paths": [" a ", "", "\ufeff \t"]}, ["a"], []),
        ("once each", "ls", {"path": "a", "paths": ["b", "a"]}, ["a", "b"], []),
        ("as written", "ls", {"path": "./a/../b"}, ["./a/../b"], []),
        ("shells are not guessed", "bash", {"path": "a"}, [], []),
        ("unknown tools neither", "rename", {"path": "a"}, [], []),
        ("no arguments", "read", None, [], []),
        ("odd arguments", "read", ["path"], [], []),
        ("a patch", "apply_patch", {"input": PATCH}, [],
         ["new.py", "old name.py", "moved.py", "gone.py", "right.py", "plain.py\t2026-01-01"]),
        ("a patch under its other name", "apply_patch", {"patch": "+++ b/x"}, [], ["x"]),
        ("input goes first", "apply_patch", {"input": "+++ a", "patch": "+++ b"}, [], ["a"]),
        ("input that is no string", "apply_patch", {"input": 1, "patch": "+++ b"}, [], ["b"]),
        ("path before the patch", "apply_patch", {"input": "+++ b", "path": "a"}, [], ["a", "b"]),
        ("lines end at CRLF too", "apply_patch", {"input": "+++ a\r\n+++ b"}, [], ["a", "b"]),
        ("only patches are parsed", "edit", {"input": "+++ a"}, [], []),
    ],
)  # fmt: skip
def test_calls(rule: str, tool: str, arguments: Any, reads: list[str], modified: list[str]) -> None:
    found = by_call(tool, arguments)
    assert (list(found.reads), list(found.modified)) == (reads, modified), rule


@pytest.mark.parametrize(
    ("details", "reads", "modified"),
    [
        (None, [], []),
        ({}, [], []),
        ({"readFiles": ["a", " b "], "modifiedFiles": "c"}, ["a", "b"], ["c"]),
        ({"readFiles": ["a", "a"], "modifiedFiles": ["a", 3]}, ["a"], ["a"]),
        ([], [], []),
    ],
)
def test_summaries(details: Any, reads: list[str], modified: list[str]) -> None:
    found = by_summary(details)
    assert (list(found.reads), list(found.modified)) == (reads, modified)
