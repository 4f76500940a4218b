"""Needles that are cut at random, from a seed, from the texts of a store.

Texts are those that a search looks at by default: what users and assistants say and what tools
answer. A place is drawn among all bytes of the store, and the line after it is taken, so that
long lines count for no more than short ones and no file has to be read whole.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import orjson
from corpus_text import ENGLISH

COMMON_WORDS = "|".join(ENGLISH.split()[:100])
ENGLISH_RUN = re.compile(rf"\b(?:(?:{COMMON_WORDS}) ){{4,}}")
PHRASE = 12  # characters


def _searched(entry: dict[str, Any]) -> str:
    message = entry.get("message", {})
    if message.get("role") not in ("user", "assistant", "toolResult"):
        return ""
    texts = [block["text"] for block in message["content"] if block["type"] == "text"]
    return max(texts, key=len, default="")


def texts(root: str, rng: Random) -> Iterator[str]:
    """Texts of entries at random places, without end."""
    paths = sorted(Path(root).rglob("*.jsonl"))
    ends = list(accumulate(path.stat().st_size for path in paths))
    while True:
        place = rng.randrange(ends[-1])
        number = bisect(ends, place)
        with paths[number].open("rb") as file:
            file.seek(place - (ends[number - 1] if number else 0))
            file.readline()
            if found := file.readline():
                yield _searched(orjson.loads(found))


def needles(root: str, count: int, seed: int = 1) -> list[str]:
    """That many different cuts of 4 to 40 characters, none of them blank."""
    rng = Random(f"{seed} needles")
    found: dict[str, None] = {}
    for text in texts(root, rng):
        length = rng.randint(4, 40)
        if len(text) > length:
            start = rng.randrange(len(text) - length)
            cut = text[start : start + length]
            if cut.strip():
                found[cut] = None
        if len(found) == count:
            break
    return list(found)


def phrases(root: str, count: int, seed: int = 1) -> list[str]:
    """That many different cuts of 12 characters from common English words in a row.

    All of their grams are frequent, and few of the entries that have them hold the phrase.
    """
    rng = Random(f"{seed} phrases")
    found: dict[str, None] = {}
    for text in texts(root, rng):
        runs = ENGLISH_RUN.findall(text)
        if runs and len(run := rng.choice(runs)) > PHRASE:
            start = rng.randrange(len(run) - PHRASE)
            cut = run[start : start + PHRASE]
            if cut == cut.strip():
                found[cut] = None
        if len(found) == count:
            break
    return list(found)
