"""What the index can say: records of files, and candidates for a question. Never text.

A `Reader` holds one searcher: it answers from one commit, exactly, however much is written or
merged meanwhile. Candidates are a superset of the answer: lines whose grams do not rule them out,
with their places, for whoever verifies them.

Gram queries: every gram of a term must be there (rarest first costs nothing here: tantivy orders
them), or the flag of texts too long for grams. A term of one or two characters is the union of the
grams that begin with it. Where that union is large, or where no term narrows, the plan is *wide*:
every entry is a candidate, and a caller who needs all of them had better scan.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import tantivy
from tantivy import Occur, Query

from sessionindex.fold import GRAM, grams, key
from sessionindex.index import schema
from sessionindex.index.plan import Candidates, Columns, Order, Plan
from sessionindex.index.record import Record, below, problem_list, recorded
from sessionindex.index.snapshot import Snapshot
from sessionindex.index.store import translated
from sessionindex.model import Kind

_PREFIX_TERMS: Final = 4096
_FIRST_PAGE: Final = 200
_LARGEST_PAGE: Final = 20_000
_FIELDS: Final = tuple(schema.ALWAYS_OF)
_COLUMNS: Final = ("session", "line_no", "offset", "length")
_OUTLINE: Final = ("line_no", "offset", "length", "id", "parent", "shape")


class Reader:
    """One commit of an index."""

    def __init__(
        self,
        index: tantivy.Index,
        root: str,
        known: Callable[[], Snapshot | None] = lambda: None,
    ) -> None:
        """`root` is the sessions root as it is spelled now: records name files below it.

        `known` looks for a snapshot of just this commit when the records are wanted.
        """
        self._root = root
        self._known = known
        self._found: Snapshot | None = None
        self._schema = index.schema
        self._records: Mapping[str, Record] | None = None
        self._zone: tuple[str, str] | None = None
        with translated("read"):
            index.reload()
            self._searcher = index.searcher()

    def records(self) -> Mapping[str, Record]:
        """The record of every file, by path; read once."""
        if self._records is None or self._zone != time.tzname:
            first, self._zone = self._zone is None, time.tzname
            # Headers without a zone are read in that of the host.
            found = self._found = self._known() if first else None
            self._records = self._read_records() if found is None else found.records
        return self._records

    def snapshot(self) -> Snapshot | None:
        """Where `records` came from in one piece, that piece."""
        self.records()
        return self._found

    def _read_records(self) -> dict[str, Record]:
        return {record.path: record for record in self.all_records()}

    def all_records(self) -> list[Record]:
        """Every record there is: one for each file, unless something is wrong."""
        with translated("read records"):
            total = self._searcher.num_docs
            if not total:
                return []
            unsigned = tantivy.FieldType.Unsigned
            query = Query.range_query(self._schema, "file", unsigned, 0, 2**63)
            query = Query.const_score_query(query, 1.0)
            hits = self._searcher.search(query, limit=total, count=False).hits
            facts = [self._searcher.doc(address).get_first("facts") for _, address in hits]
            return [recorded(bytes(fact or b""), self._root) for fact in facts]

    def record_of(self, path: str) -> Record | None:
        """The record of one file, without reading those of all others."""
        if not path.isascii() and path != path.encode("utf-8", "replace").decode():
            return None  # never indexed
        return self.looked_up(path) if self._records is None else self._records.get(path)

    def looked_up(self, path: str) -> Record | None:
        """The record that the path's term leads to."""
        addresses = self._addresses([self._term("path", below(path, self._root))], 2)
        with translated("read records"):
            for address in addresses:
                facts = self._searcher.doc(address).get_first("facts")
                return recorded(bytes(facts or b""), self._root)
        return None

    def problems(self, key: int) -> list[tuple[int, int]]:
        """(line_no, number of the reason) of every line of a file that is no entry, ascending."""
        addresses = self._addresses([self._term("problems", key)])
        with translated("read problems"):
            facts = [self._searcher.doc(address).get_first("facts") for address in addresses]
            return sorted(row for fact in facts for row in problem_list(bytes(fact or b"")))

    def count(self) -> int:
        """How many entries the index holds."""
        with translated("count"):
            found: Any = self._searcher.search(_every_entry(), limit=1, count=True)
            return int(found.count or 0)

    def is_wide(self, plan: Plan) -> bool:
        """Whether the terms of a plan narrow nothing worth the name."""
        narrows = plan.tools or plan.errors or plan.touched
        return not narrows and self._grams(plan) is None

    def has_floating(self) -> bool:
        """Whether any entry has a timestamp without a zone, which no column can order."""
        with translated("count"):
            return self._searcher.doc_freq("flags", schema.FLOATING) > 0

    def candidates(
        self, plan: Plan, order: Order | None = None, *, floating: bool | None = None
    ) -> Iterator[Candidates]:
        """Pages of candidates, in the order of their instants where one is asked for.

        `floating` True or False keeps only entries without, or with, a zone. Without an order
        everything comes as one page.
        """
        query = self._query(plan, floating)
        total = self._searcher.num_docs
        if not total:
            return
        offset, size = 0, _FIRST_PAGE if order else total
        direction = tantivy.Order.Asc if order == "oldest" else tantivy.Order.Desc
        while offset < total:
            with translated("search"):
                found: Any = self._searcher.search(
                    query,
                    limit=size,
                    offset=offset,
                    count=False,
                    order_by_field="instant" if order else None,
                    order=direction,
                )
                hits = found.hits
                if not hits:
                    return
                addresses = self._related(plan, [address for _, address in hits])
                columns: list[Any] = [
                    self._searcher.fast_field_values(name, addresses) for name in _COLUMNS
                ]
                if any(None in column for column in columns):
                    raise ValueError("a column has a gap")
                instants = [value - schema.SHIFT for value, _ in hits] if order else []
            yield Candidates(columns[0], columns[1], columns[2], columns[3], instants)
            if len(hits) < size:
                return
            offset += size
            size = min(size * 5, _LARGEST_PAGE)

    def places(self, plan: Plan) -> list[tuple[int, int, int]]:
        """(line_no, offset, length) of every candidate of one file, ascending."""
        found: list[tuple[int, int, int]] = []
        for page in self.candidates(plan):
            found += zip(page.line_nos, page.offsets, page.lengths, strict=True)
        found.sort()
        return found

    def outline(self, key: int) -> Columns:
        """What stands in the tree of a file, in the order of its lines."""
        from sessionindex.signals import FACTS

        query = Query.const_score_query(self._term("session", key), 1.0)
        with translated("read columns"):
            found: Any = self._searcher.search(
                query,
                limit=max(1, self._searcher.num_docs),
                count=False,
                order_by_field="line_no",
                order=tantivy.Order.Asc,
            )
            addresses = [address for _, address in found.hits]
            ids = self._searcher.fast_field_values("id", addresses)
            pairs = zip(addresses, ids, strict=True)
            addresses = [address for address, number in pairs if number]
            columns: list[Any] = [
                self._searcher.fast_field_values(name, addresses) for name in _OUTLINE
            ]
            if any(None in column for column in columns):
                raise ValueError("a column has a gap")
            doc = self._searcher.doc
            facts = [
                bytes(doc(address).get_first("facts") or b"") if shape & FACTS else b""
                for address, shape in zip(addresses, columns[-1], strict=True)
            ]
        return Columns._make([*columns, facts])

    def lines_holding(
        self, key: int, needles: Sequence[str], kinds: tuple[Kind, ...]
    ) -> set[int] | None:
        """The lines of a file that may hold every needle, or words that no kind holds.

        None where the needles narrow nothing.
        """
        narrowed = self._grams(Plan(tuple(needles), True, kinds))
        if narrowed is None:
            return None
        untold = self._term("flags", schema.UNTOLD)
        return self._lines([self._term("session", key), _any([narrowed, untold])])

    def sessions_of(self, plan: Plan) -> set[int]:
        """The keys of the files that hold candidates."""
        return {key for page in self.candidates(plan) for key in page.sessions}

    # --- what `check` asks -----------------------------------------------------------------------

    def keys(self) -> Counter[int]:
        """How many entries there are under each file's key."""
        addresses = self._addresses([_every_entry()])
        with translated("read columns"):
            return Counter(
                int(n or 0) for n in self._searcher.fast_field_values("session", addresses)
            )

    def facts_of(self, key: int) -> dict[int, bytes]:
        """The facts of the lines of a file that have any, by line."""
        addresses = self._addresses([self._term("session", key)])
        with translated("read facts"):
            lines = self._searcher.fast_field_values("line_no", addresses)
            stored = (self._searcher.doc(address).get_first("facts") for address in addresses)
            pairs = zip(lines, stored, strict=True)
            return {int(line or 0): bytes(one) for line, one in pairs if one}

    def entries_of(self, key: int) -> list[tuple[int, ...]]:
        """(line_no, offset, length, then the other columns as stored) of every line of a file."""
        addresses = self._addresses([self._term("session", key)])
        with translated("read columns"):
            columns: list[Any] = [
                [-1 if value is None else value for value in values]
                for name in ("line_no", "offset", "length", "instant", "id", "parent", "shape")
                for values in [self._searcher.fast_field_values(name, addresses)]
            ]
        return list(zip(*columns, strict=True))

    def lines_named(self, key: int, field: str, name: str) -> set[int]:
        """The lines of a file under a type or role."""
        return self._lines([self._term("session", key), self._term(field, name)])

    def lines_with(self, key: int, field: str, some: Sequence[str]) -> set[int]:
        """The lines of a file that hold every one of these grams."""
        return self._lines(
            [self._term("session", key), *(self._term(field, gram) for gram in some)]
        )

    def _lines(self, musts: list[Query]) -> set[int]:
        addresses = self._addresses(musts)
        with translated("read columns"):
            return {int(n or 0) for n in self._searcher.fast_field_values("line_no", addresses)}

    def _addresses(self, musts: list[Query], most: int | None = None) -> list[tantivy.DocAddress]:
        query = Query.const_score_query(_all(musts), 1.0)
        with translated("search"):
            total = max(1, most or self._searcher.num_docs)
            hits = self._searcher.search(query, limit=total, count=False).hits
        return [address for _, address in hits]

    # --- queries ---------------------------------------------------------------------------------

    def _related(self, plan: Plan, addresses: list[Any]) -> list[Any]:
        """Those of the addresses whose ids and parents are the ones asked for."""
        for column, wanted in (("id", plan.ids), ("parent", plan.parents)):
            if wanted is not None:
                values = self._searcher.fast_field_values(column, addresses)
                pairs = zip(addresses, values, strict=True)
                addresses = [address for address, value in pairs if value in wanted]
        return addresses

    def _query(self, plan: Plan, floating: bool | None) -> Query:
        narrowed = self._grams(plan)
        musts = [_every_entry() if narrowed is None else narrowed]
        musts += self._names("type", plan.types) + self._names("role", plan.roles)
        musts += self._names("tool", plan.tools)
        if plan.errors:
            musts.append(self._term("flags", schema.ERROR))
        if plan.touched is not None:
            musts += self._touching(plan.touched)
        if plan.sessions is not None:
            musts.append(Query.term_set_query(self._schema, "session", list(plan.sessions)))
        if plan.start_ms is not None or plan.end_ms is not None:
            musts.append(self._window(plan))
        if plan.lines is not None:
            first, last = (min(bound, 2**63) for bound in plan.lines)
            unsigned = tantivy.FieldType.Unsigned
            musts.append(Query.range_query(self._schema, "line_no", unsigned, first, last))
        clauses = [(Occur.Must, must) for must in musts]
        if floating is not None:
            flag = self._term("flags", schema.FLOATING)
            clauses.append((Occur.Must if floating else Occur.MustNot, flag))
        query = Query.boolean_query(clauses) if len(clauses) > 1 else musts[0]
        return Query.const_score_query(query, 1.0)

    def _touching(self, path: str) -> list[Query]:
        """The entries whose calls name files, this path among what the calls say."""
        said = self._in_field("grams", path)
        untold = self._term("flags", schema.UNTOLD)
        flagged = self._term("flags", schema.TOUCHES)
        return [flagged] if said is None else [flagged, _any([said, untold])]

    def _window(self, plan: Plan) -> Query:
        """The entries inside the bounds, and those that only the host's zone can place."""
        start = 0 if plan.start_ms is None else max(0, plan.start_ms + schema.SHIFT)
        end = 2**63 if plan.end_ms is None else max(0, plan.end_ms - 1 + schema.SHIFT)
        unsigned = tantivy.FieldType.Unsigned
        within = Query.range_query(self._schema, "instant", unsigned, start, min(end, 2**63))
        floating = self._term("flags", schema.FLOATING)
        return Query.boolean_query([(Occur.Should, within), (Occur.Should, floating)])

    def _names(self, field: str, names: Sequence[str] | None) -> list[Query]:
        if names is None:
            return []
        terms = [schema.name_term(name) for name in names]
        return [Query.term_set_query(self._schema, field, terms)]

    def _term(self, field: str, value: Any) -> Query:
        return Query.term_query(self._schema, field, value, "basic")

    def _grams(self, plan: Plan) -> Query | None:
        """The terms of a plan as a query; None where every entry is a candidate."""
        if not plan.terms:
            return None
        queries = [self._holding(term, plan.kinds) for term in plan.terms]
        narrowing = [query for query in queries if query is not None]
        if plan.every and narrowing:
            return narrowing[0] if len(narrowing) == 1 else _all(narrowing)
        return _any(narrowing) if len(narrowing) == len(queries) else None

    def _holding(self, term: str, kinds: tuple[Kind, ...]) -> Query | None:
        """The entries whose text of these kinds may hold the term; None for (almost) all."""
        if "details" in kinds and len(key(term)) >= GRAM:
            # What details say may stand in either field, gram by gram.
            found = [_any([self._term(field, gram) for field in _FIELDS]) for gram in grams(term)]
            flags = [self._term("flags", flag) for flag in schema.ALWAYS_OF.values()]
            return _any([found[0] if len(found) == 1 else _all(found), *flags])
        fields = (
            _FIELDS
            if "details" in kinds
            else dict.fromkeys(schema.FIELD_OF[kind] for kind in kinds)
        )
        choices = [self._in_field(field, term) for field in fields]
        known = [choice for choice in choices if choice is not None]
        return _any(known) if len(known) == len(choices) else None

    def _in_field(self, field: str, term: str) -> Query | None:
        """The entries whose text in a field may hold the term; None for (almost) all of them."""
        always = self._term("flags", schema.ALWAYS_OF[field])
        low = key(term)
        if len(low) >= GRAM:
            musts = [self._term(field, gram) for gram in grams(term)]
            return _any([musts[0] if len(musts) == 1 else _all(musts), always])
        with translated("look up"):
            found = self._searcher.terms_with_prefix(field, low, limit=_PREFIX_TERMS + 1)
        entries = sum(frequency for _, frequency in found)
        if len(found) > _PREFIX_TERMS or entries > self._searcher.num_docs // 2:
            return None
        return _any([self._term(field, gram) for gram, _ in found] + [always])


def _every_entry() -> Query:
    return Query.exists_query("instant")


def _any(queries: list[Query]) -> Query:
    if len(queries) == 1:
        return queries[0]
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def _all(queries: list[Query]) -> Query:
    return Query.boolean_query([(Occur.Must, query) for query in queries])
