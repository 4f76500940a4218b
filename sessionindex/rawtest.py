"""Can these terms be in this line? A test on raw bytes that rejects fast and never wrongly.

A term is compiled into *forms*: ways in which a line that holds it must look. A line is kept when
one form of a term fits (of one term, or of every term, as the question says); a form fits when all
its parts stand in the bytes, and its marker, where it has one. The parser decides the rest.

    strings       the term as JSON writes it, in parts: blocks of text are joined by line breaks,
                  and U+FFFD and lone surrogates never stand in a file as themselves
    compact JSON  (tools, details) the term as it stands, in parts between punctuation, because a
                  file may hold blanks there; numbers are left out, a file may spell them otherwise;
                  a term with a line break may go on in the next block, a string as it reads, so
                  its parts hold nothing that JSON escapes
    tool results  `tool_result name#id` never stands in a file: what a term says beyond the words
                  of that frame

A line with an escape that JSON need not write (`\\/`, and `\\u…` but for control characters in
lower-case hex, which have no other way) is never rejected if a term could come out of it; without
terms none is.

Parts without case (and every part of a case-sensitive question) are searched as bytes, ASCII ones
with stringzilla's caseless search: a few rare letters of a long one first, as a *scout*. Other
parts go through `decode` and the gram key: stringzilla misses some neighbours of Vietnamese
letters. Only bytes are given to stringzilla: a `str` with a lone surrogate would crash it. This is
its only user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import stringzilla

from sessionindex.fold import key
from sessionindex.model import Kind
from sessionindex.text import quoted

_find: Callable[..., int] = stringzilla.find
_count: Callable[..., int] = stringzilla.count
_find_caseless: Callable[..., int] = stringzilla.utf8_uncased_search

_NOT_IN_FILES: Final = re.compile("[\n\ufffd\ud800-\udfff]+")
_PUNCTUATION: Final = '[\n\ufffd\ud800-\udfff{}\\[\\],:"]+'
_EITHER: Final = '[\x00-\x1f\ufffd\ud800-\udfff{}\\[\\],:"\\\\]+'
_WINDOW: Final = 6
_FREQUENT: Final = b" etaoinsrhldcumfpgwybvkxjqz"
_NUMBER: Final = re.compile(r"[0-9eE+.\-]+")
_FRAME: Final = "tool_result "
_NAMELESS: Final = "unknown"
_ODD: Final = {
    b"\\u": rb"(?!00(?:1[0-9a-f]|0[0-7bef]))",
    b"\\u00": rb"(?!1[0-9a-f]|0[0-7bef])",
}
"""What follows the beginning of an escape that JSON need not write."""


class Part(NamedTuple):
    """One piece of a term: `data` as bytes, or `text` (a gram key) where case needs decoding."""

    data: bytes
    text: str | None
    caseless: bool

    def find(self, block: bytes, start: int, end: int) -> int:
        """The first place of the part from `start` on, or -1; not for decoded parts."""
        search = _find_caseless if self.caseless else _find
        return search(block, self.data, start, end)

    def scout(self) -> Part:
        """A part that is found fast and stands wherever this one does: not often elsewhere.

        Each caseless search begins with work that grows with the square of what is looked for.
        """
        if not self.caseless or len(self.data) <= _WINDOW:
            return self
        starts = range(len(self.data) - _WINDOW + 1)
        rarity = [_FREQUENT.find(byte) % 256 for byte in self.data.lower()]
        best = max(starts, key=lambda start: sum(rarity[start : start + _WINDOW]))
        return Part(self.data[best : best + _WINDOW], None, True)

    def stands_in(self, line: bytes) -> bool:
        if self.text is not None:
            return self.text in key(line.decode("utf-8", "replace"))
        return self.find(line, 0, len(line)) >= 0


class Form(NamedTuple):
    """All parts, and one of the markers where there are any, must stand in the line."""

    parts: tuple[Part, ...]
    markers: tuple[bytes, ...] = ()

    def fits(self, line: bytes) -> bool:
        if self.markers and not any(_find(line, marker) >= 0 for marker in self.markers):
            return False
        return all(part.stands_in(line) for part in self.parts)

    def scouts(self) -> tuple[Part, ...] | None:
        """Parts one of which every fitting line holds; None where only a line can tell."""
        plain = [part for part in self.parts if part.text is None]
        if plain:
            return (max(plain, key=lambda part: len(part.data)),)
        if self.parts or not self.markers:
            return None
        return tuple(Part(marker, None, False) for marker in self.markers)


class RawTest:
    """The test of one question: `every` asks for a form of each term, else of one."""

    def __init__(
        self,
        terms: Sequence[str],
        *,
        case_sensitive: bool,
        kinds: Sequence[Kind],
        every: bool = False,
    ) -> None:
        self._terms = [_forms(term, case_sensitive, kinds) for term in terms]
        self._every = every
        self._escapes = _Escapes(terms, case_sensitive)
        self._scouts = self._choose_scouts()

    def possible(self, line: bytes) -> bool:
        """False only where the line cannot hold what is asked (one line, or a block of lines)."""
        if not self._terms or self._escapes.find(line, 0, len(line)) >= 0:
            return True
        asked = all if self._every else any
        return asked(any(form.fits(line) for form in forms) for forms in self._terms)

    def rejects(self, block: bytes) -> bool:
        """Whether no line of a block is possible, at a glance: False may still mean none."""
        if self._scouts is None:
            return False
        return all(scout.find(block, 0, len(block)) < 0 for scout in self._scouts)

    def lines(self, block: bytes, size: int) -> Iterator[tuple[int, int]]:
        """Start and end of each possible line of a block of whole lines, ascending.

        The lines are those of its first `size` bytes.
        """
        if self._scouts is None:
            yield from self._each_line(block, size)
            return
        nearest = [scout.find(block, 0, size) for scout in self._scouts]
        start = 0
        while True:
            found = min((place for place in nearest if place >= 0), default=-1)
            if found < 0:
                return
            start = block.rfind(b"\n", start, found) + 1 or start
            end = block.find(b"\n", found, size)
            end = size if end < 0 else end
            if self.possible(block[start:end]):
                yield start, end
            start = end + 1
            if start >= size:
                return
            for index, place in enumerate(nearest):
                if 0 <= place < start:
                    nearest[index] = self._scouts[index].find(block, start, size)

    def _each_line(self, block: bytes, size: int) -> Iterator[tuple[int, int]]:
        if not self.possible(block[:size]):
            return
        start = 0
        while start < size:
            end = block.find(b"\n", start, size)
            end = size if end < 0 else end
            if self.possible(block[start:end]):
                yield start, end
            start = end + 1

    def _choose_scouts(self) -> tuple[Part | _Escapes, ...] | None:
        """Parts one of which every possible line holds, the escapes among them."""
        if not self._terms:
            return None
        scouted = [[form.scouts() for form in forms] for forms in self._terms]
        usable = [
            [part for parts in term if parts is not None for part in parts]
            for term in scouted
            if None not in term
        ]
        if len(usable) < (1 if self._every else len(scouted)):
            return None
        if self._every:  # every term must be there: look for the one with the longest scouts
            usable = [max(usable, key=lambda parts: min(len(part.data) for part in parts))]
        chosen = {part.scout() for parts in usable for part in parts}
        return (*chosen, self._escapes)


_USUAL: Final = (b"\\u001b", b"\\u0001")


class _Escapes:
    """What looks for the escapes that JSON need not write and that a term could come out of.

    ASCII without case comes out of ASCII, and out of two characters more (Kelvin is k, İ begins
    with i): who looks for no more than that is not held up by names like `C:\\users`. With case
    every one counts: compact JSON writes lone surrogates in its own way.
    """

    def __init__(self, terms: Sequence[str], case_sensitive: bool) -> None:
        said = "".join(terms).lower()
        self._begin = b"\\u"
        self._others = [b"\\/"]
        if said.isascii() and not case_sensitive:
            self._begin = b"\\u00"
            comes_of = {"/": b"\\/", "i": b"\\u0130", "k": b"\\u212"}
            self._others = [escape for low, escape in comes_of.items() if low in said]

    def find(self, block: bytes, start: int, end: int) -> int:
        """The first place of one from `start` on, or -1."""
        places = [self._odd(block, start, end)]
        for escape in self._others:
            place = _find(block, escape, start, end)
            while place > 0 and _is_escaped(block, place):
                place = _find(block, escape, place + 2, end)
            places.append(place)
        return min((place for place in places if place >= 0), default=-1)

    def _odd(self, block: bytes, start: int, end: int) -> int:
        # Nearly all there are colour a terminal, and counting is what is fast.
        rest = _count(block, self._begin, start, end)
        for usual in _USUAL:
            if not rest:
                return -1
            rest -= _count(block, usual, start, end)
        if not rest:
            return -1
        odd = re.compile(re.escape(self._begin) + _ODD[self._begin])
        found = odd.search(block, start, end)
        while found is not None and _is_escaped(block, found.start()):
            found = odd.search(block, found.end(), end)
        return -1 if found is None else found.start()


def _is_escaped(block: bytes, place: int) -> bool:
    """Whether the backslash at this place belongs to one before it: a path, code, JSON in JSON."""
    before = place
    while before and block[before - 1] == 0x5C:
        before -= 1
    return (place - before) % 2 == 1


def line_ends(block: bytes, start: int, end: int) -> int:
    """How many lines end in this part of a block."""
    return _count(block, b"\n", start, end)


def _part(piece: str, case_sensitive: bool) -> Part:
    data = piece.encode("utf-8")
    if case_sensitive or _without_case(piece):
        return Part(data, None, False)
    if piece.isascii():
        return Part(data, None, True)
    return Part(data, key(piece), False)


def _without_case(piece: str) -> bool:
    """Whether no other character becomes one of these in lower case (U+0307 comes out of İ)."""
    return piece == piece.lower() == piece.upper() and "\u0307" not in piece


def _forms(term: str, case_sensitive: bool, kinds: Sequence[Kind]) -> tuple[Form, ...]:
    strings = _as_strings(term, case_sensitive)
    forms = [strings]
    markers: list[bytes] = []
    if "tools" in kinds:
        markers.append(b'"toolCall"')
    if "details" in kinds:
        markers += [b'"details"', b'"data"']
    if markers:
        compact = _as_compact_json(term, case_sensitive)
        if compact != strings.parts:
            forms.append(Form(compact, tuple(markers)))
    if "tools" in kinds and (framed := _as_tool_result(term, case_sensitive)) is not None:
        forms.append(framed)
    return tuple(forms)


def _as_strings(term: str, case_sensitive: bool) -> Form:
    pieces = [quoted(piece)[1:-1] for piece in _NOT_IN_FILES.split(term) if piece]
    return Form(tuple(_part(piece, case_sensitive) for piece in pieces))


def _as_compact_json(term: str, case_sensitive: bool) -> tuple[Part, ...]:
    between = _EITHER if "\n" in term else _PUNCTUATION
    pieces = [
        piece
        for piece in re.split(between, term)
        if piece and not _NUMBER.fullmatch(piece) and piece.lower() not in "null"
    ]
    return tuple(_part(piece, case_sensitive) for piece in pieces)


def _as_tool_result(term: str, case_sensitive: bool) -> Form | None:
    """The form of a term that touches the frame of `tool_result name#id`, or None."""
    low = term if case_sensitive else key(term)
    overlap = next(
        (size for size in range(min(len(_FRAME), len(low)), 0, -1) if _FRAME.endswith(low[:size])),
        0,
    )
    if not (overlap or "#" in term or low in _FRAME or low in _NAMELESS):
        return None
    beyond = "" if low in _FRAME else term[overlap:]
    pieces = [
        quoted(piece)[1:-1]
        for half in beyond.split("#")
        for piece in _NOT_IN_FILES.split(half)
        if piece and key(piece) not in _NAMELESS
    ]
    return Form(tuple(_part(piece, case_sensitive) for piece in pieces), (b'"toolResult"',))
