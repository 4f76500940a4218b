"""session_overview: a session as bounded pages of sections with stable ids.

A section begins at the first entry, at each user message, compaction and branch summary; its id is
that of the entry it begins with. Counts, roles and files come from the outline; only the lines that
name something are read: where a section begins, where it ends if its id is long, and entries with a
role that is not known.

A page that would not fit where it goes holds fewer sections (one at least), and the cursor resumes
after the last that is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sessionindex import rendering, signals, tree
from sessionindex.errors import CallRefused
from sessionindex.fold import told
from sessionindex.scope import (
    SECTION,
    Cursors,
    Place,
    Scope,
    Selection,
    filled,
    largest,
    place_in,
    select,
)
from sessionindex.session import OpenSession, Outline
from sessionindex.signals import COMPACTION, IGNORED, OTHER_ROLE, ROLE, ROLES, Traits

TOOL: Final = "session_overview"
INVALID: Final = "Invalid or stale session_overview cursor for this scope."
CHANGED: Final = "The session changed and the overview cursor no longer resolves on this branch."


@dataclass(frozen=True, slots=True)
class OverviewQuestion:
    """`leaf` is a token: None is the last entry of the file, 0 no entry at all."""

    scope: Scope
    leaf: int | None
    max_sections: int
    cursor: str | None


@dataclass(frozen=True, slots=True)
class SectionSummary:
    """A section in numbers; `roles` in the order in which they are met first."""

    id: str
    label: str
    start_entry_id: str
    end_entry_id: str
    entry_count: int
    roles: tuple[tuple[str, int], ...]
    tool_calls: int
    tool_results: int
    errors: int
    read_file_count: int
    modified_file_count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """A page of sections, and the counts of the whole."""

    scope: Scope
    session_id: str | None
    name: str | None
    has_parent_session: bool
    selected_entries: int
    active_entries: int
    all_entries: int
    section_count: int
    compactions: int
    leaves: int
    other_branches: int
    sections: tuple[SectionSummary, ...]
    has_more: bool
    next_cursor: str | None


def overview(
    view: OpenSession,
    question: OverviewQuestion,
    fits: Callable[[Overview], bool] = lambda _: True,
) -> Overview:
    """The page; raises CallRefused, NothingFound, Changed."""
    scope = question.scope
    cursors = Cursors(TOOL, view, scope)
    after: Place | None = None
    if question.cursor:
        body = cursors.read(question.cursor)
        after = place_in(body, "after") if body else None
        if after is None:
            raise CallRefused(INVALID, scope=scope, cursor_valid=False)
    selection = filled(select(view.outline, scope, question.leaf))
    first = 0
    if after is not None:
        position = selection.find(after)
        if position is None or position not in selection.starts:
            raise CallRefused(CHANGED, scope=scope, cursor_valid=False)
        first = selection.starts.index(position) + 1
    last = min(first + question.max_sections, len(selection.starts))
    whole = _counted(view, selection, question.leaf)
    sections = _sections(view, selection, range(first, last))

    def page(count: int) -> Overview:
        more = first + count < len(selection.starts)
        cursor = None
        if more:
            cursor = cursors.write(after=selection.place(selection.starts[first + count - 1]))
        return replace(whole, sections=tuple(sections[:count]), has_more=more, next_cursor=cursor)

    return largest(page, len(sections), fits)


def _counted(view: OpenSession, selection: Selection, leaf: int | None) -> Overview:
    """The page without its sections."""
    outline = view.outline
    active = len(select(outline, "active", leaf)) if selection.scope == "all" else len(selection)
    every = len(select(outline, "all", leaf)) if selection.scope == "active" else len(selection)
    leaves = _leaves(outline)
    return Overview(
        selection.scope,
        outline.session_id,
        outline.name,
        outline.has_parent,
        len(selection),
        active,
        every,
        len(selection.starts),
        sum(bool(outline.shapes[row] & COMPACTION) for row in selection.rows),
        leaves,
        max(0, leaves - (active > 0)),
        (),
        False,
        None,
    )


def _leaves(outline: Outline) -> int:
    """Childless entries of the whole file, control entries among them."""
    rows = [row for row, shape in enumerate(outline.shapes) if not shape & IGNORED]
    return tree.leaves([outline.ids[row] for row in rows], [outline.parents[row] for row in rows])


def _sections(
    view: OpenSession, selection: Selection, numbers: Sequence[int]
) -> list[SectionSummary]:
    """The summaries of some sections, after reading what names something in them."""
    spans = [selection.span(number) for number in numbers]
    rows, ids, shapes = selection.rows, view.outline.ids, view.outline.shapes
    opening = {rows[start] for start, _ in spans}
    shown = opening | {rows[end - 1] for _, end in spans if told(ids[rows[end - 1]]) is None}
    for start, end in spans:
        shown.update(row for row in rows[start:end] if shapes[row] & ROLE == OTHER_ROLE)
    names: dict[int, str] = {}
    labels: dict[int, str] = {}
    roles: dict[int, str] = {}
    for row, value in view.read(sorted(shown)):
        names[row], roles[row] = value["id"], signals.role(value) or ""
        if row in opening:
            labels[row] = rendering.label(value)
    found = []
    for start, end in spans:
        first, last = rows[start], rows[end - 1]
        traits = [view.outline.traits(row) for row in rows[start:end]]
        spoken = Counter(
            roles[row] if one.role == OTHER_ROLE else ROLES[one.role - 1]
            for row, one in zip(rows[start:end], traits, strict=True)
            if one.role
        )
        end_id = told(ids[last]) or names[last]
        found.append(_summary(names[first], labels[first], end_id, tuple(spoken.items()), traits))
    return found


def _summary(
    start_id: str,
    label: str,
    end_id: str,
    roles: tuple[tuple[str, int], ...],
    traits: Sequence[Traits],
) -> SectionSummary:
    return SectionSummary(
        SECTION + start_id,
        label,
        start_id,
        end_id,
        len(traits),
        roles,
        sum(len(one.calls) for one in traits),
        sum(one.is_result for one in traits),
        sum(one.is_error for one in traits),
        len({path for one in traits for path in one.reads}),
        len({path for one in traits for path in one.modified}),
    )
