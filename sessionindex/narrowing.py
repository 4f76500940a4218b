"""What the index is told of an entry: fewer characters than its text, and the same grams.

Goal: every run of three characters of every kind's text stands in the index, and the engine, which
pays for each character it is given, is given few of them twice. Rules:

- A string decoded from JSON differs from its JSON only around escaped characters: the rest stands
  in the JSON already, and only what is around them is told again.
- Structured results repeat the text of their entry in one long string, as it is or escaped. Such
  a string is told by its ends and by what its JSON escapes. The runs that are left out stand in
  the entry's text, which is in another field: who looks for details looks in both.
- What is looked for is long enough, against what it is looked for in, to pay for the search: work
  stays linear in the length of a line.

Pure, and nothing here decides what is a hit: `entry.searchable` does.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sessionindex import entry as entries
from sessionindex import jsonline
from sessionindex.model import Entry, Kind

_LEAST: Final = 64
_SHARE: Final = 16
_SHOWN: Final = '[^"\\\\\x00-\x1f\ud800-\udfff]'
"""A character that JSON shows as it is."""
_INSIDE: Final = re.compile(f"(?<={_SHOWN}{_SHOWN}){_SHOWN}{{3,}}(?={_SHOWN}{_SHOWN})")
"""What is not at the ends of a run of them."""
_GAP: Final = "\x7f\x7f"
"""What stands for it, and is shown as it is too."""


def narrowing(entry: Entry, kind: Kind, told: str = "") -> list[str]:
    """Texts that have, with `told`, every run of three characters that `searchable` has.

    `told` is text of the same entry that the index is told anyway; only details look at it.
    """
    apart: list[str] = []
    if kind == "details" and len(told) >= _LEAST:
        held = entries.structured(entry)
        if held is None:
            return []
        held, apart = _shortened(held, told)
        blocks, decoded = entries.json_blocks(held)
    else:
        blocks, decoded = entries.blocks_of(entry, kind)
        if not blocks:
            return []
    texts = ["\n".join(blocks)]
    if decoded:
        # Of what stands between escaped characters the ends are enough.
        texts.append(_INSIDE.sub(_GAP, "\n".join((texts[0][-2:], *decoded))))
    return texts + apart


class _Plain(str):
    """The ends of a string that JSON shows as it is: though these would be, it is not decoded.

    (`entry.json_blocks` decodes nothing but `str`.)
    """

    __slots__ = ()


def _shortened(value: Any, told: str) -> tuple[Any, list[str]]:
    """The value, its strings that stand in `told` cut to their ends; what JSON escapes in those."""
    least = max(_LEAST, len(told) // _SHARE)
    cut: dict[str, str] = {}
    todo: list[Any] = [[value]]
    while todo:
        item = todo.pop()
        for member in item.values() if isinstance(item, dict) else item:
            if isinstance(member, str):
                if len(member) >= least and member in told:
                    ends = f"{member[:2]}\0\0{member[-2:]}"  # which JSON escapes: it is decoded
                    cut[member] = ends if entries.is_escaped(member) else _Plain(ends)
            elif isinstance(member, dict | list):
                todo.append(member)
    if not cut:
        return value, []
    return _replaced(value, cut, least), [
        _escapes(text) for text, ends in cut.items() if not isinstance(ends, _Plain)
    ]


def _replaced(value: Any, cut: dict[str, str], least: int) -> Any:
    """A copy of a JSON value with other strings in it."""
    top: list[Any] = [value]
    todo: list[Any] = [top]
    while todo:
        holder = todo.pop()
        for place, member in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(member, str):
                if len(member) >= least and member in cut:
                    holder[place] = cut[member]
            elif isinstance(member, dict | list):
                holder[place] = copy = member.copy()
                todo.append(copy)
    return top[0]


def _escapes(text: str) -> str:
    """A string as JSON, of whose plain runs only what touches an escape is left."""
    return jsonline.compact(_INSIDE.sub(_GAP, text))
