"""JSON schemas of what the tools answer, one constant for each; `schemas` puts them to their tools.

An answer of a recovery tool is {content, details}: `content` is the payload, or text where the tool
only has something to say (nothing found, a cursor that is refused), and always text when a section
is read. `details` are its counts.

Additional properties are allowed everywhere: a client that checks an answer must not refuse one of
a newer server.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]


def giving(properties: dict[str, Schema], *optional: str) -> Schema:
    """An object in which all these are, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def listed(items: Schema, description: str | None = None) -> Schema:
    told = {} if description is None else {"description": description}
    return {"type": "array", "items": items, **told}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
CURSOR: Final[Schema] = {
    "type": ["string", "null"],
    "description": "Give it back as cursor for the next page; null at the end.",
}
_LINE: Final[Schema] = {"type": "integer", "minimum": 1}
_WARNINGS: Final = listed(
    giving({"path": TEXT, "reason": TEXT}),
    "What could not be read. Where there are any, an empty answer does not mean that nothing is.",
)

_HIT: Final = giving(
    {
        "sessionPath": TEXT,
        "sessionId": TEXT,
        "cwd": TEXT,
        "sessionTimestamp": TEXT,
        "lineNo": _LINE,
        "entryId": maybe(TEXT),
        "timestamp": TEXT,
        "type": TEXT,
        "messageRole": maybe(TEXT),
        "kind": TEXT,
        "snippet": TEXT,
        "matches": listed(
            {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
            "[start, end] in the snippet.",
        ),
    }
)
_COVERAGE: Final = giving(
    dict.fromkeys(
        ("files", "fresh", "behind", "stale", "new", "scannedBytes", "skipped"),
        COUNT,
    )
)
SEARCH: Final = giving(
    {
        "hits": listed(_HIT),
        "total": maybe(COUNT),
        "sessions": maybe(COUNT),
        "hasMore": FLAG,
        "nextCursor": CURSOR,
        "coverage": _COVERAGE,
        "warnings": _WARNINGS,
    }
)

_SESSION: Final[Schema] = giving(
    {
        "id": TEXT,
        "path": {"type": "string", "description": "Names the session for session_entries."},
        "timestamp": TEXT,
        "cwd": TEXT,
        "subagentSessions": listed({"$ref": "#/$defs/session"}, "Runs that it delegated."),
        "parentSessionPath": {"type": "string", "description": "What it was forked from."},
    },
    "parentSessionPath",
)
LIST: Final[Schema] = {
    **giving({"sessions": listed({"$ref": "#/$defs/session"}), "warnings": _WARNINGS}),
    "$defs": {"session": _SESSION},
}

ENTRY: Final = giving(
    {
        "lineNo": _LINE,
        "id": maybe(TEXT),
        "parentId": maybe(TEXT),
        "timestamp": TEXT,
        "type": TEXT,
        "messageRole": maybe(TEXT),
        "text": maybe(TEXT),
        "raw": {"type": "object", "description": "The whole line of the file."},
    }
)
_PROBLEMS: Final = listed(
    giving(
        {
            "lineNo": maybe(_LINE),
            "code": {"type": "string", "enum": ["invalid_json", "invalid_entry", "legacy_version"]},
            "reason": TEXT,
        }
    ),
    "Lines of the whole file that are no entries.",
)
ENTRIES: Final = giving({"entries": listed(ENTRY), "warnings": _PROBLEMS})


# --- one session ---------------------------------------------------------------------------------


def _told(payload: Schema | None) -> Schema:
    """An answer of a recovery tool."""
    content = TEXT if payload is None else {"anyOf": [payload, TEXT]}
    return giving({"content": content, "details": {"type": "object"}})


_SCOPE: Final[Schema] = {"type": "string", "enum": ["active", "all"]}
_SECTION: Final = giving(
    {
        "id": TEXT,
        "label": TEXT,
        "startEntryId": TEXT,
        "endEntryId": TEXT,
        "entryCount": COUNT,
        "roles": {"type": "object", "additionalProperties": COUNT},
        "toolCalls": COUNT,
        "toolResults": COUNT,
        "errors": COUNT,
        "readFileCount": COUNT,
        "modifiedFileCount": COUNT,
    }
)
OVERVIEW: Final = _told(
    giving(
        {
            "scope": _SCOPE,
            "session": giving(
                {
                    "id": maybe(TEXT),
                    "name": maybe(TEXT),
                    "persisted": FLAG,
                    "hasParentSession": FLAG,
                }
            ),
            "counts": giving(
                dict.fromkeys(
                    (
                        "selectedEntries",
                        "activeEntries",
                        "allEntries",
                        "sections",
                        "compactions",
                        "leaves",
                        "otherBranches",
                    ),
                    COUNT,
                )
            ),
            "sections": listed(_SECTION),
            "hasMore": FLAG,
            "nextCursor": CURSOR,
        }
    )
)
READING: Final = _told(None)

_MATCH: Final = giving(
    {
        "entryId": TEXT,
        "sectionId": TEXT,
        "type": TEXT,
        "role": TEXT,
        "timestamp": {"type": ["string", "number", "null"]},
        "snippet": TEXT,
    },
    "role",
)
MATCHES: Final = _told(
    giving(
        {
            "scope": _SCOPE,
            "query": TEXT,
            "caseSensitive": FLAG,
            "totalMatches": COUNT,
            "returnedMatches": COUNT,
            "hasMore": FLAG,
            "nextCursor": CURSOR,
            "matches": listed(_MATCH),
        }
    )
)

_REQUEST: Final = maybe(giving({"entryId": TEXT, "sectionId": TEXT, "text": TEXT}))
_ACTION: Final = maybe(
    giving(
        {
            "entryId": TEXT,
            "type": TEXT,
            "role": TEXT,
            "preview": TEXT,
            "toolCalls": listed(giving({"id": TEXT, "name": TEXT})),
        },
        "role",
        "preview",
        "toolCalls",
    )
)
_ERROR: Final = giving(
    {
        "entryId": TEXT,
        "sectionId": TEXT,
        "toolCallId": maybe(TEXT),
        "toolName": maybe(TEXT),
        "message": TEXT,
    }
)
_CALL: Final = giving({"id": TEXT, "name": TEXT, "entryId": TEXT, "sectionId": TEXT})
CONTEXT: Final = _told(
    giving(
        {
            "scope": _SCOPE,
            "originalUserRequest": _REQUEST,
            "latestUserInstruction": _REQUEST,
            "readFiles": listed(TEXT),
            "modifiedFiles": listed(TEXT),
            "omittedReadFiles": COUNT,
            "omittedModifiedFiles": COUNT,
            "recentErrors": listed(_ERROR),
            "pendingToolCalls": listed(_CALL),
            "omittedPendingToolCalls": COUNT,
            "lastMeaningfulAction": _ACTION,
            "compactionCount": COUNT,
            "entryCount": COUNT,
            "sectionCount": COUNT,
        }
    )
)
