"""Answers for people: colours, headings, cut to the width of the terminal, harmless.

No control character of a session, a path or a message reaches a terminal as itself: each is shown
by one visible character, so places of matches stay right. Colours are on for a terminal only,
unless asked for, and never where NO_COLOR is set.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from sessionindex.timestamps import instant_ms

if TYPE_CHECKING:
    from sessionindex.contracts.search_sessions import Hit

_PICTURES: Final = {code: 0x2400 + code for code in range(0x20)}
_PICTURES[0x7F] = 0x2421
_PICTURES.update(dict.fromkeys(range(0x80, 0xA0), 0xFFFD))  # a terminal may take these for ESC [
# Line separators, and marks that turn the direction of what follows.
_PICTURES.update(dict.fromkeys([0x2028, 0x2029, 0x061C, *range(0x200E, 0x2010)], 0xFFFD))
_PICTURES.update(dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD))
_PICTURES.update(dict.fromkeys(range(0xD800, 0xE000), 0xFFFD))
_LINES: Final = {**_PICTURES, 0x0A: 0x0A, 0x09: 0x09}


def harmless(text: str, *, lines: bool = False) -> str:
    """The text with control characters made visible; `lines` keeps tabs and line breaks."""
    return text.translate(_LINES if lines else _PICTURES)


class Style:
    """Colours, or none."""

    def __init__(self, choice: str = "auto") -> None:
        auto = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        auto = auto and os.environ.get("TERM") != "dumb"
        self.on = auto if choice == "auto" else choice != "never"

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.on and text else text

    def path(self, text: str) -> str:
        return self._paint("35", text)

    def place(self, text: str) -> str:
        return self._paint("32", text)

    def match(self, text: str) -> str:
        return self._paint("1;31", text)

    def strong(self, text: str) -> str:
        return self._paint("1", text)

    def quiet(self, text: str) -> str:
        return self._paint("2", text)


def width() -> int:
    """Columns of the terminal, as COLUMNS or the terminal itself says; 80 where nobody does."""
    with suppress(ValueError):
        if (told := int(os.environ.get("COLUMNS", ""))) > 0:
            return max(40, told)
    try:
        return max(40, os.get_terminal_size(1).columns or 80)
    except OSError:
        return 80


def local_time(timestamp: str) -> str:
    """A stored timestamp in the host's zone, to the minute; as it is where it cannot be read."""
    instant = instant_ms(timestamp)
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime((instant or 0) // 1000))
    except (OverflowError, ValueError, OSError):
        return timestamp


def project(cwd: str) -> str:
    return cwd.rstrip("/").rsplit("/", 1)[-1] or "/"


def who(hit_type: str, role: str | None) -> str:
    """What speaks: the role of a message, the type of anything else."""
    return role or hit_type


def highlighted(
    text: str, matches: Sequence[tuple[int, int]], style: Style, room: int | None = None
) -> str:
    """A snippet made harmless, its matches coloured, cut to `room` columns around the first."""
    spans = list(matches)
    if room is not None and _columns(text) > room:
        text, spans = _window(text, spans, room)
    text = harmless(text)
    parts, place = [], 0
    for start, end in spans:
        parts += [text[place:start], style.match(text[start:end])]
        place = end
    return "".join([*parts, text[place:]])


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_wide(character) for character in text)


def _wide(character: str) -> int:
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(character) or character in "\u200d\ufe0f\ufe0e":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _window(
    text: str, spans: list[tuple[int, int]], room: int
) -> tuple[str, list[tuple[int, int]]]:
    """The part of a snippet that fits, with some of what stands before the first match."""
    start = 0
    first = spans[0][0] if spans else 0
    if _columns(text[: spans[0][1]] if spans else "") > room - 2:
        start = first
        # Some of what stands before; more where little follows.
        budget = max(room // 3, room - 2 - _columns(text[first:]))
        while start and (budget := budget - _wide(text[start - 1])) >= 0:
            start -= 1
    lead = "…" if start and text[start] != "…" else ""
    used, end = len(lead), start
    while end < len(text) and used + _wide(text[end]) <= room - 1:
        used += _wide(text[end])
        end += 1
    tail = "…" if end < len(text) else ""
    shift = len(lead) - start
    kept = [(max(a, start) + shift, min(b, end) + shift) for a, b in spans if b > start and a < end]
    return f"{lead}{text[start:end]}{tail}", kept


def size(number: int) -> str:
    """Bytes as people write them."""
    if number < 1000:
        return f"{number} B"
    if number < 100_000:
        return f"{number / 1e3:.1f} kB"
    if number < 1_000_000_000:
        return f"{number / 1e6:,.1f} MB"
    return f"{number / 1e9:,.1f} GB"


def flat_hit(hit: Hit, style: Style) -> str:
    """A hit on a line of its own: `path:line:snippet`."""
    snippet = highlighted(hit.snippet, hit.matches, style)
    place = style.place(str(hit.line_no))
    return f"{style.path(harmless(hit.session_path))}:{place}:{snippet}"


def shortened(text: str, room: int) -> str:
    """Text cut to a number of columns."""
    return _window(text, [], room)[0] if _columns(text) > room else text


def padded(text: str, room: int) -> str:
    """Text, made harmless, in exactly so many columns."""
    shown = shortened(harmless(text), room)
    return shown + " " * (room - _columns(shown))
