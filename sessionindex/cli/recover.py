"""`sessionindex recover`: what can be proved about a session, on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from sessionindex.cli import one_session
from sessionindex.cli.render import Style, harmless, padded, shortened, width
from sessionindex.contracts.recovery_context import Action, RecoveryContext, Request
from sessionindex.text import squeeze

_EXAMPLES: Final = """\b
Examples:
  sessionindex recover 019e2b1c          what it was about, where it stopped
  sessionindex recover                   inside Pi, after a compaction
  sessionindex read 019e2b1c --entry ID  read on from an entry that it names
"""
_NAME: Final = 9
_REQUEST: Final = 3  # lines; all together fits a screen of 24
_MODIFIED: Final = 3
_OTHERS: Final = 2


@click.command(epilog=_EXAMPLES, short_help="What a session was about, and where it stopped.")
@click.option("--limit", type=click.IntRange(1, 20), metavar="N", help="Recent errors (5).")
@one_session.session_options
def command(**asked: Any) -> int:
    """Summarize SESSION (a path, an id, the beginning of one; else the current one).

    What you asked first and last, files that were modified and read, recent errors, calls without
    a result, and the last action; entries are named by their ids. Nothing is guessed.
    """
    params = one_session.params(asked, recent_error_limit=asked["limit"])
    index = one_session.opened(asked)
    if asked["as_json"]:
        return one_session.print_answer(index, "session_recovery_context", params, asked)
    result = index.recovery_context(**one_session.how(asked), **params)
    style = Style(asked["color"])
    head = one_session.header(index, asked["session"])
    print(one_session.heading(head, asked, style))
    print(style.quiet(_counts(result)) + "\n")
    for name, lines in _rows(result, head.cwd if head else "", width() - _NAME - 2):
        for place, line in enumerate(lines):
            print(f"{style.place(padded('' if place else name, _NAME))}  {line}".rstrip())
    return 0


def _counts(result: RecoveryContext) -> str:
    return one_session.counted(
        (result.entry_count, "entry", "entries"),
        (result.section_count, "section", "sections"),
        (result.compaction_count, "compaction", "compactions"),
    )


def _rows(result: RecoveryContext, cwd: str, room: int) -> Iterator[tuple[str, list[str]]]:
    """The parts of the summary that there are, each with its lines."""
    first, last = result.original_user_request, result.latest_user_instruction
    if first:
        yield "asked", _request(first, room)
    if last and last != first:
        yield "latest", _request(last, room)
    for name, files, omitted, most in (
        ("modified", result.modified_files, result.omitted_modified_files, _MODIFIED),
        ("read", result.read_files, result.omitted_read_files, _OTHERS),
    ):
        if files:
            yield name, _listed([_relative(file, cwd) for file in files], omitted, room, most)
    if result.recent_errors:
        yield (
            "errors",
            [
                _line(error.entry_id, f"{error.tool_name or 'tool'}: {error.message}", room)
                for error in result.recent_errors
            ],
        )
    if result.pending_tool_calls:
        calls = [f"{call.name} ({call.entry_id})" for call in result.pending_tool_calls]
        yield "no result", _listed(calls, result.omitted_pending_tool_calls, room, _OTHERS)
    if result.last_meaningful_action:
        yield "last", _action(result.last_meaningful_action, room)


def _request(request: Request, room: int) -> list[str]:
    return _wrapped(f"{request.entry_id}  {squeeze(request.text)}", room, _REQUEST)


def _action(action: Action, room: int) -> list[str]:
    said = [action.preview] if action.preview else []
    if action.calls:
        said.append("→ " + ", ".join(name for _, name in action.calls))
    who = action.role or action.type
    return _wrapped(f"{action.entry_id}  {who}: {' '.join(said)}", room, _OTHERS)


def _line(entry_id: str, text: str, room: int) -> str:
    return shortened(harmless(f"{entry_id}  {text}"), room)


def _relative(path: str, cwd: str) -> str:
    """A file as it is called in the folder of the session."""
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path


def _listed(items: Sequence[str], omitted: int, room: int, most: int) -> list[str]:
    """As many of the items as fit, and how many more there are."""
    for count in range(len(items), 0, -1):
        left = len(items) - count + omitted
        text = ", ".join(items[:count]) + (f" +{left:,} more" if left else "")
        lines = _wrapped(text, room, most + 1)
        if len(lines) <= most:
            return lines
    return _wrapped(text, room, most)


def _wrapped(text: str, room: int, most: int) -> list[str]:
    """A text in lines of so many columns, and of so many lines at most."""
    rest = harmless(text)
    lines: list[str] = []
    while shortened(rest, room) != rest and len(lines) < most - 1:
        size = max(1, len(shortened(rest, room + 1)) - 1)  # characters that fit
        blank = rest.rfind(" ", 0, size + 1)
        size = blank if blank > 0 else size
        lines.append(rest[:size].rstrip(" "))
        rest = rest[size:].lstrip(" ")
    return [*lines, shortened(rest, room)]
