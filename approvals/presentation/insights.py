"""Builds the page of figures: each with a chart, the table behind it, and a link from each number to its gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.contrib.auth.models import User

from approvals.insights import charts, figures
from approvals.insights.backlog import Backlog
from approvals.insights.closed_gates import CountedGate, InsightFilters
from approvals.insights.figures import PersonFigures
from approvals.models import Decision, Gate, Outcome
from approvals.presentation.drawing.times import lasting

from .text import untrusted
from .topbar import address

CHARTED = 8  # rows of a table that its chart shows
LISTED = 50  # rows of a table
WORDS = {**dict(Outcome.Kind.choices), "edited": "Edited", "mixed": "Mixed", "expired": "Expired"}
VERDICTS = {**dict(Decision.Verdict.choices), "edit": "Edited", "mixed": "Mixed"}


@dataclass(frozen=True)
class Cell:
    """One place of a table; `to`: the address of the gates that it counts."""

    text: str
    to: str = ""


@dataclass(frozen=True)
class Figure:
    """One figure: a chart, and its table, whose first column names the rows."""

    id: str
    title: str
    said: str  # what it counts, in a sentence
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    chart: str = ""  # SVG
    legend: Sequence[tuple[int, str]] = ()  # (number of the series, its name), where there are several
    empty: str = ""  # instead of the table, where it has no rows
    folded: bool = False  # the table, where it has a row for each day
    notes: Sequence[str] = field(default_factory=list)


def gates_at(wanted: InsightFilters, **part: Any) -> str:
    """Return the address of the list of the gates that one figure counts."""
    return f"{address('insight_gates')}?{wanted.query(**part)}"


def day_words(day: date) -> str:
    """Write a day as the axis and the tables show it."""
    return f"{day.day} {day:%b}"


def time_to_decision(rows: Sequence[CountedGate], wanted: InsightFilters) -> Figure:
    """Show how many decisions took how long."""
    took = figures.measure_waits(rows)
    names = [str(words) for words, _ in figures.SPANS.values()]
    marks = [(took.spread[key], gates_at(wanted, within=key) if took.spread[key] else "") for key in figures.SPANS]
    return Figure(
        "time", "Time to decision", "From the moment a gate opens until people decide it.",
        ["Decided", "Gates", "Share"],
        [
            [Cell(name), Cell(str(number), to), Cell(_share(number, took.number))]
            for name, (number, to) in zip(names, marks, strict=True)
        ] if took.number else [],
        charts.lying_bars(names, {"Gates": marks}) if took.number else "",
        empty="People decided nothing in this period.",
    )  # fmt: skip


def by_day(rows: Sequence[CountedGate], wanted: InsightFilters) -> Figure:
    """Show the median and the slowest tenth of each day, and what expired."""
    days = figures.by_day(rows, wanted.first_day, wanted.days)
    names = [day_words(each.day) for each in days]
    unit, seconds = _unit(max((each.most for each in days if each.most), default=timedelta(0)))
    series = {
        "Median": [(_count(each.half, seconds), "") for each in days],
        "90 % within": [(_count(each.most, seconds), "") for each in days],
    }
    table = [
        [
            Cell(day_words(each.day)),
            _number(each.decided, gates_at(wanted, day=each.day.isoformat())),
            Cell(_time(each.half)),
            Cell(_time(each.most)),
            _number(each.expired, gates_at(wanted, day=each.day.isoformat(), kind=Outcome.Kind.EXPIRED)),
        ]
        for each in reversed(days)
        if each.decided or each.expired
    ]
    some = any(each.decided for each in days)
    return Figure(
        "days", "Time to decision by day", "By the day on which the gate was decided.",
        ["Day", "Decided", "Median", "90 % within", "Expired"], table,
        charts.lines(names, series, unit=unit) if some else "",
        legend=list(enumerate(series)), empty="People decided nothing in this period.", folded=True,
    )  # fmt: skip


def endings(
    id: str, title: str, rows: Sequence[CountedGate], of: Callable[[CountedGate], tuple[str, Mapping[str, Any]]],
    wanted: InsightFilters,
) -> Figure:  # fmt: skip
    """Show how gates ended by what `of` returns of each: its name, and the part of the filters that selects it."""
    parts = dict(map(of, rows))
    counted = figures.endings(rows, lambda row: of(row)[0])
    kinds = [kind for kind in figures.KINDS if any(each[kind] for each in counted.values())]
    table = [
        [Cell(name), _number(each.total(), gates_at(wanted, **parts[name])),
         *(_number(each[kind], gates_at(wanted, kind=kind, **parts[name])) for kind in kinds)]
        for name, each in list(counted.items())[:LISTED]
    ]  # fmt: skip
    drawn = list(counted.items())[:CHARTED]
    series = {
        str(WORDS[kind]): [(each[kind], gates_at(wanted, kind=kind, **parts[name])) for name, each in drawn]
        for kind in figures.KINDS  # all of them, so that each keeps its colour
    }
    return Figure(
        id, title, "How gates ended.", ["Name", "All", *(str(WORDS[kind]) for kind in kinds)], table,
        charts.lying_bars([name for name, _ in drawn], series) if drawn else "",
        legend=[(figures.KINDS.index(kind), str(WORDS[kind])) for kind in kinds],
        empty="No gate closed in this period.",
        notes=_more(len(counted) - LISTED),
    )  # fmt: skip


def automatic(rows: Sequence[CountedGate], wanted: InsightFilters) -> Figure:
    """Compare what rules approved by themselves with how people decided the sample that they were shown."""
    counted = figures.by_rule(rows)
    kinds = [kind for kind in figures.KINDS if any(sample[kind] for _, sample in counted.values())]
    table = [
        [Cell(untrusted.plain(rule, limit=60)), _number(alone, gates_at(wanted, rule=rule)),
         _number(sample.total(), gates_at(wanted, rule=rule, sample=True)),
         *(_number(sample[kind], gates_at(wanted, rule=rule, sample=True, kind=kind)) for kind in kinds)]
        for rule, (alone, sample) in list(counted.items())[:LISTED]
    ]  # fmt: skip
    return Figure(
        "automatic", "Automatic approvals",
        "What rules approved by themselves, and how people decided the sample that they were shown.",
        ["Rule", "By the rule", "Sample", *(str(WORDS[kind]) for kind in kinds)], table,
        empty="No rule approved anything in this period.",
    )  # fmt: skip


def edits(fields: Mapping[str, Sequence[int]], wanted: InsightFilters) -> Figure:
    """Show which fields people edited before they approved."""
    shown = list(fields.items())
    names = [untrusted.plain(untrusted.place(name), limit=60) for name, _ in shown]
    ends = [name if len(name) <= charts.NAME else f"…{name[1 - charts.NAME :]}" for name in names]
    marks = [(len(gates), gates_at(wanted, field=name)) for name, gates in shown]
    pairs = list(zip(names, marks, strict=True))
    return Figure(
        "edits", "Edits by field", "What people changed before they approved: where proposals are often wrong.",
        ["Field", "Gates"], [[Cell(name), Cell(str(number), to)] for name, (number, to) in pairs[:LISTED]],
        charts.lying_bars(ends[:CHARTED], {"Gates": marks[:CHARTED]}) if names else "",
        empty="People edited nothing in this period.",
        notes=_more(len(pairs) - LISTED),
    )  # fmt: skip


def backlog(found: Backlog, wanted: InsightFilters) -> Figure:
    """Show how many gates waited at the end of each day, and how long those that wait now have waited."""
    names = [day_words(day) for day, _ in found.days]
    words = {key: str(words) for key, (words, _) in figures.SPANS.items()}
    every = f"All, {lasting(found.waited)} in total"
    asked = {"queue": "all", "risk": wanted.risk, "agent": wanted.agent}
    open_gates = f"{address('inbox')}?" + "&".join(f"{name}={value}" for name, value in asked.items() if value)
    return Figure(
        "backlog", "Waiting", "Gates that were open at the end of each day.",
        ["Waiting now", "Gates"],
        [
            [Cell(every), _number(found.open, open_gates)],
            *([Cell(words[key]), Cell(str(number))] for key, number in found.spread.items()),
            *([Cell("Cost of waiting so far"), Cell(f"{cost:,.2f} {each}")] for each, cost in found.costs.items()),
            [Cell("The longest wait"), Cell(_time(found.longest))],
        ] if found.open else [],
        charts.lines(names, {"Open": [(number, "") for _, number in found.days]}),
        empty="No gate is open.",
    )  # fmt: skip


def people(found: Iterable[PersonFigures], wanted: InsightFilters, *, compared: bool, teams: str) -> Figure:
    """Show what each person decided; only the reader's own row, unless a team's lead lets them compare people."""
    rows = list(found)
    users = User.objects.in_bulk([each.user for each in rows])
    used = [key for key in VERDICTS if any(each.verdicts[key] for each in rows)]
    table = [
        [Cell(untrusted.person(users[each.user])), _number(len(each.gates), gates_at(wanted, person=each.user)),
         Cell(_time(each.half)), *(Cell(str(each.verdicts[key])) for key in used)]
        for each in rows
    ]  # fmt: skip
    said = "Only you see this: what you decided."
    if compared:
        said = f"What each person decided, in no order. The leads of {teams} let you see it."
    return Figure(
        "people", "By person" if compared else "Your decisions", said,
        ["Person", "Gates", "Median", *(str(VERDICTS[key]) for key in used)], table,
        empty="No decisions in this period.",
    )  # fmt: skip


def risk_of(row: CountedGate) -> tuple[str, Mapping[str, Any]]:
    """Name a gate's risk."""
    return str(Gate.Risk(row.risk).label), {"risk": row.risk}


def agent_of(row: CountedGate) -> tuple[str, Mapping[str, Any]]:
    """Name a gate's agent."""
    return untrusted.plain(row.agent, limit=60), {"agent": row.agent}


def policy_of(teams: Mapping[int, str]) -> Callable[[CountedGate], tuple[str, Mapping[str, Any]]]:
    """Return a function that names a gate's policy, with its team where there are several."""

    def of(row: CountedGate) -> tuple[str, Mapping[str, Any]]:
        team = untrusted.plain(teams[row.team], limit=40)
        return f"{row.policy} · {team}" if len(teams) > 1 else row.policy, {"policy": row.policy, "team": row.team}

    return of


def said_of(wanted: InsightFilters, *, teams: Mapping[int, str], person: str = "") -> list[str]:
    """Say in words what a list of gates is filtered by."""
    within = figures.SPANS.get(wanted.within)
    return [
        each
        for each in (
            f"last {wanted.days} days",
            untrusted.plain(teams.get(wanted.team, ""), limit=60),
            wanted.agent and f"agent {untrusted.plain(wanted.agent, limit=60)}",
            wanted.policy and f"policy {untrusted.plain(wanted.policy, limit=60)}",
            wanted.risk and f"{Gate.Risk(wanted.risk).label} risk",
            wanted.kind and str(WORDS[Outcome.Kind(wanted.kind)]).lower(),
            within and f"decided {within[0]}",
            wanted.day and f"on {day_words(date.fromisoformat(wanted.day))}",
            wanted.rule
            and (
                f"sample of the rule {untrusted.plain(wanted.rule, limit=60)}"
                if wanted.sample
                else f"approved by the rule {untrusted.plain(wanted.rule, limit=60)}"
            ),
            wanted.field and f"edited at {untrusted.plain(wanted.field, limit=60)}",
            person and f"decided by {person}",
        )
        if each
    ]


def _number(number: int, to: str) -> Cell:
    return Cell(str(number), to if number else "")


def _share(number: int, whole: int) -> str:
    return f"{round(100 * number / whole)} %" if whole else ""


def _unit(longest: timedelta) -> tuple[str, int]:
    """Return the unit of an axis of times, and its seconds."""
    if longest >= timedelta(days=3):
        return "d", 24 * 60 * 60
    if longest >= timedelta(hours=2):
        return "h", 60 * 60
    if longest >= timedelta(minutes=2):
        return "min", 60
    return "s", 1


def _count(span: timedelta | None, seconds: int) -> float | None:
    return None if span is None else span.total_seconds() / seconds


def _time(span: timedelta | None) -> str:
    return "" if span is None else lasting(span)


def _more(rest: int) -> list[str]:
    return [f"{rest} more rows are not shown."] if rest > 0 else []
