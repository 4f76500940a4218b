"""A scratch store, and questions asked with and without its index at once."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from build import PROJECT, Builder, put

from sessionindex import SessionIndex, SessionIndexError
from sessionindex.contracts.search_sessions import SearchResult
from sessionindex.contracts.session_entries import EntriesResult
from sessionindex.errors import SessionFileError

_FILES = 5
"""How many session files a settled store is read back from."""
LITERALS = ("e", "needle", "session", "会", "tool_result bash#")


@dataclass
class Store:
    """A sessions root and an index folder in scratch space."""

    root: Path
    index_dir: Path
    opened: list[SessionIndex] = field(default_factory=list)
    plain: SessionIndex | None = None

    def open(self, **given: Any) -> SessionIndex:
        """A SessionIndex that knows nothing of the real home."""
        arguments = {"settings": {}, "current_session": "", "index_dir": self.index_dir} | given
        index = SessionIndex(self.root, **arguments)
        self.opened.append(index)
        return index

    @property
    def index(self) -> SessionIndex:
        """The SessionIndex of the test, opened when it is first used."""
        if self.plain is None:
            self.plain = self.open()
        return self.plain

    def put(self, name: str, builder: Builder | bytes, project: str = PROJECT) -> str:
        return put(self.root, project, name, builder)

    @property
    def folder(self) -> Path:
        """The index folder of the root."""
        return Path(self.index._present.store.folder)


def without_coverage(result: SearchResult) -> SearchResult:
    """What must be equal with and without the index."""
    return result._replace(coverage=None)  # type: ignore[arg-type]


def ask(index: SessionIndex, *terms: str, **filters: Any) -> SearchResult:
    """The answer of the index, after it was found equal to that of the files alone."""
    indexed = index.search(*terms, **filters)
    brute = index.search(*terms, brute=True, **filters)
    assert without_coverage(indexed) == without_coverage(brute)
    return indexed


def entries(index: SessionIndex, path: str, **filters: Any) -> EntriesResult:
    """The entries of a session by the index, after they were found equal to those of the file."""
    try:
        brute = index.session_entries(path, brute=True, **filters)
    except SessionIndexError as refused:
        with pytest.raises(type(refused)) as also:
            index.session_entries(path, **filters)
        assert str(also.value) == str(refused)
        raise
    indexed = index.session_entries(path, **filters)
    assert indexed == brute
    return indexed


def places(result: SearchResult) -> list[tuple[str, int]]:
    """Where the hits are: name of the file, line."""
    return [(Path(hit.session_path).stem, hit.line_no) for hit in result.hits]


def settle(store: Store) -> None:
    """Whatever a test did, the index must agree with the files, before and after a refresh."""
    index = store.open()
    for _ in range(2):
        for literal in LITERALS:
            ask(index, literal)
            ask(index, literal, match="all", kinds=["thinking", "details", "system"])
        if not store.root.is_dir():
            return
        for path in sorted(store.root.rglob("*.jsonl"))[:_FILES]:
            if path.is_file() and os.access(path, os.R_OK):
                with suppress(SessionFileError):
                    entries(index, str(path))
                    entries(index, str(path), search={"terms": ["e"]}, limit=3)
        index.refresh()
    assert index.check().differences == ()
