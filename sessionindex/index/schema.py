"""What is in the index: three kinds of document, their fields, and the format's number.

*entry*: where it is (session key, line_no, offset, length), its instant, type and role, and the
grams of its text; what stands in the session's tree also has its shape and facts (`signals`). A
line that is only that, for want of a readable timestamp, is an entry without instant and grams.
*file*: one for each session file, with everything `Record` says, as one stored
JSON array. *problems*: lines of a file that are no entries, as (line_no, number of the reason);
one document for each time some were met, read only where they are asked for. No text of a message
is stored; grams alone stand for it.

    session   u64   the file's key (given out by the writer, never shared by two files)
    file      u64   the same key, on the file document only
    problems  u64   the same key, on documents that list lines which are no entries
    line_no, offset, length   u64 columns; offset and length in bytes, without the LF
    instant   u64   column: milliseconds, moved by SHIFT so that none is negative
    id, parent      u64 columns: the tokens of entry ids (`fold.token`), 0 for none
    shape           u64 column: `signals.pack`; its tokens are the entry's facts
    type, role      raw terms, cut to NAME characters (verification tests the whole)
    path            raw term of the file document: its path below the root
    tool            raw terms: tools that an entry calls, or whose result it is; cut to NAME
    flags           raw terms: ALWAYS, ALWAYS_MORE, FLOATING, UNTOLD (`signals.is_untold`), ERROR
                    (a failed result), TOUCHES (a call that names a file)
    grams           of text, tools and shell;   grams_more: of thinking, details and system, where
                    details leave out what the text says already (`narrowing`)
    facts           stored bytes

A text longer than MAX_TEXT gets no grams but a flag, and every gram query says "grams or flag":
exact all the same, and memory stays small. Wrong-typed values fail only at commit and unknown
fields are ignored by tantivy: documents are built here and nowhere else.

FORMAT changes with this page, with the Unicode version of `lower()`, and with tantivy's version:
an index of another format is never read, a new one is built beside it.
"""

import os
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import tantivy

from sessionindex import jsonline
from sessionindex.coverage import Cursor, Identity
from sessionindex.fold import GRAM, key
from sessionindex.model import Kind, Session
from sessionindex.timestamps import instant_ms, stored

_TANTIVY: Final = getattr(tantivy, "__version__", "unknown")
FORMAT: Final = f"6 unicode-{unicodedata.unidata_version} tantivy-{_TANTIVY}"
SHIFT: Final = 8_640_000_000_000_000
MAX_TEXT: Final = 8_000_000
NAME: Final = 64
ALWAYS: Final = "always"
ALWAYS_MORE: Final = "always_more"
FLOATING: Final = "floating"
UNTOLD: Final = "untold"
ERROR: Final = "error"
TOUCHES: Final = "touches"

FIELD_OF: Final[dict[Kind, str]] = {
    "text": "grams",
    "tools": "grams",
    "shell": "grams",
    "thinking": "grams_more",
    "details": "grams_more",
    "system": "grams_more",
}
ALWAYS_OF: Final = {"grams": ALWAYS, "grams_more": ALWAYS_MORE}


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


def build() -> tantivy.Schema:
    """The schema; `gram_tokenizer` must be registered before anything is added."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("session", stored=False, indexed=True, fast=True)
    for key_of in ("file", "problems"):
        builder.add_unsigned_field(key_of, stored=False, indexed=True, fast=False)
    for column in ("line_no", "offset", "length", "instant", "id", "parent", "shape"):
        builder.add_unsigned_field(column, stored=False, indexed=False, fast=True)
    for name in ("type", "role", "tool", "flags", "path"):
        builder.add_text_field(name, stored=False, tokenizer_name="raw", index_option="basic")
    for name in ALWAYS_OF:
        builder.add_text_field(name, stored=False, tokenizer_name="gram", index_option="basic")
    builder.add_bytes_field("facts", stored=True, indexed=False, fast=False)
    return builder.build()


def register_tokenizer(index: tantivy.Index) -> None:
    """Tell an opened index what a gram is."""
    ngram = tantivy.Tokenizer.ngram(min_gram=GRAM, max_gram=GRAM, prefix_only=False)
    index.register_tokenizer("gram", tantivy.TextAnalyzerBuilder(ngram).build())


def name_term(name: str) -> str:
    """The term of a type or a role."""
    return key(name[:NAME])


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


def record(facts: bytes, root: str) -> Record:
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
