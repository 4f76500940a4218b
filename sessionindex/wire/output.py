"""JSON as it leaves the program.

`raw` is written as the file's own bytes (`Raw`), everything else by orjson, and by the slow writer
where orjson refuses (lone surrogates, large integers). Control characters beyond ASCII and marks
that turn the direction of text are written as escapes: a terminal would obey them.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

from sessionindex.text import compact_json


class Raw(bytes):
    """A JSON value that is written as these bytes of a file."""


def dumps(value: Any, *, pretty: bool = False) -> bytes:
    """JSON for output; what a terminal could take for a command is written as an escape."""
    import orjson  # answers for people need none

    try:
        option = orjson.OPT_INDENT_2 if pretty else None
        data = orjson.dumps(value, default=_fragment, option=option)
    except TypeError:  # a lone surrogate, or an integer beyond 64 bits
        data = compact_json(value).encode("utf-8")
    if data.isascii() and b"\x7f" not in data:
        return data
    text = data.decode("utf-8", "replace")
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode("utf-8")


def _fragment(value: Any) -> Any:
    if isinstance(value, Raw):
        import orjson

        return orjson.Fragment(value)
    raise TypeError


# DEL and C1 (a terminal may take them for ESC [), and marks that turn the text's direction.
_CONTROLS: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def iso(instant: int | None) -> str | None:
    """Milliseconds as an ISO 8601 instant in UTC."""
    if instant is None:
        return None
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(instant // 1000))
    return f"{stamp}.{instant % 1000:03}Z"
