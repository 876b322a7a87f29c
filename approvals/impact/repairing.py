"""Predicts what a repair may take back: after a refused output the run goes back to the steps that made its input.

Steps that stood may run again then, and effects in between are left behind, to be adopted or undone.
"""

from __future__ import annotations

from dataclasses import replace

from .result import ImpactRow, ImpactVerdict
from .values import Steps
from .walk import Walk, undoable


def finished(walk: Walk) -> list[ImpactRow]:
    """Return the rows of a finished walk, with those marked as uncertain that a repair may take back."""
    rows = list(walk.rows)
    for stretch, on in walk.losses:
        for entry in walk.path[stretch]:
            if entry.row >= 0:
                rows[entry.row] = _shaken(walk, rows[entry.row], on)
    return rows + _taken_back(walk, rows)


def _shaken(walk: Walk, row: ImpactRow, on: Steps) -> ImpactRow:
    """Mark a row that stands as uncertain, since the run may go back to before it."""
    if row.verdict is not ImpactVerdict.STANDS:
        return row
    lost = ImpactVerdict.MAY
    if row.effect:
        known = any(each.id == row.effect and undoable(each) for each in walk.records.own)
        lost = ImpactVerdict.MAY_UNDONE if known else ImpactVerdict.CANNOT
    asks = row.kind == "gate" and lost is ImpactVerdict.MAY
    return replace(row, verdict=lost, on=walk.in_order(on), why="repair", asks=asks)


def _taken_back(walk: Walk, rows: list[ImpactRow]) -> list[ImpactRow]:
    """List rows for the effects that run, or may, and that a repair after them may undo."""
    named = {
        row.step: row for row in rows if row.verdict in (ImpactVerdict.WILL, ImpactVerdict.MAY) and row.kind == "effect"
    }
    found: dict[str, set[str]] = {}
    for judged in walk.judged:
        between = walk.flow.reach(walk.flow.suspects(judged), avoiding=[judged])
        for name in between & named.keys():
            found.setdefault(name, set()).add(judged)
    return [
        replace(
            named[name],
            verdict=ImpactVerdict.MAY_UNDONE,
            on=walk.in_order(found[name]),
            why="repair",
            effect=0,
            asks=False,
        )
        for name in walk.flow.steps
        if name in found and walk.flow.steps[name].undo
    ]
