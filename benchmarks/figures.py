"""What is promised, what was measured, and the verdict.

A `Row` is a promise: a figure, its bound, and the size of the store that it is promised for. A
`Figure` is a row with its value, measured at some size. It is judged only where that is the size
of the promise: at another one it says "not judged", and where something is missing that the
measurement needs, "not measured". A row without a bound has no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["sessions", "line", "wide line"]
Verdict = Literal["", "pass", "FAIL", "not judged", "not measured"]


@dataclass(frozen=True, slots=True)
class Size:
    """A store: of that many files, None is as many as real sizes make of it."""

    megabytes: float
    files: int | None = None
    kind: Kind = "sessions"

    def __str__(self) -> str:
        if self.kind != "sessions":
            return f"one {self.kind} of {self.megabytes:,g} MB"
        if self.files is None:
            return f"{self.megabytes:,g} MB"
        many = "one file" if self.files == 1 else f"{self.files:,} files"
        return f"{self.megabytes:,g} MB in {many}"


@dataclass(frozen=True, slots=True)
class Row:
    """A figure to measure; without `target` nothing is promised, without `size` at any size."""

    name: str
    what: str
    unit: str = "x"
    target: float | None = None
    at_least: bool = True
    size: Size | None = None

    @property
    def bound(self) -> str:
        if self.target is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.target:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A row measured at a size; `value` None where it could not be, and `detail` says why.

    A quick run judges nothing: once is no median.
    """

    row: Row
    value: float | None
    detail: str
    size: Size | None = None
    is_judged: bool = True

    @property
    def verdict(self) -> Verdict:
        row = self.row
        if self.value is None:
            return "not measured"
        if row.target is None:
            return ""
        if self.size != row.size or not self.is_judged:
            return "not judged"
        reached = self.value >= row.target if row.at_least else self.value <= row.target
        return "pass" if reached else "FAIL"

    def as_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "name": row.name,
            "what": row.what,
            "value": self.value,
            "unit": row.unit,
            "target": row.target,
            "at_least": row.at_least,
            "verdict": self.verdict,
            "size": None if self.size is None else str(self.size),
            "promised_size": None if row.size is None else str(row.size),
            "detail": self.detail,
        }


NAMES: Final = 72
"""The width of what is measured, in characters."""


HEAD: Final = f"{'what':<{NAMES}} {'figure':>10} {'promise':>8} {'verdict':<12} detail; size"


def line(figure: Figure) -> str:
    """One figure as a line of the table."""
    row, notes = figure.row, [figure.detail]
    if figure.size is not None and figure.verdict != "not measured":
        other = f" instead of {row.size}" if figure.size != row.size and row.size else ""
        notes.append(f"{figure.size}{other}")
    shown = _shown(figure.value, row.unit)
    detail = "; ".join(filter(None, notes))
    return f"{row.what:<{NAMES}} {shown:>10} {row.bound:>8} {figure.verdict:<12} {detail}"


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    is_count = not unit and value == int(value)
    digits = 0 if is_count or (unit in ("MB", "ms") and value >= 10) else 2
    return f"{value:,.{digits}f} {unit}".strip()


def grid(figures: Sequence[Figure]) -> str:
    """Figures without a promise as columns, a line for each size."""
    columns = list(dict.fromkeys(figure.row.what for figure in figures))
    sizes = list(dict.fromkeys(figure.size for figure in figures))
    cells = {(f.size, f.row.what): _shown(f.value, f.row.unit) for f in figures}
    width = max(map(len, columns)) + 2
    lines = [" " * 28 + "".join(f"{column:>{width}}" for column in columns)]
    for size in sizes:
        row = "".join(f"{cells.get((size, column), '-'):>{width}}" for column in columns)
        lines.append(f"{size!s:<28}{row}")
    return "\n".join(lines)
