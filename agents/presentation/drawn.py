"""TEMPORARY: an impact as the gate's page draws it, until consequences draws approvals.impact.Impact itself."""

from __future__ import annotations

from approvals.impact import Impact, Verdict
from approvals.impact.result import names
from approvals.presentation import consequences


def drawn(impact: Impact, heading: str) -> consequences.Impact:
    found = []
    if impact.will:
        said = "then ask" if impact.asks else ""
        found.append(
            consequences.Row(effect="run", title=f"Run {len(impact.will)}", names=names(impact.will), said=said)
        )
    if impact.may:
        found.append(consequences.Row(effect="run", title=f"May run {len(impact.may)}", names=names(impact.may)))
    if impact.stands:
        kept = ", ".join(names(impact.stands))
        found.append(consequences.Row(effect="reuse", title=f"Keep {len(impact.stands)}", said=kept))
    if impact.undone:
        found.append(consequences.Row(effect="undo", title=f"Undo {len(impact.undone)}", names=names(impact.undone)))
    if impact.may_undone:
        found.append(
            consequences.Row(effect="undo", title=f"May undo {len(impact.may_undone)}", names=names(impact.may_undone))
        )
    if impact.cannot:
        found.append(consequences.Row(effect="oneway", title="Cannot undo", names=names(impact.cannot)))
    if impact.asking:
        found.append(consequences.Row(effect="people", title="Asks", names=names(impact.asking)))
    marks = {Verdict.WILL: "run", Verdict.STANDS: "reused", Verdict.UNDONE: "undone"}
    drawn_marks = tuple(
        "held" if row.asks and row.verdict is Verdict.WILL else marks.get(row.verdict, "ahead") for row in impact.rows
    )
    return consequences.Impact(heading=heading, rows=tuple(found), marks=drawn_marks)
