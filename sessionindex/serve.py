"""`call --serve`: requests on one stream, answers on another, a JSON line each, in order.

A request is {id, tool, params?, session?, leafId?, toolCallId?, currentSession?, settings?}, its
answer {id, result} or {id, error}, where the error is the whole message of what was refused. An id
is a string or a whole number and comes back as it was; where a line has none that can be read, the
answer's is null. Names that nobody knows and wrong shapes are refused, nothing is guessed: least of
all settings, which hold the access bound.

The index stays open between requests; current session and settings are those of each request, else
those that the index was made with. A request can fail and never ends the server: what nobody
thought of is an answer too, with its traceback on stderr. It ends when its input does; a reader
that went away is the caller's BrokenPipeError.

`raw` in an answer is the file's own bytes, as everywhere in output.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from sessionindex import SessionIndex
from sessionindex.errors import ParameterError, SessionIndexError
from sessionindex.jsonline import Unreadable, value
from sessionindex.text import spelled
from sessionindex.wire.output import dumps

Id = str | int | None

_TEXTS: Final = ("tool", "session", "leafId", "toolCallId", "currentSession")
_OBJECTS: Final = ("params", "settings")


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose names and shapes are right."""

    id: Id
    tool: str
    params: Mapping[str, Any]
    session: str | None
    leaf_id: str | None
    tool_call_id: str | None
    current_session: str | None
    settings: Mapping[str, Any] | None


class _Refused(Exception):
    """A line that is no request; never leaves this module."""

    def __init__(self, id: Id, reason: str) -> None:
        super().__init__(reason)
        self.id = id


def serve(index: SessionIndex, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each line of `requests` on `answers` until there are no more."""
    for line in requests:
        if line.strip():
            answers.write(answer(index, line) + b"\n")
            answers.flush()


def answer(index: SessionIndex, line: bytes) -> bytes:
    """The answer to one line, as a line without its end."""
    try:
        request = request_of(line)
    except _Refused as refused:
        return dumps({"id": refused.id, "error": str(refused)})
    try:
        # Writing is part of it: an answer that cannot be written is an error of this request.
        return dumps({"id": request.id, "result": _result(index, request)})
    except SessionIndexError as error:
        return dumps({"id": request.id, "error": str(error)})
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        return dumps({"id": request.id, "error": f"internal error: {type(error).__name__}"})


def _result(index: SessionIndex, request: Request) -> dict[str, Any]:
    seen = index.seen_by(settings=request.settings, current_session=request.current_session)
    return seen.written(
        request.tool,
        request.params,
        session=request.session,
        leaf_id=request.leaf_id,
        tool_call_id=request.tool_call_id,
    )


def request_of(line: bytes) -> Request:
    """The request on a line; raises _Refused, with the id where there is one."""
    try:
        given = value(line.strip())
    except Unreadable as error:
        raise _Refused(None, "a request must be a JSON object on one line") from error
    if not isinstance(given, dict):
        raise _Refused(None, "a request must be a JSON object on one line")
    ident = given.get("id")
    # `type`, because True is an int to isinstance.
    if type(ident) not in (str, int):
        raise _Refused(None, "id must be a string or a whole number")
    try:
        return _checked(ident, given)
    except ParameterError as error:
        raise _Refused(ident, str(error)) from error


def _checked(ident: Id, given: Mapping[str, Any]) -> Request:
    for name in given:
        if name not in ("id", *_TEXTS, *_OBJECTS):
            raise ParameterError(f"unknown name in a request: {spelled(name)}")
    for name in _TEXTS:
        if name in given and not isinstance(given[name], str):
            raise ParameterError(f"{name} must be a string")
    for name in _OBJECTS:
        if name in given and not isinstance(given[name], dict):
            raise ParameterError(f"{name} must be an object")
    if "tool" not in given:
        raise ParameterError("tool must be a string")
    return Request(
        ident,
        given["tool"],
        given.get("params", {}),
        given.get("session"),
        given.get("leafId"),
        given.get("toolCallId"),
        given.get("currentSession"),
        given.get("settings"),
    )
