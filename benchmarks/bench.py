"""Figures that can be trusted: each a ratio, ours and a reference in turn in one run, medians.

    bench.py list                       what there is, and what each row has to reach
    bench.py run NAME... [--json]       some of it
    bench.py all [--megabytes N]        all of it; exit status 1 where a row is missed
    bench.py all --quick                all of it at a size that shows that it runs, no more

Stores are made from a seed and kept in `--work` for the next run. In full size they are 10.5 GB,
13 with their indexes; making and indexing them takes most of the time. A row is judged at the size
that it is promised for: with a smaller `--megabytes` or `--files`, it is measured at that and "not
judged". Rows that need ripgrep are "not measured" where it is not installed. Machines are shared
and noisy: absolute times are detail, but for the few that are promised as such.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import rows_index
import rows_library
import rows_scale
import rows_search
import rows_session
import rows_watch
from figures import HEAD, NAMES, Figure, Row, Size, grid, line
from stores import Stores

import sessionindex

PACKAGE = Path(sessionindex.__file__).parent


class Measurement(NamedTuple):
    """The rows that are measured together; a grid has a column for each row of one size."""

    rows: tuple[Row, ...]
    measure: Callable[[Stores], Iterator[Figure]]
    is_grid: bool = False


MEASUREMENTS = {
    "cold_index": Measurement(rows_index.COLD, rows_index.cold_index),
    "memory": Measurement(rows_index.MEMORY, rows_index.memory),
    "refresh": Measurement(rows_index.REFRESH, rows_index.refresh),
    "start": Measurement(rows_search.START, rows_search.start),
    "processes": Measurement(rows_search.PROCESSES, rows_search.processes),
    "first_page": Measurement(rows_search.FIRST_PAGE, rows_search.first_page),
    "searches": Measurement(rows_search.SEARCH_ROWS, rows_search.searches),
    "brute": Measurement(rows_search.BRUTE, rows_search.brute_path),
    "phrases": Measurement(rows_search.PHRASES, rows_search.many_candidates),
    "library": Measurement(rows_library.LIBRARY, rows_library.library),
    "listing": Measurement(rows_library.LISTING, rows_library.listing),
    "session": Measurement(rows_session.SESSION, rows_session.session),
    "watch": Measurement(rows_watch.WATCH, rows_watch.watch),
    "scale": Measurement(rows_scale.SCALE, rows_scale.scale, is_grid=True),
}


def listed() -> Iterator[str]:
    """What there is: the measurements by name, and the rows of each."""
    for name, measurement in MEASUREMENTS.items():
        yield f"{name:<12} {measurement.measure.__doc__}"
        if not measurement.is_grid:
            for row in measurement.rows:
                size = "" if row.size is None else f"at {row.size}"
                yield f"  {row.name:<20} {row.what:<{NAMES}} {row.bound:>8}  {size}".rstrip()


def measured(names: Sequence[str], stores: Stores, *, aloud: bool) -> list[Figure]:
    """The figures, each printed as soon as it is there if that is wanted."""
    figures: list[Figure] = []
    for name in names:
        measurement = MEASUREMENTS[name]
        found = []
        for each in measurement.measure(stores):
            figure = replace(each, is_judged=not stores.quick)
            found.append(figure)
            if aloud and not measurement.is_grid:
                print(line(figure), flush=True)
        if aloud and measurement.is_grid:
            print(f"\n{grid(found)}\n", flush=True)
        figures += found
    return figures


def summed(figures: Sequence[Figure]) -> str:
    """How many rows have which verdict."""
    words = ("pass", "FAIL", "not judged", "not measured")
    verdicts = [figure.verdict for figure in figures]
    return ", ".join(f"{verdicts.count(word)} {word}" for word in words if word in verdicts)


def status(figures: Sequence[Figure]) -> int:
    """Of the process: 1 where a row is missed."""
    return 1 if any(figure.verdict == "FAIL" for figure in figures) else 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("what", choices=["list", "run", "all"])
    made.add_argument("names", nargs="*")
    made.add_argument("--megabytes", type=float, help="of the largest store (5000)")
    made.add_argument("--files", type=int, help="of a store of many files, at most (4000)")
    made.add_argument("--runs", type=int, help="how often most rows are measured (7)")
    made.add_argument("--cold-runs", type=int, help="how often cold indexes are made (3)")
    made.add_argument("--quick", action="store_true", help="1 MB in 12 files, once")
    made.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "bench-work")
    made.add_argument("--json", action="store_true")
    return made


def stores_of(asked: argparse.Namespace) -> Stores:
    """The stores at the sizes that were asked for."""
    megabytes, files, runs, cold_runs = (1, 12, 1, 1) if asked.quick else (5000, 4000, 7, 3)
    asked.work.mkdir(parents=True, exist_ok=True)
    return Stores(
        asked.work.resolve(),
        Size(asked.megabytes or megabytes, asked.files or files),
        runs=asked.runs or runs,
        cold_runs=asked.cold_runs or cold_runs,
        quick=asked.quick,
    )


def main() -> int:
    arguments = parser()
    asked = arguments.parse_args()
    if asked.what == "list":
        print("\n".join(listed()))
        return 0
    if set(asked.names) - set(MEASUREMENTS) or (asked.what == "run") != bool(asked.names):
        arguments.error(f"run takes some of: {', '.join(MEASUREMENTS)}")
    if not asked.json:
        print(HEAD)
    compileall.compile_dir(str(PACKAGE), quiet=2)
    figures = measured(asked.names or list(MEASUREMENTS), stores_of(asked), aloud=not asked.json)
    if asked.json:
        machine = {"machine": platform.platform(), "cores": os.cpu_count()}
        rows = [figure.as_json() for figure in figures]
        print(json.dumps({**machine, "figures": rows}, indent=2))
    else:
        print(summed(figures))
    return status(figures)


if __name__ == "__main__":
    sys.exit(main())
