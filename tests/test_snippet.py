"""Snippets: what is shown around a match, and where in it the match is said to be."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sessionindex.fold import folded, key
from sessionindex.snippet import WIDTH, cut, first_match
from sessionindex.text import BLANKS, squeeze

FAMILY = "👨\u200d👩\u200d👧"
ACCENT = "\u0301"
SPACES = re.compile(f"[{re.escape(BLANKS)}]+")


def marked(text: str, *terms: str, case: bool = False) -> str:
    """The snippet with its matches in brackets."""
    snippet, matches = cut(text, terms, case)
    for start, end in reversed(matches):
        snippet = f"{snippet[:start]}[{snippet[start:end]}]{snippet[end:]}"
    return snippet


@pytest.mark.parametrize(
    ("rule", "text", "terms", "shown"),
    [
        ("a short text is shown whole", "one two", ["two"], "one [two]"),
        ("case is folded on both sides", "One TWO", ["tWo"], "One [TWO]"),
        ("every match is shown", "a b a", ["a"], "[a] b [a]"),
        ("of every term", "a b c", ["c", "a"], "[a] b [c]"),
        ("overlapping ones are one", "abcd", ["abc", "bcd"], "[abcd]"),
        ("also those of one term", "aaa", ["aa"], "[aaa]"),
        ("touching ones are one", "abab", ["ab"], "[abab]"),
        ("one inside another too", "abcd", ["bc", "abcd"], "[abcd]"),
        ("white space is squeezed", "a\n\n\tb  c", ["b"], "a [b] c"),
        ("and trimmed", "\n a \ufeff", ["a"], "[a]"),
        ("a term is found across line breaks", "a\r\n  b c", ["a\r\n  b"], "[a b] c"),
        ("a match that begins inside a run begins at its blank", "a \n b", ["\n b"], "a[ b]"),
        ("a match inside a run is its blank", "a \n b", ["\n"], "a[ ]b"),
        ("a match that ends inside a run ends after its blank", "a \n b", ["a "], "[a ]b"),
        ("white space at the ends cannot be shown", "\nab \t", ["\n", "\t"], "ab"),
        ("nor does it spoil what it touches", "\nab \t", ["\na", "b \t"], "[ab]"),
        ("İ is two characters in lower case", "xİy İz", ["y"], "xİ[y] İz"),
        ("half of it is all of it", "xİy", ["xi"], "[xİ]y"),
        ("the other half too", "xİy", ["\u0307y"], "x[İy]"),
        ("many shift by their number", "İİİİ abc İ", ["abc", "i"], "[İİİİ] [abc] [İ]"),
        ("a sigma at the end of a word", "ΟΔΟΣ ΟΔΟΣΑ", ["οδος"], "[ΟΔΟΣ] ΟΔΟΣΑ"),
        ("astral characters count as one", "😀a😀", ["a"], "😀[a]😀"),
        ("no match shows the beginning", "abc", ["x"], "abc"),
        ("nothing shows nothing", "", ["x"], ""),
    ],
)
def test_short_texts(rule: str, text: str, terms: list[str], shown: str) -> None:
    assert marked(text, *terms) == shown, rule


def test_case_sensitive() -> None:
    """With case only the spelling asked for is a match."""
    assert marked("Ab ab", "ab", case=True) == "Ab [ab]"
    assert cut("AB", ["ab"], True) == ("AB", ())


def test_long_texts_are_cut_to_the_width() -> None:
    """Sixty characters before the match, ellipses where something was left out, 200 in all."""
    text = "a" * 100 + "X" + "b" * 300
    assert marked(text, "x") == "…" + "a" * 60 + "[X]" + "b" * 137 + "…"
    assert marked("X" + "b" * 199, "x") == "[X]" + "b" * 199
    assert marked("X" + "b" * 200, "x") == "[X]" + "b" * 198 + "…"
    assert marked("b" * 300 + "X", "x") == "…" + "b" * 60 + "[X]"


def test_a_match_wider_than_the_window_is_shown_as_far_as_it_goes() -> None:
    assert marked("a" + "X" * 300, "x" * 300) == "a[" + "X" * 198 + "]…"
    assert marked("a" * 61 + "X" * 300, "x" * 300) == "…" + "a" * 60 + "[" + "X" * 138 + "]…"


def test_white_space_makes_room_for_what_follows() -> None:
    """What squeezing takes away is filled up from behind."""
    snippet, matches = cut("x" + "\n" * 100 + "b" * 120, ["x"], False)
    assert snippet == "x " + "b" * 120
    assert matches == ((0, 1),)


def test_a_match_behind_more_blanks_than_the_window_holds() -> None:
    """A match that begins with blanks is shown by its first other character."""
    assert marked("a" + " " * 2000 + "b", " " * 1500 + "b").endswith("[b]")
    assert "[b" in marked("a" * 90 + " " * 2000 + "b" * 300, " " * 1500 + "b")


@pytest.mark.parametrize(
    ("rule", "cluster"),
    [
        ("a letter and its accents", "e" + ACCENT * 2),
        ("a family", FAMILY),
        ("a hand and its colour", "👍\U0001f3fd"),
        ("a heart and its variation", "❤\ufe0f"),
        ("a vowel sign that takes room", "\u0915\u093e"),
    ],
)
@pytest.mark.parametrize("shift", range(8))
def test_joined_characters_stay_together(rule: str, cluster: str, shift: int) -> None:
    """However the window falls, it shows whole clusters at both ends."""
    text = "-" * shift + cluster * 70 + "X" + cluster * 140
    snippet, matches = cut(text, ["x"], False)
    before, _, after = snippet.strip("…").lstrip("-").partition("X")
    assert before == cluster * (len(before) // len(cluster)), rule
    assert after == cluster * (len(after) // len(cluster)), rule
    assert len(after) > 100 and len(before) >= 60
    assert [snippet[start:end] for start, end in matches] == ["X"]


@pytest.mark.parametrize("count", [130, 190, 1000])
def test_a_match_is_shown_even_among_endless_marks(count: int) -> None:
    """Marks are parted from their letter where they would push the match out of the window."""
    for text in ("e" + ACCENT * count + "X", "X" + ACCENT * count, "X" + f"{FAMILY}\u200d" * count):
        snippet, matches = cut(text, ["x"], False)
        assert len(snippet) <= WIDTH
        assert [snippet[start:end] for start, end in matches] == ["X"]


@pytest.mark.parametrize(
    ("text", "terms", "span"),
    [
        ("abcabc", ["bc"], (1, 3)),
        ("abcabc", ["c", "b"], (1, 2)),
        ("abcabc", ["b", "bca"], (1, 4)),
        ("İİabc", ["BC"], (3, 5)),
        ("xİ", ["\u0307"], (1, 2)),
        ("xİİ", ["\u0307i"], (1, 3)),
        ("abc", ["x"], None),
    ],
)
def test_first_match(text: str, terms: list[str], span: tuple[int, int] | None) -> None:
    """The earliest place, the longest there, counted in the text as it is."""
    assert first_match(text, terms, False) == span


# --- any text ----------------------------------------------------------------------------------

LETTERS = ["a", "b", "A", "İ", "i", "\u0307", "Σ", "σ", "ς", "😀", "é", "\u212a", "k", "ß"]
WHITE = [" ", "\n", "\t", "\u00a0", "  ", " \n "]
JOINED = [ACCENT, "\u200d", "\U0001f3fd", FAMILY]
pieces = st.sampled_from(LETTERS * 2 + WHITE * 2 + JOINED)
short = st.lists(pieces, max_size=12).map("".join)
runs = st.tuples(pieces, st.sampled_from([1, 1, 2, 59, 60, 61, 150, 500])).map(
    lambda r: r[0] * r[1]
)
texts = st.lists(st.one_of(short, short, runs), max_size=8).map("".join)


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[str], bool]:
    text = draw(texts)
    case_sensitive = draw(st.booleans())
    change = str if case_sensitive else draw(st.sampled_from([str, str.lower, str.upper]))
    terms = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(0, len(text) - 1)))
        length = draw(st.one_of(st.integers(1, 5), st.integers(1, 300)))
        terms.append(change(text[start : start + length]) or "x")
    return text, terms, case_sensitive


@given(questions())
@example(("\u0301" * 500 + "a", ["a"], False))
@settings(derandomize=True, deadline=None, max_examples=600)
def test_every_snippet(question: tuple[str, list[str], bool]) -> None:
    """Width, order, and that a match is shown where a term with more than white space is there."""
    text, terms, case_sensitive = question
    snippet, matches = cut(text, terms, case_sensitive)
    assert len(snippet) <= WIDTH
    assert squeeze(snippet) == snippet
    assert snippet.removeprefix("…").removesuffix("…") in squeeze(text)
    borders = [place for span in matches for place in span]
    assert borders == sorted(set(borders))  # ascending, not empty, not touching
    assert all(0 <= start < end <= len(snippet) for start, end in matches)
    low = folded(text, case_sensitive)
    found = [term for term in terms if folded(term, case_sensitive) in low]
    if found and all(term.strip(BLANKS) for term in found):
        assert matches


@given(questions())
@settings(derandomize=True, deadline=None, max_examples=600)
def test_a_range_shows_its_term(question: tuple[str, list[str], bool]) -> None:
    """A range begins with its term, squeezed, and ends with it; half an İ is shown as all of it.

    Where the window cuts a range, it shows the beginning of its term. Blanks at the ends of the
    text are not shown.
    """
    text, (term, *_), case_sensitive = question
    fold = str if case_sensitive else key
    snippet, matches = cut(text, [term], case_sensitive)
    for start, end in matches:
        shown, wanted = snippet[start:end], fold(SPACES.sub(" ", term))
        if wanted == " ":
            assert shown == " "
            continue
        if start <= 1:
            shown, wanted = shown.lstrip(" "), wanted.lstrip(" ")
        if end >= len(snippet) - 1:
            shown, wanted = shown.rstrip(" "), wanted.rstrip(" ")
        low, first, last = fold(shown), len(fold(shown[0])), len(fold(shown[-1]))
        if end == len(snippet) - 1 and snippet[end] == "…":
            rests = [low[at:] for at in range(first)]
            assert any(rest.startswith(wanted) or wanted.startswith(rest) for rest in rests)
        else:
            assert 0 <= low.find(wanted) < first
            assert low.rfind(wanted) + len(wanted) > len(low) - last
