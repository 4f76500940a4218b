"""Entries as a conversation: who, when, and what was said, called and answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessionindex import SessionIndex
from sessionindex import entry as entries
from sessionindex.cli.render import Style, harmless, highlighted, local_time, shortened, who, width
from sessionindex.contracts.search_sessions import Hit
from sessionindex.conversation import Spoken
from sessionindex.model import KINDS, Entry
from sessionindex.text import compact_json, squeeze

_LINES = 12
"""How much of an entry beside the hit is shown."""


def print_around(index: SessionIndex, session: str, line_no: int, count: int, style: Style) -> None:
    """The conversation around a line: that entry in full, the others as they begin."""
    for entry, _ in index.around(session, line_no, count)[1]:
        print_entry(entry, style, lines=None if entry.line_no == line_no else _LINES)


def print_hit(hit: Hit, spoken: Sequence[Spoken], style: Style) -> None:
    """A hit between the entries around it, each on one line."""
    rows = {entry.line_no: entry for entry, _ in spoken}
    for line_no in sorted(rows.keys() | {hit.line_no}):
        is_hit = line_no == hit.line_no
        place = f"{line_no:>6}{':' if is_hit else '-'}"
        if is_hit:
            speaker = harmless(who(hit.type, hit.message_role))
        else:
            speaker = harmless(who(rows[line_no].type, rows[line_no].role))
        room = max(30, width() - len(place) - len(speaker) - 4)
        if is_hit:
            line = highlighted(hit.snippet, hit.matches, style, room)
        else:
            line = shortened(harmless(squeeze(said(rows[line_no])[:4000])), room)
        print(f"{style.place(place)} {style.quiet(speaker)}  {line}")
    if len(rows) > 1:
        print(style.quiet("     --"))


def said(entry: Entry) -> str:
    """The first kind of text that the entry has."""
    for kind in KINDS:
        text = entries.searchable(entry, kind)
        if text:
            return text
    return ""


def print_entry(entry: Entry, style: Style, *, lines: int | None) -> None:
    """One entry in full, or its first lines."""
    speaker = who(entry.type, entry.role)
    if entry.role == "toolResult":
        message = entry.value["message"]
        speaker += f" {message.get('toolName')}{' (error)' if message.get('isError') else ''}"
    head = f"{entry.line_no:>6}  {harmless(speaker)}"
    print(f"{style.place(head)}  {style.quiet(harmless(local_time(entry.timestamp)))}")
    for kind in KINDS:
        if kind == "tools":
            for name, call in entries.calls(entry):
                _print_text(_call(name, call), style, lines)
        elif kind != "details" and (text := entries.searchable(entry, kind)):
            if kind in ("text", "shell"):
                _print_text(text, style, lines)
            else:
                _print_text(f"[{kind}]\n{text}", style, lines, quiet=True)
    print()


def _call(name: str, call: dict[str, Any]) -> str:
    """A tool call as a person reads it: an argument a line, text as it was meant."""
    return "\n".join([f"→ {name}", *_outline(call.get("arguments"), "  ", 5)])


def _outline(value: Any, indent: str, depth: int) -> list[str]:
    if isinstance(value, dict) and value and depth:
        rows = []
        for name, member in value.items():
            inner = _outline(member, indent + "  ", depth - 1)
            if len(inner) == 1:
                rows.append(f"{indent}{name}: {inner[0].strip()}")
            else:
                rows += [f"{indent}{name}:", *inner]
        return rows
    if isinstance(value, list) and value and depth:
        rows = []
        for member in value:
            inner = _outline(member, indent + "  ", depth - 1)
            rows += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        return rows
    if isinstance(value, str):
        return [indent + row for row in value.rstrip("\n").split("\n")]
    return [indent + compact_json(value)]


def _print_text(text: str, style: Style, lines: int | None, *, quiet: bool = False) -> None:
    rows = harmless(text, lines=True).rstrip("\n").split("\n")
    shown = rows if lines is None else rows[:lines]
    for row in shown:
        if lines is not None and len(row) > 400:
            row = row[:400] + "…"
        print(f"        {style.quiet(row) if quiet else row}".rstrip())
    if len(shown) < len(rows):
        print(style.quiet(f"        … {len(rows) - len(shown):,} more lines"))
