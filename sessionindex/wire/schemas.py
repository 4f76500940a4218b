"""The tools as clients are told of them: names, when to use them, and JSON schemas of both sides.

Pure data, for whoever offers the tools to a model: the MCP server, and the installer of the Pi
extension, which writes it into the extension. Cheap to import: nothing of the package is.

What is here is what `SessionIndex.call` takes and gives, and no more. Bounds are those that the
answers are made with; a client may check them, the library does in any case, with the contract's
own messages. Properties stand in the order of the contracts.

`parameters` refuse unknown names; results name what is always there and allow more, so that a newer
server does not break an older client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sessionindex.wire import answer_schemas as answers
from sessionindex.wire.answer_schemas import Schema


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: `parameters` and `result` are JSON schemas of objects."""

    name: str
    title: str
    description: str
    parameters: Schema
    result: Schema


# --- parameters ----------------------------------------------------------------------------------


def taking(properties: dict[str, Schema], *required: str) -> Schema:
    """The schema of parameters: these names and no others."""
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return schema | ({"required": list(required)} if required else {})


def text(description: str, most: int | None = None) -> Schema:
    """A string that is not empty."""
    longest = {} if most is None else {"maxLength": most}
    return {"type": "string", "minLength": 1, **longest, "description": description}


def texts(description: str) -> Schema:
    """One or more strings that are not empty."""
    items = {"type": "string", "minLength": 1}
    return {"type": "array", "items": items, "minItems": 1, "description": description}


def choice(description: str, *words: str, default: str | None = None) -> Schema:
    known = {} if default is None else {"default": default}
    return {"type": "string", "enum": list(words), **known, "description": description}


def flag(description: str, default: bool = False) -> Schema:
    return {"type": "boolean", "default": default, "description": description}


def whole(description: str, least: int = 1, most: int | None = None, **known: int) -> Schema:
    """A whole number within bounds; `default` may be given."""
    end = {} if most is None else {"maximum": most}
    return {"type": "integer", "minimum": least, **end, **known, "description": description}


_CWDS: Final = texts("Only sessions of these working directories (absolute paths).")
_CWD_MATCH: Final = choice(
    "sibling-prefix also takes directories named like DIR-…, as worktrees are.",
    "exact",
    "sibling-prefix",
    default="exact",
)
_START: Final = text("Not before: an ISO 8601 date (a day of the host's zone) or date-time.")
_END: Final = text("Not after: an ISO 8601 date (that whole day) or date-time.")
_CURRENT: Final = flag("Also the session that is running now, which is left out otherwise.")
_TYPES: Final = texts("Only entries of these types, e.g. message, compaction, branch_summary.")
_ROLES: Final = texts("Only messages of these roles, e.g. user, assistant, toolResult.")
_SCOPE: Final = choice(
    "active: the branch that ends now; all: abandoned branches too.",
    "active",
    "all",
    default="active",
)
_CURSOR: Final = text("nextCursor of the page before; everything else as it was.", 2000)

_SEARCH: Final = taking(
    {
        "terms": texts("Literals (no patterns). May be missing where another filter asks."),
        "match": choice(
            "any term, all in the same entry, or each somewhere in the same session.",
            "any",
            "all",
            "session",
            default="any",
        ),
        "caseSensitive": flag("Whether case matters."),
        "in": {
            "type": "array",
            "items": {
                "type": "string",
                "enum": ["text", "tools", "shell", "thinking", "details", "system"],
            },
            "minItems": 1,
            "default": ["text", "tools", "shell"],
            "description": "Where to look: what was said (text), calls (tools), typed commands and"
            " their output (shell), thinking, structured results (details), system prompts.",
        },
        "cwds": _CWDS,
        "cwdMatch": _CWD_MATCH,
        "projects": texts("Only projects: the last part of a working directory (or NAME-…)."),
        "sessionPaths": texts("Only these session files (absolute paths)."),
        "types": _TYPES,
        "messageRoles": _ROLES,
        "startTimestamp": _START,
        "endTimestamp": _END,
        "includeCurrentSession": _CURRENT,
        "includeSubagents": flag("Also transcripts of delegated runs.", True),
        "unique": flag("Copies of an entry, as forks have them, once."),
        "order": choice("Of the hits.", "newest", "oldest", "path", default="newest"),
        "limit": whole("Hits a page.", default=50),
        "count": choice(
            "exact counts every hit, which costs time for common words.",
            "page",
            "exact",
            default="page",
        ),
        "branch": choice(
            "On the branch of the last entry, or left behind by going back.",
            "active",
            "abandoned",
            "any",
            default="any",
        ),
        "compacted": choice(
            "What the newest compaction hides from the model, or what it still sees.",
            "hidden",
            "visible",
            "any",
            default="any",
        ),
        "tools": texts("Only calls of these tools, and their results."),
        "errors": flag("Only results of calls that failed."),
        "touched": text("Only calls that read or modify this file (a path or its last parts)."),
        "cursor": text("nextCursor of the page before; everything else as it was."),
    }
)

_LIST: Final = taking(
    {
        "cwds": _CWDS,
        "cwdMatch": _CWD_MATCH,
        "includeCurrentSession": _CURRENT,
        "startTimestamp": _START,
        "endTimestamp": _END,
        "sortBy": choice("Of sessions.", "timestamp", "cwd", "path", "id", default="timestamp"),
        "sortDirection": choice("desc: the newest first.", "asc", "desc", default="asc"),
        "limit": whole("Sessions at most, after sorting."),
    }
)

_ENTRIES: Final = taking(
    {
        "sessionPath": text("The session file: a path of list_sessions or search_sessions."),
        "startLineNo": whole("First line (line 1 is the header)."),
        "endLineNo": whole("Last line."),
        "ids": texts("Only entries with these ids."),
        "parentIds": texts("Only entries with these parents."),
        "startTimestamp": _START,
        "endTimestamp": _END,
        "types": _TYPES,
        "messageRoles": _ROLES,
        "search": {
            **taking(
                {
                    "terms": texts("Literals; any of them."),
                    "caseSensitive": flag("Whether case matters."),
                },
                "terms",
            ),
            "description": "Only entries whose text holds a literal.",
        },
        "limit": whole("Entries at most."),
    },
    "sessionPath",
)

_OVERVIEW: Final = taking(
    {
        "scope": _SCOPE,
        "max_sections": whole("Sections a page.", most=100, default=20),
        "cursor": _CURSOR,
    }
)

_READ: Final = taking(
    {
        "section_id": text("A section of session_overview; or entry_id.", 200),
        "entry_id": text("Read from this entry on; or section_id.", 200),
        "scope": _SCOPE,
        "max_entries": whole("Entries a page.", most=50, default=20),
        "max_body_chars": whole("Characters of an entry a page.", 100, 8000, default=2000),
        "cursor": _CURSOR,
    }
)

_FIND: Final = taking(
    {
        "query": text("A literal.", 500),
        "scope": _SCOPE,
        "case_sensitive": flag("Whether case matters."),
        "limit": whole("Matches a page.", most=50, default=20),
        "cursor": _CURSOR,
    },
    "query",
)

_CONTEXT: Final = taking(
    {"scope": _SCOPE, "recent_error_limit": whole("Recent errors.", most=20, default=5)}
)

TOOLS: Final = (
    Tool(
        "search_sessions",
        "Search all sessions",
        "Find exact literals in everything ever said in past Pi sessions, newest first: messages,"
        " tool calls and their results. Use it when the user refers to earlier work, or before"
        " solving what may have been solved before. Hits name the session file and the line;"
        " session_entries reads around them.",
        _SEARCH,
        answers.SEARCH,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List recorded Pi sessions with their working directory and the runs that they delegated."
        ' Use it to find a session by folder or date: {"sortDirection": "desc", "limit": 1} is'
        " the newest previous one. To find one by what was said, use search_sessions.",
        _LIST,
        answers.LIST,
    ),
    Tool(
        "session_entries",
        "Read entries of a session",
        "Read entries of one session file in the order of the file, filtered by line, role, type,"
        " time or literal. Use it after search_sessions or list_sessions; around a hit, set"
        " startLineNo and endLineNo.",
        _ENTRIES,
        answers.ENTRIES,
    ),
    Tool(
        "session_overview",
        "Map the current session",
        "Map the running session into sections with stable ids and counts, also what compaction"
        " took out of sight. Use it first when you have lost track of your own session.",
        _OVERVIEW,
        answers.OVERVIEW,
    ),
    Tool(
        "session_read_section",
        "Read the current session",
        "Read the running session as it was said: one section of session_overview, or everything"
        " from an entry on. Pass section_id or entry_id, then cursor to go on.",
        _READ,
        answers.READING,
    ),
    Tool(
        "session_search",
        "Search the current session",
        "Find a literal in the running session, also in what compaction took out of sight: text,"
        " tool arguments and results. Other sessions: search_sessions.",
        _FIND,
        answers.MATCHES,
    ),
    Tool(
        "session_recovery_context",
        "Recover the current task",
        "What can be proved about the running session: first and latest request, files read and"
        " modified, recent errors, calls without a result, the last action. Use it right after a"
        " compaction, before going on.",
        _CONTEXT,
        answers.CONTEXT,
    ),
)
"""In the order in which they are listed; the last four are of one session, the running one."""
