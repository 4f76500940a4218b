"""Lines and values: both readers, by the same rules, for whatever stands between two LF."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sessionindex import jsonline
from sessionindex.jsonline import (
    ENOUGH,
    INVALID,
    MAX_DEPTH,
    TOO_DEEP,
    Unreadable,
    compact,
    split,
    strict,
    value,
)
from sessionindex.model import Line
from sessionindex.text import compact_json


@pytest.fixture(scope="module", params=["the rule", "orjson"], autouse=True)
def reader(request: pytest.FixtureRequest) -> Iterator[str]:
    """Everything here holds before orjson came in, and after."""
    fast = request.param == "orjson"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jsonline, "_seen", -(1 << 60))
        patched.setattr(jsonline, "_read", orjson.loads if fast else jsonline._first)
        patched.setattr(jsonline, "_write", orjson.dumps if fast else jsonline._written)
        yield request.param


# --- lines -------------------------------------------------------------------------------------


def lines(data: bytes) -> list[bytes]:
    return [line.data for line in split(data, 1, 0)]


@pytest.mark.parametrize(
    ("rule", "data", "wanted"),
    [
        ("nothing", b"", []),
        ("an empty line", b"\n", [b""]),
        ("an LF ends a line and begins none", b"a\nb\n", [b"a", b"b"]),
        ("the last one may have none", b"a\nb", [b"a", b"b"]),
        ("empty lines count", b"a\n\n\nb\n", [b"a", b"", b"", b"b"]),
        ("a CR stays with its line", b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        ("a lone CR ends nothing", b"a\rb\n", [b"a\rb"]),
        ("nor do VT, FF, FS and NUL", b"a\vb\fc\x1cd\0e\n", [b"a\vb\fc\x1cd\0e"]),
        (
            "nor NEL, U+2028, U+2029",
            "a\x85b\u2028c\u2029d\n".encode(),
            ["a\x85b\u2028c\u2029d".encode()],
        ),
    ],
)
def test_lines_end_at_lf(rule: str, data: bytes, wanted: list[bytes]) -> None:
    assert lines(data) == wanted, rule


def test_places() -> None:
    """Numbers and offsets go on from where the block lies in its file."""
    assert list(split(b"ab\n\nc\n", 7, 100)) == [
        Line(7, 100, b"ab"),
        Line(8, 103, b""),
        Line(9, 104, b"c"),
    ]
    assert list(split(b"torn", 3, 50, complete=False)) == [Line(3, 50, b"torn", complete=False)]


def fed(data: bytes, cuts: Sequence[int]) -> list[Line]:
    """The lines of a file that grows to each of these sizes, read again from where it was torn."""
    found: list[Line] = []
    offset, line_no = 0, 1
    for size in sorted({*cuts, len(data)}):
        whole = data.rfind(b"\n", offset, size) + 1 or offset
        torn = list(
            split(
                data[whole:size], line_no + data.count(b"\n", offset, whole), whole, complete=False
            )
        )
        assert len(torn) <= 1
        fresh = list(split(data[offset:whole], line_no, offset))
        found += fresh
        line_no += len(fresh)
        offset = whole
        if size == len(data):
            found += torn
    return found


@given(
    st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"{}", b"\xe2\x82\xac", b"\r"])).map(b"".join),
    st.lists(st.integers(0, 40)),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_a_file_cut_anywhere_has_the_same_lines(data: bytes, cuts: list[int]) -> None:
    """Read at once, read byte by byte, or read whenever it grew."""
    whole = data.rfind(b"\n") + 1
    wanted = list(split(data[:whole], 1, 0))
    wanted += split(data[whole:], len(wanted) + 1, whole, complete=False)
    assert fed(data, range(len(data))) == wanted
    assert fed(data, [cut for cut in cuts if cut < len(data)]) == wanted
    for line in wanted:
        assert data[line.offset :].startswith(line.data)
        assert line.line_no == data.count(b"\n", 0, line.offset) + 1


# --- values ------------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Equal, in type and in the order of keys too."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(
    ("rule", "data", "wanted"),
    [
        ("blanks of JSON around it", b" \t\r{} \r", {}),
        ("keys in the file's order", b'{"b":1,"a":2}', {"b": 1, "a": 2}),
        ("the last of equal keys, at the first's place", b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        ("18 digits", b"123456789012345678", 123456789012345678),
        ("19", b"[1234567890123456789]", [1234567890123456789]),
        ("2**63", b"9223372036854775808", 2**63),
        ("2**64", b'{"a":18446744073709551616}', {"a": 2**64}),
        ("20, below zero", b"-12345678901234567890", -12345678901234567890),
        ("the nearest double", b"0.1000000000000000055511151231257827", 0.1),
        ("of a number halfway", b"9007199254740993.0", 9007199254740992.0),
        ("of one just above", b"9007199254740993.00000000000000000000001", 9007199254740994.0),
        (
            "a long fraction hides no integer",
            b"[0.1234567890123456789,18446744073709551617]",
            [0.12345678901234568, 2**64 + 1],
        ),
        ("none beyond a double", b'[1e400,-1e400,"a"]', [None, None, "a"]),
        ("none of a long one", b"1" * 400 + b".5", None),
        ("nothing below one", b"1e-400", 0.0),
        (
            "and in a log that stands in one",
            rb'"{\"time\":1234567890123456789}"',
            '{"time":1234567890123456789}',
        ),
        (
            "a key that ends in a backslash",
            rb'{"time\\":12345678901234567890123}',
            {"time\\": 12345678901234567890123},
        ),
        ("digits in a string are a string", b'"12345678901234567890"', "12345678901234567890"),
        ("NUL escapes", b'"a\\u0000b"', "a\0b"),
        ("DEL as it is", b'"\x7f"', "\x7f"),
        ("pairs of escapes", b'"\\ud83d\\ude00"', "😀"),
        ("half of a pair", b'"a\\ud83d"', "a\ud83d"),
        ("the other half", b'"\\ude00\\ud83d"', "\ude00\ud83d"),
        ("beside a whole one", b'"\\ud83d\\ud83d\\ude00"', "\ud83d😀"),
        ("bytes that are no UTF-8", b'"a\xffb"', "a\ufffdb"),
        ("a character that was cut", b'"\xe2\x82"', "\ufffd"),
        ("a surrogate in UTF-8", b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        ("U+FFFD itself", b'"\xef\xbf\xbd"', "\ufffd"),
        ("U+2028 raw", '"\u2028"'.encode(), "\u2028"),
        ("a slash either way", b'"\\//"', "//"),
    ],
)
def test_what_javascript_reads(rule: str, data: bytes, wanted: Any) -> None:
    """Integers are exact at any size; what is broken in a string is U+FFFD, and no more."""
    assert same(value(data), wanted), rule


@pytest.mark.parametrize("size", [3999, 4000, 4001, 4300, 4301, 5000, 12_000])
def test_integers_of_any_size(size: int) -> None:
    """Python's limit on digits is none of ours."""
    for wanted in (10**size, -(10**size), 10**size - 1, 7 - 10**size):
        digits = compact_json(wanted)
        assert len(digits) >= size
        assert value(b"[" + digits.encode() + b"]") == [wanted]


REFUSED = [
    *(b"NaN", b"-NaN", b"Infinity", b"-Infinity", b"[NaN]", b"nan", b"undefined", b"None"),
    *(b"[1,]", b'{"a":1,}', b"[,1]", b"{,}", b"[1 2]", b'{"a" 1}', b"{1:2}", b"{'a':1}"),
    *(b"// a\n1", b"/* a */1", b"1 // a", b"# 1"),
    *(b"01", b"-01", b"+1", b"1.", b".5", b"-", b"1e", b"1e+", b"0x1", b"1_000"),
    *(b'"\x01"', b'"\t"', b'"\\x41"', b'"\\u12"', b'"\\U0041"', b'"\\u 123"', b'"', b'"\\'),
    *(b"{}{}", b"1 1", b"{}\0", b"]", b"[}", b"[", b"{", b"true1", b"tru", b"nul"),
    *("{}\u00a0".encode(), "\u3000{}".encode(), b"\x0c{}", b"\xef\xbb\xbf{}", b"\x85{}"),
    *(b"\xff", "１".encode(), "[１]".encode()),
]


@pytest.mark.parametrize("data", REFUSED)
def test_what_is_no_json(data: bytes) -> None:
    """Refused by either reader, with one reason."""
    for asked in (data, b'["\\ud800",' + data + b"]", b"[1234567890123456789," + data + b"]"):
        with pytest.raises(Unreadable) as refused:
            value(asked)
        assert refused.value.reason == str(refused.value) == INVALID


WHITE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
WHITE += "\u2028\u2029\u202f\u205f\u3000\ufeff"


@pytest.mark.parametrize("blank", ["", *WHITE, WHITE])
def test_blank_lines(blank: str) -> None:
    """Blank is what JavaScript trims away."""
    with pytest.raises(Unreadable, match=r"^line is blank$"):
        value(blank.encode())


@pytest.mark.parametrize("other", ["\x85", "\x1c", "\x1f", "\u200b", "\u180e", "\0", "\ufffd"])
def test_lines_that_only_look_blank(other: str) -> None:
    with pytest.raises(Unreadable) as refused:
        value(f" {other} ".encode())
    assert refused.value.reason == INVALID


def test_the_byte_order_mark() -> None:
    """One is taken from line 1; anywhere else it is no JSON."""
    mark = b"\xef\xbb\xbf"
    assert value(mark + b"{}", first=True) == {}
    assert value(mark + b' ["\\ud800"]', first=True) == ["\ud800"]
    for data, first in (
        (mark + b"{}", False),
        (mark * 2 + b"{}", True),
        (b" " + mark + b"{}", True),
    ):
        with pytest.raises(Unreadable, match="cannot be parsed"):
            value(data, first=first)
    with pytest.raises(Unreadable, match="line is blank"):
        value(mark, first=True)


# --- one rule for both readers -----------------------------------------------------------------

CORES = {
    "fast": b'"a"',
    "surrogate": b'"\\ud800"',
    "bytes": b'"\xff"',
    "digits": b"12345678901234567890",
    "brackets in strings": b'"[[[[\\"[[{{\\ud800"',
}


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
@pytest.mark.parametrize(("opens", "closes"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"[":', b"}]")])
def test_depth(core: bytes, opens: bytes, closes: bytes) -> None:
    """1,024 levels are read and one more is not, whichever reader the line needs."""
    times = MAX_DEPTH // len(closes)
    deepest = value(opens * times + core + closes * times)
    for _ in range(MAX_DEPTH):
        deepest = deepest[0] if isinstance(deepest, list) else next(iter(deepest.values()))
    assert deepest == value(core)
    with pytest.raises(Unreadable) as refused:
        value(b"[" + opens * times + core + closes * times + b"]")
    assert refused.value.reason == TOO_DEEP


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_absurd_depth(core: bytes) -> None:
    """200,000 brackets are an answer, not a crash, closed or not."""
    for data in (b"[" * 200_000 + core + b"]" * 200_000, b"[" * 200_000 + core, b'{"a":' * 200_000):
        with pytest.raises(Unreadable) as refused:
            value(data)
        assert refused.value.reason == TOO_DEEP


def test_depth_counts_what_is_inside_each_other() -> None:
    """Neighbours are not deep."""
    wide = b"[" + b"[]," * 5000 + b'"\\ud800"]'
    assert len(value(wide)) == 5001


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: len(repr(x)) < 18)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([(",", ":"), (" , ", " : ")]))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_both_readers_agree(wanted: Any, ascii_only: bool, marks: tuple[str, str]) -> None:
    """A value is the same alone and beside what only the slow reader takes."""
    data = json.dumps(wanted, ensure_ascii=ascii_only, separators=marks).encode()
    assert same(value(data), wanted)
    for other in (b'"\\ud800"', b"1234567890123456789", b'"\xff"'):
        assert same(value(b"[" + other + b"," + data + b"]")[1], wanted)


@given(st.lists(st.sampled_from([*(bytes([c]) for c in b'[]{}:,"1-.e \\'), b"\xff"])).map(b"".join))
@settings(derandomize=True, deadline=None, max_examples=400)
def test_any_bytes(data: bytes) -> None:
    """Any line is a value or Unreadable, and a value it is in company too."""
    try:
        alone = value(data)
    except Unreadable as refused:
        assert refused.reason in ("line is blank", INVALID)
    else:
        assert same(value(b'["\\ud800",' + data + b"]")[1], alone)


# --- orjson and the rule -----------------------------------------------------------------------

SPACE = st.text(" \t\r\n", max_size=2)
DIGITS = st.text("0123456789", min_size=1, max_size=25)
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    DIGITS.map(lambda digits: digits.lstrip("0") or "0"),
    st.just("") | DIGITS.map(".{}".format),
    st.just("")
    | st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), DIGITS)
    | st.integers(-330, 310).map("e{}".format),
)
ESCAPES = [r"\n", r"\/", r"\"", r"\\", r"\u0000", r"\u00e9", r"\ud83d\uDE00", r"\ufeff", r"\b"]
ODD = [
    "\x7f",
    "é",
    "降",
    "😀",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "\uffff",
    ":",
    "[",
    "}",
    " ",
    "0" * 20,
]
STRINGS = st.lists(st.sampled_from([*ESCAPES, *ODD, "a", "b"]), max_size=4).map(
    lambda parts: f'"{"".join(parts)}"'
)
NAMES = st.sampled_from(['"a"', '"b"', r'"\u0061"', '""']) | STRINGS  # often the same one twice


def joined(space: str, items: Sequence[str]) -> str:
    return f"{space},{space}".join(items)


TEXTS = st.recursive(
    NUMBERS | STRINGS | st.sampled_from(["null", "true", "false"]),
    lambda inner: (
        st.builds("[{0}{1}{0}]".format, SPACE, st.builds(joined, SPACE, st.lists(inner)))
        | st.builds(
            "{{{0}{1}{0}}}".format,
            SPACE,
            st.builds(joined, SPACE, st.lists(st.builds("{}:{}".format, NAMES, inner))),
        )
    ),
    max_leaves=12,
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """JSON with a few bytes taken out, put in or changed."""
    data = bytearray(draw(TEXTS).encode())
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        cut = draw(st.integers(0, 2))
        other = draw(st.sampled_from([b"", b'"', b"\\", b",", b"-", b"0", b".", b"e", b"]", b"\0"]))
        more = draw(
            st.sampled_from([b"", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\n", b"\x1f"])
        )
        data[place : place + cut] = other + more
    return bytes(data)


@given(TEXTS.map(str.encode) | damaged() | st.binary(max_size=30))
@settings(derandomize=True, deadline=None, max_examples=1000)
def test_what_orjson_reads_is_what_the_rule_reads(data: bytes) -> None:
    """Whenever orjson is asked and answers; in the types and the order of keys too."""
    if jsonline._has_long_number(data):
        event("long number: never asked")
        return
    try:
        wanted = orjson.loads(data)
    except orjson.JSONDecodeError:
        event("refused by orjson")
        return
    event("read by both")
    assert same(jsonline._by_the_rule(data), wanted)


@given(values)
@settings(derandomize=True, deadline=None, max_examples=300)
def test_both_writers_agree(written: Any) -> None:
    """Before orjson, with it, and where neither can: one spelling, but for decimals."""
    without = json.loads(json.dumps(written), parse_float=lambda digits: 0)
    assert compact(without) == compact_json(without) == orjson.dumps(without).decode()
    for odd in ("\ud800", 2**64, -(10**5000), "\x7f\x1f\u2028"):
        assert compact([odd, without]) == compact_json([odd, without])
    deep: Any = without
    for _ in range(2 * MAX_DEPTH):
        deep = [deep]
    assert compact(deep) == compact_json(deep)


def test_orjson_comes_in_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before ENOUGH bytes were read, and then for all that follows."""
    monkeypatch.setattr(jsonline, "_seen", 0)
    monkeypatch.setattr(jsonline, "_read", jsonline._first)
    monkeypatch.setattr(jsonline, "_write", jsonline._written)
    line = b'"' + b"x" * (ENOUGH // 4 - 2) + b'"'
    for _ in range(4):
        value(line)
    assert (jsonline._read, jsonline._write) == (jsonline._first, jsonline._written)
    assert value(b"[1]") == [1]
    assert (jsonline._read, jsonline._write) == (orjson.loads, orjson.dumps)


def test_a_few_lines_need_no_orjson() -> None:
    """In a process of its own: neither to be read nor to be written."""
    program = (
        "import sys; from sessionindex.jsonline import compact, strict, value\n"
        "value(compact(strict(b'[1]')).encode())\n"
        "sys.exit('orjson' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b" ", b"{", b'"\xff"', b"[NaN]", b"[" * 9000, b"\xef\xbb\xbf{}"),
        *(b"18446744073709551616", b"-9223372036854775809", b"1" * 5000),
    ],
)
def test_files_of_our_own_are_not_mended(data: bytes) -> None:
    with pytest.raises(ValueError):
        strict(data)
    assert strict(b' {"a":[1,"\xc3\xa9"]}\n') == {"a": [1, "é"]}
    for number in (2**64 - 1, -(2**63)):
        assert strict(b"%d" % number) == number
