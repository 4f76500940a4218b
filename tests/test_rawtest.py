"""The raw test may let a line through in vain; it never rejects one that the parser would match.

The heart is one property: odd entries of every kind, written down in every way JSON allows, and
terms cut out of what the parser makes of them. The tables below it say which lines die early, for
a test that rejects nothing would pass the property too.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex import entry as entries
from sessionindex import rawtest
from sessionindex.match import matcher
from sessionindex.model import DEFAULT_KINDS, KINDS, Entry, Kind, Line
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
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
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
        places = list(test.lines(block + lines[0], len(block)))  # what follows is not looked at
        assert [block[start:end] for start, end in places] == possible
        assert all(start == 0 or block[start - 1 : start] == b"\n" for start, _ in places)
        assert places == sorted(set(places))


def test_only_one_caseless_character_comes_out_of_another() -> None:
    """U+0307, out of İ: all others without case can be looked for as bytes."""
    born = {
        low
        for character in map(chr, range(0x110000))
        if (lowered := character.lower()) != character
        for low in lowered
        if low == low.lower() == low.upper()
    }
    assert born == {"\u0307"}


def test_what_ascii_comes_out_of() -> None:
    """İ and the sign of Kelvin: their escapes are all that a term in ASCII has to fear."""
    mothers = {c: low for c in map(chr, range(0x80, 0x110000)) for low in c.lower() if low < "\x80"}
    assert mothers == {"\u0130": "i", "\u212a": "k"}


WORD = st.text("aiksftnxyz AIKSZ0-./", min_size=1, max_size=24)
STRANGE = st.sampled_from(
    ["İ", "ſ", "\u212a", "\u0307", "\u0301", "ß", "ﬁ", "ﬅ", "ŉ", "ấ", "Ž", "Å", "中", "😀", "Σ"]
).map(str.encode)
INVALID = st.sampled_from([b"\xff", b"\xc4", b"\xe2\x84", b"\xf0\x9f", b"\xb0", b"\xed\xa0\x80"])


@given(st.data(), st.lists(st.one_of(WORD.map(str.encode), STRANGE, INVALID), max_size=30))
@settings(derandomize=True, deadline=None, max_examples=400)
def test_ascii_without_case_is_found_between_any_bytes(
    data: st.DataObject, pieces: list[bytes]
) -> None:
    """Whatever ASCII stands in the lower case of a block is found, by line and at a glance."""
    block = b"".join(pieces)
    low = block.decode("utf-8", "replace").lower()
    runs = re.findall(r"[\x20-\x7f]+", low)
    if not runs:
        return
    run = data.draw(st.sampled_from(runs))
    start = data.draw(st.integers(0, len(run) - 1))
    term = run[start : data.draw(st.integers(start + 1, len(run)))]
    test = RawTest([term.title()], case_sensitive=False, kinds=("text",))
    assert test.possible(block)
    assert not test.rejects(block)
    assert list(test.lines(block, len(block))) == [(0, len(block))]


# --- what it rejects ---------------------------------------------------------------------------


def message(role: str, **fields: Any) -> bytes:
    line = {"type": "message", "timestamp": STAMP, "message": {"role": role, **fields}}
    return json.dumps(line, ensure_ascii=False).encode()


def call(**arguments: Any) -> bytes:
    block = {"type": "toolCall", "name": "bash", "arguments": arguments}
    return message("assistant", content=[block])


def user(text: str) -> bytes:
    return message("user", content=text)


RESULT = message("toolResult", toolName="bash", toolCallId="c1", content="ok")


def possible(
    line: bytes, *terms: str, case: bool = False, every: bool = False, **more: Any
) -> bool:
    kinds = more.get("kinds", DEFAULT_KINDS)
    test = RawTest(terms, case_sensitive=case, kinds=kinds, every=every)
    found = test.possible(line)
    assert not (found and test.rejects(line))
    return found


@pytest.mark.parametrize(
    ("rule", "line", "term", "kept"),
    [
        ("a term that is there", user("some text"), "ME TE", True),
        ("a term that is not", user("some text"), "absent", False),
        ("as JSON writes it", user('say "a\\b"\t!'), '"A\\B"\t', True),
        ("not as it reads", user("a b"), "a\tb", False),
        ("a term with a line break, in parts", user("one\ntwo"), "e\nt", True),
        ("all of them", user("one two"), "e\nx", False),
        ("which stands in one string", user("one x\ntwo"), "one\ntwo", False),
        ("or where one ends", message("user", content=["one", "two"]), "one\ntwo", True),
        ("a break at an end too", user("x one"), "one\n", True),
        ("and not within a line", user("one x"), "one\n", False),
        ("nor at a beginning", user("x one"), "\none", False),
        ("U+FFFD stands for other bytes", b'"a\xffb"', "a\ufffdb", True),
        ("and what is beside it counts", b'"a\xffb"', "a\ufffdc", False),
        ("a lone surrogate is an escape", user("a"), "b\ud800", False),
        ("which is never rejected", b'"\\ud800"', "b\ud800", True),
        ("nor is a slash that was escaped", b'"a\\/b"', "absent/", True),
        ("where one is asked for", b'"a\\/b"', "absent", False),
        ("unless its backslash was", rb'"C:\\/b"', "absent/", False),
        ("or that of a u", rb'"C:\\users \\\\unit"', "absent é", False),
        ("nor is a letter that was", rb'"\u0041"', "absent", True),
        ("ASCII comes out of ASCII", rb'"\u2019"', "absent", False),
        ("others out of anything", rb'"\u2019"', "absent é", True),
        ("Kelvin is k, escaped too", rb'"\u212A"', "lake", True),
        ("and so does İ begin with i", rb'"\u0130"', "lies", True),
        ("and so do no others", rb'"\u0130 \u212a \/"', "absent", False),
        ("an escape after escaped backslashes is one", rb'"\\\\\u0041"', "absent", True),
        ("and one after such a path", rb'"\\users \\/ \\\/"', "absent/", True),
        ("a control character has no other way", b'"\\u001b[1m \\u0001"', "absent", False),
        ("of whichever kind", b'"\\u0000 \\u001f \\u001b"', "absent", False),
        ("but in upper case it might be found", b'"\\u001B[1m"', "absent", True),
        ("and what has a short form", b'"\\u000a \\u001b"', "absent", True),
        ("and any other", b'"\\u001b \\u0020 \\u0001"', "absent", True),
        ("Kelvin is k", user("300 \u212a"), "300 K", True),
        ("İ begins with i", user("İz"), "i", True),
        ("and ends with a dot", user("İz"), "\u0307Z", True),
        ("which alone has no case", user("İz"), "\u0307", True),
        ("every sigma is one", user("ΟΔΟΣ"), "οδοσ", True),
        ("ß is not ss", user("gross"), "groß", False),
        ("Vietnamese beside Latin letters", user("ấŽ"), "ẤŽ", True),
        ("no case, no decoding", user("中文"), "文", True),
        ("and none found", user("中文"), "語", False),
        ("no case beside ASCII", user("中Ab文"), "中aB文", True),
        ("also out of Kelvin", user("中\u212a"), "中k", True),
        ("and not there", user("中\u212a文b"), "中b", False),
        ("nor without Kelvin", user("中文b"), "中b", False),
    ],
)
def test_strings(rule: str, line: bytes, term: str, kept: bool) -> None:
    """A term stands in the bytes as JSON writes it."""
    assert possible(line, term, kinds=("text",)) is kept, rule


@pytest.mark.parametrize(
    ("rule", "line", "term", "kinds", "kept"),
    [
        ("blanks between", call(command="ls"), '{"command":"ls"}', ("tools",), True),
        ("in a call only", user('"command" ls'), '{"command":"ls"}', ("tools",), False),
        ("of the kind asked for", call(command="ls"), '{"command":"ls"}', ("text",), False),
        ("numbers are spelled anyhow", call(n=1e16), '{"n":10000000000000000}', ("tools",), True),
        ("null may be a huge one", call(n=1), '"n":null', ("tools",), True),
        ("true is a word", call(n=1), '"n":true', ("tools",), False),
        ("beside a blank in a string", call(c="a: b"), "a: b", ("tools",), True),
        ("and nowhere else", call(a="b"), "a: b", ("tools",), False),
        ("a quote with its string", call(ab="c"), 'b":"c', ("tools",), True),
        ("and with no other", call(abx="c"), 'b":"c', ("tools",), False),
        ("unless no line of it is JSON", call(c="a b x"), "a b\nx", ("tools",), False),
        ("as its end might be", call(c="a b 1"), "a b\n1", ("tools",), True),
        ("names count", call(n=1), '{"size":1}', ("tools",), False),
        ("escapes as they stand", call(c="a\tb"), "a\\tb", ("tools",), True),
        ("into the next block", call(c="a\tb"), 'b"}\na\tb', ("tools",), True),
        ("where words still count", call(c="a\tb"), 'b"}\na\tzq', ("tools",), False),
        ("details", message("custom", details={"a": 1}), '{"a":1}', ("details",), True),
        ("and data", b'{"type":"custom","data": {"a": 1}}', '{"a":1}', ("details",), True),
        ("not elsewhere", user('"a": 1'), '{"a":1}', ("details",), False),
    ],
)
def test_compact_json(
    rule: str, line: bytes, term: str, kinds: tuple[Kind, ...], kept: bool
) -> None:
    """Compact JSON is looked for as it stands, between punctuation and numbers."""
    assert possible(line, term, kinds=kinds) is kept, rule


@pytest.mark.parametrize(
    ("term", "kept"),
    [
        ("tool_result bash#c1", True),
        ("TOOL_RESULT BASH#C1", True),
        ("lt bash", True),
        ("sh#c", True),
        ("lt ash", False),
        ("#", True),
        ("tool_result", True),
        ("unknown#c1", True),
        ("tool_result read", False),
        ("bash#c2", False),
        ("ool_resultx", False),
        ("tool result", False),
    ],
)
def test_tool_results(term: str, kept: bool) -> None:
    """The frame `tool_result name#id` stands in no file: names and ids are looked for alone."""
    assert possible(RESULT, term, kinds=("tools",)) is kept
    assert not possible(RESULT, term, kinds=("text",)) or term == "#"
    assert not possible(user("x"), term, kinds=("tools",))


@pytest.mark.parametrize("name", ["run query", "melt x", "at y", "my tool", "t", " ", "l t"])
def test_a_name_may_look_like_the_frame(name: str) -> None:
    """A term that begins in a name like the frame ends is looked for as it stands, too."""
    line = message("toolResult", toolName=name, toolCallId="c1", content="ok")
    whole = f"tool_result {name}#c1"
    for start in range(len(whole)):
        for case in (False, True):
            assert possible(line, whole[start:], kinds=("tools",), case=case), whole[start:]
            assert possible(line, whole[start:-2], kinds=("tools",), case=case), whole[start:-2]


def test_a_result_without_a_name_is_unknown() -> None:
    nameless = message("toolResult", content="ok")
    assert possible(nameless, "tool_result unknown#unknown")
    assert possible(nameless, "KNOWN")
    assert not possible(user("ok"), "tool_result unknown#unknown")
    assert not possible(nameless, "tool_result unknown#c1")


def test_case_counts_where_it_is_asked_for() -> None:
    line = user("Ab Ž")
    assert possible(line, "Ab", case=True)
    assert not possible(line, "ab", case=True)
    assert possible(line, "ž")
    assert not possible(line, "ž", case=True)
    # Compact JSON writes a lone surrogate in lower case, and then it is ASCII.
    lone = call(command="x").replace(b'"x"', b'"\\uD83D"')
    assert possible(lone, "ud83d", case=True, kinds=("tools",))
    assert possible(lone, "ud83d", kinds=("tools",))


def test_one_term_or_every_term() -> None:
    line = user("one Ž")
    assert possible(line, "one", "ž", every=True)
    assert possible(line, "one", "two")
    assert not possible(line, "one", "two", every=True)
    assert not possible(line, "two", "ź")


@pytest.mark.parametrize(
    ("rule", "block", "terms", "found"),
    [
        ("nothing in nothing", b"", ["one"], []),
        ("nor in empty lines", b"\n\n", ["one"], []),
        ("the line, not the block", b"\n\n\none\n\n", ["one"], [(3, 6)]),
        ("a last line without an end", b"x\none", ["one"], [(2, 5)]),
        ("neighbours", b"one\none\n", ["one"], [(0, 3), (4, 7)]),
        ("once where it stands twice", b"one one\nx\n", ["one"], [(0, 7)]),
        ("in their order whatever the terms' is", b"two\none\n", ["one", "two"], [(0, 3), (4, 7)]),
        ("decoded", "x\nŽ\nx\n".encode(), ["ž"], [(2, 4)]),
        ("decoded beside plain", "one\nŽ\nx\n".encode(), ["ž", "one"], [(0, 3), (4, 6)]),
        ("escapes", b'x\n"\\u00"\nx\n"\\/"', ["one/"], [(2, 8), (11, 15)]),
        ("no escape of what is not ASCII", b'"\\u00e9"\n"\\u0065"', ["one"], [(9, 17)]),
        ("each of them where case counts", b'"\\u00e9"\nx', ["é"], [(0, 8)]),
        (
            "of both kinds",
            b'"\\u0041"\nx\n"\\/"\n"\\u0041\\/"',
            ["a/"],
            [(0, 8), (11, 15), (16, 26)],
        ),
        ("a term that says nothing", b"x\n\ny", ["\ufffd"], [(0, 1), (2, 2), (3, 4)]),
    ],
)
def test_lines(rule: str, block: bytes, terms: list[str], found: list[tuple[int, int]]) -> None:
    """The possible lines of a block, by start and end."""
    test = RawTest(terms, case_sensitive=False, kinds=("text",))
    assert list(test.lines(block, len(block))) == found, rule


@pytest.mark.parametrize("escape", ["\\u0041", "\\/"])
def test_escapes_in_every_line_are_looked_for_once(
    escape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked at grows with the block, not with its square."""
    looked = 0

    def find(block: bytes, data: bytes, *bounds: int) -> int:
        nonlocal looked
        start, end = bounds or (0, len(block))
        place = block.find(data, start, end)
        looked += (end if place < 0 else place) - start
        return place

    def count(block: bytes, data: bytes, start: int, end: int) -> int:
        nonlocal looked
        looked += end - start
        return block.count(data, start, end)

    monkeypatch.setattr(rawtest, "_find", find)
    monkeypatch.setattr(rawtest, "_count", count)

    def work(lines: int) -> int:
        nonlocal looked
        looked = 0
        block = (user("X").replace(b"X", escape.encode()) + b"\n") * lines
        test = RawTest(["a/b"], case_sensitive=False, kinds=("text",))
        assert len(list(test.lines(block, len(block)))) == lines
        return looked

    assert work(800) < 5 * work(200)


def test_a_long_term_is_looked_for_by_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each caseless search begins with work for every byte of what it looks for."""
    longest = 0
    search = rawtest._find_caseless

    def noted(block: bytes, data: bytes, *bounds: int) -> int:
        nonlocal longest
        longest = max(longest, len(data))
        return search(block, data, *bounds)

    monkeypatch.setattr(rawtest, "_find_caseless", noted)
    term = "the quick brown fox " * 1_000 + "Xylophone" + " jumps over it" * 1_000
    assert possible(user(f"so {term.upper()}."), term)
    assert not possible(user(f"so {term.replace('Xyl', 'Xyi')}."), term)
    assert 0 < longest < 50


def test_a_test_that_rejects_nothing_is_left_out_but_now_and_then() -> None:
    """And is back where it rejects again."""
    test = RawTest(["needle"], case_sensitive=False, kinds=("text",))
    assert [test.pays() for _ in range(20)] == [True] * 20
    test.learn(1_000, 1_000)
    assert 0 < sum(test.pays() for _ in range(64)) <= 16
    for _ in range(20):
        test.learn(100, 0)
    assert [test.pays() for _ in range(20)] == [True] * 20
