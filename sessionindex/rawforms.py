"""How a line must look that holds a term: the forms of it that the raw test looks for.

A form fits when all its pieces stand in the bytes, and of its markers and breaks one where it has
any. A line that holds a term fits one form at least:

    strings       the term as JSON writes it, in parts: blocks of text are joined by line breaks,
                  and U+FFFD and lone surrogates never stand in a file as themselves
    compact JSON  (tools, details) the term as it stands, in parts between punctuation, because a
                  file may hold blanks there (but beside a blank it stands in a string, as a quote
                  stands with its string); numbers are left out, a file may spell them otherwise;
                  a term with a line break may go on in the next block, a string as it reads, so
                  its parts hold nothing that JSON escapes
    tool results  `tool_result name#id` never stands in a file: what a term says beyond the words
                  of that frame

A line break of a term stands as an escape, or there a string ends and another begins: the breaks
of a form are the term as one string, and what ends or begins at each. Pure, and about text alone.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from sessionindex.fold import key
from sessionindex.model import Kind
from sessionindex.text import quoted

_NOT_IN_FILES: Final = "[\ufffd\ud800-\udfff]"  # here and below: compiled where it is used
_PUNCTUATION: Final = "[\ufffd\ud800-\udfff]|(?<! )[{}\\[\\],:](?! )"
_EITHER: Final = '\x00-\x1f{}\\[\\],:"\\\\'
_MARKS: Final = '{}[],:"\\'
_OF_NUMBERS: Final = "0123456789eE+.-"
_JSON_BEGINS: Final = tuple('{["-0123456789tfn')
_JSON_ENDS: Final = tuple('}]"0123456789el')
_FRAME: Final = "tool_result "
_NAMELESS: Final = "unknown"
_TOOL_CALL: Final = '"toolCall"'
_TOOL_RESULT: Final = '"toolResult"'
_STRUCTURED: Final = ('"details"', '"data"')


class Form(NamedTuple):
    """All pieces must stand in the line, and of the markers and of the breaks one where any are.

    Markers stand as they are, whatever the question says of case.
    """

    pieces: tuple[str, ...]
    markers: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()


def forms(term: str, case_sensitive: bool, kinds: Sequence[Kind]) -> tuple[Form, ...]:
    """Ways in which a line that holds the term must look: one of them at least."""
    strings = _as_strings(term)
    found = [strings]
    markers: list[str] = []
    if "tools" in kinds:
        markers.append(_TOOL_CALL)
    if "details" in kinds:
        markers += _STRUCTURED
    if markers and _may_touch_json(term):
        compact = _as_compact_json(term)
        if strings.breaks or compact != strings.pieces:
            found.append(Form(compact, tuple(markers)))
    if "tools" in kinds:
        found += _as_tool_result(term, case_sensitive)
    return tuple(found)


def _as_strings(term: str) -> Form:
    pieces = [quoted(piece)[1:-1] for piece in _in_files(term)]
    return Form(tuple(pieces), (), _breaks(term))


def _in_files(term: str) -> list[str]:
    """The parts of a term between what never stands in a file as itself."""
    if term.isascii() and "\n" not in term:
        return [term] if term else []
    return [piece for piece in _split("\n", term) if piece]


def _split(marks: str, term: str) -> list[str]:
    """A term cut at these characters, and at what never stands in a file as itself.

    Most terms hold none of the latter, whose pattern takes longer to compile than a page to cut.
    """
    rest = "" if term.isascii() else _NOT_IN_FILES[1:-1]
    return re.split(f"[{marks}{rest}]+", term)


def _breaks(term: str) -> tuple[str, ...]:
    """What line breaks look like: all stand in one string, or at one of them a string ends."""
    lines = term.split("\n")
    if len(lines) == 1 or (not term.isascii() and re.search(_NOT_IN_FILES, term)):
        return ()
    ends = [quoted(term)[1:-1]]
    for before, after in pairwise(lines):
        if not (before or after):
            return ()
        ends.append(quoted(before)[1:] if before else quoted(after)[:-1])
    return tuple(ends)


def _may_touch_json(term: str) -> bool:
    """Whether a line of a term can be compact JSON, which is one line: all of it, or an end."""
    first, *others = term.lower().split("\n")
    return (
        not others
        or first.endswith(_JSON_ENDS)
        or others[-1].startswith(_JSON_BEGINS)
        or any(line.startswith(_JSON_BEGINS) and line.endswith(_JSON_ENDS) for line in others)
    )


def _as_compact_json(term: str) -> tuple[str, ...]:
    if term.isascii() and term.isprintable() and not any(mark in term for mark in _MARKS):
        found = [term]
    else:
        found = _split(_EITHER, term) if "\n" in term else re.split(_PUNCTUATION, term)
    pieces = [
        piece
        for piece in found
        if piece and piece.strip(_OF_NUMBERS) and piece.lower() not in "null"
    ]
    return tuple(pieces)


def _as_tool_result(term: str, case_sensitive: bool) -> list[Form]:
    """The forms of a term that touches the frame of `tool_result name#id`.

    What a term begins with may be the end of the words before the name, or stand in a name.
    """
    low = term if case_sensitive else key(term)
    overlap = next(
        (size for size in range(min(len(_FRAME), len(low)), 0, -1) if _FRAME.endswith(low[:size])),
        0,
    )
    if not (overlap or "#" in term or low in _FRAME or low in _NAMELESS):
        return []
    beyond = "" if low in _FRAME else term[overlap:]
    pieces = _said(beyond)
    if overlap and pieces and quoted(beyond)[1:].startswith(pieces[0]):
        pieces[0] = f'"{pieces[0]}'  # there the name begins
    found = [Form(tuple(pieces), (_TOOL_RESULT,))]
    if overlap and "#" in term:
        found.append(Form(tuple(_said(term)), (_TOOL_RESULT,)))
    return found


def _said(framed: str) -> list[str]:
    """What a file says of the name and the id in a text."""
    return [
        quoted(piece)[1:-1]
        for half in framed.split("#")
        for piece in _in_files(half)
        if key(piece) not in _NAMELESS
    ]
