"""The bounds and timestamps: every row of the recorded table, and the rules one by one.

`data/time-bounds.jsonl.gz` holds 2,591 bounds in 18 zones with what the tool API's reference
made of them. No row is excepted: none has a date alone in the years 0 to 99, where the
reference slips, and none stands where the zone databases of the last years disagree.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessionindex.errors import ParameterError
from sessionindex.timestamps import (
    Window,
    instant_ms,
    local_to_utc_ms,
    stored,
    window,
)

BOUNDS = Path(__file__).parent / "data" / "time-bounds.jsonl.gz"
DAY = 86_400_000
END = 8_640_000_000_000_000
EPOCH = datetime(1970, 1, 1)


@pytest.fixture(autouse=True, scope="module")
def zone_of_the_run() -> Iterator[None]:
    """Gives the run its own zone back, whatever the tests of this module set."""
    before = os.environ.get("TZ")
    yield
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    time.tzset()


def live_in(zone: str) -> None:
    os.environ["TZ"] = zone
    time.tzset()


@pytest.fixture(autouse=True)
def utc(zone_of_the_run: None) -> None:
    """Every test starts in UTC; one that is about another zone says so."""
    live_in("UTC")


def utc_ms(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (moment - EPOCH.replace(tzinfo=UTC)) // timedelta(milliseconds=1)


def refusal(start: object, end: object) -> str:
    with pytest.raises(ParameterError) as caught:
        window(start, end)
    return str(caught.value)


# Bounds


Covered = tuple[int | None, int | None] | None


def recorded() -> dict[str, list[tuple[str, Covered]]]:
    by_zone: dict[str, list[tuple[str, Covered]]] = {}
    for line in gzip.decompress(BOUNDS.read_bytes()).splitlines():
        row = json.loads(line)
        expected: Covered = None
        match row["expected"]:
            case {"kind": "instant", "ms": ms}:
                expected = (ms, ms + 1)
            case {"kind": "day", "startMs": start, "endMs": end}:
                expected = (start, end)
        by_zone.setdefault(row["tz"], []).append((row["value"], expected))
    return by_zone


RECORDED = recorded()


def test_the_recorded_table_is_whole() -> None:
    assert sum(map(len, RECORDED.values())) == 2591


@pytest.mark.parametrize("zone", RECORDED)
def test_every_recorded_bound_is_read_as_the_reference_reads_it(zone: str) -> None:
    live_in(zone)
    read = [(value, covered(value)) for value, _ in RECORDED[zone]]
    assert read == RECORDED[zone]


def covered(value: str) -> Covered:
    """The value as a start bound and as an end bound; None when it is refused as both."""
    try:
        start = window(value, None)
    except ParameterError:
        with pytest.raises(ParameterError):
            window(None, value)
        return None
    end = window(None, value)
    assert start.end_ms is None
    assert end.start_ms is None
    return start.start_ms, end.end_ms


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("America/New_York", "2026-06-01", 24),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Pacific/Apia", "2011-12-30", 0),
        ("UTC", "9999-12-31", 24),
    ],
)
def test_a_date_alone_is_the_local_day_in_its_real_length(
    zone: str, day: str, hours: float
) -> None:
    live_in(zone)
    start, end = window(day, None).start_ms, window(None, day).end_ms
    assert start is not None and end is not None
    assert end - start == hours * 3_600_000


@pytest.mark.parametrize("year", ["0000", "0001", "0026", "0099"])
def test_the_first_hundred_years_mean_themselves(year: str) -> None:
    reading = stored(f"{year}-03-01")
    assert reading is not None
    assert window(f"{year}-03-01", f"{year}-03-01") == Window(reading[0], reading[0] + DAY)
    assert reading[0] < utc_ms("0100-01-01")


@pytest.mark.parametrize(
    "value",
    [
        "0050-01-01T00:00:60",
        "2026-01-05T10:00+05",
        "2026-01-05T10:00:00.1234567891Z",
        "2026-01-05 10:00",
        "2026-01",
        "2026",
        "+002026-01-05",
        "２０２６-01-05",
        "2026-01-05\n",
        "2026-01-05T24:00:00.0001Z",
        "2026-01-05T10:00:00,5Z",
        "2026-01-05t10:00Z",
        "",
    ],
)
def test_a_bound_of_any_other_form_is_refused(value: str) -> None:
    assert covered(value) is None


def test_an_unreadable_bound_is_quoted_and_the_start_is_judged_first() -> None:
    said = (
        " must be an ISO 8601 date, or an ISO 8601 date-time"
        " (one with no timezone is read in the host timezone): "
    )
    assert refusal("soon", "later") == f"startTimestamp{said}soon"
    assert refusal("2026-01-05", 3.0) == f"endTimestamp{said}3"
    assert refusal([1, None, ["a"]], None) == f"startTimestamp{said}1,,a"


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-01-03", "2026-01-01"),
        ("2026-01-02", "2026-01-01"),
        ("2026-01-02T00:00:00Z", "2026-01-01"),
        ("2026-01-02T00:00:00.001Z", "2026-01-02T00:00:00Z"),
        ("2026-01-02", "2026-01-01T23:59:59.999"),
    ],
)
def test_an_end_before_the_start_is_refused_with_both_as_given(start: str, end: str) -> None:
    assert refusal(start, end) == f"endTimestamp {end} resolves before startTimestamp {start}"


def test_whether_a_range_is_reversed_depends_on_the_host_zone() -> None:
    live_in("America/New_York")
    assert window("2026-01-02T00:00:00Z", "2026-01-01").end_ms == utc_ms("2026-01-02T05:00")


def test_an_instant_end_is_inside_the_window_and_a_day_end_is_its_last_millisecond() -> None:
    noon = utc_ms("2026-01-02T12:00")
    one = window("2026-01-02T12:00:00.0005Z", "2026-01-02T12:00:00.0009Z")
    assert [one.holds(noon + step) for step in (-1, 0, 1)] == [False, True, False]
    day = window("2026-01-02", "2026-01-02")
    edges = (noon - DAY // 2 - 1, noon - DAY // 2, noon + DAY // 2 - 1, noon + DAY // 2)
    assert [day.holds(edge) for edge in edges] == [False, True, True, False]


def test_a_missing_bound_leaves_its_side_open() -> None:
    assert window(None, None) == Window(None, None)
    assert window(None, None).is_open
    assert window(None, None).holds(-END)
    after, before = window("1970-01-01", None), window(None, "1969-12-31")
    assert not after.is_open and not before.is_open
    assert after.holds(END) and not after.holds(-1)
    assert before.holds(-END) and not before.holds(0)


# Stored timestamps

STORED = [
    ("2026-09-10T09:00:01.123Z", "2026-09-10T09:00:01.123", False),
    ("2026-09-10t09:00:01.123z", "2026-09-10T09:00:01.123", False),
    ("2026-09-10 09:00:01.123Z", "2026-09-10T09:00:01.123", False),
    ("2026-09-10T09:00:01.123", "2026-09-10T09:00:01.123", True),
    ("2026-09-10T09:00", "2026-09-10T09:00", True),
    ("2026-09-10 09:00:01", "2026-09-10T09:00:01", True),
    ("2026-09-10T09:00+05:30", "2026-09-10T03:30", False),
    ("2026-09-10T09:00-0800", "2026-09-10T17:00", False),
    ("2026-09-10T09:00-23:59", "2026-09-11T08:59", False),
    ("2026-09-10T09:00:00.5Z", "2026-09-10T09:00:00.500", False),
    ("2026-09-10T09:00:00.1239999999Z", "2026-09-10T09:00:00.123", False),
    ("2026-09-10T09:00:00.0009999999999Z", "2026-09-10T09:00:00", False),
    ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999", False),
    ("2026", "2026-01-01", False),
    ("2026-09", "2026-09-01", False),
    ("2026-09-10", "2026-09-10", False),
    ("2026T09:00Z", "2026-01-01T09:00", False),
    ("+002026-09-10", "2026-09-10", False),
    ("0026-09-10", "0026-09-10", False),
    ("2026-02-30", "2026-03-02", False),
    ("2026-04-31T00:00:00.000Z", "2026-05-01", False),
    ("2024-02-31", "2024-03-02", False),
    ("2026-01-05T24:00:00.000Z", "2026-01-06", False),
    ("2026-12-31T24:00", "2027-01-01", True),
]


@pytest.mark.parametrize(("text", "wall", "floating"), STORED)
def test_the_iso_forms_of_a_stored_timestamp(text: str, wall: str, floating: bool) -> None:
    assert stored(text) == (utc_ms(wall), floating)


UNREADABLE = [
    # A number out of its range.
    "2026-00-10T09:00:01.123Z",
    "2026-13-10T09:00:01.123Z",
    "2026-09-00T09:00:01.123Z",
    "2026-09-32T09:00:01.123Z",
    "2026-09-10T25:00:01.123Z",
    "2026-09-10T24:00:00.001Z",
    "2026-09-10T24:00:00.0001Z",
    "2026-09-10T24:01",
    "2026-09-10T23:60:00.000Z",
    "2026-09-10T23:59:60.000Z",
    "2026-09-10T09:00+24:00",
    "2026-09-10T09:00+05:60",
    "-000000-01-01",
    # Something else where a digit or a mark belongs.
    "2026-09-10T09:00:01,123Z",
    "2026-09-10T+9:00:01.123Z",
    "2026-09-10T09:00:01.1_3Z",
    "202６-09-10T09:00:01.123Z",
    "2026-09-10X09:00:01.123Z",
    "2026-09-10T09:00:01.12Zx",
    "2026/01/05",
    # Too little.
    "2026-09-10T09",
    "2026-09-10T09:0",
    "2026-09-10T09:00+05",
    "2026-09-10T09:00:00.Z",
    "2026-09-10T",
    "2026-9-1",
    "20260910",
    "2026-09-10Z",
    "+02026-01-01",
    "26",
    "1767607200",
    "",
    "yesterday",
    # JavaScript's free form, and blanks.
    "Jan 5, 2026",
    "Jan",
    " ",
    "2026-09-10  09:00",
    "2026-09-10T09:00:00 Z",
    "2026-09-10 ",
    " 2026-09-10",
    "2026-09-10\n",
    "2026-09-10T09:00:01.123Z\n",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_anything_else_is_no_stored_timestamp(text: str) -> None:
    assert stored(text) is None
    assert instant_ms(text) is None


def test_a_stored_timestamp_reaches_as_far_as_javascript_does_and_no_further() -> None:
    assert stored("+275760-09-13T00:00:00.000Z") == (END, False)
    assert stored("-271821-04-20T00:00Z") == (-END, False)
    assert stored("+275760-09-13T01:00+01:00") == (END, False)
    assert stored("+275760-09-13T00:00:00.001Z") is None
    assert stored("-271821-04-19T23:59:59.999Z") is None
    assert stored("+999999-01-01") is None


@given(
    st.datetimes(),
    st.sampled_from(["seconds", "milliseconds", "microseconds"]),
    st.none() | st.integers(-1439, 1439),
)
def test_stored_agrees_with_datetime(moment: datetime, digits: str, offset: int | None) -> None:
    zone = None if offset is None else timezone(timedelta(minutes=offset))
    wall = (moment - EPOCH) // timedelta(milliseconds=1)
    if digits == "seconds":
        wall -= wall % 1000
    text = moment.replace(tzinfo=zone).isoformat(timespec=digits)
    assert stored(text) == (wall - (offset or 0) * 60_000, offset is None)
    if offset == 0:
        assert stored(text.replace("+00:00", "Z")) == (wall, False)


@given(st.text("0123456789-+:.TZtz _x", max_size=30))
@example("2026-09-10T09:00:01.123Z")
def test_no_text_upsets_the_reader(text: str) -> None:
    reading = stored(text)
    assert reading is None or abs(reading[0]) <= END


# The host zone


def test_a_floating_timestamp_follows_the_zone_of_the_moment_it_is_asked_in() -> None:
    naive, dated = "2026-07-01T12:00", "2026-07-01"
    assert instant_ms(naive) == utc_ms("2026-07-01T12:00")
    live_in("America/New_York")
    assert instant_ms(naive) == utc_ms("2026-07-01T16:00")
    assert instant_ms(dated) == utc_ms("2026-07-01")


@pytest.mark.parametrize(
    ("zone", "wall", "expected"),
    [
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"),  # the first of two
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:30"),  # skipped
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45"),  # half an hour back
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T22:00"),  # a day left out
        ("Asia/Shanghai", "1850-06-01T00:00", "1850-05-31T15:54:17"),  # mean local time
        ("XYZ-3", "2026-01-01T03:00", "2026-01-01T00:00"),  # a zone spelled out
    ],
)
def test_a_wall_clock_shown_twice_or_never(zone: str, wall: str, expected: str) -> None:
    live_in(zone)
    assert local_to_utc_ms(utc_ms(wall)) == utc_ms(expected)


ZONES = [
    *("America/New_York", "Europe/Berlin", "Asia/Shanghai"),
    *("Australia/Lord_Howe", "Pacific/Apia", "UTC"),
]


@given(
    st.sampled_from(ZONES),
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))
    | st.datetimes(datetime(1900, 1, 1), datetime(2040, 1, 1)),
)
def test_host_time_agrees_with_zoneinfo(zone: str, wall: datetime) -> None:
    live_in(zone)
    offset = wall.replace(tzinfo=ZoneInfo(zone), fold=0).utcoffset()
    assert offset is not None
    ms = (wall - EPOCH) // timedelta(milliseconds=1)
    assert local_to_utc_ms(ms) == ms - offset // timedelta(milliseconds=1)


@pytest.mark.parametrize("zone", ZONES)
def test_host_time_agrees_with_zoneinfo_all_around_every_change(zone: str) -> None:
    live_in(zone)
    there = ZoneInfo(zone)
    quarter = timedelta(minutes=15)
    for day in range(-30_000, 30_000):  # 1887 to 2052
        middle = EPOCH + timedelta(days=day)
        around = {(middle + timedelta(days=d)).replace(tzinfo=there).utcoffset() for d in (-1, 1)}
        if len(around) == 1:
            continue
        for step in range(-96, 97):
            wall = middle + step * quarter
            offset = wall.replace(tzinfo=there).utcoffset()
            assert offset is not None
            ms = (wall - EPOCH) // timedelta(milliseconds=1)
            assert local_to_utc_ms(ms) == ms - offset // timedelta(milliseconds=1), wall


def test_beyond_what_localtime_knows_the_nearest_offset_holds() -> None:
    live_in("Asia/Kathmandu")
    far = 10**30
    assert local_to_utc_ms(far) == far - (5 * 60 + 45) * 60_000
    assert local_to_utc_ms(-far) == -far - (5 * 3600 + 41 * 60 + 16) * 1000


# Values in messages
