"""What `sessionindex search` does: hits as ripgrep shows them, or as the contract's JSON.

The options come as a dict, from click (`search`) or read without it (`plain`), and have been found
to make a question. In a pipe a hit is a line, `path:line:snippet`; on a terminal, or with context,
hits stand under the sessions they are in. -c and -l are about the sessions alone, and exact.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from sessionindex.cli import opening
from sessionindex.cli.render import (
    Style,
    flat_hit,
    harmless,
    highlighted,
    local_time,
    project,
    shortened,
    who,
    width,
)

if TYPE_CHECKING:
    from sessionindex import SessionIndex
    from sessionindex.contracts.search_sessions import Hit, SearchResult


def show(asked: dict[str, Any]) -> int:
    """Search and print; the exit status."""
    wanted = [_text(term) for term in (*asked["terms"], *asked["more"])]
    index = opening.opened(asked["root"], asked["layout"], asked["index_dir"])
    if not asked["brute"]:
        index.look_ahead()
    opening.refresh_when_needed(index)
    params = _params(wanted, asked)
    if asked["as_json"]:
        from sessionindex.wire.output import dumps

        answer = index.call("search_sessions", params, brute=asked["brute"])
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if answer["hits"] else 1
    result = index.answer(params, brute=asked["brute"], cursor=False)
    if asked["count"] or asked["sessions"]:
        _sessions(result, asked)
    else:
        _hits(index, result, asked)
    opening.warn(result.warnings)
    return 0 if result.hits else 1


def _text(argument: str) -> str:
    """An argument as its bytes in UTF-8, whatever the locale made of them."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _params(terms: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the parameters of search_sessions."""
    smart = asked["smart"] and any(term != term.lower() for term in terms)
    counting = asked["count"] or asked["sessions"]
    params: dict[str, Any] = {
        "terms": terms,
        "branch": asked["branch"],
        "compacted": asked["compacted"],
        "tools": [_text(name) for name in asked["tools"]],
        "errors": asked["errors"] or None,
        "touched": _text(asked["touched"]) if asked["touched"] is not None else None,
        "match": "all" if asked["every"] else "session" if asked["across"] else "any",
        "caseSensitive": asked["sensitive"] or smart,
        "cwdMatch": "sibling-prefix" if asked["siblings"] else "exact",
        "includeSubagents": not asked["no_subagents"],
        "includeCurrentSession": asked["current"],
        "unique": asked["unique"],
        "order": asked["order"],
        "limit": 1 if counting and not asked["as_json"] else asked["limit"],
        "count": "exact" if counting else "page",
        "startTimestamp": opening.moment(asked["since"]),
        "endTimestamp": opening.moment(asked["until"]),
        "cursor": asked["cursor"],
        "in": list(asked["kinds"]),
        "messageRoles": [_text(role) for role in asked["roles"]],
        "types": [_text(name) for name in asked["types"]],
        "cwds": [opening.folder(folder) for folder in asked["cwds"]],
        "projects": [_text(name) for name in asked["projects"]],
    }
    return {name: value for name, value in params.items() if value not in (None, [])}


def _sessions(result: SearchResult, asked: dict[str, Any]) -> None:
    """One line for each session with hits."""
    style = Style(asked["color"])
    sessions = list(result.by_session)  # newest first
    if asked["order"] == "oldest":
        sessions.reverse()
    elif asked["order"] == "path":
        sessions.sort(key=lambda one: one.path)
    for one in sessions:
        path = style.path(harmless(one.path))
        print(f"{path}:{style.place(str(one.hits))}" if asked["count"] else path)
    if sys.stdout.isatty():
        print(_total(result.total or 0, result.sessions or 0), file=sys.stderr)


def _total(hits: int, sessions: int) -> str:
    if not hits:
        return "no hits"
    return f"{hits:,} hit{'s' * (hits != 1)} in {sessions:,} session{'s' * (sessions != 1)}"


def _hits(index: SessionIndex, result: SearchResult, asked: dict[str, Any]) -> None:
    style = Style(asked["color"])
    around = asked["context"]
    heading = sys.stdout.isatty() if asked["heading"] is None else asked["heading"]
    if not heading and around is None:
        for hit in result.hits:
            print(flat_hit(hit, style))
        _say_more(result)
        return
    words = index.headings(result)
    context = {} if around is None else index.context(result, around)
    groups: dict[str, list[Hit]] = {}
    for hit in result.hits:
        groups.setdefault(hit.session_path, []).append(hit)
    for number, (path, hits) in enumerate(groups.items()):
        if number:
            print()
        _heading(hits[0], words.get(path, ""), style)
        for hit in hits:
            if around is None:
                _one(hit, style)
            else:
                from sessionindex.cli import transcript

                transcript.print_hit(hit, context.get((path, hit.line_no), ()), style)
    if result.has_more:
        _say_more(result)
    elif result.total is not None and sys.stdout.isatty():
        gap = "\n" if result.hits else ""
        print(f"{gap}{_total(result.total, result.sessions or 0)}", file=sys.stderr)


def _say_more(result: SearchResult) -> None:
    if result.has_more:
        opening.say(f"{len(result.hits)} shown, there are more: --limit N, or -c for their number")


def _heading(hit: Hit, words: str, style: Style) -> None:
    name = harmless(project(hit.cwd))
    day = local_time(hit.session_timestamp)
    room = width() - len(name) - len(day) - 4
    quoted = f"  {shortened(harmless(words), room)}" if words and room > 8 else ""
    print(f"{style.strong(name)}  {day}{style.quiet(quoted)}")
    import shlex

    print(style.path(f"  pi --session {shlex.quote(harmless(hit.session_path))}"))


def _one(hit: Hit, style: Style) -> None:
    place = f"{hit.line_no:>6}"
    speaker = shortened(harmless(who(hit.type, hit.message_role)), 16)
    kind = "" if hit.kind in ("text", "shell") else f" {hit.kind}"
    room = max(30, width() - len(place) - len(speaker) - len(kind) - 4)
    snippet = highlighted(hit.snippet, hit.matches, style, room)
    print(f"{style.place(place)}  {style.quiet(speaker + kind)}  {snippet}")
