"""What is in the index: three kinds of document, their fields, and the format's number.

*entry*: where it is (session key, line_no, offset, length), its instant, type and role, and the
grams of its text; what stands in the session's tree also has its shape and facts (`signals`). A
line that is only that, for want of a readable timestamp, is an entry without instant and grams.
*file*: one for each session file, with everything its `Record` says. *problems*: lines of a file
that are no entries, as (line_no, number of the reason); one document for each time some were met,
read only where they are asked for. No text of a message is stored; grams alone stand for it.

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

import unicodedata
from typing import Final

import tantivy

from sessionindex.fold import GRAM, key
from sessionindex.model import Kind

_TANTIVY: Final = getattr(tantivy, "__version__", "unknown")
FORMAT: Final = f"7 unicode-{unicodedata.unidata_version} tantivy-{_TANTIVY}"
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


def begun(folder: str) -> tantivy.Index:
    """A new index in an empty folder; fails as tantivy does."""
    return _told(tantivy.Index(_build(), path=folder))


def opened(folder: str) -> tantivy.Index:
    """The index in a folder; fails as tantivy does."""
    return _told(tantivy.Index.open(folder))


def _build() -> tantivy.Schema:
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


def _told(index: tantivy.Index) -> tantivy.Index:
    """An index that was told what a gram is, and that somebody else says when to read anew."""
    index.config_reader("manual", 0)
    ngram = tantivy.Tokenizer.ngram(min_gram=GRAM, max_gram=GRAM, prefix_only=False)
    index.register_tokenizer("gram", tantivy.TextAnalyzerBuilder(ngram).build())
    return index


def name_term(name: str) -> str:
    """The term of a type or a role."""
    return key(name[:NAME])
