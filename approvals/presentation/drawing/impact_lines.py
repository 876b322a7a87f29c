"""Puts an impact into lines: what runs, is skipped, kept, undone, cannot be undone, and what becomes of children.

The last is about the run's deadline. Always in that order. Steps are named by their titles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from approvals.english import count_of, join_names, noun_for, quote_titles
from approvals.impact.result import ChildVerdict, Impact, ImpactRow, ImpactVerdict
from checkpoints.runs.plans import in_words

from .times import lasting

KEPT_NAMES = 6  # kept steps, and children, that are named one by one
ICONS = {"run": "play", "skip": "right", "reuse": "same"}  # others are called as their effects are


@dataclass(frozen=True, kw_only=True)
class ImpactLine:
    """One line: `effect` picks icon and colour; `names` are steps' titles, `said` is the sentence after them."""

    effect: str  # run, skip, reuse, undo, oneway, people, clock
    title: str
    names: tuple[str, ...] = ()
    said: str = ""

    @property
    def icon(self) -> str:
        return ICONS.get(self.effect, self.effect)


DEADLINE_REMOVED = ImpactLine(
    effect="clock", title="Deadline", said="It has passed. This removes it, so that the run may go on"
)


def lines_of(impact: Impact, *, later: bool, at_gate: bool) -> Iterator[ImpactLine]:
    """Yield the lines. `later`: nothing runs before others have approved."""
    found = [
        _run(impact, later=later),
        *_skipped(impact),
        _may(impact, "May run", may_run_rows(impact)),
        _may(impact, "May ask", may_ask_rows(impact)),
        _keep(impact, at_gate=at_gate),
        _undo(impact, "Undone", impact.undone),
        _undo(impact, "May be undone", impact.may_undone),
        _oneway(impact),
        _inside(impact),
        *_children(impact),
        DEADLINE_REMOVED if impact.deadline else None,
    ]
    return filter(None, found)


def _run(impact: Impact, *, later: bool) -> ImpactLine:
    """Say what certainly runs, how long it took last time, and which step asks then."""
    if not impact.will:
        nothing = "The run ends" if impact.ends else "Nothing is certain to run"
        if impact.asks:
            nothing = f"{asks_then(impact)} first"
        return ImpactLine(effect="run", title="Runs nothing", said=nothing[:1].upper() + nothing[1:])
    then = "then the run ends" if impact.ends else ""
    if impact.asks:
        then = f"then {asks_then(impact)}"
    said = ", ".join(filter(None, [_about(impact.will), then]))
    return ImpactLine(
        effect="run", title="Runs later" if later else "Runs", names=impact.called(impact.will), said=said
    )


def _skipped(impact: Impact) -> list[ImpactLine]:
    """List the skipped effects, a line for each reason."""
    words = {"reject": "rejected", "respond": "answered instead", "later": "left for later"}
    by_why = {row.why: [each for each in impact.skipped if each.why == row.why] for row in impact.skipped}
    return [
        ImpactLine(effect="skip", title="Skipped", names=impact.called(rows), said=words.get(why, why))
        for why, rows in by_why.items()
    ]


def asks_then(impact: Impact) -> str:
    """Say which step certainly asks; for another run's effect, what it asks."""
    origin = next((row.origin for row in impact.asking if row.why == "takeover" and row.step == impact.asks), 0)
    if origin:
        return f"you are asked whether to reuse what R-{origin} already did in “{impact.title_of(impact.asks)}”"
    return f"“{impact.title_of(impact.asks)}” asks"


def may_run_rows(impact: Impact) -> list[ImpactRow]:
    """List the steps that may run, without those about which a fork asks first."""
    return [row for row in impact.may if row.why != "takeover"]


def may_ask_rows(impact: Impact) -> list[ImpactRow]:
    """List the steps that may ask a person and do not run here."""
    return [row for row in impact.asking if row.verdict is ImpactVerdict.MAY and row.asks_alone]


def _may(impact: Impact, title: str, rows: Sequence[ImpactRow]) -> ImpactLine | None:
    """Say which steps may run, or ask."""
    if not rows:
        return None
    said = ", ".join(filter(None, [_depends(impact, rows), _about(rows)]))
    return ImpactLine(effect="run", title=title, names=impact.called(rows), said=said)


def _depends(impact: Impact, rows: Sequence[ImpactRow]) -> str:
    """Say what decides whether these steps run, or ask: earlier steps, or people at other gates."""
    on = {step for row in rows for step in row.on}
    gates = quote_titles([impact.title_of(gate) for gate in impact.beside if gate in on])
    if on.isdisjoint(impact.beside):
        return "decided by earlier steps" if on else ""
    if on.issubset(impact.beside):
        return f"depends on the decision at {gates}"
    return f"depends on earlier steps and on the decision at {gates}"


def _about(rows: Sequence[ImpactRow]) -> str:
    """Say how long the last runs of these steps took."""
    took = sum((row.took for row in rows if row.took), timedelta())
    return f"about {lasting(took)}" if took >= timedelta(seconds=1) else ""


def _keep(impact: Impact, *, at_gate: bool) -> ImpactLine | None:
    """Say which steps are kept: a number at a gate that keeps all of them, else their titles."""
    if not impact.stands:
        return None
    titles = impact.called(impact.stands)
    alike = at_gate and len(impact.stands) == len(impact.kept)
    if not alike and len(titles) <= KEPT_NAMES:
        return ImpactLine(effect="reuse", title="Kept", names=titles)
    said = count_of(len(impact.stands), "finished step is kept", "finished steps are kept")
    return ImpactLine(effect="reuse", title="Kept", said=said if alike else f"{said}, up to “{titles[-1]}”")


def _undo(impact: Impact, title: str, rows: Sequence[ImpactRow]) -> ImpactLine | None:
    if not rows:
        return None
    may = any(row.verdict is ImpactVerdict.MAY_UNDONE for row in rows)
    said = "unless the run arrives at exactly the same again" if may else ""
    return ImpactLine(effect="undo", title=title, names=impact.called(rows), said=said)


def _oneway(impact: Impact) -> ImpactLine | None:
    """Say which effects cannot be undone: done before, or about to run."""
    left = impact.called(impact.cannot)
    found = tuple(dict.fromkeys([*left, *impact.called(impact.final)]))
    if not found:
        return None
    said = "Already done" if left else "once done"
    if left and impact.final:
        said = "What was done stays done. What runs now cannot be undone either"
    return ImpactLine(effect="oneway", title="Cannot be undone", names=found, said=said)


def _inside(impact: Impact) -> ImpactLine | None:
    """Say which tools were called inside steps that are left behind."""
    if not impact.inside:
        return None
    names = tuple(dict.fromkeys(name for each in impact.inside for name in each.tools))
    places = join_names(_first([str(each.checkpoint) for each in impact.inside]))
    where = f"{noun_for(len(impact.inside), 'checkpoint')} {places}"
    words = f"Called inside {where}: nothing undoes that, and it may happen again"
    return ImpactLine(effect="oneway", title="Tools stay done", names=_first(names), said=words)


def _children(impact: Impact) -> list[ImpactLine]:
    """Say what becomes of the runs that this one started."""
    lines = []
    for fate, effect, title, what in (
        (ChildVerdict.STANDS, "reuse", "Children kept", ""),
        (ChildVerdict.MAY_UNDONE, "undo", "Children", "taken over if the same is started again, else undone"),
        (ChildVerdict.UNDONE, "undo", "Children undone", ""),
        (ChildVerdict.CANCELLED, "undo", "Children cancelled", ""),
        (ChildVerdict.READ, "reuse", "Children", "their results are read if the same is started again"),
        (ChildVerdict.ANEW, "run", "Children", "started anew if the run comes to them again"),
    ):
        found = [child for child in impact.children if child.fate is fate]
        names = _first([f"R-{child.run}" for child in found])
        undone = dict.fromkeys(step for child in found for step in child.undone)
        back = f"{'which undoes' if what else 'undoes'} {quote_titles(map(in_words, undone))}" if undone else ""
        said = ", ".join(filter(None, [what, back]))
        lines += [ImpactLine(effect=effect, title=title, names=names, said=said)] if found else []
    for ended, title in ((False, "Cannot be undone"), (True, "Stays done")):
        stays = [
            f"{in_words(step)} of R-{child.run}"
            for child in impact.children
            for step in child.cannot
            if (child.fate is ChildVerdict.CANCELLED) == ended
        ]
        lines += [ImpactLine(effect="oneway", title=title, names=_first(stays))] if stays else []
    return lines


def _first(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first names, and how many more there are."""
    more = [f"{len(names) - KEPT_NAMES} more"] if len(names) > KEPT_NAMES else []
    return (*names[:KEPT_NAMES], *more)
