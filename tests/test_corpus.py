"""The made-up store of the benchmarks: the same each time, well formed, its needles counted."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import corpus
import orjson
import pytest

FIVE_MEGABYTES = "9939b4d8c20067fa152aeb3fea50aef2005c828c1bdb115d3a9a6381779de74d"
"""Of the paths and bytes that seed 1 gives: figures stay comparable while this does."""


def sessions(root: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.relative_to(root).as_posix(): [
            orjson.loads(line) for line in path.read_bytes().splitlines()
        ]
        for path in sorted(root.rglob("*.jsonl"))
    }


def searched(entry: dict[str, Any]) -> str:
    """The texts of an entry, with nothing of its thinking, calls and details."""
    if entry["type"] != "message" or "content" not in entry["message"]:
        return ""
    blocks = entry["message"]["content"]
    return "\0".join(block["text"] for block in blocks if block["type"] == "text")


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    stores = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        root = tmp_path / name
        corpus.write(str(root), megabytes=0.5, seed=seed)
        stores.append({p.relative_to(root): p.read_bytes() for p in root.rglob("*.jsonl")})
    assert stores[0] == stores[1] != stores[2]


@pytest.mark.skipif(sys.platform != "linux", reason="the last digit of a logarithm may differ")
def test_a_seed_keeps_its_bytes(tmp_path: Path) -> None:
    corpus.write(str(tmp_path), megabytes=5)
    digest = hashlib.sha256()
    for path in sorted(tmp_path.rglob("*.jsonl")):
        name = path.relative_to(tmp_path).as_posix().encode()
        digest.update(name + b"\0" + path.read_bytes() + b"\0")
    assert digest.hexdigest() == FIVE_MEGABYTES


def test_what_is_written_is_what_is_said(tmp_path: Path) -> None:
    said = corpus.write(str(tmp_path), megabytes=1)
    files = sessions(tmp_path)
    entries = [entry for lines in files.values() for entry in lines[1:]]
    assert said.root == str(tmp_path)
    assert said.files == len(files)
    assert said.entries == len(entries)
    assert said.bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl"))
    assert 0.9e6 < said.bytes < 1.3e6
    assert any("/run-0/session.jsonl" in path for path in files)
    assert any("/forks/" in path for path in files)

    texts = [searched(entry) for entry in entries]
    for needle in said.needles:
        assert sum(needle.text in text for text in texts) == needle.count
        # Nowhere else either: what repeats it is the same entry's details.
        held = orjson.dumps(needle.text)[1:-1]
        assert sum(held in orjson.dumps(entry) for entry in entries) == needle.count
    counts = {needle.text: needle.count for needle in said.needles}
    assert counts["xq-needle-once"] == 1
    assert counts["xq-needle-ten"] == 10
    assert 0.2 < counts[corpus.COMMON] / said.entries < 0.4


def test_entries_form_trees(tmp_path: Path) -> None:
    corpus.write(str(tmp_path), megabytes=1, files=4)
    files = sessions(tmp_path)
    assert len(files) == 4
    for header, *entries in files.values():
        assert (header["type"], header["version"]) == ("session", 3)
        seen: set[str] = set()
        for number, entry in enumerate(entries):
            assert entry["id"] not in seen
            assert entry["parentId"] in seen if number else entry["parentId"] is None
            seen.add(entry["id"])
        stamps = [entry["timestamp"] for entry in entries]
        assert stamps == sorted(set(stamps))


def test_a_fork_repeats_the_start_of_its_parent(tmp_path: Path) -> None:
    corpus.write(str(tmp_path), megabytes=1)
    files = sessions(tmp_path)
    path, fork = next((path, lines) for path, lines in files.items() if "/forks/" in path)
    parent = files[path.split("/forks/")[0] + ".jsonl"]
    assert fork[0]["parentSession"].endswith(path.split("/forks/")[0] + ".jsonl")
    assert fork[1] == parent[1]
    assert fork[-1]["id"] not in {entry["id"] for entry in parent}
