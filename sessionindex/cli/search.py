"""`sessionindex search`, for click: its options; what it does is in `hits`.

`plain` reads the same options without click, so an option is declared here and there: a test
compares the two.
"""

from __future__ import annotations

from typing import Any

import click

from sessionindex.cli import hits, options, plain
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
def command(**asked: Any) -> int:
    """Find entries that hold TERM, a literal, in all sessions: exactly, and newest first."""
    if refused := plain.contradiction(asked):
        raise click.UsageError(refused)
    return hits.show(asked)
