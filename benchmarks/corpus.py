"""Write a store of made-up Pi sessions of any size: seeded, fast, shaped like real ones.

Goal: what a search meets in real stores (sizes, entry kinds, byte shares, repeated details, long
signatures, delegated runs, forks) without a word of anybody's sessions, and needles whose number
of entries is known exactly.

Rules:
- The same seed and sizes give the same bytes below any root; each file has its own random stream.
- No text is cut from a pool: words, names and hashes are drawn afresh for each text by looking up
  random bytes in tables, so that a cut of twelve characters is mostly rare. A session does read
  its own documents again, and details repeat their result, as in real stores.
- A text says again what it said already: of one length, texts have 5 to 20 % more different runs
  of three characters than those of real sessions (30 to 45 % more where every word is drawn anew).
- A needle stands in a text searched by default: a user's, an assistant's or a tool result's. The
  entries a fork copies from its parent hold none, so none is counted twice.
- A planned needle is always planted: its file goes on until it is.
- A fork's `parentSession` names a path of the made-up home, not of the root written to.

`corpus_plan` decides the files, `corpus_session` makes the lines of one, `corpus_text` the words.

Left out: older session versions, damaged lines, files that are no sessions; the tests have those.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from dataclasses import asdict, dataclass
from random import Random

import orjson
from corpus_plan import FIRST_DAY, HOME, NEEDLES, iso, places, plans, uuid
from corpus_session import COMMON, Entry, Session
from corpus_text import Stock

EDITION = 2
"""Of the words: a store that was made of other words is made anew."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A planted text and the number of entries that hold it."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was written below `root`; `entries` leaves the headers out."""

    root: str
    files: int
    entries: int
    bytes: int
    needles: tuple[Needle, ...]


def write(root: str, *, megabytes: float, seed: int = 1, files: int | None = None) -> Corpus:
    """Write a store of about that many megabytes below `root`, and say what is in it.

    `files` counts every session file, delegated runs and forks included; without it the sizes
    decide. Files already below `root` are not looked at.
    """
    total = int(megabytes * 1_000_000)
    planned = plans(Random(f"{seed} plan"), total, files)
    needles = places(Random(f"{seed} needles"), [plan.size for plan in planned])
    stock = Stock(seed)
    planted: Counter[str] = Counter()
    shared: dict[int, list[bytes]] = {}  # of the plans with forks: what these may copy
    entries = written = 0
    for number, plan in enumerate(planned):
        session = Session(stock, plan, Random(f"{seed} file {number}"), needles[number])
        path = os.path.join(root, plan.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb", buffering=1 << 20) as out:
            if plan.forks is None:
                out.write(session.header(None))
            else:
                parent = f"{HOME}/.pi/agent/sessions/{planned[plan.forks].path}"
                out.write(session.header(parent))
                out.writelines(session.copied(shared.get(plan.forks, [])))
            for line in session.lines():
                if session.size < plan.shared:
                    shared.setdefault(number, []).append(line)
                out.write(line)
        planted += session.planted
        entries += len(session.ids)
        written += session.size
    texts = [text for text, _, _ in NEEDLES]
    counts = tuple(Needle(text, planted[text]) for text in (*texts, COMMON))
    return Corpus(root, len(planned), entries, written, counts)


def write_line(root: str, *, megabytes: float, is_wide: bool, seed: int = 1) -> Corpus:
    """Write one session, in which one tool result is a line of about that many megabytes.

    Where `is_wide`, signs beyond the basic plane make Python keep four bytes for each character;
    else all of it is ASCII.
    """
    rng = Random(f"{seed} line")
    words = memoryview(rng.randbytes(2 * int(megabytes * 110_000))).cast("H")
    text = "".join(map(Stock(seed).prose.__getitem__, words))
    if not is_wide:
        text = text.encode("ascii", "ignore").decode()
    clock = FIRST_DAY
    ident = uuid(rng, clock)
    head = {"type": "session", "version": 3, "id": ident, "timestamp": iso(clock), "cwd": HOME}
    lines = [orjson.dumps(head, option=orjson.OPT_APPEND_NEWLINE)]
    parent = None
    for role, said in (("user", "read it"), ("toolResult", text), ("user", "and now?")):
        clock += 1_000
        message = {"role": role, "content": [{"type": "text", "text": said}], "timestamp": clock}
        entry: Entry = {"type": "message", "id": f"{rng.getrandbits(32):08x}", "parentId": parent}
        parent = entry["id"]
        entry |= {"timestamp": iso(clock), "message": message}
        lines.append(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
    folder = os.path.join(root, "--home-dev--")
    os.makedirs(folder)
    with open(os.path.join(folder, f"line_{ident}.jsonl"), "wb") as out:
        out.writelines(lines)
    return Corpus(root, 1, len(lines) - 1, sum(map(len, lines)), ())


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a store of made-up Pi sessions.")
    parser.add_argument("root")
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")
    given = parser.parse_args()
    corpus = write(given.root, megabytes=given.megabytes, seed=given.seed, files=given.files)
    if given.json:
        print(orjson.dumps(asdict(corpus)).decode())
        return
    print(f"{corpus.files} files, {corpus.entries} entries, {corpus.bytes} bytes")
    for needle in corpus.needles:
        print(f"{needle.count:>9} entries hold {needle.text!r}")


if __name__ == "__main__":
    main()
