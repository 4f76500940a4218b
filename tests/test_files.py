"""Reading in order: whatever the size of a block, the lines are those of the file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from sessionindex import files
from sessionindex.files import blocks, whole_lines


@contextmanager
def opened(data: bytes) -> Iterator[int]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


contents = st.lists(st.sampled_from([b"a", b"}", b"\n", b"some words", b"x" * 40])).map(b"".join)


@given(contents, st.integers(1, 60), st.integers(0, 50), st.none() | st.integers(0, 200))
@settings(derandomize=True, deadline=None, max_examples=400)
def test_whole_lines(data: bytes, block: int, offset: int, limit: int | None) -> None:
    """Whole lines, one after another and none twice; then what is torn, if it is asked for."""
    asked = data[offset:limit]
    whole = asked[: asked.rfind(b"\n") + 1]
    with opened(data) as descriptor, mock.patch.object(files, "BLOCK", block):
        for torn in (True, False):
            found = list(whole_lines(descriptor, offset, limit, torn=torn))
            complete = [(start, lines) for start, lines, is_whole in found if is_whole]
            assert b"".join(lines for _, lines in complete) == whole
            assert all(lines.endswith(b"\n") for _, lines in complete)
            for start, lines in complete:
                assert data[start : start + len(lines)] == lines
                assert len(lines) <= block or lines.count(b"\n") == 1
            rest = [(start, lines) for start, lines, is_whole in found if not is_whole]
            torn_line = asked[len(whole) :]
            if not (torn and torn_line):
                assert rest == []
            elif len(torn_line) < block or torn_line.endswith(b"}"):
                assert rest == [(offset + len(whole), torn_line)]
            else:  # too long to be kept where it can be no JSON
                assert rest[0][1] in (torn_line, b"{")
        ends = [(start, lines[:end]) for start, lines, end, _ in blocks(descriptor, offset, limit)]
        wanted = [(start, lines) for start, lines, _ in whole_lines(descriptor, offset, limit)]
        assert ends == wanted


def test_a_file_that_shrinks_between_two_reads() -> None:
    """The end of a long line is no longer where it was: what is left of it is torn."""
    with opened(b"x" * 100 + b"}\n") as descriptor, mock.patch.object(files, "BLOCK", 16):
        line_end = files._line_end

        def shrinking(*arguments: int) -> int | None:
            end = line_end(*arguments)
            os.ftruncate(descriptor, 50)
            return end

        with mock.patch.object(files, "_line_end", shrinking):
            assert list(whole_lines(descriptor, 0)) == [(0, b"x" * 50, False)]
