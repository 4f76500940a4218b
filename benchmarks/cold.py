"""A cold index in a process of its own: ours, a bare tantivy writer's, SQLite FTS5's.

    cold.py index | bare | fts5  ROOT        prints what was measured as one JSON object

Ours reads the files; the references are handed the same text from memory, and only their feeding
is timed, commits and merges included. The bare writer has the same fields, threads, heap and
commits as ours. Its gram fields hold the searchable text as it is (ours are told less of it, to
the same grams: what we save there is ours to show). FTS5 gets the gram fields alone, in a table
without content that is not synced and has no journal (a larger hash made it slower); it ends a
text at a NUL, so it gets a line break for it. The text of the whole root has to fit into memory.
"""

from __future__ import annotations

import gc
import json
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

Fields = dict[str, Any]
FTS5 = """CREATE VIRTUAL TABLE entries USING fts5(
grams, grams_more, content='', detail=none, tokenize='trigram')"""


def index(root: str) -> dict[str, float]:
    """Ours: seconds, bytes, and this process's peak memory in MB."""
    from sessionindex import SessionIndex

    with tempfile.TemporaryDirectory(prefix="cold-", dir=Path(root).parent) as folder:
        opened = SessionIndex(root, index_dir=folder, settings={}, current_session="")
        began = time.perf_counter()
        report = opened.refresh()
        took = time.perf_counter() - began
        size = opened.status().index_bytes or 0
    return {
        "seconds": took,
        "bytes": size,
        "raw": report.bytes,
        "entries": report.entries,
        "peak": _peak(),
    }


def _documents(root: str) -> Iterator[tuple[Fields, int]]:
    """The documents of all entries with their whole text, and how many characters of it."""
    from sessionindex import entry
    from sessionindex.fold import PAD, key
    from sessionindex.index import documents, schema
    from sessionindex.jsonline import split
    from sessionindex.model import KINDS, Entry

    for path in sorted(Path(root).rglob("*.jsonl")):
        for line in split(path.read_bytes(), 1, 0):
            found = entry.parse(line, 3)
            if isinstance(found, Entry):
                fields, _ = documents.document(found, 1, line.offset, len(line.data))
                whole = {field: "" for field in schema.ALWAYS_OF if field in fields}
                for kind in KINDS:
                    if schema.FIELD_OF[kind] in whole and (text := entry.searchable(found, kind)):
                        whole[schema.FIELD_OF[kind]] += key(text) + PAD
                yield fields | whole, sum(map(len, whole.values()))


def _raw(root: str) -> int:
    return sum(path.stat().st_size for path in Path(root).rglob("*.jsonl"))


def _waiting(documents: list[Any]) -> Iterator[Any]:
    """In order, each let go of when the next is taken; the collector is told to leave them."""
    documents.reverse()
    gc.freeze()
    while documents:
        yield documents.pop()


def bare(root: str) -> dict[str, float]:
    """The same documents from memory into a bare tantivy writer."""
    import tantivy

    from sessionindex.index import schema, writer

    documents = list(_documents(root))
    scale = writer.scale(_raw(root))
    with tempfile.TemporaryDirectory(prefix="bare-", dir=Path(root).parent) as folder:
        began = time.perf_counter()
        made = schema.begun(folder)
        plain = made.writer(heap_size=scale.heap, num_threads=scale.threads)
        pending = 0
        for fields, size in _waiting(documents):
            plain.add_document(tantivy.Document.from_dict(fields, made.schema))
            pending += size
            if pending >= scale.batch:
                plain.commit()
                pending = 0
        plain.commit()
        plain.wait_merging_threads()
        return {"seconds": time.perf_counter() - began, "bytes": _held(folder)}


def fts5(root: str) -> dict[str, float]:
    """The same text from memory into SQLite; nothing where this SQLite has no trigrams."""
    from sessionindex.index import writer

    with tempfile.TemporaryDirectory(prefix="fts5-", dir=Path(root).parent) as folder:
        base = sqlite3.connect(f"{folder}/index.db", isolation_level=None)
        try:
            base.execute(FTS5)
        except sqlite3.OperationalError:
            return {}
        base.execute("PRAGMA journal_mode = OFF")
        base.execute("PRAGMA synchronous = OFF")
        texts = [
            (*(fields.get(name, "").replace("\0", "\n") for name in ("grams", "grams_more")), size)
            for fields, size in _documents(root)
        ]
        batch = writer.scale(_raw(root)).batch
        began = time.perf_counter()
        base.execute("BEGIN")
        pending = 0
        for number, (grams, more, size) in enumerate(_waiting(texts), 1):
            base.execute(
                "INSERT INTO entries(rowid, grams, grams_more) VALUES (?, ?, ?)",
                (number, grams, more),
            )
            pending += size
            if pending >= batch:
                base.execute("COMMIT")
                base.execute("BEGIN")
                pending = 0
        base.execute("COMMIT")
        base.close()
        return {"seconds": time.perf_counter() - began, "bytes": _held(folder)}


def _held(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def _peak() -> float:
    """In MB. Linux counts for `ru_maxrss` what the parent held when it started this process."""
    with suppress(FileNotFoundError):
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


MEASURED: dict[str, Callable[[str], dict[str, float]]] = {
    "index": index,
    "bare": bare,
    "fts5": fts5,
}

if __name__ == "__main__":
    _, what, where = sys.argv
    print(json.dumps(MEASURED[what](where)))
