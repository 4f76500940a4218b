"""A plain command line of `sessionindex search`, read without click.

Half of a short search was the import of click, and nearly every search is a few words and a few
options. So those are read here, from a table that a test holds against click's declaration, by the
rules of click's parser, into the very values that click would give the command.

Everything else is None: another command, --help, an option or a value that is none, options that
contradict each other, completion. Then click reads the command line, and says what is wrong with
it. What is doubtful is None too: it costs time, and no more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from sessionindex.model import KINDS

COMPLETION: Final = "_SESSIONINDEX_COMPLETE"
"""The variable by which a shell asks click what could come next."""

Takes = bool | type[str] | tuple[str, ...] | range
"""The value that a flag stands for, or what may follow an option: anything, a word, a number."""

OPTIONS: Final[dict[str, tuple[str, Takes]]] = {
    **dict.fromkeys(("-e", "--term"), ("more", str)),
    "--all": ("every", True),
    "--across": ("across", True),
    **dict.fromkeys(("-s", "--case-sensitive"), ("sensitive", True)),
    **dict.fromkeys(("-i", "--ignore-case"), ("ignore", True)),
    **dict.fromkeys(("-S", "--smart-case"), ("smart", True)),
    "--in": ("kinds", KINDS),
    "--role": ("roles", str),
    "--type": ("types", str),
    "--cwd": ("cwds", str),
    "--siblings": ("siblings", True),
    "--project": ("projects", str),
    "--branch": ("branch", ("active", "abandoned", "any")),
    "--compacted": ("compacted", ("hidden", "visible", "any")),
    "--tool": ("tools", str),
    "--errors": ("errors", True),
    "--touched": ("touched", str),
    "--since": ("since", str),
    "--until": ("until", str),
    "--no-subagents": ("no_subagents", True),
    "--current": ("current", True),
    **dict.fromkeys(("-l", "--sessions-only"), ("sessions", True)),
    **dict.fromkeys(("-c", "--count"), ("count", True)),
    **dict.fromkeys(("-C", "--context"), ("context", range(1001))),
    "--heading": ("heading", True),
    "--no-heading": ("heading", False),
    "--limit": ("limit", range(1, 10**9)),  # click takes more: then it shall
    "--order": ("order", ("newest", "oldest", "path")),
    "--unique": ("unique", True),
    "--cursor": ("cursor", str),
    "--json": ("as_json", True),
    "--brute": ("brute", True),
    "--color": ("color", ("auto", "always", "ansi", "never")),
    "--root": ("root", str),
    "--layout": ("layout", ("projects", "flat")),
    "--index-dir": ("index_dir", str),
}
"""Each spelling of an option: the name of its value, and what it takes."""

MANY: Final = ("terms", "more", "kinds", "roles", "types", "cwds", "projects", "tools")
"""Values that gather whatever is given; of any other the last one counts."""

DEFAULTS: Final[dict[str, Any]] = {
    **{name: False if takes is True else None for name, takes in OPTIONS.values()},
    **dict.fromkeys(MANY, ()),
    **{"heading": None, "limit": 50, "order": "newest", "color": "auto"},
}


def read(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The values of a plain search, by name; None where click has to read the command line."""
    if arguments[:1] != ["search"] or COMPLETION in os.environ:
        return None
    asked: dict[str, Any] = {**DEFAULTS, **{name: [] for name in MANY}}
    todo = list(reversed(arguments[1:]))
    while todo:
        word = todo.pop()
        if word == "--":
            asked["terms"] += reversed(todo)
            break
        if len(word) < 2 or word[0] != "-":
            asked["terms"].append(word)
        elif not (_long if word[1] == "-" else _short)(word, todo, asked):
            return None
    asked |= {name: tuple(asked[name]) for name in MANY}
    return None if contradiction(asked) else asked


def contradiction(asked: dict[str, Any]) -> str | None:
    """Why these values are no question; None where they are one."""
    terms = (*asked["terms"], *asked["more"])
    entries = (asked[name] for name in ("branch", "compacted", "tools", "errors", "touched"))
    if not terms and not any(one for one in entries if one != "any"):
        return "no term given"
    if "" in terms:
        return "an empty term would match everything"
    if asked["every"] and asked["across"]:
        return "--all and --across exclude each other"
    if asked["sensitive"] and asked["ignore"]:
        return "-s and -i exclude each other"
    return None


def _long(word: str, todo: list[str], asked: dict[str, Any]) -> bool:
    """Take `--name`, `--name value` or `--name=value`; whether it is plain."""
    name, equals, value = word.partition("=")
    if name not in OPTIONS:
        return False
    if isinstance(OPTIONS[name][1], bool):
        return not equals and _put(name, "", asked)
    if equals:
        return _put(name, value, asked)
    return bool(todo) and _put(name, todo.pop(), asked)


def _short(word: str, todo: list[str], asked: dict[str, Any]) -> bool:
    """Take `-c`, `-lc`, `-e value`, `-evalue` or `-ce value`; whether it is plain."""
    for place, letter in enumerate(word[1:], 2):
        name = f"-{letter}"
        if name not in OPTIONS:
            return False
        if isinstance(OPTIONS[name][1], bool):
            _put(name, "", asked)
        elif place < len(word):
            return _put(name, word[place:], asked)  # whatever it begins with, = too
        else:
            return bool(todo) and _put(name, todo.pop(), asked)
    return True


def _put(spelling: str, value: str, asked: dict[str, Any]) -> bool:
    """Note an option; whether its value is one that it takes."""
    name, takes = OPTIONS[spelling]
    if isinstance(takes, bool):
        asked[name] = takes
    elif isinstance(takes, range):
        if not (len(value) < 10 and value.isascii() and value.isdigit() and int(value) in takes):
            return False
        asked[name] = int(value)
    elif isinstance(takes, tuple) and value not in takes:
        return False
    elif name in MANY:
        asked[name].append(value)
    else:
        asked[name] = value
    return True
