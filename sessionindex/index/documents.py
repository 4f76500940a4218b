"""An entry -> its document: the fields of `schema`, filled.

Goal: everything that a question narrows by, and nothing that a question would show. What the gram
fields are told is decided in `narrowing`, what the columns say of the session's tree in `signals`;
here they become the fields of one document, in the types that tantivy wants: it notices a wrong
one only at the commit, and an unknown field never.

A text longer than MAX_TEXT gets a flag instead of grams. Apart from `schema` because only writing
needs it, and the modules that it needs.
"""

from __future__ import annotations

from typing import Any

from sessionindex import entry as entries
from sessionindex import match, signals
from sessionindex.fold import PAD, key, token
from sessionindex.index import schema
from sessionindex.model import Entry
from sessionindex.narrowing import narrowing


def document(entry: Entry, session: int, offset: int, length: int) -> tuple[dict[str, Any], int]:
    """The fields of an entry's document, and how many characters of text they hold."""
    fields: dict[str, Any] = {
        "session": session,
        "line_no": entry.line_no,
        "offset": offset,
        "length": length,
        "instant": entry.instant + schema.SHIFT,
        "type": schema.name_term(entry.type),
    }
    flags = _place_in_tree(fields, entry.value) if entry.id else _no_place(fields, entry.value)
    tools = match.tools_of(entry)
    if tools:
        fields["tool"] = sorted({schema.name_term(name) for name in tools})
    if entry.role is not None:
        fields["role"] = schema.name_term(entry.role)
    if entry.floating:
        flags.append(schema.FLOATING)
    size = 0
    texts_of: dict[str, list[str]] = {}
    told = ""
    for kind in entries.kinds(entry):
        found = narrowing(entry, kind, told)
        if found:
            if kind == "text":
                told = found[0]
            texts_of.setdefault(schema.FIELD_OF[kind], []).extend(found)
    for field, texts in texts_of.items():
        length_of_all = sum(map(len, texts))
        size += length_of_all
        if length_of_all > schema.MAX_TEXT:
            flags.append(schema.ALWAYS_OF[field])
        else:
            fields[field] = key(PAD.join((*texts, "")))
    if flags:
        fields["flags"] = flags
    return fields, size


def loose_document(
    value: dict[str, Any], line_no: int, session: int, offset: int, length: int
) -> dict[str, Any]:
    """The fields of a line that stands in the tree and is no entry otherwise."""
    fields = {"session": session, "line_no": line_no, "offset": offset, "length": length}
    _place_in_tree(fields, value)
    return fields | {"flags": [schema.UNTOLD]}


def _place_in_tree(fields: dict[str, Any], value: dict[str, Any]) -> list[str]:
    """Add what the tree of a session needs to know; the flags that come of it."""
    parent = value.get("parentId")
    traits = signals.traits(value)
    fields["id"] = token(value["id"])
    fields["parent"] = token(parent) if isinstance(parent, str) and parent else 0
    fields["shape"], facts = signals.pack(traits)
    if facts:
        fields["facts"] = facts
    return _flags(value, traits)


def _no_place(fields: dict[str, Any], value: dict[str, Any]) -> list[str]:
    fields["id"] = fields["parent"] = fields["shape"] = 0
    return _flags(value, signals.traits(value))


def _flags(value: dict[str, Any], traits: signals.Traits) -> list[str]:
    flags = [schema.UNTOLD] if signals.is_untold(value, traits) else []
    if traits.is_error:
        flags.append(schema.ERROR)
    if traits.calls and (traits.reads or traits.modified):
        flags.append(schema.TOUCHES)
    return flags
