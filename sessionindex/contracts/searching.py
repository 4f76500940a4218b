"""Answering search_sessions: any literal in any session, exactly, newest first unless asked so.

One question, one catalog of the root, one answer, equal to a plain scan of the files:

    select   the files that the question's session filters and the bound leave
    scan     what the index does not cover: new and rewritten files, tails past the cursor
    narrow   candidates of the index for the rest, in the order of the page where it has one
    verify   each candidate is read at its place and matched like any scanned line
    page     the best `limit` hits after the cursor; verification stops once they are settled,
             unless the exact count was asked for

Where the terms narrow nothing and everything must be counted, covered files are scanned too.
A file that changes under the question raises `Changed`: the caller asks again with a new catalog.
With no reader (no index, or `brute`) the same code scans everything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from sessionindex import entry as entries
from sessionindex import evidence, ordering, scan
from sessionindex.catalog import Catalog, File, Files
from sessionindex.contracts.search_sessions import (
    CoverageReport,
    Hit,
    Question,
    SearchResult,
    SessionCount,
)
from sessionindex.files import spoken
from sessionindex.index.plan import Candidates, Plan
from sessionindex.index.reader import Reader
from sessionindex.match import Match, Matcher, matcher
from sessionindex.model import Entry, Kind, PathWarning
from sessionindex.ordering import Key, Order, Page
from sessionindex.rawtest import RawTest
from sessionindex.snippet import cut

if TYPE_CHECKING:
    from sessionindex.lineage import Lineage

_LINEAGES: Final = 256
"""How many sessions' lineages are kept at a time."""

_TOGETHER: Final = 1_000
"""How many candidates are read before it is asked whether the page is settled.

A page of candidates may have twenty times as many; few sessions stand in two such parts of it.
"""


def search(
    question: Question,
    catalog: Catalog,
    selected: Files,
    reader: Reader | None,
    *,
    strict: bool = True,
) -> tuple[SearchResult, Key | None]:
    """The answer, and where its page ended (None where nothing follows).

    Raises Changed; not `strict`, a file that keeps changing is a warning instead.
    """
    narrowed = 2 * len(selected) < len(catalog.files)
    run = _Run(question, selected, reader, narrowed=narrowed, strict=strict)
    run.answer()
    hits, more, last = run.page.hits()
    known = question.exact or (question.after is None and not more)
    counts = run.page.counts() if known else {}
    holding = [
        SessionCount(file.path, file.found.session, counts[file.path])
        for file in selected.at(counts.keys())
    ]
    holding.sort(key=lambda one: (-one.session.timestamp_ms, one.path))
    warnings = sorted({*catalog.warnings, *run.warnings}, key=lambda one: (one.path, one.reason))
    doubtful = [file.verdict for file in selected.doubtful()]
    count = Counter(doubtful)
    count["fresh"] += len(selected) - len(doubtful)
    result = SearchResult(
        tuple(hits),
        run.page.total if known else None,
        len(counts) if known else None,
        more,
        None,
        CoverageReport(
            len(selected),
            count["fresh"],
            count["behind"],
            count["stale"],
            count["new"],
            run.scanned_bytes,
            len(warnings),
        ),
        tuple(warnings),
        tuple(holding),
    )
    return result, last if more else None


def _raw_test(question: Question) -> RawTest:
    """What may be rejected by its bytes: by the terms, else by what a call has to say."""
    if question.terms:
        every = question.mode == "all"
        sensitive, kinds = question.case_sensitive, question.kinds
        return RawTest(question.terms, case_sensitive=sensitive, kinds=kinds, every=every)
    said = (question.touched,) if question.touched else question.tools or ()
    return RawTest(said, case_sensitive=True, kinds=("tools",))


class _Run:
    """One question on its way to its answer."""

    def __init__(
        self,
        question: Question,
        selected: Files,
        reader: Reader | None,
        *,
        narrowed: bool,
        strict: bool,
    ) -> None:
        self._question = question
        self._strict = strict
        self._narrowed = narrowed  # whether naming the files to the index saves more than it costs
        self._reader = reader
        self._matcher: Matcher = matcher(
            question.terms,
            mode=question.mode,
            case_sensitive=question.case_sensitive,
            kinds=question.kinds,
            types=question.types,
            roles=question.roles,
            window=question.window,
            tools=question.tools,
            errors=question.errors,
            touched=question.touched,
        )
        self._lineages: dict[str, Lineage] = {}
        self._test = _raw_test(question)
        self.page: Page[Hit] = Page(
            question.order, limit=question.limit, after=question.after, unique=question.unique
        )
        self.warnings: list[PathWarning] = []
        self.scanned_bytes = 0
        self._covered: Mapping[int, File] = selected.covered() if reader else {}
        # Of the others the index has all.
        doubtful = selected.doubtful() if reader else selected
        self._open = [file for file in doubtful if not (reader and file.record)]
        self._tails = [file for file in doubtful if reader and file.verdict == "behind"]
        # match: session: what each file holds so far, until all of it is known
        self._found: dict[str, set[int]] = defaultdict(set)
        self._waiting: dict[str, list[tuple[Key, object, Hit]]] = defaultdict(list)

    def answer(self) -> None:
        question, plan = self._question, self._plan()
        everything = question.exact or question.limit is None or question.mode == "session"
        if self._reader and self._covered and everything and self._reader.is_wide(plan):
            # Nothing to narrow with and all to be read: read it in the order of the disk.
            self._open += self._covered.values()
            self._covered, self._tails = {}, []
        for file in sorted(self._open, key=self._turn):
            self._scan(file, whole=True)
        for file in self._tails:
            self._scan(file, whole=False)
        if self._reader and self._covered:
            if question.mode == "session":
                self._in_sessions(self._reader, plan)
            elif everything or question.order == "path":
                self._by_file(self._reader.candidates(plan), stop=not everything)
            else:
                self._by_instant(self._reader, plan, question.order)
        for path, found in self._found.items():
            if len(found) == len(question.terms):
                for key, identity, hit in self._waiting[path]:
                    self.page.offer(key, identity, lambda hit=hit: hit)  # type: ignore[misc]

    def _turn(self, file: File) -> tuple[int, str]:
        """What puts files into about the order of the page: what comes first is not pushed out."""
        written = file.found.identity.mtime_ns
        by_order = {"newest": -written, "oldest": written, "path": 0}
        return by_order[self._question.order], file.path

    # --- the index -------------------------------------------------------------------------------

    def _plan(self) -> Plan:
        question = self._question
        start, end = question.window.start_ms, question.window.end_ms
        if question.after is not None and not question.unique and not question.exact:
            place = -question.after[0]
            if question.order == "newest":
                end = place + 1 if end is None else min(end, place + 1)
            elif question.order == "oldest":
                start = place if start is None else max(start, place)
        in_session = question.mode == "session"  # there the filters choose hits, not what counts
        return Plan(
            question.terms,
            question.mode == "all",
            question.kinds,
            None if in_session else question.types,
            None if in_session else question.roles,
            None if in_session else start,
            None if in_session else end,
            tuple(self._covered) if self._narrowed else None,
            tools=None if in_session else question.tools,
            errors=question.errors and not in_session,
            touched=None if in_session else question.touched,
        )

    def _by_instant(self, reader: Reader, plan: Plan, order: Order) -> None:
        """Candidates in the order of the page, until nothing that comes can be on it."""
        if reader.has_floating():
            self._by_file(reader.candidates(plan, floating=True), stop=False)
        direction: Literal["newest", "oldest"] = "oldest" if order == "oldest" else "newest"
        for page in reader.candidates(plan, direction, floating=False):
            for start in range(0, len(page.instants), _TOGETHER):
                some = Candidates(*(column[start : start + _TOGETHER] for column in page))
                self._verify(self._grouped([some]))
                last = some.instants[-1]
                # Equal instants may still come: only what lies strictly after them is out.
                bound: Key = (-last, "", 0) if order == "newest" else (-last, chr(0x10FFFF), 0)
                if self.page.is_settled(bound):
                    return

    def _by_file(self, pages: Iterator[Candidates], *, stop: bool) -> None:
        """All candidates, file by file; with `stop`, until a page by paths is settled."""
        grouped = self._grouped(pages)
        for key in sorted(grouped, key=lambda key: self._turn(self._covered[key])):
            if stop and self.page.is_settled((0, self._covered[key].path, 0)):
                return
            self._verify({key: grouped[key]})

    def _in_sessions(self, reader: Reader, plan: Plan) -> None:
        """Only files that may hold every term, counting what their tails are known to hold."""
        having = [
            reader.sessions_of(Plan((term,), False, plan.kinds, sessions=plan.sessions))
            for term in plan.terms
        ]
        grouped = self._grouped(reader.candidates(plan))
        for key, places in grouped.items():
            in_tail = self._found[self._covered[key].path]
            if all(key in keys or index in in_tail for index, keys in enumerate(having)):
                self._verify({key: places})

    def _grouped(
        self, pages: Sequence[Candidates] | Iterator[Candidates]
    ) -> dict[int, list[scan.Place]]:
        """The places of candidates by file, files that are not asked for left out."""
        grouped: dict[int, list[scan.Place]] = defaultdict(list)
        covered = self._covered
        for page in pages:
            places = zip(page.line_nos, page.offsets, page.lengths, strict=True)
            for key, place in zip(page.sessions, places, strict=True):
                if key in covered:
                    grouped[key].append(place)
        return grouped

    def _verify(self, grouped: dict[int, list[scan.Place]]) -> None:
        for key, places in grouped.items():
            file = self._covered[key]
            places.sort()
            self._take_all(file, evidence.verified(file, places, self._test, strict=self._strict))

    # --- the files -------------------------------------------------------------------------------

    def _scan(self, file: File, *, whole: bool) -> None:
        start = file.record.cursor.offset if file.record and not whole else 0
        self.scanned_bytes += max(0, file.found.identity.size - start)
        found = evidence.scanned(file, self._test, whole=whole, strict=self._strict)
        self._take_all(file, found)

    def _take_all(self, file: File, found: Iterator[Entry]) -> None:
        try:
            for entry in found:
                self._take(file, entry)
        except OSError as error:
            reason = f"could not read file: {spoken(error)}"
            self.warnings.append(PathWarning(file.path, reason))

    def _take(self, file: File, entry: Entry) -> None:
        match = self._matcher.match(entry)
        if match is None:
            return
        question = self._question
        if match.hit and (question.branch or question.compacted):
            there = self._lineage(file).holds(entry.line_no, question.branch, question.compacted)
            if not there:
                if question.mode != "session":
                    return
                match = match._replace(hit=False)
        key = ordering.key_of(question.order, match.instant, file.path, entry.line_no)
        identity = None
        if question.unique and entry.id is not None:
            identity = (entry.id, _whole(entry, question.kinds))
        if question.mode == "session":
            self._found[file.path] |= match.terms
            if match.hit:
                hit = self._render(file, entry, match)
                self._waiting[file.path].append((key, identity, hit))
            return
        self.page.offer(key, identity, lambda: self._render(file, entry, match))

    def _lineage(self, file: File) -> Lineage:
        if file.path not in self._lineages:
            if len(self._lineages) >= _LINEAGES:
                self._lineages.clear()
            from sessionindex import lineage  # few questions need it

            found = lineage.of_file(file, self._reader, strict=self._strict)
            self._lineages[file.path] = found
        return self._lineages[file.path]

    def _render(self, file: File, entry: Entry, match: Match) -> Hit:
        snippet, matches = cut(match.text, self._question.terms, self._question.case_sensitive)
        session = file.found.session
        return Hit(
            file.path,
            session.id,
            session.cwd,
            session.timestamp,
            entry.line_no,
            entry.id,
            entry.timestamp,
            entry.type,
            entry.role,
            match.kind,
            snippet,
            matches,
        )


def _whole(entry: Entry, kinds: Sequence[Kind]) -> int:
    """What stands for all the text of an entry that was searched."""
    return hash(tuple(entries.searchable(entry, kind) for kind in kinds))
