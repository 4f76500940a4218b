"""Instants: the bounds a caller gives, and the timestamps that session files hold.

An instant is a whole number of milliseconds since 1970 UTC; finer digits are cut off on both
sides of a comparison. All calendar arithmetic of the package lives here.

Rules:

- A stored timestamp may be any of the ISO forms that JavaScript reads. A date alone is UTC
  midnight; a date-time without a zone is "floating": only the host zone at the time of the
  question says which instant it is, so it is kept as a wall clock until then.
- A bound has a narrower form. A date alone is that whole day in the host zone, 23 or 25 hours
  long where the clocks change; a date-time without a zone is host time.
- A wall clock that happens twice means the first time; one that is skipped is read with the
  offset in force before the change (PEP 495, fold=0).
- Years mean themselves (0026 is not 1926), and a day 29 to 31 runs on into the next month.

The host zone is whatever `time.localtime` says at the call; nothing is cached. Not read:
JavaScript's free-form dates ("Jan 5, 2026"), leap seconds, numbers. Formats no timestamps:
answers carry the stored text.
"""

import re
import time
from functools import lru_cache
from typing import NamedTuple

from sessionindex.errors import ParameterError
from sessionindex.text import spelled

_DAY_MS = 86_400_000
_MAX_MS = 8_640_000_000_000_000  # the end of JavaScript's calendar, on either side of 1970

# Years 1 and 9999: every platform's localtime reaches these.
_FIRST_SECOND = -62_135_596_800
_LAST_SECOND = 253_402_300_799

_DAYS_BEFORE_MONTH = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAYS_BEFORE_1970 = 719_528  # counted from 0000-01-01

# ASCII digits only, which int() and \d would not insist on.
_PAIRS = {f"{number:02}": number for number in range(100)}
_DIGITS = {str(number): number for number in range(10)}

_STORED = (  # `re` keeps what it has compiled; these are not needed by every start
    r"(?P<year>[0-9]{4}|[+-][0-9]{6})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2}))?)?"
    r"(?:[Tt ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<zone>[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
# The shape of a bound; `stored` then decides whether its numbers make an instant.
_BOUND = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?P<time>T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
    r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


class Window(NamedTuple):
    """A half-open range of instants; None leaves that side unbounded."""

    start_ms: int | None
    end_ms: int | None  # the first instant that is no longer inside

    def holds(self, ms: int) -> bool:
        """Whether the instant lies inside."""
        return (self.start_ms is None or self.start_ms <= ms) and (
            self.end_ms is None or ms < self.end_ms
        )

    @property
    def is_open(self) -> bool:
        """Whether every instant lies inside."""
        return self.start_ms is None and self.end_ms is None


def window(start: object, end: object) -> Window:
    """The range that two bounds of a call span, both inclusive; None means no bound.

    Raises ParameterError for an unreadable bound, start first, and for a range whose end
    lies before its start.
    """
    start_ms = None if start is None else bound("startTimestamp", start)[0]
    end_ms = None if end is None else bound("endTimestamp", end)[1]
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        raise ParameterError(f"endTimestamp {end} resolves before startTimestamp {start}")
    return Window(start_ms, end_ms)


def bound(name: str, value: object) -> tuple[int, int]:
    """What a bound covers, half-open: one millisecond, or a whole local day.

    Raises ParameterError.
    """
    shape = re.fullmatch(_BOUND, value) if isinstance(value, str) else None
    reading = stored(shape[0]) if shape else None
    if shape is None or reading is None:
        raise ParameterError(
            f"{name} must be an ISO 8601 date, or an ISO 8601 date-time"
            f" (one with no timezone is read in the host timezone): {spelled(value)}"
        )
    ms, floating = reading
    if shape["time"] is None:
        return local_to_utc_ms(ms), local_to_utc_ms(ms + _DAY_MS)
    if floating:
        ms = local_to_utc_ms(ms)
    return ms, ms + 1


def stored(text: str) -> tuple[int, bool] | None:
    """The timestamp of a row or header as (milliseconds, floating), None when unreadable.

    A floating one names no zone: its milliseconds are the wall clock counted as if it were
    UTC, for `local_to_utc_ms` to resolve.
    """
    # Nearly every timestamp is 2026-09-10T09:00:01.123Z, and every line indexed has one: this
    # path takes half the time of the pattern. Between these marks only digits can be read.
    if len(text) == 24 and text[4:20:3] == "--T::." and text[23] == "Z":
        day = _day_ms(text[:10])
        try:
            hour, minute = _PAIRS[text[11:13]], _PAIRS[text[14:16]]
            second, ms = _PAIRS[text[17:19]], _PAIRS[text[20:22]] * 10 + _DIGITS[text[22]]
        except KeyError:
            return None
        if hour < 24 and minute < 60 and second < 60:
            return (
                None
                if day is None
                else (day + ((hour * 60 + minute) * 60 + second) * 1000 + ms, False)
            )
    return _stored_of_any_form(text)


@lru_cache(64)  # entries that follow each other are of one day
def _day_ms(date: str) -> int | None:
    """The midnight of a date like 2026-09-10; None where it is none."""
    try:
        year = _PAIRS[date[0:2]] * 100 + _PAIRS[date[2:4]]
        return _wall_ms(year, _PAIRS[date[5:7]], _PAIRS[date[8:10]], 0, 0, 0, 0)
    except KeyError:
        return None


def _stored_of_any_form(text: str) -> tuple[int, bool] | None:
    form = re.fullmatch(_STORED, text)
    if form is None or form["year"] == "-000000":
        return None
    fraction = form["fraction"] or "0"
    if form["hour"] == "24" and fraction.strip("0"):
        return None  # also where the digits are too fine for a millisecond
    wall = _wall_ms(
        int(form["year"]),
        int(form["month"] or 1),
        int(form["day"] or 1),
        int(form["hour"] or 0),
        int(form["minute"] or 0),
        int(form["second"] or 0),
        int(fraction[:3].ljust(3, "0")),
    )
    offset = _offset_ms(form["zone"] or "Z")
    if wall is None or offset is None or abs(wall - offset) > _MAX_MS:
        return None
    # A date alone is UTC, so only a time of day can float.
    return wall - offset, form["hour"] is not None and form["zone"] is None


def _wall_ms(
    year: int, month: int, day: int, hour: int, minute: int, second: int, ms: int
) -> int | None:
    """The fields counted as if they were UTC; None when one of them is out of its range."""
    if not (1 <= month <= 12 and 1 <= day <= 31 and minute <= 59 and second <= 59):
        return None
    # 24:00 is the next midnight, and nothing may follow it.
    if hour >= 24 and (hour > 24 or minute or second or ms):
        return None
    # Leap days before this year, counting year 0; then this year's own once February is over.
    before = year - 1
    days = 365 * year + before // 4 - before // 100 + before // 400 + 1
    days += _DAYS_BEFORE_MONTH[month] + day - 1 - _DAYS_BEFORE_1970
    if month > 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        days += 1
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms


def _offset_ms(zone: str) -> int | None:
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    size = (hours * 60 + minutes) * 60_000
    return -size if zone[0] == "-" else size


def instant_ms(text: str) -> int | None:
    """The instant of a stored timestamp, a floating one taken as host time."""
    reading = stored(text)
    if reading is None:
        return None
    ms, floating = reading
    return local_to_utc_ms(ms) if floating else ms


def local_to_utc_ms(wall_ms: int) -> int:
    """The instant at which the clocks of the host zone show `wall_ms`."""
    wall = wall_ms // 1000
    # No zone is a day away from UTC, so these stand before and after any change that could
    # touch this wall clock; where they agree, the middle one still sees a pair of changes.
    offsets = {_host_offset(wall + shift) for shift in (-86_400, 0, 86_400)}
    candidates = sorted(wall - offset for offset in offsets)
    for second in candidates:
        if second + _host_offset(second) == wall:
            return second * 1000 + wall_ms % 1000  # the first of two
    # Skipped: the offset before the change is the smaller one, which gives the later instant.
    return candidates[-1] * 1000 + wall_ms % 1000


def _host_offset(second: int) -> int:
    """Seconds that host time is ahead of UTC; outside the calendar, as at its nearest end."""
    try:
        return time.localtime(second).tm_gmtoff
    except (OverflowError, OSError, ValueError):
        return time.localtime(min(max(second, _FIRST_SECOND), _LAST_SECOND)).tm_gmtoff
