"""Working time by a table: zones, holidays, clocks that change, and hours that nobody could work."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from holidays import HolidayBase

from approvals.models import Calendar
from approvals.policy import calendars
from approvals.policy.calendars import public_holidays
from approvals.policy.working_time import DAYS, FARTHEST, WorkingTime, read_hours

OFFICE = {day: [["09:00", "17:00"]] for day in ("mon", "tue", "wed", "thu", "fri")}
NIGHTS = {"sat": [["22:00", "24:00"]], "sun": [["00:00", "06:00"]]}


def working(zone: str = "Europe/Berlin", hours: dict[str, list[list[str]]] = OFFICE, off: str = "") -> WorkingTime:
    days = {date.fromisoformat(day) for day in off.split()}
    return WorkingTime(ZoneInfo(zone), read_hours(hours), days.__contains__)


def at(text: str, zone: str = "Europe/Berlin") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("start", "hours", "end"),
    [
        ("2026-03-02 10:00", 2, "2026-03-02 12:00"),  # a Monday
        ("2026-03-02 16:00", 2, "2026-03-03 10:00"),  # over a night
        ("2026-03-06 16:00", 2, "2026-03-09 10:00"),  # over a weekend
        ("2026-03-07 12:00", 1, "2026-03-09 10:00"),  # begun on a Saturday
        ("2026-03-02 03:00", 1, "2026-03-02 10:00"),  # begun before the hours
        ("2026-03-02 09:00", 8, "2026-03-02 17:00"),  # to the very end of a day
        ("2026-03-02 17:00", 0, "2026-03-03 09:00"),  # the next moment of work
        ("2026-03-27 16:00", 2, "2026-03-30 10:00"),  # the clocks change in between, on nobody's time
        ("2026-03-02 09:00", 80, "2026-03-13 17:00"),  # two weeks
    ],
)
def test_time_passes_only_while_somebody_works(start: str, hours: int, end: str) -> None:
    found = working().after(at(start), timedelta(hours=hours))
    assert found == at(end)
    assert working().between(at(start), found) == timedelta(hours=hours)


def test_days_off_do_not_count() -> None:
    assert working(off="2026-03-03 2026-03-04").after(at("2026-03-02 16:00"), timedelta(hours=2)) == at(
        "2026-03-05 10:00"
    )


def test_it_is_the_calendars_zone_that_counts_wherever_the_gate_was_opened() -> None:
    opened = datetime(2026, 3, 2, 21, tzinfo=UTC)  # Tuesday, 6 in the morning in Tokyo
    assert working("Asia/Tokyo").after(opened, timedelta(hours=1)) == at("2026-03-03 10:00", "Asia/Tokyo")
    assert working("America/New_York").after(opened, timedelta(hours=2)) == at("2026-03-03 10:00", "America/New_York")


def test_a_night_in_which_clocks_change_has_an_hour_less_or_more() -> None:
    """Berlin skips from 2 to 3 on 29 March 2026, and has 2 to 3 twice on 25 October."""
    nights = working(hours=NIGHTS)
    for begin, hours in (("2026-03-28 12:00", 7), ("2026-10-24 12:00", 9), ("2026-06-06 12:00", 8)):
        assert nights.between(at(begin), at(begin) + timedelta(days=2)) == timedelta(hours=hours), begin
    assert nights.after(at("2026-03-29 00:00"), timedelta(hours=2)) == at("2026-03-29 03:00")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Atlantic/Azores", "America/Havana"])
def test_around_the_clock_an_hour_that_comes_twice_counts_twice_and_no_more(zone: str) -> None:
    """Where midnight comes twice, both days had the hour: a deadline came an hour early."""
    whole = {day: [["00:00", "02:30"], ["02:30", "24:00"]] for day in DAYS}
    start = datetime(2026, 10, 20, tzinfo=UTC)
    for days in range(1, 20):
        found = working(zone, whole).after(start, timedelta(days=days))
        assert found == start + timedelta(days=days)
        assert working(zone, whole).between(start, found) == timedelta(days=days)


def test_hours_that_begin_or_end_in_the_skipped_hour_do_so_as_it_ends() -> None:
    half = {"sun": [["01:30", "02:30"], ["02:45", "04:00"]]}
    found = working(hours=half)
    assert found.after(at("2026-03-29 00:00"), timedelta(minutes=30)) == at("2026-03-29 03:00")
    assert found.between(at("2026-03-29 00:00"), at("2026-03-29 12:00")) == timedelta(minutes=90)


def test_holidays_of_a_year_that_another_thread_reads_just_now_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a worker shared a list. While one filled in a year, its holidays were working days to another."""
    christmas, populate, said = date(2051, 12, 25), HolidayBase._populate, list[bool]()
    time = calendars.working_time(Calendar(hours=OFFICE, country="DE"))

    def slow(days: HolidayBase, year: int) -> None:
        if not said:
            said.append(False)
            said[0] = time.is_off(christmas)  # as another thread asks meanwhile
        populate(days, year)

    monkeypatch.setattr(HolidayBase, "_populate", slow)
    assert time.is_off(christmas)
    assert said == [True]


def test_public_holidays_are_those_of_the_country_and_of_its_part() -> None:
    assert date(2026, 12, 25) in public_holidays("DE", 2026)
    assert date(2026, 1, 6) not in public_holidays("DE", 2026)
    assert date(2026, 1, 6) in public_holidays("DE-BY", 2026)
    assert date(2040, 7, 4) in public_holidays("US", 2040)
    with pytest.raises(NotImplementedError):
        public_holidays("XX", 2026)


def test_where_nobody_ever_works_the_answer_is_far_away_and_comes() -> None:
    never = WorkingTime(ZoneInfo("UTC"), read_hours(OFFICE), lambda day: True)
    start = datetime(2026, 3, 2, tzinfo=UTC)
    assert never.after(start, timedelta(hours=1)) == start + FARTHEST


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        ({}, "at least one hour"),
        ({"mon": []}, "at least one hour"),
        ({"monday": [["09:00", "17:00"]]}, "monday is no day"),
        ({"mon": [["17:00", "09:00"]]}, "over midnight"),
        ({"mon": [["09:00"]]}, "a beginning and an end"),
        ({"mon": [["9", "17:00"]]}, "no time of day"),
        ({"mon": [["09:60", "17:00"]]}, "no time of day"),
        ({"mon": [["09:00", "24:01"]]}, "no time of day"),
        ({"mon": [["09:00", "13:00"], ["12:00", "17:00"]]}, "in order"),
    ],
)
def test_hours_that_cannot_be_are_refused_with_the_reason(hours: dict[str, list[list[str]]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_hours(hours)
