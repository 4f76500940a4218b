"""A window around the first match: one line for a person, with the places of the matches in it.

White space is squeezed to single blanks, and at most `WIDTH` characters (code points, ellipses
included) are shown. Matches are found in the whole text, then mapped: from the lower-cased text
back to the original (one character, İ, becomes two in lower case), then through the squeezing.
A match that the window cuts is shown as far as it goes. Neither end of a window ever falls
inside a character, and neither does it separate a character from the marks joined to it, unless
these alone would push the match out of the window.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from sessionindex.fold import folded
from sessionindex.text import BLANKS

WIDTH: Final = 200
_BEFORE: Final = 60
_ONE_BLANK: Final = dict.fromkeys(map(ord, BLANKS), " ")
_JOINERS: Final = "\u200d\ufe0f\ufe0e"


def first_match(text: str, terms: Sequence[str], case_sensitive: bool) -> tuple[int, int] | None:
    """Start and end, in the original text, of the earliest match; the longest where two begin."""
    needles = [folded(term, case_sensitive) for term in terms]
    return _first(_Original(text, folded(text, case_sensitive)), needles)


def _first(original: _Original, needles: Sequence[str]) -> tuple[int, int] | None:
    found, low = None, original.low
    for needle in needles:
        at = low.find(needle)
        if at >= 0 and (found is None or (at, -len(needle)) < (found[0], found[0] - found[1])):
            found = (at, at + len(needle))
    if found is None:
        return None
    return original.span(*found)


class _Original:
    """Maps places of a lower-cased text to places of the text it came from."""

    def __init__(self, text: str, low: str) -> None:
        self.text, self.low = text, low
        self._grown: list[int] = []  # places in `low` of the second half of each grown character
        if len(low) != len(text):
            place = 0
            for character in text:
                size = len(character.lower())
                self._grown += range(place + 1, place + size)
                place += size

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original characters that a span of the lower-cased text touches."""
        if not self._grown:
            return start, end
        before = bisect_left(self._grown, start + 1)  # a half at `start` belongs to its character
        return start - before, end - bisect_left(self._grown, end)


def _joined(text: str, place: int) -> bool:
    """Whether the character at `place` belongs to the one before it."""
    if not 0 < place < len(text):
        return False
    character = text[place]
    if character.isascii():
        return False
    return (
        character in _JOINERS
        or text[place - 1] == "\u200d"
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _whole(text: str, place: int, least: int) -> int:
    """`place` moved back to where nothing joined is parted, but never to `least` for that."""
    moved = place
    while moved > least and _joined(text, moved):
        moved -= 1
    return place if _joined(text, moved) else moved


def _anchor(original: _Original, needles: Sequence[str]) -> int:
    """The first character of the first match that squeezing can show; 0 without a match."""
    start, end = _first(original, needles) or (0, 0)
    return next((at for at in range(start, end) if original.text[at] not in BLANKS), start)


def cut(
    text: str, terms: Sequence[str], case_sensitive: bool
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The snippet of a text that holds one of the terms, and the matches in it, merged."""
    original = _Original(text, folded(text, case_sensitive))  # once: a text may be of megabytes
    needles = [folded(term, case_sensitive) for term in terms]
    anchor = _anchor(original, needles)
    start = _whole(text, max(0, anchor - _BEFORE), max(0, anchor - 2 * _BEFORE))
    # What squeezing takes away may be filled up from behind: look at more than is shown.
    stop = min(len(text), max(start + 4 * WIDTH, anchor + 2 * WIDTH))
    spans = _spans(original, needles, start, stop)
    shown, places = _squeezed(text, start, stop)
    lead = "…" if start else ""
    room = WIDTH - len(lead)
    if len(shown) > room or stop < len(text):
        end = _whole(shown, min(len(shown), room - 1), bisect_right(places, anchor))
        shown = shown[:end].rstrip(" ")
        tail = "…"
    else:
        tail = ""
    matches: list[tuple[int, int]] = []
    for first, last in spans:
        # Where squeezing took the first character, the blank that stands for it is before it.
        left = len(lead) + max(0, bisect_right(places, first) - 1)
        right = len(lead) + min(bisect_left(places, last), len(shown))
        if left >= right:
            continue
        if matches and left <= matches[-1][1]:
            matches[-1] = (matches[-1][0], max(right, matches[-1][1]))
        else:
            matches.append((left, right))
    return f"{lead}{shown}{tail}", tuple(matches)


def _spans(
    original: _Original, needles: Sequence[str], start: int, stop: int
) -> list[tuple[int, int]]:
    """Where the terms occur in text[start:stop] or reach into it, ascending, as original places."""
    low = original.low
    grown = len(low) - len(original.text)
    spans = []
    for needle in needles:
        at = low.find(needle, max(0, start - len(needle) - grown))
        while 0 <= at < stop + grown:
            first, last = original.span(at, at + len(needle))
            if last > start and first < stop:
                spans.append((first, last))
            at = low.find(needle, at + 1)
    spans.sort()
    return spans


def _squeezed(text: str, start: int, stop: int) -> tuple[str, list[int]]:
    """text[start:stop] with white space squeezed, and for each kept character its place.

    It ends where more is kept than can be shown. The place of a blank at the end is kept, so that
    a match there does not fall on a neighbour.
    """
    words: list[str] = []
    places: list[int] = []
    place = start
    for word in text[start:stop].translate(_ONE_BLANK).split(" "):
        end = place + len(word)
        if word:
            words.append(word)
            places += range(place, end)
            if len(places) > WIDTH:
                break
            if end < stop:
                places.append(end)
        place = end + 1
    return " ".join(words), places
