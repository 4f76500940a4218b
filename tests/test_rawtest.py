"""The raw test may let a line through in vain; it never rejects one that the parser would match.

The heart is one property: odd entries of every kind, written down in every way JSON allows, and
terms cut out of what the parser makes of them. The tables below it say which lines die early, for
a test that rejects nothing would pass the property too.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex import entry as entries
from sessionindex.match import matcher
from sessionindex.model import KINDS, Entry, Kind, Line
from sessionindex.rawtest import RawTest
from sessionindex.timestamps import Window

ALWAYS = Window(None, None)
STAMP = "2026-01-05T10:00:00.000Z"
BROKEN = "\ue000"  # stands for bytes that are no UTF-8


class Spelling(str):
    """A number as the file spells it."""


# --- lines -------------------------------------------------------------------------------------

PIECES = [
    *'aiksSKzZ019.-+eE#/{}[],:"\\ \n\t\r\b\x01\x7f\u0085\u2028\ufffd\ud800\udc00',
    *"İıß\u1e9eſΣσςʼnﬁ\u212aẤấŽźŸ\u0307\u0301中😀ǅ\u0390Աև",
    *("tool_result ", "result ", "unknown", "Unknown", "wn", "null", "nu", "true", "1e2", "1.0"),
    *("\\n", "\\u0041", "toolCall", '"data"', "fi", "SS", "data", "ls -la", "/tmp/x"),
    BROKEN,
]
NUMBERS = ["0", "-0", "1", "1.0", "-1.50", "1e2", "1E+2", "1e400", "-1e400", "0.1e-6"]
NUMBERS += ["12345678901234567890", "1234567890123456789.0", "1e21", "9007199254740993"]

words = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
names = st.one_of(st.sampled_from(["bash", "read", "unknown", "İo"]), words)
scalars = st.one_of(
    words, st.sampled_from(NUMBERS).map(Spelling), st.none(), st.booleans(), st.just("unknown")
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)
    ),
    max_leaves=6,
)


def _block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=fields)


texts = st.one_of(words, st.lists(_block("text", text=words), max_size=3))
replies = st.lists(
    st.one_of(
        _block("text", text=words),
        _block("thinking", thinking=words, thinkingSignature=words),
        _block("toolCall", name=names, arguments=values, id=words),
        _block("image", data=words),
    ),
    max_size=3,
)
images = _block("image", data=words, mimeType=words)
payload = st.one_of(values, st.lists(st.one_of(images, values), max_size=2))
messages = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": texts}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": replies}, optional={"details": payload}
    ),
    st.fixed_dictionaries(
        {"role": st.just("toolResult"), "content": texts},
        optional={"toolName": names, "toolCallId": names, "details": payload},
    ),
    st.fixed_dictionaries(
        {"role": st.just("system"), "content": texts},
        optional={"sections": st.dictionaries(words, words, max_size=3)},
    ),
    st.fixed_dictionaries(
        {"role": st.just("bashExecution")}, optional={"command": words, "output": words}
    ),
    st.fixed_dictionaries({"role": st.just("custom"), "content": texts, "details": payload}),
)
bodies = st.one_of(
    st.fixed_dictionaries({"type": st.just("message"), "message": messages}),
    st.fixed_dictionaries({"type": st.just("custom"), "data": payload}),
    st.fixed_dictionaries(
        {"type": st.just("custom_message"), "content": texts}, optional={"details": payload}
    ),
)


def written(value: Any, ascii_only: bool, blank: str, slash: bool, broken: bytes) -> bytes:
    """The bytes of a value, in one of the ways in which a file may hold it."""

    def string(text: str) -> str:
        body = json.dumps(text, ensure_ascii=ascii_only)
        body = re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", body)
        return body.replace("/", "\\/") if slash else body

    def spelled(value: Any) -> str:
        if isinstance(value, Spelling):
            return str(value)
        if isinstance(value, str):
            return string(value)
        if isinstance(value, dict):
            members = (f"{string(name)}{blank}:{blank}{spelled(v)}" for name, v in value.items())
            return "{" + blank + f"{blank},{blank}".join(members) + blank + "}"
        if isinstance(value, list):
            return "[" + blank + f"{blank},{blank}".join(map(spelled, value)) + blank + "]"
        return json.dumps(value)

    return spelled(value).encode().replace(BROKEN.encode(), broken)


styles = st.tuples(
    st.sampled_from([False, False, False, True]),
    st.sampled_from(["", " ", "\t "]),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([b"\xff", b"\xe2\x82", b"\xed\xa0\x80"]),
)


@st.composite
def lines_of_a_file(draw: st.DrawFn) -> bytes:
    return written({**draw(bodies), "timestamp": STAMP}, *draw(styles))


def understood(line: bytes) -> Entry:
    found = entries.parse(Line(2, 100, line), 3)
    assert isinstance(found, Entry), (line, found)
    return found


@st.composite
def questions(
    draw: st.DrawFn,
) -> tuple[list[bytes], list[str], bool, tuple[Kind, ...], bool]:
    """A few lines, and terms cut out of the texts of one of them."""
    lines = draw(st.lists(lines_of_a_file(), min_size=1, max_size=4))
    chosen = draw(st.sets(st.sampled_from(KINDS), min_size=1))
    kinds = tuple(kind for kind in KINDS if kind in chosen)
    held = [text for kind in kinds if (text := entries.searchable(understood(lines[0]), kind))]
    case_sensitive = draw(st.booleans())
    change = draw(st.sampled_from([str, str.lower, str.upper, str.swapcase, str.title]))
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        text = draw(st.sampled_from(held)) if held else "x"
        start = draw(st.integers(0, len(text) - 1))
        term = text[start : draw(st.integers(start + 1, len(text)))]
        terms.append((term if case_sensitive else change(term)) or "x")
    return lines, terms, case_sensitive, kinds, draw(st.booleans())


@given(questions())
@settings(derandomize=True, deadline=None, max_examples=600)
def test_what_the_parser_matches_is_never_rejected(
    question: tuple[list[bytes], list[str], bool, tuple[Kind, ...], bool],
) -> None:
    """A matching line is possible, and `lines` finds exactly the possible lines of a block."""
    lines, terms, case_sensitive, kinds, every = question
    asked = matcher(
        terms,
        mode="all" if every else "any",
        case_sensitive=case_sensitive,
        kinds=kinds,
        types=None,
        roles=None,
        window=ALWAYS,
    )
    test = RawTest(terms, case_sensitive=case_sensitive, kinds=kinds, every=every)
    for line in lines:
        if asked.match(understood(line)):
            assert test.possible(line)
    possible = [line for line in lines if test.possible(line)]
    for block in (b"\n".join(lines), b"\n".join(lines) + b"\n"):
        places = list(test.lines(block))
        assert [block[start:end] for start, end in places] == possible
        assert all(start == 0 or block[start - 1 : start] == b"\n" for start, _ in places)
        assert places == sorted(set(places))
