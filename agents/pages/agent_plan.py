"""An agent's steps, drawn like a timeline: one row for each, with the edges that lead elsewhere beside them.

An edge from a gate to the effects that it allows, an edge back after a rejection, and a jump each keep a lane from
their first row to their last, the first that is free there. Edges of one kind that lead to the same row, or else come
from the same row, share one: a loop has a dozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.pages.run.lanes import BARS, CURVE, FIRST, LINE, MIDDLE, NODE, STRIDE, join_parts
from checkpoints.runs.plans import PlanSpec, StepSpec

Kind = Literal["main", "rejected", "fork"]
ALLOWS, BACK, JUMP = "allows", "back", "jumps"
LOOKS: dict[str, Kind] = {ALLOWS: "main", BACK: "rejected", JUMP: "fork"}


@dataclass(frozen=True, slots=True)
class PlanEdge:
    """An edge from one row to another, by their indexes."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SharedEdges:
    """Edges that share a lane, by the rows that they begin or end at."""

    kind: str
    stops: tuple[int, ...]

    @property
    def rows(self) -> tuple[int, int]:
        return self.stops[0], self.stops[-1]


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """One step with its slice of the drawing, and its options in words."""

    step: StepSpec
    number: int
    svg: SafeString
    words: tuple[str, ...]


def ways(plan: PlanSpec) -> list[PlanEdge]:
    """Return the edges of the plan except those to the next step."""
    at = {step.name: number for number, step in enumerate(plan.steps)}
    found: list[PlanEdge] = []
    for number, step in enumerate(plan.steps):
        found += [PlanEdge(ALLOWS, number, at[name]) for name in step.allows if name in at]
        found += [PlanEdge(BACK, number, at[name]) for name in (step.on_reject,) if name in at]
        others = (*step.jumps, step.then, step.on_expire, step.catch)
        found += [PlanEdge(JUMP, number, at[name]) for name in dict.fromkeys(others) if name in at]
    return found


def trunks(edges: list[PlanEdge]) -> list[SharedEdges]:
    """Group the edges that may share a lane."""
    ends = Counter((way.kind, way.end) for way in edges)
    together: dict[tuple[str, bool, int], set[int]] = {}
    for way in edges:
        joins = ends[way.kind, way.end] > 1
        stops = together.setdefault((way.kind, joins, way.end if joins else way.start), set())
        stops |= {way.start, way.end}
    return [SharedEdges(kind, tuple(sorted(stops))) for (kind, _, _), stops in together.items()]


def lanes(shared: list[SharedEdges]) -> list[int]:
    """Return a lane for each; 1 is the first beside the main one."""
    taken: list[list[tuple[int, int]]] = []
    placed = []
    for trunk in shared:
        first, last = trunk.rows
        free = (n for n, spans in enumerate(taken) if all(last < a or b < first for a, b in spans))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((first, last))
        placed.append(lane + 1)
    return placed


def draw_steps(plan: PlanSpec) -> tuple[list[DrawnStep], int]:
    """Return every step with its slice, and the number of lanes."""
    found = trunks(ways(plan))
    placed = lanes(found)
    rows = [
        DrawnStep(step, number + 1, _slice(plan, number, list(zip(found, placed, strict=True))), tuple(_words(step)))
        for number, step in enumerate(plan.steps)
    ]
    return rows, max(placed, default=0) + 1


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
