"""What the index knows of one session file, and the document that says so.

A `Record` is what a question is answered from without opening the file: its header, how far it is
indexed and what proves that (`coverage`), how many entries it has, where its branch ends. It is
kept as one stored JSON array in the file's document, its path relative to the root; lines that are
no entries are in documents of their own, as (line_no, number of the reason).

A header without a zone is read in that of the host, so its instant is found anew whenever a
document is read. Nothing here knows tantivy: who has all records from elsewhere (`snapshot`) need
not wait for it. What the fields of the documents are called is for `schema`.
"""

import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sessionindex import jsonline
from sessionindex.coverage import Cursor, Identity
from sessionindex.model import Session
from sessionindex.timestamps import instant_ms, stored


class Record(NamedTuple):
    """What the index knows of one file; `problems` are (number of the reason, how many lines).

    `name` and `leaf` are those of `signals.Tip` after the last indexed line. (A tuple: thousands
    are made when an index is opened.)
    """

    key: int
    path: str
    session: Session
    name: str | None
    cursor: Cursor
    entries: int
    problems: tuple[tuple[int, int], ...]
    leaf: int


def below(path: str, root: str) -> str:
    """A path of the root as the index spells it."""
    return os.path.relpath(path, root)


def file_document(record: Record, root: str) -> dict[str, Any]:
    """The fields of a file's document; its path is kept relative to the root."""
    path = below(record.path, root)
    facts = [
        record.key,
        path,
        list(record.session),
        record.name,
        list(record.cursor.identity),
        [getattr(record.cursor, name) for name in _CURSOR],
        record.entries,
        list(map(list, record.problems)),
        record.leaf,
    ]
    return {"file": record.key, "path": path, "facts": jsonline.compact(facts).encode()}


def problem_document(key: int, problems: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The fields of a document that lists problems of a file."""
    return {"problems": key, "facts": jsonline.compact(list(map(list, problems))).encode()}


def problem_list(facts: bytes) -> list[tuple[int, int]]:
    """(line_no, number of the reason) of a document that lists problems."""
    return [(line_no, number) for line_no, number in jsonline.value(facts)]


_CURSOR: Final = ("proven", "offset", "lines", "checksum", "head", "tail")


def recorded(facts: bytes, root: str) -> Record:
    """The Record that a file document holds; a header without zone is read in the zone of now."""
    import orjson  # exact here, and where a snapshot spares the documents nobody waits for it

    try:
        found = orjson.loads(facts)
    except orjson.JSONDecodeError:
        found = jsonline.value(facts)
    number, path, header, name, identity, cursor, count, problems, leaf = found
    session = Session._make(header)
    moment = stored(session.timestamp) if not session.timestamp.endswith("Z") else None
    if moment and moment[1]:
        session = session._replace(timestamp_ms=instant_ms(session.timestamp) or 0)
    return Record(
        number,
        f"{root.rstrip('/')}/{path}",
        session,
        name,
        Cursor._make((Identity._make(identity), *cursor)),
        count,
        tuple([(number, count) for number, count in problems]) if problems else (),
        leaf,
    )
