"""Case and grams: whatever the needle and the text, the index cannot miss."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sessionindex.fold import GRAM, PAD, folded, grams, key, token, told


@pytest.mark.parametrize(
    ("text", "gram_key"),
    [
        ("", ""),
        ("Abc", "abc"),
        ("ÀÉ", "àé"),
        ("ΟΔΟΣ ΟΔΟΣΑ", "οδοσ οδοσα"),
        ("ς", "σ"),
        ("İ", "i\u0307"),
        ("ı", "ı"),
        ("\u212aK", "kk"),
        ("\u212b", "å"),
        ("ẞß", "ßß"),
        ("ﬁ", "ﬁ"),
        ("ſ", "ſ"),
        ("ǅǄ", "ǆǆ"),
        ("中😀", "中😀"),
        ("a\ud800B", "a\ufffdb"),
        ("\udc00\ud83d", "\ufffd\ufffd"),
        ("\ufffd", "\ufffd"),
        ("\0", "\0"),
    ],
)
def test_key(text: str, gram_key: str) -> None:
    """Lower case with one sigma, and nothing that tantivy refuses."""
    assert key(text) == gram_key


@pytest.mark.parametrize(
    ("needle", "found"),
    [
        ("", ()),
        ("ab", ()),
        ("ABC", ("abc",)),
        ("abcd", ("abc", "bcd")),
        ("aaaaa", ("aaa",)),
        ("abcabc", ("abc", "bca", "cab")),
        ("İs", ("i\u0307s",)),
        ("😀中é", ("😀中é",)),
        ("ΣΑΣ", ("σασ",)),
    ],
)
def test_grams(needle: str, found: tuple[str, ...]) -> None:
    """Three characters each, distinct, in order; none of a needle that is shorter."""
    assert grams(needle) == found


def test_folding_is_lower_case_of_one_side_alone() -> None:
    """No casefold: ß stays itself, and a final sigma is not an ordinary one."""
    assert folded("AbΣ", True) == "AbΣ"
    assert folded("AbΣ", False) == "abς"
    assert folded("ß", False) not in folded("SS", False)
    assert folded("ΟΔΟΣ", False) not in folded("ΟΔΟΣΑ", False)


LETTERS = [
    "a",
    "B",
    "İ",
    "i",
    "\u0307",
    "Σ",
    "σ",
    "ς",
    " ",
    "'",
    "\ud800",
    "\ufffd",
    "ß",
    "😀",
    "\u212a",
]


@given(st.lists(st.sampled_from(LETTERS), min_size=1).map("".join), st.data())
@settings(derandomize=True, deadline=None, max_examples=500)
def test_a_needle_that_occurs_has_its_grams_in_the_text(text: str, data: st.DataObject) -> None:
    """With case or without; a short needle begins a gram of the padded text."""
    start = data.draw(st.integers(0, len(text) - 1))
    change = data.draw(st.sampled_from([str, str.lower, str.upper, str.swapcase, str.title]))
    needle = change(text[start : data.draw(st.integers(start + 1, len(text)))])
    # Another case may be what is not there (a sigma, an İ).
    assume(needle in text or folded(needle, False) in folded(text, False))
    padded = key(text) + PAD
    stored = {padded[at : at + GRAM] for at in range(len(padded) - GRAM + 1)}
    assert key(needle) in key(text)
    assert set(grams(needle)) <= stored
    if len(key(needle)) < GRAM:
        assert any(gram.startswith(key(needle)) for gram in stored)


@pytest.mark.parametrize("text", ["a", "0f9e8d7c", "~" * 8, "x y"])
def test_short_tokens_are_told_back(text: str) -> None:
    """Ids as Pi writes them are exact: equal tokens are equal ids."""
    assert told(token(text)) == text


@pytest.mark.parametrize("text", ["", "0f9e8d7c1", "é", "a\0", "\0", "\ud800", "x" * 1000])
def test_other_tokens_are_digests(text: str) -> None:
    assert token(text) >> 63 == 1
    assert told(token(text)) is None


@given(st.text(max_size=10))
def test_tokens_fit_their_columns(text: str) -> None:
    """Zero stays free, and 64 bits are enough."""
    assert 0 < token(text) < 2**64
    assert told(token(text)) in (text, None)
    assert told(0) is None
