"""The snapshot of the files: what the documents say, for the one state it was written at."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from build import append, session
from hypothesis import given
from hypothesis import strategies as st
from scratch import Store, ask

from sessionindex import SessionIndex, coverage, files, standing
from sessionindex.coverage import Cursor, Identity
from sessionindex.index import snapshot
from sessionindex.index.reader import Reader
from sessionindex.index.record import Record
from sessionindex.index.snapshot import Snapshot
from sessionindex.layout import Found, Survey
from sessionindex.model import Session

STATE = ("g1", "a format", 5, 7, 9)
ROOT = "/r/sessions"
PLACE = Identity(1, 2**63 + 5, 300, -1, 1_700_000_000_000_000_000)
CURSOR = Cursor(PLACE, True, 300, 3, 4_000_000_000, 1, 2)
ZULU = "2026-01-02T03:04:05.678Z"


def record(number: int, below: str, **other: Any) -> Record:
    header = Session(f"id{number}", "/r/app", ZULU, 1_767_323_045_678, None, 3)
    plain = Record(number, f"{ROOT}/{below}", header, None, CURSOR, 2, (), 0)
    return plain._replace(**other)


def known(*records: Record, survey: Survey | None = None) -> Snapshot:
    by_path = {one.path: one for one in records}
    return Snapshot(STATE, time.tzname, by_path, survey)


def found(one: Record, owner: Record | None = None) -> Found:
    path = one.path
    return Found(path, one.cursor.identity, one.session, (owner or one).path, owner and owner.path)


ODD = (
    record(1, "--a--/x.jsonl", name="", problems=((3, 1), (1, 9)), leaf=2**64 - 1),
    record(2, "--a--/y\u2028 ü.jsonl", name="lone \udc80 and \0"),
    record(
        3,
        "--b--/z.jsonl",
        session=Session("\ud800", "", ZULU, 0, "/elsewhere/p.jsonl", 0),
        cursor=CURSOR._replace(proven=False, checksum=0),
    ),
)


def same(read: Snapshot | None, written: Snapshot) -> None:
    assert read is not None
    assert read[:3] == written[:3]
    for one in read.records.values():
        parts = (one, one.session, one.cursor, one.cursor.identity)
        assert [type(part) for part in parts] == [Record, Session, Cursor, Identity]


@pytest.mark.parametrize("records", [(), ODD[:1], ODD], ids=["none", "one", "odd"])
def test_what_is_written_is_read(records: tuple[Record, ...], tmp_path: Path) -> None:
    """Under the root as the reader spells it, and for one state only."""
    now = known(*records)
    snapshot.save(str(tmp_path), ROOT, now)
    same(snapshot.load(str(tmp_path), ROOT, STATE), now)
    assert os.stat(tmp_path / snapshot.NAME).st_mode & 0o777 == 0o600
    assert snapshot.load(str(tmp_path), ROOT, (*STATE[:-1], 10)) is None
    elsewhere = snapshot.load(str(tmp_path), "/other/", STATE)
    assert elsewhere is not None
    assert {p.removeprefix("/other/") for p in elsewhere.records} == {
        p.removeprefix(f"{ROOT}/") for p in now.records
    }


def test_a_survey_comes_with_its_records_and_no_others(tmp_path: Path) -> None:
    folder = str(tmp_path)
    folders, hidden = [("--a--", CURSOR.identity)], [("--a--/broken.jsonl", PLACE)]
    one, two, three = ODD
    survey = Survey(False, (found(one), found(two, one), found(three)), PLACE, folders, hidden)
    snapshot.save(folder, ROOT, known(*ODD, survey=survey))
    read = snapshot.load(folder, ROOT, STATE)
    assert read is not None and read.survey == survey
    assert [type(item) for item in read.survey.sessions] == [Found] * 3
    for other in (ODD[:2], (*ODD, record(4, "--c--/n.jsonl")), (*ODD[:2], three._replace(key=9))):
        snapshot.save(folder, ROOT, known(*other, survey=survey))
        read = snapshot.load(folder, ROOT, STATE)
        same(read, known(*other))
        assert read is not None
        assert (read.survey is None) is (len(other) != 3)
    header = three.session._replace(version=9)
    snapshot.save(folder, ROOT, known(one, two, three._replace(session=header), survey=survey))
    read = snapshot.load(folder, ROOT, STATE)
    assert read is not None and read.survey is None


def test_few_changes_are_added_and_many_are_written_anew(tmp_path: Path) -> None:
    folder, path = str(tmp_path), tmp_path / snapshot.NAME
    one, two, three = ODD
    survey = Survey(False, (found(one), found(two)), PLACE, [], [])
    before = snapshot.save(folder, ROOT, known(one, two, survey=survey))
    grown = one._replace(entries=77)
    later = known(grown, two, survey=survey)._replace(state=(*STATE[:-1], 10))
    added = snapshot.add(folder, ROOT, later, {one.path}, STATE, before)
    assert added is not None and added.size == path.stat().st_size > before.size
    read = snapshot.load(folder, ROOT, later.state)
    same(read, later)
    assert (
        read is not None
        and read.survey == survey
        and read.written == added._replace(survey=read.survey)
    )
    assert snapshot.load(folder, ROOT, STATE) is None  # it is of the last block's state
    last = known(two, three)._replace(state=STATE)
    ended = snapshot.add(
        folder, ROOT, last, {one.path, three.path, "/r/sessions/never"}, later.state, added
    )
    assert ended is not None
    read = snapshot.load(folder, ROOT, STATE)
    same(read, last)
    assert read is not None and read.survey is None
    assert snapshot.add(folder, ROOT, last, set(), STATE, before) is None  # not as large as it was
    rounds = 0
    while (more := snapshot.add(folder, ROOT, last, {two.path}, STATE, ended)) is not None:
        ended, rounds = more, rounds + 1
    assert 10 < rounds < 1000


def test_a_block_that_follows_another_state_is_not_believed(tmp_path: Path) -> None:
    """Somebody has put another file of the same length in the place of what was written."""
    now = known(*ODD[:2])
    before = snapshot.save(str(tmp_path), ROOT, now)
    other = now._replace(state=(*STATE[:-1], 8))
    assert snapshot.save(str(tmp_path), ROOT, other).size == before.size
    later = known(ODD[0])._replace(state=(*STATE[:-1], 10))
    assert snapshot.add(str(tmp_path), ROOT, later, {ODD[1].path}, STATE, before)
    assert snapshot.load(str(tmp_path), ROOT, later.state) is None


def test_whatever_is_damaged_is_as_good_as_not_there(tmp_path: Path) -> None:
    """Each byte of it, each shorter file, and each that another Python wrote."""
    path, now = tmp_path / snapshot.NAME, known(*ODD[:2])
    before = snapshot.save(str(tmp_path), ROOT, now)
    later = now._replace(records={ODD[0].path: ODD[0]})
    assert snapshot.add(str(tmp_path), ROOT, later, {ODD[1].path}, STATE, before)
    whole = path.read_bytes()
    same(snapshot.load(str(tmp_path), ROOT, STATE), later)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        assert snapshot.load(str(tmp_path), ROOT, STATE) is None, place
        path.write_bytes(whole[:place])
        read = snapshot.load(str(tmp_path), ROOT, STATE)
        assert read is None or place == before.size  # all but the block that was added
    os.unlink(path)
    assert snapshot.load(str(tmp_path), ROOT, STATE) is None
    os.mkfifo(path)
    assert snapshot.load(str(tmp_path), ROOT, STATE) is None


def test_a_header_without_a_zone_is_read_in_that_of_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = ODD[0].session._replace(timestamp="2026-01-02T03:04:05", timestamp_ms=0)
    snapshot.save(str(tmp_path), ROOT, known(ODD[0]._replace(session=local), ODD[1]))
    instants = []
    try:
        for zone in ("UTC", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            read = snapshot.load(str(tmp_path), ROOT, STATE)
            assert read is not None
            instants.append([one.session.timestamp_ms for one in read.records.values()])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert instants == [
        [1_767_323_045_000, 1_767_323_045_678],
        [1_767_323_045_000 - 9 * 3_600_000, 1_767_323_045_678],
    ]


TEXT = st.text(st.characters(), max_size=8)
NUMBER = st.integers(0, 2**64 - 1)
IDENTITIES = st.builds(Identity, NUMBER, NUMBER, NUMBER, st.integers(), st.integers())
CURSORS = st.builds(Cursor, IDENTITIES, st.booleans(), *[NUMBER] * 5)
SESSIONS = st.builds(
    Session, TEXT, TEXT, TEXT.map(lambda t: t + "Z"), st.integers(), st.none() | TEXT, NUMBER
)
PROBLEMS = st.lists(st.tuples(NUMBER, NUMBER), max_size=2).map(tuple)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
RECORDS = st.lists(
    st.builds(
        Record,
        NUMBER,
        NAMES.map(lambda name: f"{ROOT}/{name}"),
        SESSIONS,
        st.none() | TEXT,
        CURSORS,
        NUMBER,
        PROBLEMS,
        NUMBER,
    ),
    unique_by=lambda one: one.path,
)


@given(before=RECORDS, after=RECORDS)
def test_any_records_survive(
    before: list[Record], after: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.getbasetemp())
    written = snapshot.save(folder, ROOT, known(*before))
    same(snapshot.load(folder, ROOT, STATE), known(*before))
    changed = {one.path for one in (*before, *after)}
    if snapshot.add(folder, ROOT, known(*after), changed, STATE, written) is not None:
        same(snapshot.load(folder, ROOT, STATE), known(*after))


# --- in use --------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every reading of all documents of files."""
    seen: list[object] = []
    all_records = Reader.all_records
    monkeypatch.setattr(
        Reader, "all_records", lambda reader: seen.append(reader) or all_records(reader)
    )
    return seen


@pytest.fixture
def proving(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(coverage, "RACY_NS", -1)
    monkeypatch.setattr(standing, "keeps_folder_times", lambda device: True)
    yield


def test_another_program_reads_no_documents(store: Store, reads: list[object]) -> None:
    """Not after a walk, nor after files that a watcher was told of."""
    path = store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    with store.index.keeping("test") as kept:
        kept.refresh()
        reads.clear()
        for _ in range(3):
            append(path, session("x").user("needle").tail(1))
            kept.refresh([path])
            assert ask(store.open(), "needle").coverage.scanned_bytes == 0
        new = store.put("c", session("c").user("needle"))
        kept.refresh([new])
        os.unlink(path)
        kept.refresh([path])
        assert ask(store.open(), "needle").total == 2
    assert not reads
    store.index.refresh(rebuild=True)
    reads.clear()
    assert ask(store.open(), "needle").total == 2
    assert not reads


def test_a_snapshot_of_another_commit_is_not_believed(store: Store, reads: list[object]) -> None:
    path = store.put("a", session("a").user("needle"))
    store.index.refresh()
    snapshots = store.folder / "g1" / snapshot.NAME
    old = snapshots.read_bytes()
    append(path, session("x").user("needle").tail(1))
    store.index.refresh()
    snapshots.write_bytes(old)
    reads.clear()
    assert ask(store.open(), "needle").total == 2
    assert reads
    assert store.open().check().differences == ()
    store.index.refresh()  # and the next refresh mends it
    assert snapshots.read_bytes() != old
    reads.clear()
    assert ask(store.open(), "needle").total == 2
    assert not reads


def test_a_snapshot_that_cannot_be_written_costs_nobody_an_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", session("a").user("needle"))

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "save", full)
        store.index.refresh()
    assert not (store.folder / "g1" / snapshot.NAME).exists()
    assert ask(store.open(), "needle").coverage.scanned_bytes == 0


@pytest.mark.usefixtures("proving")
def test_check_says_what_a_snapshot_has_wrong(store: Store) -> None:
    """One with the right state and sound bytes, which nothing of ours would write."""
    store.put("a", session("a").user("needle"))
    store.put("b", session("b").user("needle"))
    store.index.refresh()
    index = store.open()
    index.search("needle")
    reader = index._present.checked_reader()
    right = reader.snapshot()
    assert right is not None and right.survey is not None
    records, survey = dict(right.records), right.survey
    path = next(iter(records))
    folder = str(store.folder / "g1")
    wrong = {
        "its snapshot is of other files": right._replace(
            records=records | {path: records[path]._replace(entries=9)}
        ),
        "its snapshot is of another tree": right._replace(
            survey=survey._replace(
                sessions=tuple(
                    one._replace(parent=None if one.parent else path, owner=path)
                    for one in survey.sessions
                )
            )
        ),
    }
    for what, one in wrong.items():
        snapshot.save(folder, str(store.root), one)
        found = store.open().check().differences
        assert [(diff.path, diff.what) for diff in found] == [(str(store.folder), what)]
    assert store.open().check(repair=True).differences == ()


@pytest.mark.usefixtures("proving")
def test_a_refresh_walks_only_where_a_folder_moved(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store.put("a", session("a").user("needle"))
    store.put("a/run/run-0/session", session("b").user("needle"))
    store.index.refresh()
    walks: list[object] = []
    walked = standing.tree

    def tree(*args: Any) -> object:
        walks.append(walked(*args))
        return walks[-1]

    monkeypatch.setattr(standing, "tree", tree)
    append(path, session("x").user("needle").tail(1))
    with SessionIndex(store.root, index_dir=store.index_dir, settings={}) as another:
        assert another.refresh().appended == 1
    assert len(walks) == 1 and walks[0] is not None
    store.put("a/run/run-1/session", session("c").user("needle"))
    assert store.index.refresh().added == 1
    assert walks[1:] == [None]
    assert ask(store.index, "needle").total == 4


def test_a_snapshot_is_ours_to_take_away(store: Store) -> None:
    store.put("a", session("a").user("needle"))
    store.index.refresh()
    assert (store.folder / "g1" / snapshot.NAME).is_file()
    store.index.refresh(rebuild=True)
    assert not (store.folder / "g1").exists()
    assert files.read_small(str(store.folder / "g2" / snapshot.NAME))
