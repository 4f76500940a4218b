"""A session file's first line -> Session, or the contract's reason why it is none.

The rules are those of listing: an object of type `session` with a non-empty `id` and `cwd`, a
readable `timestamp`, and a `parentSession` that is a string where there is one. Unknown fields and
the version do not matter here. The line may be as long as Pi itself reads (1 MiB), byte order mark
and CR included; a longer one is refused before it is parsed.

A file that begins with a session header need not be a session (event streams do too): whether its
lines are entries is for `entry` to say.
"""

from __future__ import annotations

from typing import Any, Final

from sessionindex import jsonline, timestamps
from sessionindex.model import Session
from sessionindex.text import spelled

MAX_BYTES: Final = 1 << 20
"""The longest first line that counts, its LF apart."""

_MAX_VERSION: Final = 2**53 - 1  # no version is larger: beyond it nothing could keep the number

TOO_LONG: Final = f"first line is longer than {MAX_BYTES} bytes"


def parse(data: bytes) -> Session | str:
    """The session of a first line (bytes without LF), or the reason why it is none."""
    if len(data) > MAX_BYTES:
        return TOO_LONG
    head = opening(data)
    return head if isinstance(head, str) else _session(head)


def opening(data: bytes) -> dict[str, Any] | str:
    """The object of a first line of any length, if it is a header at all; else a reason."""
    try:
        value = jsonline.value(data, first=True)
    except jsonline.Unreadable as error:
        return _reason(error.reason)
    if not isinstance(value, dict):
        return "first line is not a JSON object"
    if value.get("type") != "session":
        kind = spelled(value["type"]) if "type" in value else "undefined"
        return f"first line is not a session header (type: {kind})"
    return value


def version(data: bytes) -> int | str:
    """The version that a first line of any length names, if it is a header at all; else a reason.

    Reading one file asks for no more than this: neither id nor directory nor timestamp.
    """
    head = opening(data)
    if isinstance(head, str):
        return head
    number = version_of(head)
    if number:
        return number
    return f"session header version is not a positive integer: {spelled(head['version'])}"


def _reason(reason: str) -> str:
    return "first line is empty" if reason == "line is blank" else f"first {reason}"


def _session(value: dict[str, Any]) -> Session | str:
    for name in ("id", "cwd"):
        if not (isinstance(value.get(name), str) and value[name]):
            return f"session header has no {name}"
    stamp = value.get("timestamp")
    instant = timestamps.instant_ms(stamp) if isinstance(stamp, str) else None
    if not isinstance(stamp, str) or instant is None:
        return "session header has no readable timestamp"
    parent = value.get("parentSession", "")
    if not isinstance(parent, str):
        return "session header parentSession is not a string"
    return Session(value["id"], value["cwd"], stamp, instant, parent or None, version_of(value))


def version_of(value: dict[str, Any]) -> int:
    """The header's version: 1 where it has none, 0 where it is no positive integer."""
    version = value.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int | float):
        return 0
    return min(int(version), _MAX_VERSION) if version >= 1 and version == int(version) else 0
