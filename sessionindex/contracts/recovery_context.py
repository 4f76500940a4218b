"""session_recovery_context: what can be proved about a session, for an agent that lost its task.

The first and the last thing the user asked, files read and modified, the latest errors of tools,
calls without a result, the last meaningful action. Nothing is inferred. All of it is decided on the
outline; read are only the lines of what is listed.

Long lists keep their first and their last items. An answer that would not fit where it goes lists
less, always from the middle of the longest list, and counts what it leaves out; then fewer calls of
the last action, and at last fewer errors, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sessionindex import rendering, signals
from sessionindex.fold import told
from sessionindex.scope import SECTION, Scope, Selection, filled, select
from sessionindex.session import OpenSession
from sessionindex.signals import USER, Traits

TOOL: Final = "session_recovery_context"
MAX_FILES: Final = 200
MAX_CALLS: Final = 50
_REQUEST: Final = 2000
_ERROR: Final = 500
_ACTION: Final = 300


@dataclass(frozen=True, slots=True)
class RecoveryQuestion:
    """`executing` is the token of the call that asks, or 0."""

    scope: Scope
    leaf: int | None
    recent_error_limit: int
    executing: int


@dataclass(frozen=True, slots=True)
class Request:
    """Something the user said."""

    entry_id: str
    section_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolError:
    """A result that is an error."""

    entry_id: str
    section_id: str
    tool_call_id: str | None
    tool_name: str | None
    message: str


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call without a result."""

    id: str
    name: str
    entry_id: str
    section_id: str


@dataclass(frozen=True, slots=True)
class Action:
    """The last entry that says or does something; `calls` are (id, name)."""

    entry_id: str
    type: str
    role: str | None
    preview: str | None
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecoveryContext:
    """The answer; lists are shortened, the counts beside them say by how much."""

    scope: Scope
    original_user_request: Request | None
    latest_user_instruction: Request | None
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]
    omitted_read_files: int
    omitted_modified_files: int
    recent_errors: tuple[ToolError, ...]
    pending_tool_calls: tuple[PendingCall, ...]
    omitted_pending_tool_calls: int
    last_meaningful_action: Action | None
    compaction_count: int
    entry_count: int
    section_count: int


def recovery_context(
    view: OpenSession,
    question: RecoveryQuestion,
    fits: Callable[[RecoveryContext], bool] = lambda _: True,
) -> RecoveryContext:
    """The answer; raises NothingFound, Changed."""
    selection = filled(select(view.outline, question.scope, question.leaf))
    evidence = _Evidence(selection, question.executing)
    found = _Strings(view, selection)
    users, files = evidence.users, (evidence.reads, evidence.modified)
    errors = evidence.errors[-question.recent_error_limit :]
    pending = list(evidence.pending.values())
    calls = ends(pending, MAX_CALLS)
    reads, modified = (ends(list(shown.items()), MAX_FILES) for shown in files)
    found.take(
        (
            *users,
            *errors,
            *(position for position, _ in calls),
            *(position for _, position in (*reads, *modified)),
            *(() if evidence.last is None else (evidence.last,)),
        )
    )
    whole = RecoveryContext(
        question.scope,
        found.request(users[0]) if users else None,
        found.request(users[-1]) if users else None,
        found.paths(reads, 0),
        found.paths(modified, 1),
        len(evidence.reads) - len(reads),
        len(evidence.modified) - len(modified),
        tuple(map(found.error, errors)),
        tuple(found.call(*place) for place in calls),
        len(pending) - len(calls),
        None if evidence.last is None else found.action(evidence.last, question.executing),
        evidence.compactions,
        len(selection),
        len(selection.starts),
    )
    while not fits(whole) and (less := _shortened(whole)) is not None:
        whole = less
    return whole


def ends(items: Sequence[Any], most: int) -> list[Any]:
    """The first and the last items, half of `most` each, where there are more than that."""
    if len(items) <= most:
        return list(items)
    return [*items[: most // 2], *items[-(most // 2) :]]


class _Evidence:
    """One walk over the traits of a selection, in order; everything by position."""

    def __init__(self, selection: Selection, executing: int) -> None:
        self._executing = executing
        self.users: list[int] = []
        self.reads: dict[int, int] = {}
        self.modified: dict[int, int] = {}
        self.errors: list[int] = []
        self.pending: dict[int, tuple[int, int]] = {}
        """By the token of a call: its position, and its number among the calls there."""
        self.last: int | None = None
        self.compactions = 0
        for position, row in enumerate(selection.rows):
            self._take(position, selection.outline.traits(row))
        self.pending.pop(executing, None)
        del self.users[1:-1]

    def _take(self, position: int, traits: Traits) -> None:
        if traits.role == USER and traits.has_text:
            self.users.append(position)
        for token in traits.reads:
            self.reads.setdefault(token, position)
        for token in traits.modified:
            self.modified.setdefault(token, position)
        if traits.is_error:
            self.errors.append(position)
        for number, token in enumerate(traits.calls):
            self.pending[token] = (position, number)
        if traits.is_result:
            self.pending.pop(traits.result, None)
        self.compactions += traits.is_compaction
        summary = traits.is_compaction or traits.is_branch_summary
        if traits.has_text or summary or any(one != self._executing for one in traits.calls):
            self.last = position


class _Strings:
    """What the lines of some positions say."""

    def __init__(self, view: OpenSession, selection: Selection) -> None:
        self._view = view
        self._selection = selection
        self._ids: dict[int, str] = {}
        self._section_of: dict[int, str] = {}
        self._requests: dict[int, str] = {}
        self._errors: dict[int, tuple[str | None, str | None, str]] = {}
        self._calls: dict[int, tuple[tuple[str, str], ...]] = {}
        self._touched: dict[int, tuple[dict[int, str], dict[int, str]]] = {}
        self._actions: dict[int, tuple[str, str | None, str | None]] = {}

    def take(self, positions: Iterable[int]) -> None:
        """Read these entries, keeping what may be told of them, and not the lines."""
        selection, outline = self._selection, self._selection.outline
        shown = sorted(set(positions))
        for position, (_, value) in zip(
            shown, self._view.read(selection.rows[position] for position in shown), strict=True
        ):
            self._keep(position, value, outline.traits(selection.rows[position]))
        openers = {position: selection.opener(position) for position in shown}
        unknown = sorted({row for row in openers.values() if told(outline.ids[row]) is None})
        names = {row: value["id"] for row, value in self._view.read(unknown)}
        for position, row in openers.items():
            self._section_of[position] = SECTION + (told(outline.ids[row]) or names[row])

    def _keep(self, position: int, value: dict[str, Any], traits: Traits) -> None:
        self._ids[position] = value["id"]
        files = signals.touched(value)
        self._touched[position] = (
            dict(zip(traits.reads, files.reads, strict=True)),
            dict(zip(traits.modified, files.modified, strict=True)),
        )
        self._calls[position] = tuple((call.id, call.name) for call in signals.calls(value))
        if traits.role == USER:
            self._requests[position] = rendering.truncate(signals.words(value), _REQUEST)
        if traits.is_error:
            said = rendering.said(value, _ERROR) or ""
            self._errors[position] = (signals.answered(value), signals.tool(value), said)
        said_now = rendering.said(value, _ACTION)
        self._actions[position] = (value["type"], signals.role(value), said_now)

    def request(self, position: int) -> Request:
        return Request(*self._named(position), self._requests[position])

    def error(self, position: int) -> ToolError:
        call, tool, said = self._errors[position]
        return ToolError(*self._named(position), call, tool, said)

    def call(self, position: int, number: int) -> PendingCall:
        return PendingCall(*self._calls[position][number], *self._named(position))

    def action(self, position: int, executing: int) -> Action:
        tokens = self._selection.outline.traits(self._selection.rows[position]).calls
        calls = zip(tokens, self._calls[position], strict=True)
        kind, role, said = self._actions[position]
        others = tuple(call for token, call in calls if token != executing)
        return Action(self._ids[position], kind, role, said, others)

    def paths(self, files: Sequence[tuple[int, int]], which: int) -> tuple[str, ...]:
        return tuple(self._touched[position][which][token] for token, position in files)

    def _named(self, position: int) -> tuple[str, str]:
        return self._ids[position], self._section_of[position]


def _shortened(whole: RecoveryContext) -> RecoveryContext | None:
    """The same with one item less; None where nothing is left to leave out."""
    sizes = {
        "read_files": sum(map(len, whole.read_files)),
        "modified_files": sum(map(len, whole.modified_files)),
        "pending_tool_calls": sum(
            len(call.id) + len(call.name) + len(call.entry_id) for call in whole.pending_tool_calls
        ),
    }
    name = max(sizes, key=lambda one: (len(getattr(whole, one)) > 0, sizes[one]))
    items = getattr(whole, name)
    if items:
        omitted = f"omitted_{name}"
        changed = {name: _without_middle(items), omitted: getattr(whole, omitted) + 1}
        return replace(whole, **changed)
    action = whole.last_meaningful_action
    if action and action.calls:
        less = replace(action, calls=_without_middle(action.calls))
        return replace(whole, last_meaningful_action=less)
    if whole.recent_errors:
        return replace(whole, recent_errors=whole.recent_errors[1:])
    return None


def _without_middle(items: tuple[Any, ...]) -> tuple[Any, ...]:
    middle = len(items) // 2
    return items[:middle] + items[middle + 1 :]
