"""Can these terms be in this line? A test on raw bytes that rejects fast and never wrongly.

Each term has *forms* (`rawforms`). A line is kept when one form of a term fits (of one term, or of
every term, as the question says); the parser decides the rest.

A line with an escape that JSON need not write (`\\/`, and `\\u…` but for control characters in
lower-case hex, which have no other way) is never rejected if a term could come out of it; without
terms none is.

Parts without case (and every part of a case-sensitive question) are searched as bytes, ASCII ones
with stringzilla's caseless search: a few rare letters of a long one first, as a *scout*. Other
parts go through `decode` and the gram key: stringzilla misses some neighbours of Vietnamese
letters. Only bytes are given to stringzilla: a `str` with a lone surrogate would crash it. This is
its only user.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import stringzilla

from sessionindex.fold import key
from sessionindex.model import Kind
from sessionindex.rawforms import Form, forms

_find: Callable[..., int] = stringzilla.find
_count: Callable[..., int] = stringzilla.count
_find_caseless: Callable[..., int] = stringzilla.utf8_uncased_search

_PARENTS: Final = ("İ".encode(), "\u212a".encode())
"""Out of these ASCII comes in lower case, and out of no others."""

_LONG: Final = 24
"""Bytes of a caseless piece that are looked for; the parser sees whether the rest is there too.

A caseless search begins with half a microsecond for each of them.
"""
_WINDOW: Final = 8
_FEW: Final = 2
_FIRST: Final = 32
"""Candidates that count as rejected before any was tested."""
_MEMORY: Final = 512
_NOW_AND_THEN: Final = 8
_FREQUENT: Final = b" etaoinsrhldcumfpgwybvkxjqz"


class Part(NamedTuple):
    """One piece of a term: `data` as bytes, or `text` (a gram key) where case needs decoding.

    A caseless text is ASCII and what has no case: lines are decoded for İ and Kelvin alone.
    `scout` are a few rare letters of a long caseless piece, to be looked for first.
    """

    data: bytes
    text: str | None
    caseless: bool
    scout: bytes = b""

    def find(self, block: bytes, start: int, end: int) -> int:
        """The first place of the part from `start` on, or -1; not for decoded parts."""
        if not self.caseless:
            return _find(block, self.data, start, end)
        if self.scout and _find_caseless(block, self.scout, start, end) < 0:
            return -1
        return _find_caseless(block, self.data, start, end)

    def glance(self) -> tuple[Callable[..., int], bytes, bytes | None]:
        """As `find` looks: with what, for what, and where that is there, for what then."""
        find = _find_caseless if self.caseless else _find
        scouted = self.caseless and self.scout
        return (find, self.scout, self.data) if scouted else (find, self.data, None)

    def stands_in(self, line: bytes) -> bool:
        if self.text is not None:
            if self.caseless:
                if _find(line.lower(), self.data) >= 0:
                    return True
                if all(_find(line, parent) < 0 for parent in _PARENTS):
                    return False
            return self.text in key(line.decode("utf-8", "replace"))
        return self.find(line, 0, len(line)) >= 0


class _Looked(NamedTuple):
    """A form, compiled into what is looked for."""

    parts: tuple[Part, ...]
    markers: tuple[Part, ...]
    breaks: tuple[Part, ...]

    def fits(self, line: bytes) -> bool:
        if self.markers and not any(marker.stands_in(line) for marker in self.markers):
            return False
        if not all(part.stands_in(line) for part in self.parts):
            return False
        return not self.breaks or any(part.stands_in(line) for part in self.breaks)

    def scouts(self) -> tuple[Part, ...] | None:
        """Parts one of which every fitting line holds; None where only a line can tell."""
        if 0 < len(self.breaks) <= _FEW and not any(part.text for part in self.breaks):
            return self.breaks  # each is longer than what it begins or ends with
        plain = [part for part in self.parts if part.text is None]
        if plain:
            return (max(plain, key=lambda part: len(part.data)),)
        return None if self.parts or not self.markers else self.markers


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
        self._terms = [
            tuple(_looked(form, case_sensitive) for form in forms(term, case_sensitive, kinds))
            for term in terms
        ]
        self._every = every
        self._escapes = _Escapes(terms, case_sensitive)
        self._scouts = self._choose_scouts()
        self._glances = [scout.glance() for scout in self._scouts or ()]
        self._asked = self._kept = 0
        self._tested = _FIRST

    def pays(self) -> bool:
        """Whether testing candidates spares more than it costs, by the last ones that were tested.

        A parsed line costs six tested ones: of those that the index named, five in six may be kept.
        """
        self._asked += 1
        return self._kept * 6 <= self._tested * 5 or self._asked % _NOW_AND_THEN == 0

    def learn(self, tested: int, kept: int) -> None:
        """Note how many candidates were tested, and kept."""
        if self._tested > _MEMORY:
            self._tested, self._kept = self._tested // 2, self._kept // 2
        self._tested += tested
        self._kept += kept

    def possible(self, line: bytes) -> bool:
        """False only where the line cannot hold what is asked (one line, or a block of lines)."""
        if not self._terms or self._escapes.find(line, 0, len(line)) >= 0:
            return True
        asked = all if self._every else any
        return asked(any(form.fits(line) for form in term) for term in self._terms)

    def rejects(self, block: bytes) -> bool:
        """Whether no line of a block is possible, at a glance: False may still mean none."""
        if self._scouts is None:
            return False
        # Without bounds, and without a call for each scout: this runs for every few candidates.
        for find, data, whole in self._glances:
            if find(block, data) >= 0 and (whole is None or find(block, whole) >= 0):
                return False
        return self._escapes.are_none(block)

    def lines(self, block: bytes, size: int) -> Iterator[tuple[int, int]]:
        """Start and end of each possible line of a block of whole lines, ascending.

        The lines are those of its first `size` bytes.
        """
        if self._scouts is None:
            yield from self._each_line(block, size)
            return
        escapes = _Ascending(self._escapes, block, size)
        scouts: tuple[Part | _Ascending, ...] = (*self._scouts, escapes)
        nearest = [scout.find(block, 0, size) for scout in scouts]
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
                    nearest[index] = scouts[index].find(block, start, size)

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

    def _choose_scouts(self) -> tuple[Part, ...] | None:
        """Parts one of which every possible line holds that holds no odd escape."""
        if not self._terms:
            return None
        scouted = [[form.scouts() for form in term] for term in self._terms]
        usable = [
            [part for parts in term if parts is not None for part in parts]
            for term in scouted
            if None not in term
        ]
        if len(usable) < (1 if self._every else len(scouted)):
            return None
        if self._every:  # every term must be there: look for the one with the longest scouts
            usable = [max(usable, key=lambda parts: min(len(part.data) for part in parts))]
        return tuple({part for parts in usable for part in parts})


_USUAL: Final = rb"(?:1[0-9a-f]|0[0-7bef])"
_ASCII: Final = rb"(?!" + _USUAL + rb"|[89a-fA-F])"
_MOST: Final = (b"\\u001b", b"\\u0001")


class _Escapes:
    """What looks for the escapes that JSON need not write and that a term could come out of.

    ASCII without case comes out of ASCII, and out of two characters more (Kelvin is k, İ begins
    with i): who looks for no more than that is not held up by names like `C:\\users`. With case
    every one counts: compact JSON writes lone surrogates in its own way.
    """

    def __init__(self, terms: Sequence[str], case_sensitive: bool) -> None:
        said = "".join(terms).lower()
        self._slash = True
        self._begin, self._odd = b"\\u", rb"\\u(?!00" + _USUAL + rb")"
        if said.isascii() and not case_sensitive:
            self._slash = "/" in said
            if "i" in said or "k" in said:
                self._odd = rb"\\u(?:00" + _ASCII + rb"|0130|212)"
            else:
                self._begin, self._odd = b"\\u00", rb"\\u00" + _ASCII

    def are_none(self, block: bytes) -> bool:
        """Whether none is in a block: at a glance, where it has nothing like it."""
        size = len(block)
        if not self.may_hold(block, 0, size) and not (self._slash and _find(block, b"\\/") >= 0):
            return True
        return self.find(block, 0, size) < 0

    def may_hold(self, block: bytes, start: int, end: int) -> bool:
        """Whether `odd` has to look: at a glance."""
        # Nearly all there are colour a terminal, and counting is what is fast.
        rest = _count(block, self._begin, start, end)
        for most in _MOST:
            if not rest:
                return False
            rest -= _count(block, most, start, end)
        return bool(rest)

    def find(self, block: bytes, start: int, end: int) -> int:
        """The first place of one from `start` on, or -1."""
        odd = self.odd(block, start, end) if self.may_hold(block, start, end) else -1
        return _first(self.slash(block, start, end), odd)

    def slash(self, block: bytes, start: int, end: int) -> int:
        """The first slash that is escaped, or -1; also where none counts."""
        if not self._slash:
            return -1
        slash = _find(block, b"\\/", start, end)
        while slash > 0 and _is_escaped(block, slash):
            slash = _find(block, b"\\/", slash + 2, end)
        return slash

    def odd(self, block: bytes, start: int, end: int) -> int:
        """The first character that is escaped and counts, or -1."""
        odd = re.compile(self._odd)
        found = odd.search(block, start, end)
        while found is not None and _is_escaped(block, found.start()):
            found = odd.search(block, found.end(), end)
        return -1 if found is None else found.start()


class _Ascending:
    """The escapes of one block, for places that only ascend: no byte is looked at again.

    Where every line has one, as another writer's JSON may, all lines after it would be else.
    """

    def __init__(self, escapes: _Escapes, block: bytes, end: int) -> None:
        self._escapes = escapes
        self._slash = escapes.slash(block, 0, end)
        self._odd = escapes.odd(block, 0, end) if escapes.may_hold(block, 0, end) else -1

    def find(self, block: bytes, start: int, end: int) -> int:
        """The first place of one from `start` on, or -1."""
        if 0 <= self._slash < start:
            self._slash = self._escapes.slash(block, start, end)
        if 0 <= self._odd < start:
            self._odd = self._escapes.odd(block, start, end)
        return _first(self._slash, self._odd)


def _first(one: int, other: int) -> int:
    """The lower of two places, of which -1 is none."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


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
        data = _rarest(data, _LONG)
        return Part(data, None, True, _rarest(data, _WINDOW) if len(data) > _WINDOW + 2 else b"")
    simple = all(char.isascii() or _without_case(char) for char in piece)
    return Part(piece.lower().encode() if simple else data, key(piece), simple)


def _looked(form: Form, case_sensitive: bool) -> _Looked:
    return _Looked(
        _parts(form.pieces, case_sensitive),
        tuple(_part(marker, case_sensitive=True) for marker in form.markers),
        tuple(_part(end, case_sensitive) for end in form.breaks),
    )


def _parts(pieces: Sequence[str], case_sensitive: bool) -> tuple[Part, ...]:
    """The parts of pieces: before one that needs decoding, what can be looked for without."""
    parts = []
    for piece in pieces:
        part = _part(piece, case_sensitive)
        if part.text is not None:
            runs = [*re.findall(r"[\x00-\x7f]+", piece), *_runs_without_case(piece)]
            if runs:
                longest = max(runs, key=lambda run: len(run.encode()))
                parts.append(_part(longest, case_sensitive))
        parts.append(part)
    return tuple(parts)


def _runs_without_case(piece: str) -> list[str]:
    return "".join(char if _without_case(char) else "\n" for char in piece).split("\n")


def _rarest(data: bytes, size: int) -> bytes:
    """The rarest letters of ASCII in a row."""
    size = min(size, len(data))
    sums = list(accumulate((_FREQUENT.find(byte) % 256 for byte in data.lower()), initial=0))
    best = max(range(len(data) - size + 1), key=lambda at: sums[at + size] - sums[at])
    return data[best : best + size]


def _without_case(piece: str) -> bool:
    """Whether no other character becomes one of these in lower case (U+0307 comes out of İ)."""
    return piece == piece.lower() == piece.upper() and "\u0307" not in piece
