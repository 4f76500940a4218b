"""`sessionindex search`: hits as ripgrep shows them, or as the contract's JSON."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from sessionindex import SessionIndex
from sessionindex.cli import options
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
from sessionindex.contracts.search_sessions import Hit, SearchResult
from sessionindex.model import KINDS

_EXAMPLES = """\b
Examples:
  sessionindex search 'git push --force' --role user  what you asked for yourself
  sessionindex search -l --cwd . 'flaky test'         sessions of this folder
  sessionindex search -c --all docker 'port 5432' --since 2w
  sessionindex search --compacted hidden 'port 5432'  what compaction took out of sight
  sessionindex search --touched app.py --tool edit    every edit of a file, by any session
"""


@click.command(epilog=_EXAMPLES, short_help="Find literals in all sessions.")
@click.argument("terms", nargs=-1, metavar="TERM...")
@click.option(
    "-e", "--term", "more", multiple=True, metavar="TERM", help="A term; may begin with -."
)
@click.option("--all", "every", is_flag=True, help="Every term in the same entry (else any).")
@click.option("--across", is_flag=True, help="Every term somewhere in the same session.")
@click.option("-s", "--case-sensitive", "sensitive", is_flag=True, help="Case matters.")
@click.option("-i", "--ignore-case", "ignore", is_flag=True, help="Case does not matter (default).")
@click.option(
    "-S", "--smart-case", "smart", is_flag=True, help="Case matters if a term has capitals."
)
@click.option(
    "--in", "kinds", multiple=True, type=click.Choice(KINDS), help="Where to look (repeat)."
)
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Only messages of this role.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only entries of this type.")
@click.option("--cwd", "cwds", multiple=True, metavar="DIR", help="Only sessions of this folder.")
@click.option("--siblings", is_flag=True, help="With --cwd: also folders named DIR-….")
@click.option("--project", "projects", multiple=True, metavar="NAME", help="Only this project.")
@click.option(
    "--branch",
    type=click.Choice(["active", "abandoned", "any"]),
    help="On the branch of the last entry, or off it.",
)
@click.option(
    "--compacted",
    type=click.Choice(["hidden", "visible", "any"]),
    help="What the newest compaction hides, or what is still seen.",
)
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Calls of NAME, and results.")
@click.option("--errors", is_flag=True, help="Only results of calls that failed.")
@click.option("--touched", metavar="PATH", help="Only calls that read or modify PATH (or …/PATH).")
@click.option("--since", metavar="TIME", help="Not before: ISO, 2d, 12h, today, yesterday.")
@click.option("--until", metavar="TIME", help="Not after: the same.")
@click.option("--no-subagents", is_flag=True, help="Leave delegated runs out.")
@click.option("--current", is_flag=True, help="Include the session this runs inside.")
@click.option(
    "-l", "--sessions-only", "sessions", is_flag=True, help="Paths of sessions with hits."
)
@click.option("-c", "--count", "count", is_flag=True, help="Exact number of hits in each session.")
@click.option(
    "-C", "--context", type=click.IntRange(0, 1000), metavar="N", help="N entries around a hit."
)
@click.option("--heading/--no-heading", default=None, help="Group by session (on a terminal).")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Hits at most."
)
@click.option("--order", type=click.Choice(["newest", "oldest", "path"]), default="newest")
@click.option("--unique", is_flag=True, help="Copies of an entry (forks) once.")
@click.option("--cursor", metavar="TOKEN", help="Go on where --json said nextCursor.")
@click.option("--json", "as_json", is_flag=True, help="The answer as JSON.")
@click.option("--brute", is_flag=True, help="Read the files, without the index.")
@options.color_option
@options.root_options
def command(terms: tuple[str, ...], more: tuple[str, ...], **asked: Any) -> int:
    """Find entries that hold TERM, a literal, in all sessions: exactly, and newest first."""
    wanted = [_text(term) for term in (*terms, *more)]
    entries = (asked[name] for name in ("branch", "compacted", "tools", "errors", "touched"))
    if not wanted and not any(one for one in entries if one != "any"):
        raise click.UsageError("no term given")
    if "" in wanted:
        raise click.UsageError("an empty term would match everything")
    index = options.opened(asked["root"], asked["layout"], asked["index_dir"])
    options.refresh_when_needed(index)
    params = _params(wanted, asked)
    if asked["as_json"]:
        from sessionindex.wire.output import dumps

        answer = index.call("search_sessions", params, brute=asked["brute"])
        sys.stdout.buffer.write(dumps(answer, pretty=sys.stdout.isatty()) + b"\n")
        return 0 if answer["hits"] else 1
    result = index.answer(params, brute=asked["brute"])
    if asked["count"] or asked["sessions"]:
        _sessions(result, asked)
    else:
        _hits(index, result, asked)
    options.warn(result.warnings)
    return 0 if result.hits else 1


def _text(argument: str) -> str:
    """An argument as its bytes in UTF-8, whatever the locale made of them."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _params(terms: list[str], asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the parameters of search_sessions."""
    if asked["every"] and asked["across"]:
        raise click.UsageError("--all and --across exclude each other")
    if asked["sensitive"] and asked["ignore"]:
        raise click.UsageError("-s and -i exclude each other")
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
        "startTimestamp": options.moment(asked["since"]),
        "endTimestamp": options.moment(asked["until"]),
        "cursor": asked["cursor"],
        "in": list(asked["kinds"]),
        "messageRoles": [_text(role) for role in asked["roles"]],
        "types": [_text(name) for name in asked["types"]],
        "cwds": [options.folder(folder) for folder in asked["cwds"]],
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
        options.say(f"{len(result.hits)} shown, there are more: --limit N, or -c for their number")


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
