"""An agent's steps, drawn like a timeline: one row for each, with the edges that lead elsewhere beside them.

An edge from a gate to the effects that it allows, an edge back after a rejection, and a jump each keep a lane from
their first row to their last, the first that is free there. Edges of one kind that lead to the same row, or else come
from the same row, share one: a loop has a dozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.pages.run.lanes import BARS, CURVE, FIRST, LINE, MIDDLE, NODE, STRIDE, choose_lanes, join_parts
from checkpoints.runs.plans import PlanSpec, StepSpec

Kind = Literal["main", "rejected", "fork"]
ALLOWS, BACK, JUMP = "allows", "back", "jumps"
LOOKS: dict[str, Kind] = {ALLOWS: "main", BACK: "rejected", JUMP: "fork"}


@dataclass(frozen=True, slots=True)
class SharedEdges:
    """Edges that share a lane, by the rows that they begin or end at."""

    kind: str
    stops: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, int]:
        return self.stops[0], self.stops[-1]


def ways(plan: PlanSpec) -> Iterator[tuple[str, int, int]]:
    """Yield the edges of the plan except those to the next step: the kind, and the rows it leads from and to."""
    at = {step.name: number for number, step in enumerate(plan.steps)}
    for number, step in enumerate(plan.steps):
        jumps = dict.fromkeys((*step.jumps, step.then, step.on_expire, step.catch))
        for kind, names in ((ALLOWS, step.allows), (BACK, (step.on_reject,)), (JUMP, jumps)):
            yield from ((kind, number, at[name]) for name in names if name in at)


def trunks(edges: Sequence[tuple[str, int, int]]) -> list[SharedEdges]:
    """Group the edges that may share a lane."""
    ends = Counter((kind, end) for kind, _, end in edges)
    together: dict[tuple[str, bool, int], set[int]] = {}
    for kind, start, end in edges:
        joins = ends[kind, end] > 1
        together.setdefault((kind, joins, end if joins else start), set()).update((start, end))
    return [SharedEdges(kind, tuple(sorted(stops))) for (kind, _, _), stops in together.items()]


def draw_steps(plan: PlanSpec) -> tuple[list[tuple[StepSpec, SafeString, list[str]]], int]:
    """Return every step with its slice of the drawing and its options in words, and the number of lanes."""
    found = trunks(list(ways(plan)))
    lanes = choose_lanes([(first, last + 1) for first, last in (trunk.rows for trunk in found)])  # no two meet in a row
    placed = list(zip(found, lanes, strict=True))
    rows = [(step, _slice(plan, number, placed), list(_words(step))) for number, step in enumerate(plan.steps)]
    return rows, max(lanes, default=0) + 1


def _slice(plan: PlanSpec, row: int, placed: list[tuple[SharedEdges, int]]) -> SafeString:
    top, bottom = "0" if row else str(MIDDLE), "100%" if row < len(plan.steps) - 1 else str(MIDDLE)
    parts = [format_html(LINE, "main", FIRST, FIRST, top, bottom)]
    parts += [part for trunk, lane in placed for part in _passing(trunk, lane, row)]
    return join_parts([*parts, _mark(plan.steps[row])])


def _passing(trunk: SharedEdges, lane: int, row: int) -> Iterator[SafeString]:
    first, last = trunk.rows
    if not first <= row <= last:
        return
    look, x = LOOKS[trunk.kind], FIRST + STRIDE * lane
    if row in trunk.stops:
        yield format_html(CURVE, look, f"M{FIRST} {MIDDLE}H{x}")
    if first == last:
        return
    top, bottom = str(MIDDLE) if row == first else "0", str(MIDDLE) if row == last else "100%"
    yield format_html(LINE, look, x, x, top, bottom)


def _mark(step: StepSpec) -> SafeString:
    if step.kind == "gate":
        return format_html(BARS, FIRST - 11, FIRST - 11)
    shape = "ran" if step.kind != "effect" else "undone" if step.undo else "rejected" if step.irreversible else "ran"
    return format_html(NODE, shape, FIRST, MIDDLE, 5.5)


def _words(step: StepSpec) -> Iterator[str]:
    if step.reads_world:
        yield "calls an external system"
    if step.kind == "effect":
        undone = f"undone by {step.undo}" if step.undo else "cannot be undone"
        yield "cannot be undone" if step.irreversible else undone
        if step.guarded:
            yield "only after approval"
    if step.allows:
        yield f"allows {', '.join(step.allows)}"
    if step.on_reject:
        yield f"a rejection goes back to {step.on_reject}"
    if step.on_expire:
        yield f"after its deadline the run goes on with {step.on_expire}"
    if step.jumps:
        yield f"may jump to {', '.join(step.jumps)}"
    if step.then:
        yield f"then the run goes on with {step.then}"
    if step.catch:
        yield f"if it fails the run goes on with {step.catch}"
    if step.ends:
        yield "may end the run"
    if step.policy:
        yield f"policy {step.policy}"
