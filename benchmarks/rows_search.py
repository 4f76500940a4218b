"""Rows about searches: whole processes against ripgrep, and the library against the brute path.

Whole processes are `python -m sessionindex search LITERAL`, a first page, against `rg -F -i` over
the same root. Ripgrep sees no escapes and refuses a line break, so it is given the literal with
quotes and a line break as JSON spells it. What is about scanning is measured at a size at which a
start would not matter, and in process: our library call against the whole process of `rg -j1`.
Each answer is compared with what was planted, or with the brute path, before it is timed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from corpus_session import COMMON
from cuts import phrases
from figures import Figure, Row, Size
from reference import NO_RIPGREP, call, has_ripgrep, nothing, process, ripgrep, sees, spelled
from stores import HUGE, LARGE, MIDDLE, SMALL, Stores

RARE = "xq-needle-once"
ABSENT = "no such thing anywhere"
QUOTED = 'xq "needle"\nquoted'
PAGE: dict[str, Any] = {"count": "page", "limit": 50}

# --- the command line -----

SHORT = 3
"""Processes of some 50 ms are run this much oftener: on a shared machine seven of them are few."""

LITERALS = {"rare": RARE, "absent": ABSENT, "quoted": QUOTED}
BOUNDS = {SMALL: 0.5, MIDDLE: 1.5, HUGE: 6}
PROCESSES = tuple(
    Row(
        f"{kind}_rg_{size.megabytes:g}",
        f"{kind} literal at {size.megabytes:,g} MB, whole process: speed against `rg -F -i`",
        "x",
        target,
        True,
        size,
    )
    for size, target in BOUNDS.items()
    for kind in LITERALS
)


def processes(stores: Stores) -> Iterator[Figure]:
    """A first page on the command line against ripgrep, at three sizes."""
    if not has_ripgrep():
        yield from (Figure(row, None, NO_RIPGREP) for row in PROCESSES)
        return
    known: dict[tuple[str, Size], list[float]] = {}  # a smaller run has fewer sizes than rows
    for row in PROCESSES:
        assert row.size is not None
        kind, size = row.name.split("_")[0], stores.fitted(row.size)
        if (kind, size) not in known:
            known[kind, size] = _against_ripgrep(stores, size, LITERALS[kind])
        ours, theirs = known[kind, size]
        detail = f"{ours * 1e3:.0f} ms, rg {theirs * 1e3:.0f} ms"
        if kind == "quoted":
            detail += " (given it as JSON spells it)"
        yield Figure(row, theirs / ours, detail, size)


def _against_ripgrep(stores: Stores, size: Size, term: str) -> list[float]:
    stores.opened(size)
    ours = stores.command(size, term)
    theirs = ripgrep(stores.store(size).root, spelled(term))
    if not sees(ours) == sees(theirs) == (term != ABSENT):
        raise SystemExit(f"ours and ripgrep do not agree about {term!r}")
    return stores.in_turn(lambda: process(ours), lambda: process(theirs), runs=SHORT * stores.runs)


FIRST_PAGE = (
    Row("common_in_rare", "first page of a very common literal, whole process: in rare ones", "x",
        2, False, LARGE),
)  # fmt: skip


def first_page(stores: Stores) -> Iterator[Figure]:
    """What a common literal costs more than a rare one, newest first."""
    size = stores.fitted(LARGE)
    stores.opened(size)
    common, rare = (stores.command(size, term) for term in (COMMON, RARE))
    ours, others = stores.in_turn(
        lambda: process(common), lambda: process(rare), runs=SHORT * stores.runs
    )
    detail = f"{ours * 1e3:.0f} ms, rare {others * 1e3:.0f} ms"
    yield Figure(FIRST_PAGE[0], ours / others, detail, size)


START = (
    Row("start", "search of an empty root, in `python -c pass`", "x", 6, False),
    Row("rare_command", "a rare literal, whole process, in `python -c pass`", "x", 8, False, SMALL),
)


def start(stores: Stores) -> Iterator[Figure]:
    """The command line against a Python that does nothing."""
    with tempfile.TemporaryDirectory(prefix="bench-empty-") as folder:
        root = Path(folder, "sessions")
        root.mkdir()
        command = [sys.executable, "-m", "sessionindex", "search", "x"]
        command += ["--root", str(root), "--index-dir", f"{folder}/index"]
        process(command)
        ours, python = stores.in_turn(lambda: process(command), nothing)
    detail = f"{ours * 1e3:.0f} ms, python {python * 1e3:.0f} ms"
    yield Figure(START[0], ours / python, detail)
    size = stores.fitted(SMALL)
    stores.opened(size)
    rare = stores.command(size, RARE)
    ours, python = stores.in_turn(lambda: process(rare), nothing)
    detail = f"{ours * 1e3:.0f} ms, python {python * 1e3:.0f} ms"
    yield Figure(START[1], ours / python, detail, size)


# --- the library -----

# Name, literal, what is planted for it (a part of a planted text is held by the same entries),
# filters, and at least how much faster than the brute path.
SEARCHES: tuple[tuple[str, str, str | None, dict[str, Any], float | None], ...] = (
    ("rare", RARE, RARE, PAGE, None),
    ("absent", ABSENT, None, PAGE, None),
    ("quoted", QUOTED, QUOTED, PAGE, None),
    ("common page", COMMON, COMMON, PAGE, None),
    ("common exact", COMMON, COMMON, {"count": "exact", "limit": 1}, 1),
    ("cjk two", "鑫鱻", "鑫鱻", PAGE, 2),
    ("cjk one", "鱻", "鑫鱻", PAGE, 2),
    ("symbol two", "^~", "^~", PAGE, 2),
    ("symbol one", "^", "^~", PAGE, 2),
)
WORDS = {
    "common page": "a very common literal, first page",
    "common exact": "a very common literal, exact count",
    "cjk two": "a rare literal of two CJK characters",
    "cjk one": "a rare literal of one CJK character",
    "symbol two": "a rare literal of two symbols",
    "symbol one": "a rare literal of one symbol",
}
SEARCH_ROWS = tuple(
    Row(f"{name.replace(' ', '_')}_brute",
        f"{WORDS.get(name, f'{name} literal')}: speed against the brute path", "x", target, True,
        SMALL)
    for name, _, _, _, target in SEARCHES
)  # fmt: skip


def searches(stores: Stores) -> Iterator[Figure]:
    """Literals against the brute path, in one process."""
    size = stores.fitted(SMALL)
    index, store = stores.opened(size), stores.store(size)
    known = {needle.text: needle.count for needle in store.needles}
    for row, (_, term, planted, filters, _) in zip(SEARCH_ROWS, SEARCHES, strict=True):
        exact, expected = index.search(term).total, known[planted] if planted else 0
        if exact != expected:
            raise SystemExit(f"{term!r}: {exact} hits instead of {expected}")

        def timed(brute: bool, term: str = term, filters: dict[str, Any] = filters) -> float:
            return call(index.search, term, brute=brute, **filters)

        ours, brute = stores.in_turn(lambda: timed(False), lambda: timed(True))
        detail = f"{ours * 1e3:.1f} ms, brute {brute * 1e3:.0f} ms"
        yield Figure(row, brute / ours, detail, size)


BRUTE = (
    Row("brute_rg", "the brute path, in process: speed against `rg -F -i -j1`", "x", 0.4, True,
        LARGE),
)  # fmt: skip


def brute_path(stores: Stores) -> Iterator[Figure]:
    """Reading everything against ripgrep on one thread."""
    if not has_ripgrep():
        yield Figure(BRUTE[0], None, NO_RIPGREP)
        return
    size = stores.fitted(LARGE)
    index, root = stores.opened(size), stores.store(size).root
    theirs = ripgrep(root, RARE, "-j1")
    ours, other = stores.in_turn(
        lambda: call(index.search, RARE, brute=True, **PAGE), lambda: process(theirs)
    )
    detail = f"{ours * 1e3:.0f} ms, rg {other * 1e3:.0f} ms"
    yield Figure(BRUTE[0], other / ours, detail, size)


PHRASES = (
    Row("phrases_rg", "phrases of common words, exact count: speed against `rg -F -i -j1`", "x",
        1, True, LARGE),
    Row("phrases_rg_process", "the same, our whole process too", "x", None, True, LARGE),
)  # fmt: skip


def many_candidates(stores: Stores) -> Iterator[Figure]:
    """Phrases whose grams are all frequent: medians of the ratios of 50 cuts at random."""
    if not has_ripgrep():
        yield from (Figure(row, None, NO_RIPGREP) for row in PHRASES)
        return
    size = stores.fitted(LARGE)
    index, root = stores.opened(size), stores.store(size).root
    rows = []
    for phrase in phrases(root, 3 if stores.quick else 50):
        theirs = ripgrep(root, phrase, "-j1", "-c")
        command = stores.command(size, "-c", "-e", phrase)
        rows.append(
            (
                call(index.search, phrase, count="exact", limit=1),
                process(theirs),
                process(command),
            )
        )
    ours, other, whole = (median(column) for column in zip(*rows, strict=True))
    ratios = sorted(row[1] / row[0] for row in rows)
    detail = f"{ours * 1e3:.0f} ms, rg {other * 1e3:.0f} ms, {len(rows)} phrases, "
    detail += f"slowest {ratios[0]:.2f}"
    yield Figure(PHRASES[0], median(ratios), detail, size)
    detail = f"{whole * 1e3:.0f} ms, rg {other * 1e3:.0f} ms"
    yield Figure(PHRASES[1], median(row[1] / row[2] for row in rows), detail, size)
