"""The house: levels, owners and sizes, read off the source with `ast`.

A module imports lower levels, and its own where no circle comes of it; the flows of level 5 do
not import each other at all. A folder is one entry of LEVELS, so what is in it has its level.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "sessionindex"

LEVELS = {
    **dict.fromkeys(("errors", "model", "text", "timestamps"), 0),
    **dict.fromkeys(("fold", "jsonline", "header", "entry", "snippet"), 1),
    **dict.fromkeys(("rawforms", "rawtest"), 1),
    **dict.fromkeys(("pages", "access", "coverage", "match", "ordering", "steering"), 1),
    **dict.fromkeys(("tree", "touched", "signals", "rendering", "narrowing"), 1),
    **dict.fromkeys(("child", "files", "layout", "settings"), 2),
    **dict.fromkeys(("index",), 3),
    **dict.fromkeys(
        (
            "catalog",
            "standing",
            "selection",
            "scan",
            "present",
            "conversation",
            "status",
            "intake",
            "evidence",
            "address",
        ),
        4,
    ),
    **dict.fromkeys(("session", "scope", "lineage", "decision", "execution"), 4),
    **dict.fromkeys(("ingest", "check", "contracts", "trim"), 5),
    **dict.fromkeys(
        ("wire", "asking", "library", "passages", "recovery", "tools", "trimming", "__init__"), 6
    ),
    **dict.fromkeys(("cli", "daemon", "serve", "budget", "mcp", "clients", "pi", "__main__"), 7),
}
FLOWS = 5

# Who may import what is not the standard library: folders end in a slash.
OWNERS = {
    "tantivy": ("index/",),
    "watchfiles": ("daemon/",),
    "click": ("cli/",),
    "mcp": ("mcp.py",),
    "stringzilla": ("rawtest.py",),
    "orjson": ("jsonline.py", "wire/", "index/record.py"),
}
# Sessions; Pi's settings; marker and lock; the null device.
OPENERS = ("files.py", "settings.py", "index/lock.py", "index/segments.py", "cli/ending.py")
OPENING = re.compile(r"open|(os|io|codecs|gzip)\.(open|fdopen)|.*\.(read|write)_(bytes|text)")
OUTSIDE = {"os", "io", "pathlib", "shutil", "socket", "stat", "subprocess", "tempfile"}

FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_bytes()) for name, path in FILES.items()}


def dotted(name: str) -> str:
    return ".".join(("sessionindex", *Path(name).with_suffix("").parts)).removesuffix(".__init__")


def top(module: str) -> str:
    """The entry of LEVELS that a dotted module belongs to."""
    return [*module.split("."), "__init__"][1]


MODULES = {dotted(name) for name in FILES}


def imports(name: str) -> Iterator[str]:
    """The modules that a file imports anywhere in it, as full dotted names."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{name} has a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def owned(name: str, owners: tuple[str, ...]) -> bool:
    return any(name.startswith(owner) if owner[-1] == "/" else name == owner for owner in owners)


def test_every_module_has_a_level() -> None:
    """A new module is put into LEVELS, and one that went is taken out."""
    assert {top(module) for module in MODULES} == set(LEVELS)


@pytest.mark.parametrize("name", FILES)
def test_imports_only_go_down(name: str) -> None:
    here = top(dotted(name))
    for module in imports(name):
        if module.split(".")[0] == "sessionindex" and top(module) != here:
            level = LEVELS[top(module)]
            assert level <= LEVELS[here], f"{name} imports {module}"
            assert level < LEVELS[here] or level != FLOWS, f"{name} imports the flow {module}"


def test_nothing_goes_in_a_circle() -> None:
    """Not within a level and not within a folder."""
    graph = {dotted(name): MODULES.intersection(imports(name)) for name in FILES}
    order = list(TopologicalSorter(graph).static_order())
    assert set(order) == MODULES


@pytest.mark.parametrize("name", FILES)
def test_each_outside_thing_has_one_owner(name: str) -> None:
    """What has no owner is not used at all, and levels 0 and 1 touch nothing outside."""
    for module in {module.split(".")[0] for module in imports(name)} - {"sessionindex"}:
        if module not in sys.stdlib_module_names:
            assert owned(name, OWNERS.get(module, ())), f"{name} imports {module}"
        if LEVELS[top(dotted(name))] <= 1:
            assert module not in OUTSIDE, f"{name} imports {module}"


def test_files_are_opened_by_their_owners_only() -> None:
    found = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and OPENING.fullmatch(ast.unparse(node.func))
    }
    assert found == set(OPENERS)


@pytest.mark.parametrize("name", FILES)
def test_modules_are_short_and_say_what_they_are(name: str) -> None:
    """At most 400 lines, a docstring of three or more, and a name that says something.

    One line is enough for a command: its help says the rest.
    """
    assert len(FILES[name].read_text().splitlines()) <= 400
    stem = Path(name).stem
    assert stem not in {"utils", "util", "helpers", "manager", "common", "misc"}
    if stem not in {"__init__", "__main__"}:
        least = 1 if name.startswith("cli/") else 3
        assert len((ast.get_docstring(TREES[name]) or "").splitlines()) >= least
