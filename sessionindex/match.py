"""Does this entry match? The one place that decides what a hit of `search_sessions` is.

An entry matches when its filters hold (type, role, instant, tools, errors, files touched) and its
terms do: any term, or every term of the entry, in the text of the kinds that were asked for. Both
sides are folded the same way and compared as substrings. The kind of a match is the first, in the
fixed order, that holds a term; its text gives the snippet. Without terms it is the first kind that
the entry has at all. Pure: an Entry in, a Match out.

A file counts as touched by a call that reads or modifies it, as `touched` proves: the path itself,
or one that ends in it at a slash.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from sessionindex import entry as entries
from sessionindex.fold import folded
from sessionindex.model import Entry, Kind
from sessionindex.timestamps import Window, local_to_utc_ms

Mode = Literal["any", "all", "session"]


class Match(NamedTuple):
    """What matched: `kind` and the whole text of that kind; None where only `terms` counts.

    `terms` are the positions of the terms found anywhere in the kinds asked for. `hit` is false
    for an entry that holds terms but fails the filters: it still counts for `match: session`.
    """

    instant: int
    terms: frozenset[int]
    hit: bool
    kind: Kind
    text: str


class Matcher(NamedTuple):
    """The test of one question; None does not filter."""

    terms: tuple[str, ...]
    mode: Mode
    case_sensitive: bool
    kinds: tuple[Kind, ...]
    types: frozenset[str] | None
    roles: frozenset[str] | None
    window: Window
    tools: frozenset[str] | None = None
    errors: bool = False
    touched: str | None = None
    needles: tuple[str, ...] = ()

    def match(self, entry: Entry) -> Match | None:
        """The match of an entry, or None."""
        instant = local_to_utc_ms(entry.instant) if entry.floating else entry.instant
        passes = self._passes(entry, instant)
        if not passes and self.mode != "session":
            return None
        found: set[int] = set()
        kind, text = _NOTHING
        able = entries.kinds(entry)
        for candidate in self.kinds:
            if candidate not in able:
                continue
            haystack = entries.searchable(entry, candidate)
            if not haystack:
                continue
            if not self.needles:
                return Match(instant, frozenset(), passes, candidate, haystack)
            low = folded(haystack, self.case_sensitive)
            here = [index for index, needle in enumerate(self.needles) if needle in low]
            if here and not text:
                kind, text = candidate, haystack
            found.update(here)
            if self._settled(found):
                break
        if not found or (self.mode == "all" and len(found) < len(self.needles)):
            return None
        return Match(instant, frozenset(found), passes, kind, text)

    def _settled(self, found: set[int]) -> bool:
        return bool(found) if self.mode == "any" else len(found) == len(self.needles)

    def _passes(self, entry: Entry, instant: int) -> bool:
        return (
            (self.types is None or entry.type in self.types)
            and (self.roles is None or entry.role in self.roles)
            and self.window.holds(instant)
            and (self.tools is None or not self.tools.isdisjoint(tools_of(entry)))
            and (not self.errors or is_error(entry))
            and (self.touched is None or touches(entry, self.touched))
        )


def tools_of(entry: Entry) -> list[str]:
    """The tools that an entry calls, or whose result it is."""
    if entry.role == "assistant":
        return [name for name, _ in entries.calls(entry)]
    names = []
    if entry.role == "toolResult" and isinstance(
        name := entry.value["message"].get("toolName"), str
    ):
        names.append(name)
    return names


def is_error(entry: Entry) -> bool:
    """Whether an entry is the result of a call that failed."""
    return entry.role == "toolResult" and entry.value["message"].get("isError") is True


def touches(entry: Entry, path: str) -> bool:
    """Whether a call of an entry reads or modifies the file at a path."""
    if entry.type != "message":
        return False
    from sessionindex import signals  # few questions need it

    end = path if path.startswith("/") else f"/{path}"
    found = signals.touched(entry.value)
    return any(one == path or one.endswith(end) for one in (*found.reads, *found.modified))


_NOTHING: Final[tuple[Kind, str]] = ("text", "")


def matcher(
    terms: Sequence[str],
    *,
    mode: Mode,
    case_sensitive: bool,
    kinds: tuple[Kind, ...],
    types: Sequence[str] | None,
    roles: Sequence[str] | None,
    window: Window,
    tools: Sequence[str] | None = None,
    errors: bool = False,
    touched: str | None = None,
) -> Matcher:
    """A Matcher with its needles folded once."""
    return Matcher(
        tuple(terms),
        mode,
        case_sensitive,
        kinds,
        None if types is None else frozenset(types),
        None if roles is None else frozenset(roles),
        window,
        None if tools is None else frozenset(tools),
        errors,
        touched,
        tuple(folded(term, case_sensitive) for term in terms),
    )
