"""Draws Gantt charts on the server. Pure.

Every place along the time axis is a percentage, so that a chart is as wide as its page and its text stays as large as
the page's; a page that is too narrow scrolls it in a box of its own. The charts of a card share one time axis. Jobs
differ by their number, and moved operations by outline and fill: the data chooses no colour, no size and no word except
its machines' names.

The data at a chart's pointer in the saved state is an object:

    machines    how many there are, or a list of their names
    operations  rows [job, index, machine, start, end, moved]: jobs, operations within a job and machines count
                from 0; `moved` is 0 for unchanged, 1 for another time, 2 for another place
                in its machine's order as well
    downtimes   rows [machine, from, until]; may be left out
    now         a moment: operations that begin before it are past; may be left out

Other names are ignored. Data of another shape give a sentence, which is shown instead of the drawing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.cards.card import Card
from approvals.english import count_of
from approvals.presentation.text import untrusted
from checkpoints.values import json_pointer

LANE, BAR, TOP, FOOT = 22, 16, 22, 22  # px: a lane, a bar in it, the axis above, the line of moments below
NARROWEST = 840  # least width of a drawing in px, by which bars get a number if they have room
GLYPH = 7.5  # px of a digit
TICKS = 10
SHORTEST = 0.001  # least length of a time axis: a shorter one is no real schedule, and too small to divide by
# The pattern of a standstill, with an id for each chart, since a page may hold several.
HATCH = (
    '<defs><pattern id="hatch-{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatch" d="M0 0v6"/></pattern></defs>'
)
NOTHING, FIRST, PAST = SafeString(""), SafeString(' data-first=""'), SafeString(' data-past=""')
Number = int | float
MOST_OPERATIONS, MOST_MACHINES, LATEST = 3_000, 150, 10**12
NAME = 14  # characters of a machine's name
CHANGES = {0: "", 1: "another time", 2: "another order"}


@dataclass(frozen=True, kw_only=True)
class DrawnChart:
    """One chart on the page: a drawing, or the sentence that says why there is none."""

    number: int
    title: str  # the agent's
    fault: str = ""
    lanes: SafeString = NOTHING
    bars: SafeString = NOTHING
    counted: str = ""  # the numbers in the drawing, in words
    named: bool = False
    table: Sequence[Sequence[str]] = ()  # machine, job, operation, start, end, change


@dataclass(frozen=True, kw_only=True)
class CardCharts:
    """All charts of a card, with their figures side by side."""

    drawn: Sequence[DrawnChart] = ()
    figures: Sequence[tuple[str, Sequence[str]]] = ()  # rows of the comparison: a label, a text for each chart


@dataclass(frozen=True)
class _Axis:
    """The time axis that the charts share, from 0."""

    end: Number

    @property
    def ticks(self) -> list[Number]:
        step = _step(self.end)
        return [step * number for number in range(int(self.end // step) + 1)]

    def at(self, moment: Number) -> str:
        """Return the place of a moment on the axis, as a percentage."""
        return f"{moment / self.end * 100:.2f}%"

    def long(self, start: Number, end: Number) -> str:
        return f"{(end - start) / self.end * 100:.2f}%"

    def room(self, operation: Operation) -> float:
        """Return the least width of a bar, in px."""
        return (operation.end - operation.start) / self.end * NARROWEST


def charts(card: Card, state: Mapping[str, Any]) -> CardCharts:
    """Draw the card's charts from the state that the gate shows."""
    found = [read(json_pointer.get(state, chart.pointer)) for chart in card.charts]
    axis = _Axis(max([SHORTEST, *(each.end for each in found if isinstance(each, Schedule))]))
    drawn = [
        DrawnChart(number=number, title=chart.title, fault=data)
        if isinstance(data, str)
        else _drawn(data, axis, number=number, title=chart.title)
        for number, (chart, data) in enumerate(zip(card.charts, found, strict=True), 1)
    ]
    labels = dict.fromkeys(figure[0] for chart in card.charts for figure in chart.figures)  # as they first come
    known = [dict(chart.figures) for chart in card.charts]
    return CardCharts(drawn=drawn, figures=[(label, [each.get(label, "") for each in known]) for label in labels])


def _step(end: Number) -> Number:
    """Return the step between two ticks: 1, 2 or 5 times a power of ten, for at most TICKS of them."""
    power = 10.0 ** math.floor(math.log10(end / TICKS))
    step = next((power * times for times in (1, 2, 5) if end <= power * times * TICKS), power * 10)
    return int(step) if step >= 1 else step


def _drawn(found: Schedule, axis: _Axis, *, number: int, title: str) -> DrawnChart:
    height = TOP + LANE * len(found.names) + FOOT
    names = format_html_join(
        "",
        '<text x="100%" y="{}" dx="-8">{}</text>',
        ((TOP + LANE * lane + LANE / 2, name) for lane, name in enumerate(found.names)),
    )
    named = any(not name.isdigit() for name in found.names)
    return DrawnChart(
        number=number,
        title=title,
        lanes=format_html('<svg class="gantt-lanes" height="{}" aria-hidden="true">{}</svg>', height, names),
        bars=_bars(found, axis, number=number, title=title, height=height),
        counted=counted(found),
        named=named,
        table=_table(found),
    )


def counted(found: Schedule) -> str:
    """Say where the schedule ends, and how many operations moved."""
    words = f"ends at {said(found.end)}; {found.moved:,} of {len(found.operations):,} operations moved"
    return f"{words}, {found.reordered:,} of them to another place in line" if found.reordered else words


def _bars(found: Schedule, axis: _Axis, *, number: int, title: str, height: int) -> SafeString:
    stops = (
        f"machine {found.names[machine]} stands still from {said(start)} to {said(end)}"
        for machine, start, end in found.downtimes
    )
    machines = count_of(len(found.names), "machine")
    chart = f"Gantt chart, {untrusted.plain(title, limit=80)}: {machines}, {counted(found)}"
    label = "; ".join([chart, *stops])
    rules = ((TOP + LANE * lane,) for lane in range(len(found.names) + 1))
    parts = [
        format_html(HATCH, number),
        _past(found, axis, height),
        format_html_join("", '<path class="lane" d="M0 {}h9999"/>', rules),
        format_html_join(
            "",
            '<line class="tick" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/><text class="tick" x="{0}" y="{3}"{4}>{5}</text>',
            (
                (axis.at(tick), TOP - 4, height - FOOT, TOP / 2, NOTHING if tick else FIRST, said(tick))
                for tick in axis.ticks
            ),
        ),
        *(_bar(operation, found, axis) for operation in _by_machine(found)),
        *(_stop(found, axis, stop, number=number) for stop in found.downtimes),
        _moment(axis, found.end, height, kind="end"),
    ]
    if found.now is not None and found.now <= axis.end:
        parts.append(_moment(axis, found.now, height, kind="now"))
    inside = format_html_join("", "{}", ((part,) for part in parts))
    return format_html('<svg class="gantt-bars" height="{}" role="img" aria-label="{}">{}</svg>', height, label, inside)


def _past(found: Schedule, axis: _Axis, height: int) -> SafeString:
    if not found.now:
        return NOTHING
    width = axis.long(0, min(found.now, axis.end))
    return format_html('<rect class="past" y="{}" width="{}" height="{}"/>', TOP, width, height - TOP - FOOT)


def _bar(operation: Operation, found: Schedule, axis: _Axis) -> SafeString:
    top = TOP + LANE * operation.machine + (LANE - BAR) // 2
    number = str(operation.job)
    text = NOTHING
    if axis.room(operation) >= GLYPH * len(number) + 4:
        middle = axis.at((operation.start + operation.end) / 2)
        text = format_html('<text x="{}" y="{}">{}</text>', middle, top + BAR / 2, number)
    past = found.now is not None and operation.start < found.now
    return format_html(
        '<g class="bar" data-job="{}" data-moved="{}"{}><rect x="{}" y="{}" width="{}" height="{}" rx="2"/>{}</g>',
        operation.job,
        operation.moved,
        PAST if past else NOTHING,
        axis.at(operation.start),
        top,
        axis.long(operation.start, operation.end),
        BAR,
        text,
    )


def _stop(found: Schedule, axis: _Axis, stop: tuple[int, Number, Number], *, number: int) -> SafeString:
    machine, start, end = stop
    if start >= axis.end:
        return NOTHING
    return format_html(
        '<g class="stop"><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" fill="url(#hatch-{})"/></g>',
        f"Machine {found.names[machine]} stands still: {said(start)} to {said(end)}",
        axis.at(start),
        TOP + LANE * machine + 1,
        axis.long(start, min(end, axis.end)),
        LANE - 2,
        number,
    )


def _moment(axis: _Axis, at: Number, height: int, *, kind: str) -> SafeString:
    """Draw a line through all lanes with its moment below: the end of the past, or of the schedule."""
    words = f"{'past before' if kind == 'now' else 'ends at'} {said(at)}"
    return format_html(
        '<line class="moment" data-kind="{0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/>'
        '<text class="moment" data-kind="{0}" x="{1}" y="{4}">{5}</text>',
        kind,
        axis.at(at),
        TOP - 4,
        height - FOOT + 4,
        height - FOOT / 2 + 2,
        words,
    )


def _table(found: Schedule) -> list[list[str]]:
    return [
        [found.names[each.machine], *map(said, (each.job, each.index, each.start, each.end)), each.change]
        for each in _by_machine(found)
    ]


def _by_machine(found: Schedule) -> list[Operation]:
    """Return the operations in the order of both the bars and the rows of the table: a bar's words are its row's."""
    return sorted(found.operations, key=lambda each: (each.machine, each.start, each.end, each.job, each.index))


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation, drawn as a bar."""

    job: int
    index: int
    machine: int
    start: Number
    end: Number
    moved: Literal[0, 1, 2]

    @property
    def change(self) -> str:
        return CHANGES[self.moved]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule: names of lanes, operations, and standstills as (machine, from, until)."""

    names: Sequence[str]
    operations: Sequence[Operation]
    downtimes: Sequence[tuple[int, Number, Number]]
    now: Number | None

    @property
    def end(self) -> Number:
        return max((operation.end for operation in self.operations), default=0)

    @property
    def moved(self) -> int:
        return sum(1 for operation in self.operations if operation.moved)

    @property
    def reordered(self) -> int:
        return sum(1 for operation in self.operations if operation.moved == 2)


@dataclass
class _Malformed(Exception):
    said: str


def read(data: Any) -> Schedule | str:
    """Read the data as a schedule; else return a sentence that says what is wrong."""
    try:
        return _read(data)
    except _Malformed as wrong:
        return f"This chart cannot be drawn: {wrong.said}. What is there stands in the saved state below."


def _read(data: Any) -> Schedule:
    if not isinstance(data, dict):
        raise _Malformed("its data is no object")
    names = _names(data.get("machines"))
    rows = _rows(data.get("operations"), "operations", 6)
    operations = [_operation(row, number, len(names)) for number, row in enumerate(rows, 1)]
    downtimes = []
    for number, (machine, start, end) in enumerate(_rows(data.get("downtimes", []), "downtimes", 3), 1):
        where = f"row {number} of its downtimes"
        downtimes.append((_index(machine, len(names), where), *_stretch(start, end, where)))
    now = data.get("now")
    if now is not None and not _is_moment(now):
        raise _Malformed("its “now” is no moment")
    return Schedule(names=names, operations=operations, downtimes=downtimes, now=now)


def _names(machines: Any) -> list[str]:
    if isinstance(machines, list) and all(isinstance(name, str) for name in machines):
        found = [untrusted.plain(name, limit=NAME) for name in machines[: MOST_MACHINES + 1]]
    elif isinstance(machines, int) and not isinstance(machines, bool) and machines >= 0:
        found = [str(number) for number in range(min(machines, MOST_MACHINES + 1))]
    else:
        raise _Malformed("it does not say how many machines there are")
    if not 0 < len(found) <= MOST_MACHINES:
        raise _Malformed(f"it has to have 1 to {MOST_MACHINES} machines")
    return found


def _rows(value: Any, name: str, width: int) -> list[list[Any]]:
    if not isinstance(value, list):
        raise _Malformed(f"its {name} are no list")
    if len(value) > MOST_OPERATIONS:
        words = f"its {len(value):,} {name} are more than the {MOST_OPERATIONS:,} that are drawn"
        raise _Malformed(words)
    for number, row in enumerate(value, 1):
        if not isinstance(row, list) or len(row) != width:
            words = f"row {number} of its {name} does not hold {width} numbers"
            raise _Malformed(words)
    return value


def _operation(row: Sequence[Any], number: int, machines: int) -> Operation:
    where = f"row {number} of its operations"
    job, index, machine, start, end, moved = row
    if isinstance(moved, bool) or not isinstance(moved, int) or moved not in CHANGES:
        raise _Malformed(f"{where} has a mark that is none of 0, 1 and 2")
    start, end = _stretch(start, end, where)
    return Operation(
        job=_index(job, LATEST, where),
        index=_index(index, LATEST, where),
        machine=_index(machine, machines, where),
        start=start,
        end=end,
        moved=int(moved),  # type: ignore[arg-type]
    )


def _index(value: Any, limit: int, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < limit:
        raise _Malformed(f"{where} has a job, an operation or a machine that there is not")
    return value


def _stretch(start: Any, end: Any, where: str) -> tuple[Number, Number]:
    if not _is_moment(start) or not _is_moment(end) or end < start:
        raise _Malformed(f"{where} has no start and end in this order")
    return start, end


def _is_moment(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= LATEST


def said(value: Number) -> str:
    """Write a number: `1,634`, `12.5`."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
