"""check: every kind of false claim is found and named; lag is none; repair leaves nothing."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from build import append, session
from scratch import Store, ask
from terminal import Ran, environment, pipe

from sessionindex import check as checking
from sessionindex import entry as entries
from sessionindex import files
from sessionindex.check import CheckReport
from sessionindex.errors import IndexUnusable
from sessionindex.index import documents, schema
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record, file_document
from sessionindex.index.writer import Writer
from sessionindex.jsonline import split
from sessionindex.model import Entry

Fields = dict[str, Any]
BOUND = {"piRetrospect": {"allowedProjects": ["app"]}}


def replace(value: Any, **change: Any) -> Any:
    """A frozen value with something else in it."""
    tuple_like = hasattr(value, "_replace")
    return value._replace(**change) if tuple_like else dataclasses.replace(value, **change)


def parsed(path: str, record: Record) -> Iterator[Fields]:
    """The documents of a file as they should be."""
    for line in split(Path(path).read_bytes(), 1, 0):
        found = entries.parse(line, record.session.version) if line.line_no > 1 else None
        if isinstance(found, Entry):
            yield documents.document(found, record.key, line.offset, len(line.data))[0]


def problems_of(path: str) -> list[tuple[int, int]]:
    """The problems of a file as they should be listed."""
    found = [entries.parse(line, 3) for line in split(Path(path).read_bytes(), 1, 0)][1:]
    return [
        (one.line_no, entries.reason_number(one)) for one in found if not isinstance(one, Entry)
    ]


def forge(
    store: Store,
    path: str,
    record: Callable[[Record], Record] = lambda record: record,
    documents: Callable[[list[Fields]], Iterable[Fields]] = lambda documents: documents,
    beside: Callable[[Record], Record] | None = None,
    problems: list[tuple[int, int]] | None = None,
) -> None:
    """Write what the index says of a file anew, changed, with an identity that is believed."""
    with store.index._present.store.writing("forgery") as generation:
        old = Reader(generation.index, str(store.root)).records()[path]
        now = files.identity(os.lstat(path))
        old = replace(old, cursor=replace(old.cursor, identity=now, proven=True))
        with Writer(generation, str(store.root), expected=0) as writer:
            writer.drop(old.key)
            for fields in documents(list(parsed(path, old))):
                writer.add(fields, 0)
            writer.put(record(old))
            listed = problems_of(path) if problems is None else problems
            if listed:
                writer.add_problems(old.key, listed)
            if beside:
                writer.put(beside(old))
            writer.commit()


def story() -> bytes:
    """A line of every sort that the index keeps something of."""
    made = session("a").user("needle one").assistant("two", thinking="three")
    made.message("user", content="at no zone", at="2026-09-10T09:00:05").line(b"{").info("named")
    return made.bytes()


def found(report: CheckReport) -> list[tuple[str, int | None, str]]:
    return [(Path(one.path).stem, one.line_no, one.what) for one in report.differences]


def repaired(store: Store) -> None:
    """Repair makes it clean, and clean it stays."""
    report = store.index.check(repair=True)
    assert (report.differences, report.repaired, report.dead) == ((), True, 0)
    again = store.index.check(repair=True)
    assert (again.differences, again.repaired) == ((), False)


def test_a_true_index_has_no_difference(store: Store) -> None:
    """Files and entries are counted; one written again as it should be is as true."""
    path = store.put("a", story())
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    forge(store, path)
    report = store.index.check()
    assert (report.files, report.entries, report.differences) == (2, 5, ())
    assert (report.pending, report.repaired, report.warnings) == (0, False, ())


# --- records -------------------------------------------------------------------------------------


def cursor(**change: Callable[[int], int]) -> Callable[[Record], Record]:
    """A record whose cursor says something else."""

    def changed(record: Record) -> Record:
        old = record.cursor
        return replace(
            record,
            cursor=replace(old, **{name: of(getattr(old, name)) for name, of in change.items()}),
        )

    return changed


def header(**change: Any) -> Callable[[Record], Record]:
    return lambda record: record._replace(session=record.session._replace(**change))


RECORDS: tuple[tuple[str, Callable[[Record], Record]], ...] = (
    ("the header", header(id="another")),
    ("the header", header(cwd="/elsewhere")),
    ("the header", header(timestamp_ms=0)),
    ("the header", header(version=1)),
    ("the name", lambda record: record._replace(name="another")),
    ("the name", lambda record: record._replace(name=None)),
    ("the number of entries", lambda record: record._replace(entries=3)),
    ("the number of problems", lambda record: record._replace(problems=())),
    ("the number of problems", lambda record: record._replace(problems=((1, 2),))),
    ("the number of lines", cursor(lines=lambda lines: lines - 1)),
    ("the checksum", cursor(checksum=lambda checksum: checksum ^ 1)),
    ("the digest of head and tail", cursor(head=lambda head: head ^ 1)),
    ("the digest of head and tail", cursor(tail=lambda tail: tail ^ 1)),
    ("the length", cursor(offset=lambda offset: offset + 1)),
    ("the length", cursor(offset=lambda offset: offset - 1)),
)


@pytest.mark.parametrize(("what", "forged"), RECORDS)
def test_a_false_record(what: str, forged: Callable[[Record], Record], store: Store) -> None:
    """Whatever a record says of its file is compared with the file."""
    path = store.put("a", story())
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    forge(store, path, record=forged)
    report = store.index.check()
    assert ("a", None, f"{what} is not as indexed") in found(report)
    if what != "the length":  # then more is missing or too much
        assert len(report.differences) == 1
    assert {one.path for one in report.differences} == {path}
    repaired(store)


@pytest.mark.parametrize("listed", [[], [(5, 0)], [(6, 1)], [(5, 1), (5, 1)]])
def test_a_false_list_of_problems(listed: list[tuple[int, int]], store: Store) -> None:
    """Which lines are no entries, and why, is listed apart from the record."""
    path = store.put("a", story())
    store.index.refresh()
    forge(store, path, problems=listed)
    assert found(store.index.check()) == [("a", None, "the list of problems is not as indexed")]
    repaired(store)


def test_two_records_of_one_file(store: Store) -> None:
    """One of them would be believed, nobody knows which."""
    path = store.put("a", story())
    store.index.refresh()
    forge(store, path, beside=lambda record: record._replace(key=77))
    assert ("a", None, "2 records of one file") in found(store.index.check())
    repaired(store)


def test_two_files_of_one_key(store: Store) -> None:
    """The entries of one would be looked for in the other."""
    path = store.put("a", story())
    other = store.put("b", story())
    store.index.refresh()
    forge(store, path, beside=lambda record: record)
    with store.index._present.store.writing("forgery") as generation:
        records = Reader(generation.index, str(store.root)).records()
        with Writer(generation, str(store.root), expected=0) as writer:
            writer.drop(records[other].key)
            fields = file_document(records[other]._replace(key=records[path].key), str(store.root))
            writer.add(fields, 0)
            writer.commit()
    what = "its key belongs to another file too"
    assert {("a", None, what), ("b", None, what)} <= set(found(store.index.check()))
    repaired(store)


# --- entries -------------------------------------------------------------------------------------


def changed(number: int, **change: Any) -> Callable[[list[Fields]], list[Fields]]:
    """One document says something else; None takes a field away."""

    def forged(documents: list[Fields]) -> list[Fields]:
        fields = documents[number] | change
        documents[number] = {name: value for name, value in fields.items() if value is not None}
        return documents

    return forged


MOVED = "indexed at another place, instant, parent or shape"
ENTRIES: tuple[tuple[int, str, Callable[[list[Fields]], Iterable[Fields]]], ...] = (
    (2, "not indexed", lambda documents: documents[1:]),
    (6, "not indexed", lambda documents: documents[:-1]),
    (3, "indexed 2 times", lambda documents: [*documents, documents[1]]),
    (5, "indexed, but no entry", lambda docs: [*docs, docs[0] | {"line_no": 5}]),
    (1, "indexed, but no entry", lambda docs: [*docs, docs[0] | {"line_no": 1}]),
    (9, "indexed, but no entry", lambda docs: [*docs, docs[0] | {"line_no": 9}]),
    (2, MOVED, changed(0, offset=3)),
    (2, MOVED, changed(0, length=3)),
    (2, MOVED, changed(0, instant=schema.SHIFT)),
    (2, MOVED, changed(0, length=None)),
    (2, "indexed under another type", changed(0, type="compaction")),
    (2, "indexed under another role", changed(0, role="assistant")),
    (2, "indexed under another role", changed(0, role=None)),
    (4, "indexed under another flag", changed(2, flags=None)),
    (2, "its grams do not lead back to it", changed(0, grams=None)),
    (2, "its grams do not lead back to it", changed(0, grams="needle on\0\0")),
    (2, "its grams do not lead back to it", changed(0, grams="needle one")),
    (3, "its grams do not lead back to it", changed(1, grams="three\0\0", grams_more="two\0\0")),
    (3, "its grams_more do not lead back to it", changed(1, grams_more="thre\0\0")),
)


@pytest.mark.parametrize(("line_no", "what", "forged"), ENTRIES)
def test_a_false_entry(
    line_no: int, what: str, forged: Callable[[list[Fields]], Iterable[Fields]], store: Store
) -> None:
    """Each line once, at its place, under its names and all its grams: else it is named."""
    path = store.put("a", story())
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    forge(store, path, documents=forged)
    report = store.index.check()
    assert ("a", line_no, what) in found(report)
    assert {(one.path, one.line_no) for one in report.differences} == {(path, line_no)}
    repaired(store)


def test_the_flag_of_a_text_too_long_for_grams(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without grams and without the flag, no question would ever reach the line."""
    monkeypatch.setattr(schema, "MAX_TEXT", 50)
    path = store.put("a", session("a").user("needle " + "x" * 50).user("needle"))
    store.index.refresh()
    assert store.index.check().differences == ()
    forge(store, path, documents=changed(0, flags=None))
    assert found(store.index.check()) == [("a", 2, "indexed under another flag")]
    monkeypatch.undo()
    repaired(store)


def test_entries_of_no_file(store: Store) -> None:
    """Nothing would serve them, until their key is given out again."""
    path = store.put("a", story())
    store.index.refresh()
    forge(store, path, documents=lambda docs: [*docs, *(doc | {"session": 99} for doc in docs)])
    report = store.index.check()
    assert [(one.path, one.line_no, one.what) for one in report.differences] == [
        ("", None, "4 entries of no file (key 99)")
    ]
    repaired(store)


def test_every_difference_is_reported(store: Store) -> None:
    """Files by path, in each what is wrong with it; the rest is looked at all the same."""
    paths = [store.put(name, session(name).user("one").user("two")) for name in "cab"]
    store.index.refresh()
    for path in paths[:2]:
        forge(store, path, documents=changed(1, offset=1))
    forge(store, paths[2], record=cursor(checksum=lambda checksum: 0))
    assert found(store.index.check()) == [
        ("a", 3, MOVED),
        ("b", None, "the checksum is not as indexed"),
        ("c", 3, MOVED),
    ]
    repaired(store)


# --- how much is looked at -----------------------------------------------------------------------


def test_a_sample_looks_up_the_grams_of_some_lines(store: Store) -> None:
    """Only grams are sampled: places, names and records are always looked at whole."""
    made = session("a")
    for number in range(300):
        made.user(f"needle {number}")
    path = store.put("a", made)
    store.index.refresh()
    forge(store, path, documents=lambda docs: [doc | {"grams": "no\0\0"} for doc in docs])
    assert len(store.index.check().differences) == 300
    assert len(store.index.check(sample=300).differences) == 300
    assert 0 < len(store.index.check(sample=30).differences) < 200
    assert store.index.check(sample=0).differences == ()
    forge(store, path, documents=changed(299, offset=1))
    assert found(store.index.check(sample=0)) == [("a", 301, MOVED)]
    repaired(store)


# --- lag is no difference ------------------------------------------------------------------------


def test_lag_is_pending_and_no_difference(store: Store) -> None:
    """What came, changed or went since the refresh is not claimed by the index."""
    names = ("same", "longer", "other", "gone")
    paths = {name: store.put(name, session(name).user("needle " + name)) for name in names}
    store.index.refresh()
    tail = session("more").user("needle more").tail(1)
    append(paths["longer"], tail)
    rewritten = session("other").user("needle rewritten").bytes()
    Path(paths["other"]).write_bytes(rewritten)
    os.unlink(paths["gone"])
    new = session("new").user("needle").bytes()
    store.put("new", new)
    report = store.index.check()
    assert (report.files, report.entries, report.differences) == (2, 2, ())
    assert report.pending == len(tail) + len(rewritten) + len(new)
    assert store.index.check(repair=True).repaired is False
    store.index.refresh()
    assert store.index.check().pending == 0


def test_a_torn_last_line_is_pending(store: Store) -> None:
    """It is no line yet, so nothing is claimed of it."""
    store.put("a", session("a").user("needle").raw(b'{"type":"mess'))
    store.index.refresh()
    report = store.index.check()
    assert (report.differences, report.pending) == ((), 13)


@pytest.mark.parametrize("how", ["rewritten", "grown", "gone"])
def test_a_file_that_changes_while_it_is_looked_at(
    how: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen of it is no difference: the next check sees it as it has become."""
    path = store.put("a", session("a").user("needle one").user("needle two"))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    whole_lines = checking.whole_lines

    def changing(*arguments: Any) -> Iterator[Any]:
        monkeypatch.undo()
        if how == "rewritten":
            Path(path).write_bytes(session("a").user("something else").bytes())
        elif how == "grown":
            append(path, session("more").user("needle").tail(1))
        else:
            os.truncate(path, 10)
            os.unlink(path)
        return whole_lines(*arguments)

    monkeypatch.setattr(checking, "whole_lines", changing)
    assert store.index.check().differences == ()


def test_a_file_that_cannot_be_read_is_a_warning(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the others are looked at."""
    path = store.put("a", story())
    other = store.put("b", story())
    store.index.refresh()
    forge(store, other, documents=changed(0, offset=1))
    forge(store, path)
    open_listed = checking.open_listed

    def refuse(asked: str, *arguments: Any) -> Any:
        if asked == path:
            raise PermissionError(13, "Permission denied")
        return open_listed(asked, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(checking, "open_listed", refuse)
        report = store.index.check()
    assert found(report) == [("b", 2, MOVED)]
    assert [(one.path, one.reason) for one in report.warnings] == [
        (path, "could not read file: EACCES: Permission denied")
    ]
    repaired(store)


# --- the bound -----------------------------------------------------------------------------------


def test_nothing_of_denied_projects_is_reported(store: Store) -> None:
    """Neither their files nor their entries, differences, warnings or deletions are told."""
    store.put("mine", session("mine", cwd="/r/app").user("needle"))
    denied = store.put("d", session("d", cwd="/r/secret").user("a").user("b"), "--secret--")
    gone = store.put("g", session("g", cwd="/r/secret").user("needle"), "--secret--")
    store.put("broken", b"nonsense\n", "--secret--")
    store.index.refresh()
    os.unlink(gone)
    forge(store, denied, documents=lambda docs: [docs[0] | {"offset": 1}, docs[1], docs[1]])
    forge(store, denied, documents=lambda docs: [*docs, docs[0] | {"session": 99, "offset": 1}])
    forge(store, denied, documents=lambda docs: docs[:1])
    append(denied, session("more").user("pending").tail(1))
    report = store.open(settings=BOUND).check()
    assert report == CheckReport(1, 1, (), False, (), 0, 0)
    assert store.index.check().differences
    repaired(store)


# --- repair --------------------------------------------------------------------------------------


def terms(store: Store, prefix: str) -> list[str]:
    """The grams that the current generation has on disk, deleted ones among them."""
    index = store.index._present.store.open()
    index.reload()
    return [gram for gram, _ in index.searcher().terms_with_prefix("grams", prefix, limit=50)]


def generations(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.iterdir() if path.name.startswith("g"))


def test_repair_takes_deleted_grams_off_the_disk(store: Store) -> None:
    """A secret that was deleted from its session leaves no gram, and no folder that had it."""
    path = store.put("a", session("a").user("password xqzwjk").user("rest"))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    Path(path).write_bytes(session("a").user("password gone").user("rest").bytes())
    store.index.refresh()
    report = store.index.check()
    assert report.differences == ()
    assert report.dead > 0
    assert terms(store, "xqz") == ["xqz"]
    repaired(store)
    for secret in ("xqz", "qzw", "zwj", "wjk"):
        assert terms(store, secret) == []
    assert generations(store) == ["g2"]
    assert ask(store.index, "password").total == 1


def test_repair_brings_the_index_up_to_the_files(store: Store) -> None:
    """A new generation is made from the files as they are now."""
    path = store.put("a", story())
    store.index.refresh()
    forge(store, path, documents=changed(0, offset=1))
    store.put("new", session("new").user("needle"))
    report = store.index.check(repair=True)
    assert (report.files, report.pending, report.differences) == (2, 0, ())
    assert ask(store.index, "needle").coverage.fresh == 2


def test_an_index_that_is_not_there(store: Store) -> None:
    """Nothing can be checked; with repair it is made."""
    store.put("a", story())
    with pytest.raises(IndexUnusable, match=r"^this root was never indexed$"):
        store.index.check()
    assert not store.index_dir.exists()
    report = store.index.check(repair=True)
    assert (report.files, report.entries, report.differences) == (1, 4, ())
    assert report.repaired


def test_an_index_that_cannot_be_read(store: Store) -> None:
    """Damage is told as such; with repair a new one is made beside it."""
    store.put("a", story())
    store.index.refresh()
    meta = store.folder / "g1" / "meta.json"
    meta.write_bytes(meta.read_bytes()[:50])
    with pytest.raises(IndexUnusable, match="damaged"):
        store.open().check()
    repaired(store)


@pytest.mark.parametrize("suffix", [".fast", ".idx", ".term", ".store", ".fieldnorm", ".del"])
def test_a_bit_that_turned_over(suffix: str, store: Store) -> None:
    """Often no query tells, and size and time do not: checksums do, whatever bit it was."""
    path = store.put("a", session("a").user("needle one").user("two"))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    Path(path).write_bytes(session("a").user("needle other").bytes())
    store.index.refresh()
    (notes,) = store.folder.glob("g*/segments.json")
    committed = sorted(json.loads(notes.read_bytes()))
    file = next(notes.parent / name for name in committed if name.endswith(suffix))
    before, data = file.stat(), file.read_bytes()
    body = len(data) - 8 - int.from_bytes(data[-8:-4], "little")  # what the checksum is of
    for at in range(0, body, 1 + body // 30):
        file.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        with pytest.raises(IndexUnusable, match="damaged"):
            store.open().check(sample=0)
    repaired(store)


# --- the command line ----------------------------------------------------------------------------


def run(store: Store, tmp_path: Path, *arguments: str) -> Ran:
    where = ["--root", str(store.root), "--index-dir", str(store.index_dir)]
    return pipe(["check", *arguments, *where], environment(tmp_path))


def test_the_command(store: Store, tmp_path: Path) -> None:
    """0 where all is true, 1 where something is not, 2 where there is no index."""
    path = store.put("a", story())
    ran = run(store, tmp_path)
    assert ran == Ran(2, "", "sessionindex: this root was never indexed\n")
    store.index.refresh()
    ran = run(store, tmp_path, "--all")
    assert ran == Ran(0, "1 files and 4 entries checked: no difference\n", "")
    forge(store, path, documents=changed(0, offset=3), record=header(id="another"))
    dead = store.index._present.store.dead()[0]
    ran = run(store, tmp_path)
    assert ran.status == 1
    assert ran.out == f"{path}: the header is not as indexed\n{path}:2: {MOVED}\n"
    deleted = f"; {dead} deleted entries still on disk (--repair clears them)" if dead else ""
    assert ran.err == f"1 files and 4 entries checked: 2 differences{deleted}\n"
    ran = run(store, tmp_path, "--repair")
    assert ran == Ran(
        0, "1 files and 4 entries checked: no difference; the index was made anew\n", ""
    )


def test_the_command_makes_a_missing_index(store: Store, tmp_path: Path) -> None:
    """With --repair only."""
    store.put("a", story())
    assert run(store, tmp_path, "--repair").status == 0
    assert ask(store.index, "needle").coverage.fresh == 1


def test_the_report_as_json(store: Store, tmp_path: Path) -> None:
    """The spelling of the contract, with the same exit statuses."""
    path = store.put("a", story())
    bad = store.put("bad", b"nonsense\n")
    store.index.refresh()
    warnings = [
        {"path": bad, "reason": "first line is not valid JSON: it cannot be parsed"},
    ]
    whole = {"files": 1, "entries": 4, "repaired": False, "warnings": warnings, "pending": 0}
    ran = run(store, tmp_path, "--json")
    assert (ran.status, ran.err) == (0, "")
    assert json.loads(ran.out) == whole | {"differences": [], "dead": 0}
    forge(store, path, documents=changed(0, offset=3), record=header(id="another"))
    ran = run(store, tmp_path, "--json")
    assert (ran.status, ran.err) == (1, "")
    said = json.loads(ran.out)
    assert said.pop("dead") >= 0
    assert said == whole | {
        "differences": [
            {"path": path, "lineNo": None, "what": "the header is not as indexed"},
            {"path": path, "lineNo": 2, "what": MOVED},
        ]
    }
    ran = run(store, tmp_path, "--json", "--repair")
    assert (ran.status, json.loads(ran.out)["repaired"]) == (0, True)
