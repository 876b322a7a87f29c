"""Arithmetic with working time: a zone, hours by weekday, and days off. Pure.

Hours are written by the clock on the wall, and counted as they pass: an hour of a night in which clocks change counts
once where it is skipped or comes twice. A span does not go over midnight; "24:00" ends a day.

Also here: the working time of a policy's calendar, with public holidays of its country by the holidays library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import holidays

from approvals.models import Calendar, Policy

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FARTHEST = timedelta(days=5 * 366)  # no working time in all these days: what asks for it gets their end
_DAY = timedelta(days=1)
Span = tuple[timedelta, timedelta]  # since midnight, by the clock on the wall


@dataclass(frozen=True)
class WorkingTime:
    """Working hours in a zone, and the days off."""

    zone: ZoneInfo
    hours: Mapping[int, Sequence[Span]]  # by weekday, Monday is 0; in order, none within another
    is_off: Callable[[date], bool]

    def after(self, start: datetime, span: timedelta) -> datetime:
        """Return the moment at which so much working time has passed since `start`.

        Without any span, that is the first moment of working time from `start` on.
        """
        left, last = span, start + FARTHEST
        for begin, end in self._spans(start):
            if begin >= last:
                break
            if end - begin >= left and (left or end > begin):
                return begin + left
            left -= end - begin
        return last

    def between(self, start: datetime, end: datetime) -> timedelta:
        """Return the working time from `start` to `end`."""
        total = timedelta()
        for begin, until in self._spans(start):
            if begin >= end:
                break
            total += min(until, end) - begin
        return total

    def _spans(self, start: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield (begin, end) of the working time from `start` on, in order, in UTC, up to FARTHEST."""
        day, last = start.astimezone(self.zone).date(), (start + FARTHEST).astimezone(self.zone).date()
        floor = start.astimezone(UTC)
        while day <= last:
            for first, until in () if self.is_off(day) else self.hours.get(day.weekday(), ()):
                begin, end = max(self._moment(day, first), floor), self._moment(day, until, last=True)
                if end > begin:
                    yield begin, end
                    floor = end  # hours that meet in an hour that comes twice would count it twice
            day += _DAY

    def _moment(self, day: date, since: timedelta, *, last: bool = False) -> datetime:
        """Return the moment at which the clock shows this; of two, the first, or the last. A skipped one is its end."""
        shown = datetime.combine(day, time(), self.zone) + since
        one, other = (shown.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
        if one > other:  # the clocks skip it: both are an hour off, to either side of the change
            return _change(self.zone, other, one)
        return other if last else one


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the moment between these two at which the zone's clocks change."""
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == offset else (before, middle)
    return after.replace(microsecond=0)


def read_hours(said: Mapping[str, Sequence[Sequence[str]]]) -> dict[int, list[Span]]:
    """Read `{"mon": [["09:00", "17:00"]]}`. Raises ValueError, which says what is wrong."""
    if unknown := set(said) - set(DAYS):
        raise ValueError(f"{sorted(unknown)[0]} is no day: write {', '.join(DAYS)}")
    found = {DAYS.index(day): [_span(each) for each in spans] for day, spans in said.items()}
    for spans in found.values():
        if any(end > begin for (_, end), (begin, _) in pairwise(spans)):
            raise ValueError("the hours of a day have to be in order, and none within others")
    if not any(found.values()):
        raise ValueError("name at least one hour in a week")
    return found


def _span(said: Sequence[str]) -> Span:
    if len(said) != 2:
        raise ValueError("write a beginning and an end, such as 09:00 and 17:00")
    begin, end = map(_since_midnight, said)
    if begin >= end:
        raise ValueError(f"{said[0]} is not before {said[1]}: hours over midnight belong to two days")
    return begin, end


def _since_midnight(text: str) -> timedelta:
    hours, colon, minutes = str(text).partition(":")
    if not (colon and hours.isdecimal() and minutes.isdecimal() and len(minutes) == 2):
        raise ValueError(f"{text} is no time of day: write it as 09:00")
    found = timedelta(hours=int(hours), minutes=int(minutes))
    if int(minutes) > 59 or found > _DAY:
        raise ValueError(f"{text} is no time of day: write it as 09:00")
    return found


def working_time(calendar: Calendar) -> WorkingTime:
    """Return the calendar's working time. Raises ValueError, KeyError or NotImplementedError for what it cannot be."""
    off = frozenset(calendar.days_off)

    def is_off(day: date) -> bool:
        return day in off or (bool(calendar.country) and day in public_holidays(calendar.country, day.year))

    return WorkingTime(ZoneInfo(calendar.zone), read_hours(calendar.hours), is_off)


@lru_cache(1024)
def public_holidays(country: str, year: int) -> frozenset[date]:
    """Return the public holidays of "DE" or "DE-BY" in a year. Raises NotImplementedError for an unknown country.

    The library's own list fills in a year as it is first asked for one, and threads would see that half done.
    """
    code, _, part = country.partition("-")
    return frozenset(holidays.country_holidays(code, subdiv=part or None, years=year))


def after(policy: Policy, start: datetime, span: timedelta) -> datetime:
    """Return the moment at which so much time has passed since `start`, as the policy counts it."""
    if policy.calendar is None:
        return start + span
    return working_time(policy.calendar).after(start, span)
