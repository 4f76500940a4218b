"""JavaScript's text, spelled by Python: white space, previews, numbers, JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex.text import (
    BLANKS,
    compact_json,
    is_blank,
    number,
    preview,
    quoted,
    scalar,
    spelled,
    squeeze,
)

WHITE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
WHITE += "\u2028\u2029\u202f\u205f\u3000\ufeff"


def test_white_space_is_javascripts() -> None:
    """These 25 characters and no other, at any height of Unicode."""
    assert sorted(BLANKS) == sorted(WHITE)
    assert [c for c in map(chr, range(0x110000)) if is_blank(c)] == sorted(WHITE)


@pytest.mark.parametrize("character", ["\x1c", "\x1f", "\x85", "\u180e", "\u200b", "\u2060", "\0"])
def test_what_only_python_or_nobody_calls_white(character: str) -> None:
    assert not is_blank(character)
    assert squeeze(f" {character} ") == character


def test_blank_is_nothing_but_white_space() -> None:
    assert is_blank("")
    assert is_blank(WHITE)
    assert not is_blank(WHITE + "x" + WHITE)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        (" ", ""),
        (WHITE, ""),
        ("a", "a"),
        ("a b", "a b"),
        ("a" + WHITE + "b", "a b"),
        ("\ufeff a\r\n\r\n b\u2028", "a b"),
        ("a\x85b", "a\x85b"),
    ],
)
def test_squeeze(text: str, short: str) -> None:
    """A run of white space is one blank, and none at the ends."""
    assert squeeze(text) == short


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("", 5, ""),
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "abcd…"),
        (" abcde\n", 5, "abcde"),
        ("ab\n\n\ncd", 5, "ab cd"),
        ("abc  def", 5, "abc …"),
        ("😀😀😀", 3, "😀😀😀"),
        ("😀😀😀", 2, "😀…"),
        ("ab", 1, "…"),
    ],
)
def test_preview(text: str, limit: int, short: str) -> None:
    """Squeezed first, then cut by characters, the ellipsis counted."""
    assert preview(text, limit) == short


# What node prints for JSON.stringify(JSON.parse(...)) of these.
NUMBERS = [
    ("0", "0"),
    ("-0", "0"),
    ("0.0", "0"),
    ("-0.0", "0"),
    ("0e10", "0"),
    ("1", "1"),
    ("-1", "-1"),
    ("1.0", "1"),
    ("-1.0", "-1"),
    ("10", "10"),
    ("100", "100"),
    ("1.5", "1.5"),
    ("-1.5", "-1.5"),
    ("0.1", "0.1"),
    ("0.5", "0.5"),
    ("0.25", "0.25"),
    ("100.0", "100"),
    ("123.456", "123.456"),
    ("1e0", "1"),
    ("1E2", "100"),
    ("1e2", "100"),
    ("1e+2", "100"),
    ("1e-2", "0.01"),
    ("12e-1", "1.2"),
    ("0.1e1", "1"),
    ("1e20", "100000000000000000000"),
    ("1e21", "1e+21"),
    ("1.5e21", "1.5e+21"),
    ("123456789012345680000.0", "123456789012345680000"),
    ("999999999999999900000.0", "999999999999999900000"),
    ("1e22", "1e+22"),
    ("1e23", "1e+23"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("5e-324", "5e-324"),
    ("4.9e-324", "5e-324"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("1e-5", "0.00001"),
    ("1e-6", "0.000001"),
    ("1.5e-6", "0.0000015"),
    ("1e-7", "1e-7"),
    ("1.5e-7", "1.5e-7"),
    ("1.25e-7", "1.25e-7"),
    ("0.000001", "0.000001"),
    ("0.0000001", "1e-7"),
    ("0.00001234", "0.00001234"),
    ("0.000001234", "0.000001234"),
    ("0.0000001234", "1.234e-7"),
    ("-1e-7", "-1e-7"),
    ("-1e21", "-1e+21"),
    ("3.141592653589793", "3.141592653589793"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("9007199254740991", "9007199254740991"),
    ("9007199254740992.0", "9007199254740992"),
    ("4503599627370496.5", "4503599627370496"),
    ("1234567890.125", "1234567890.125"),
    ("1e15", "1000000000000000"),
    ("1e16", "10000000000000000"),
    ("1e17", "100000000000000000"),
    ("123e-20", "1.23e-18"),
    ("123e20", "1.23e+22"),
    ("1.0000000000000002", "1.0000000000000002"),
    ("1e100", "1e+100"),
    ("-2.5e-10", "-2.5e-10"),
    ("6.02214076e23", "6.02214076e+23"),
    ("0.1e-6", "1e-7"),
    ("1e-400", "0"),
]


@pytest.mark.parametrize(("spelled", "javascript"), NUMBERS)
def test_numbers_are_spelled_as_javascript_does(spelled: str, javascript: str) -> None:
    assert number(json.loads(spelled)) == javascript


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (2**53 + 1, "9007199254740993"),
        (12345678901234567890, "12345678901234567890"),
        (-(10**21), "-1" + "0" * 21),
        (10**5000, "1" + "0" * 5000),
        (-(10**5000) - 1, "-1" + "0" * 4999 + "1"),
        (10**8000 + 7 * 10**4000, "1" + "0" * 3999 + "7" + "0" * 4000),
        (10**4000 - 1, "9" * 4000),
        (10**4000, "1" + "0" * 4000),
        (-(10**4000), "-1" + "0" * 4000),
        (float("nan"), "null"),
        (float("inf"), "null"),
        (float("-inf"), "null"),
    ],
    ids=lambda value: "" if isinstance(value, int) else None,
)
def test_what_javascript_has_no_number_for(value: int | float, spelled: str) -> None:
    """Integers are exact at any size; what is no number is null."""
    assert number(value) == spelled


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_a_spelled_number_reads_back(value: float) -> None:
    spelled = number(value)
    assert float(spelled) == value
    assert number(float(spelled)) == spelled
    assert "E" not in spelled and not spelled.startswith((".", "+"))


@pytest.mark.parametrize(
    ("text", "json_text"),
    [
        ("", '""'),
        ("a/b", '"a/b"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\0\x01\v\x1f", '"\\u0000\\u0001\\u000b\\u001f"'),
        ("\x7f\x80\u2028\ufeff\ufffd", '"\x7f\x80\u2028\ufeff\ufffd"'),
        ("é中😀", '"é中😀"'),
        ("\ud83d", '"\\ud83d"'),
        ("a\udbffb\udc00", '"a\\udbffb\\udc00"'),
        ("\udfff", '"\\udfff"'),
    ],
)
def test_strings_are_quoted_as_javascript_does(text: str, json_text: str) -> None:
    """Quotes, backslashes, control characters and lone surrogates are escaped, nothing else."""
    assert quoted(text) == scalar(text) == compact_json(text) == json_text


@pytest.mark.parametrize(
    ("value", "compact"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        ([], "[]"),
        ({}, "{}"),
        ([[], {}, [[]]], "[[],{},[[]]]"),
        ([1, "a", None, True, 1.5], '[1,"a",null,true,1.5]'),
        ({"b": 1, "a": [2, {"c": {}}]}, '{"b":1,"a":[2,{"c":{}}]}'),
        ({"10": 1, "9": 2, "": 3}, '{"10":1,"9":2,"":3}'),
        ({'a"\n': "\ud800"}, '{"a\\"\\n":"\\ud800"}'),
        (["[", "]", "{", "}", ","], '["[","]","{","}",","]'),
        ({"n": 12345678901234567890}, '{"n":12345678901234567890}'),
        ([float("inf"), 1e21], "[null,1e+21]"),
    ],
)
def test_compact_json(value: Any, compact: str) -> None:
    """No blanks, the key order of the file, also of keys that JavaScript would sort."""
    assert compact_json(value) == compact


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_compact_json_of_any_depth(depth: int) -> None:
    """Nothing recurses."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": [value]}
    assert compact_json(value) == '{"a":[' * depth + "1" + "]}" * depth
    while isinstance(value, dict):  # taken apart by hand: so deep a value is slow to free
        value = value["a"].pop()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_compact_json_is_what_json_writes(value: Any) -> None:
    """Without decimals it is the standard library's own compact form."""
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("as is", "as is"),
        ({"a": 1}, "[object Object]"),
        ([], ""),
        ([1, None, True, "x", [2, []], {}], "1,,true,x,2,,[object Object]"),
        (3, "3"),
        (3.0, "3"),
        (1.5, "1.5"),
        (-0.0, "0"),
        (-0.25, "-0.25"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (1e16, "10000000000000000"),
        (1e21, "1e+21"),
        (1.5e300, "1.5e+300"),
        (12345678901234567890, "12345678901234567000"),
        pytest.param(10**400, "Infinity", id="beyond double"),
        pytest.param(-(10**400), "-Infinity", id="below double"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_values_are_spelled_as_javascript_spells_them(value: object, text: str) -> None:
    assert spelled(value) == text


def test_nesting_of_any_depth_can_be_spelled() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    assert spelled(deep) == "x"
