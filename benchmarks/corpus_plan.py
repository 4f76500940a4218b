"""The plan of a made-up store: its files, their sizes and families, and where needles are due.

Sizes follow a log-normal curve through the median and the 90th percentile of real sessions. A
family is a session with its delegated runs and its forks, in the folders where Pi puts them. All
of it is drawn before the first file is written, so each file can have its own random stream.
"""

from __future__ import annotations

from base64 import b64encode
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from random import Random
from statistics import NormalDist

from corpus_text import invented

HOME = "/home/dev"
FIRST_DAY = int(datetime(2025, 8, 15, tzinfo=UTC).timestamp() * 1000)
YEAR_MS = 365 * 86_400_000
MEDIAN_BYTES, P90_BYTES = 220_000, 1_700_000
ENTRY_BYTES = 3_200  # the mean line of real sessions

# Text, the most entries it is planted in, and how many entries of a corpus go for one of them.
NEEDLES = (
    ("xq-needle-once", 1, 0),
    ("xq-needle-ten", 10, 10),
    ("xq-needle-hundred", 100, 8),
    ('xq "needle"\nquoted', 20, 40),
    ("鑫鱻", 5, 60),
    ("^~", 7, 50),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One file to write, decided before anything is drawn for it."""

    path: str  # below the root
    cwd: str
    id: str
    start_ms: int
    size: int
    forks: int | None = None  # the number of the plan it forks
    shared: int = 0  # the bytes at its start that forks may copy
    runs: tuple[str, ...] = ()  # run ids of its delegated runs


def _sizes(rng: Random, total: int, files: int | None) -> list[int]:
    """Log-normal sizes with that sum, in random order."""
    curve = NormalDist()
    power = 1 / curve.inv_cdf(0.9)

    def drawn(count: int) -> list[float]:
        places = (curve.inv_cdf((i + 0.5) / count) * power for i in range(count))
        return [MEDIAN_BYTES * (P90_BYTES / MEDIAN_BYTES) ** place for place in places]

    if files is None:
        guess = max(64, total // 800_000)
        mean = sum(drawn(guess)) / guess
        files = max(round(total / mean), min(6, total // 100_000), 1)
    sizes = drawn(files)
    scale = total / sum(sizes)
    rng.shuffle(sizes)
    return [max(1, int(size * scale)) for size in sizes]


def plans(rng: Random, total: int, files: int | None) -> list[Plan]:
    """The files of a store of that many bytes, parents before what they delegate and fork."""
    sizes = _sizes(rng, total, files)
    words = invented(rng, 2 * (len(sizes) // 30 + 3))
    projects = [f"{a}-{b}" for a, b in zip(words[::2], words[1::2], strict=True)]
    plans: list[Plan] = []
    while len(plans) < len(sizes):
        left = len(sizes) - len(plans) - 1
        # The first session delegates, so that small stores have children too.
        delegates = not plans or rng.random() < 0.1
        forks = min(rng.choice((1, 1, 2)) if delegates else 0, left)
        runs = min(rng.randrange(1, 5) if delegates else 0, left - forks)
        family = sizes[len(plans) : len(plans) + 1 + runs + forks]
        plans += _family(rng, rng.choice(projects), len(plans), family, runs)
    return plans


def _family(rng: Random, project: str, number: int, sizes: list[int], runs: int) -> list[Plan]:
    """A session, then its delegated runs, then its forks; `number` is the session's own."""
    cwd, folder = f"{HOME}/src/{project}", f"--home-dev-src-{project}--"
    start = FIRST_DAY + rng.randrange(YEAR_MS)
    ident = uuid(rng, start)
    stem = f"{folder}/{_stem(start, ident)}"
    size, run_sizes, fork_sizes = sizes[0], sizes[1 : 1 + runs], sizes[1 + runs :]
    children: list[Plan] = []
    run_ids: list[str] = []
    for i, child_size in enumerate(run_sizes):
        later = start + rng.randrange(60_000, 3_600_000)
        if i % 2 == 0:  # two parallel runs for one call
            run_ids.append(uuid(rng, later))
        path = f"{stem}/{run_ids[-1]}/run-{i % 2}/session.jsonl"
        children.append(Plan(path, cwd, uuid(rng, later), later, child_size))
    for child_size in fork_sizes:
        later = start + rng.randrange(60_000, 3_600_000)
        own = uuid(rng, later)
        path = f"{stem}/forks/{_stem(later, own)}.jsonl"
        children.append(Plan(path, cwd, own, later, child_size, forks=number))
    shared = min(size, max(fork_sizes)) // 2 if fork_sizes else 0
    parent = Plan(f"{stem}.jsonl", cwd, ident, start, size, shared=shared, runs=tuple(run_ids))
    return [parent, *children]


def _stem(ms: int, ident: str) -> str:
    return iso(ms).replace(":", "-").replace(".", "-") + "_" + ident


def places(rng: Random, sizes: Sequence[int]) -> list[list[tuple[int, str]]]:
    """For each file the offsets from which a needle is due, rising."""
    ends = list(accumulate(sizes))
    places: list[list[tuple[int, str]]] = [[] for _ in sizes]
    for text, most, spared in NEEDLES:
        count = min(most, ends[-1] // ENTRY_BYTES // spared) if spared else most
        for offset in (rng.randrange(ends[-1]) for _ in range(count)):
            number = bisect(ends, offset)
            places[number].append((offset - ends[number] + sizes[number], text))
    return [sorted(due) for due in places]


def base64(rng: Random, length: int) -> str:
    """About so many characters of a signature or an image."""
    return b64encode(rng.randbytes(length * 3 // 4)).decode()


def uuid(rng: Random, ms: int) -> str:
    """A UUID of version 7 of that instant."""
    tail = rng.randbytes(10).hex()
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7{tail[:3]}-a{tail[3:6]}-{tail[6:18]}"


def iso(ms: int) -> str:
    """The instant as Pi writes it."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment.replace(tzinfo=None).isoformat()}.{ms % 1000:03d}Z"
