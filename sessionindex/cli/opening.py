"""From the words of a command line to an open index, and what is said on the way.

A command opens the index that its options describe, has it refreshed where a question would
otherwise read much, and gives the library paths and moments as the contracts spell them. Data is
the command's affair; the talk (a line on stderr, a progress bar on a terminal) is said here.

Nothing here knows click: a plain search gets its options without it (`plain`).
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from sessionindex import SessionIndex
from sessionindex.errors import (
    IndexFolderError,
    IndexUnusable,
    RootError,
    SessionIndexError,
)
from sessionindex.model import PathWarning
from sessionindex.settings import find_root, index_home

MUCH: Final = 64 << 20
"""Bytes outside the index from which a search refreshes it first."""


def opened(
    root: str | None, layout: str | None, index_dir: str | None, **more: Any
) -> SessionIndex:
    """The index that the options describe; raises RootError where the root is not there."""
    index = SessionIndex(root, layout=layout, index_dir=index_dir, **more)
    found = index.root
    if not os.path.isdir(found.path):
        what = "is not a folder" if os.path.exists(found.path) else "does not exist"
        raise RootError(
            f"the sessions root {what}: {found.path} (from {found.source})",
            found.path,
            found.source,
        )
    return index


def root_words(where: dict[str, Any]) -> list[str]:
    """The root options that were given, with absolute paths: for what starts elsewhere."""
    given = []
    if where["root"]:
        given += ["--root", find_root(where["root"]).path]
    if where["layout"]:
        given += ["--layout", where["layout"]]
    if where["index_dir"]:
        given += ["--index-dir", index_home(where["index_dir"])]
    return given


def refresh_when_needed(index: SessionIndex) -> None:
    """Have searches refresh an index that is missing, unusable, or far behind, if they may."""

    def before_scan(uncovered: int, error: SessionIndexError | None) -> bool:
        if isinstance(error, IndexFolderError):
            say(f"{error}; reading the files instead")
            return False
        if error is None and uncovered <= MUCH:
            return False
        if isinstance(error, IndexUnusable) and error.damaged:
            say(f"{error}; building it anew")
        try:
            refresh(index)
        except SessionIndexError as refused:
            say(f"{refused}; reading the files instead")
            return False
        return True

    index.before_scan = before_scan


def refresh(index: SessionIndex, *, rebuild: bool = False) -> Any:
    """Refresh with a progress bar on a terminal; the report."""
    bar = Bar()
    try:
        return index.refresh(progress=bar.show, rebuild=rebuild)
    finally:
        bar.clear()


def say(message: str) -> None:
    """One line of talk."""
    from sessionindex.cli.render import harmless

    print(f"sessionindex: {harmless(message, lines=True)}", file=sys.stderr)


def warn(warnings: Sequence[PathWarning]) -> None:
    """Say what could not be read, in one line."""
    if warnings:
        places = ", ".join(warning.path for warning in warnings[:2])
        rest = len(warnings) - 2
        say(f"not readable: {places}" + (f" and {rest} more" if rest > 0 else ""))


def folder(given: str) -> str:
    """A directory as sessions name it; what cannot be resolved is compared as it is."""
    try:
        return os.path.abspath(os.path.expanduser(given))
    except OSError:  # the working directory is gone
        return given


class Bar:
    """A progress bar on stderr, where that is a terminal."""

    def __init__(self) -> None:
        self._shown = False
        self._next = time.monotonic() + 0.2  # what is quick shows nothing
        self._terminal = sys.stderr.isatty()

    def show(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._terminal or now < self._next or not total:
            return
        self._next = now + 0.1
        self._shown = True
        filled = 24 * done // total
        bar = "█" * filled + "░" * (24 - filled)
        megabytes = f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
        sys.stderr.write(f"\r\x1b[Kindexing {bar} {megabytes}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


_AGO: Final = r"([0-9]+)\s*(m|h|d|w)"
_UNIT_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def moment(value: str | None, *, now_ms: int | None = None) -> str | None:
    """A bound as a person writes it (`2d`, `12h`, `today`, `yesterday`) as the contract's."""
    if value is None:
        return None
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    word = value.strip().lower()
    if word in ("today", "yesterday"):
        day = time.localtime(now // 1000)
        if word == "yesterday":
            noon = time.mktime((day.tm_year, day.tm_mon, day.tm_mday - 1, 12, 0, 0, 0, 0, -1))
            day = time.localtime(noon)
        return time.strftime("%Y-%m-%d", day)
    found = re.fullmatch(_AGO, word)
    if not found:
        return value
    if len(found[1]) > 6:
        return value  # before any calendar: for the contract's reader to refuse
    then = now - int(found[1]) * _UNIT_MS[found[2]]
    if then < 0:
        return "1970-01-01"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(then // 1000))
    return f"{stamp}.{then % 1000:03}Z"
