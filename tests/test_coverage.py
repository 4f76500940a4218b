"""Verdicts on files: a table of what stat says now against what the index remembers."""

from __future__ import annotations

import zlib

import pytest

from sessionindex.coverage import RACY_NS, Cursor, Identity, digest, is_proven, judge, settle

THEN = Identity(device=1, inode=2, size=100, mtime_ns=5_000, ctime_ns=6_000)
WHOLE = Cursor(THEN, proven=True, offset=100, lines=4, checksum=7, head=8, tail=9)
TORN = WHOLE._replace(offset=90)  # ten bytes of a last line without its end


@pytest.mark.parametrize(
    ("rule", "changes", "verdict"),
    [
        ("nothing changed", {}, "fresh"),
        ("another device", {"device": 9}, "unsure"),
        ("another inode", {"inode": 9}, "unsure"),
        ("another mtime", {"mtime_ns": 9}, "unsure"),
        ("only another ctime", {"ctime_ns": 9}, "unsure"),
        ("grown", {"size": 101}, "unsure"),
        ("shorter than what is indexed", {"size": 99}, "stale"),
        ("empty", {"size": 0}, "stale"),
    ],
)
def test_judge(rule: str, changes: dict[str, int], verdict: str) -> None:
    """Any difference asks for the bytes; a missing prefix answers itself."""
    now = THEN._replace(**changes)
    assert judge(now, WHOLE) == verdict, rule


def test_a_file_that_is_not_indexed_is_new() -> None:
    assert judge(THEN, None) == "new"


def test_an_identity_that_proves_nothing_is_never_fresh() -> None:
    """Two writes in one tick of the clock look the same."""
    assert judge(THEN, WHOLE._replace(proven=False)) == "unsure"


def test_a_torn_last_line_leaves_a_file_behind() -> None:
    """Unchanged since, but not indexed to its end; cut off, the indexed part may still hold."""
    assert judge(THEN, TORN) == "behind"
    assert judge(THEN._replace(size=95), TORN) == "unsure"
    assert judge(THEN._replace(size=90), TORN) == "unsure"
    assert judge(THEN._replace(size=89), TORN) == "stale"


@pytest.mark.parametrize(
    ("size", "checksum", "verdict"),
    [(100, 7, "fresh"), (101, 7, "behind"), (100, 8, "stale"), (101, 8, "stale")],
)
def test_settle(size: int, checksum: int, verdict: str) -> None:
    """The checksum of the indexed prefix decides what stat could not."""
    assert settle(THEN._replace(size=size), WHOLE, checksum) == verdict


@pytest.mark.parametrize(
    ("age", "proven"),
    [(RACY_NS + 1, True), (RACY_NS, False), (0, False), (-RACY_NS * 9, False)],
)
def test_is_proven(age: int, proven: bool) -> None:
    """Only a ctime more than two seconds old; one in the future proves nothing."""
    assert is_proven(THEN, THEN.ctime_ns + age) is proven


def test_a_digest_can_be_continued() -> None:
    """In pieces or at once."""
    data = bytes(range(256)) * 3
    for cut in (0, 1, 300, len(data)):
        assert digest(data[cut:], digest(data[:cut])) == digest(data) == zlib.crc32(data)
    assert digest(b"") == 0
