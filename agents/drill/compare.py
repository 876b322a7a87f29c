"""Compares the ends of two runs. Pure.

A difference names the first step whose output differs on the same input, if any. A difference between two undisturbed
runs is `natural`, and no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from checkpoints.runs.plans import PlanSpec
from checkpoints.values import patch
from checkpoints.values.json_pointer import covers_place

from .record import DrilledEffect, DrilledExecution, DrillRecord

WIDEST = 40  # characters of a value that is shown


class Difference(NamedTuple):
    """One difference, in words, and the step at fault where one can be named."""

    step: str
    words: str


def natural(first: DrillRecord, second: DrillRecord) -> list[str]:
    """List the places at which two undisturbed runs' states differ."""
    return [row["pointer"] for row in patch.list_changes(first.state, second.state)]


def unsteady(plan: PlanSpec, first: DrillRecord, second: DrillRecord) -> list[Difference]:
    """List the plain steps that gave two outputs on the same input in undisturbed runs, or where the paths parted."""
    if _way(first) != _way(second):
        return [Difference(_parting(first, second), "two undisturbed runs took different ways")]
    found: dict[str, Difference] = {}
    for execution, other in _aligned(first, second):
        spec = plan.step(execution.step)
        rows = _rows(execution, other) if spec.kind == "step" and not spec.reads_world else []
        if rows and execution.step not in found:
            words = f"writes something else on the same input: {_shown(rows)}"
            found[execution.step] = Difference(execution.step, words)
    return list(found.values())


def differences(
    undisturbed: DrillRecord, disturbed: DrillRecord, plan: PlanSpec, *, allowed: Sequence[str]
) -> list[Difference]:
    """List the differences of a killed run's end from the undisturbed one's; `allowed` are the natural places."""
    found = [Difference("", f"does not verify: {problem}") for problem in disturbed.problems]
    if disturbed.status != undisturbed.status:
        why = f" ({disturbed.reason})" if disturbed.reason else ""
        found.append(Difference("", f"is {disturbed.status}{why}, was {undisturbed.status}"))
    if _way(disturbed) != _way(undisturbed):
        found.append(Difference(_parting(undisturbed, disturbed), "took another way"))
    rows = [
        row
        for row in patch.list_changes(undisturbed.state, disturbed.state)
        if not any(covers_place(place, row["pointer"]) for place in allowed)
    ]
    if rows:
        found.append(Difference(_culprit(undisturbed, disturbed, rows), _shown(rows)))
    return found + _children(undisturbed, disturbed) + _ledger(undisturbed, disturbed, plan, allowed)


def other_answer(step: str, first: Any, second: Any) -> list[Difference]:
    """List the difference between an effect's first answer and that when it was sent again under its key."""
    changed = patch.list_changes(first, second)
    words = f"answered something else when it was sent again under its key: {_shown(changed)}"
    return [Difference(step, words)] if changed else []


def _children(undisturbed: DrillRecord, disturbed: DrillRecord) -> list[Difference]:
    """List the agents of which another number of started runs came to some status."""
    before, after = Counter(undisturbed.children), Counter(disturbed.children)
    return [
        Difference("", f"started runs of {agent} {status} {after[agent, status]} times, was {before[agent, status]}")
        for agent, status in sorted(set(before) | set(after))
        if before[agent, status] != after[agent, status]
    ]


def _ledger(
    undisturbed: DrillRecord, disturbed: DrillRecord, plan: PlanSpec, allowed: Sequence[str]
) -> list[Difference]:
    """List the effects that have another count for some status."""
    unlike = {place.split("/")[1] for place in allowed if place}
    before, after = (_counted(record.effects, plan, unlike) for record in (undisturbed, disturbed))
    found = []
    for row in sorted(set(before) | set(after)):
        if before[row] != after[row]:
            step, _, status = row
            found.append(Difference(step, f"effect {step} {status} {after[row]} times, was {before[row]}"))
    return found


def _counted(rows: Sequence[DrilledEffect], plan: PlanSpec, unlike: set[str]) -> Counter[tuple[str, str, str]]:
    """Count each (step, input, status); inputs with a natural difference count as the same."""
    return Counter((row.step, "" if unlike & set(plan.step(row.step).reads) else row.input, row.status) for row in rows)


def _culprit(undisturbed: DrillRecord, disturbed: DrillRecord, rows: Sequence[dict[str, Any]]) -> str:
    """Return the first step that wrote another output on the same input; "" where there is none."""
    fields = {row["pointer"].split("/")[1] for row in rows if row["pointer"]}
    for execution, other in _aligned(undisturbed, disturbed):
        if any(row["pointer"].split("/")[1] in fields for row in _rows(execution, other)):
            return execution.step
    return ""


def _aligned(first: DrillRecord, second: DrillRecord) -> list[tuple[DrilledExecution, DrilledExecution]]:
    """Pair the executions of both paths, as long as they are of the same steps."""
    return list(takewhile(lambda pair: pair[0].step == pair[1].step, zip(first.path, second.path, strict=False)))


def _rows(first: DrilledExecution, other: DrilledExecution) -> list[dict[str, Any]]:
    """List the fields that two executions wrote differently, on the same input and over the same value before."""
    if first.input != other.input:
        return []
    unlike = (name for name, digest in first.after.items() if digest != other.after[name])
    names = [name for name in unlike if first.before[name] == other.before[name]]
    before, after = (
        {name: execution.written[name] for name in names if name in execution.written} for execution in (first, other)
    )
    return patch.list_changes(before, after)


def _way(record: DrillRecord) -> list[str]:
    return [execution.step for execution in record.path]


def _parting(first: DrillRecord, second: DrillRecord) -> str:
    """Return the last step before the two paths differ."""
    together = _aligned(first, second)
    return together[-1][0].step if together else ""


def _shown(rows: Sequence[dict[str, Any]]) -> str:
    words = [f"{row['pointer']} was {_brief(row, 'before')}, is {_brief(row, 'after')}" for row in rows[:3]]
    return "; ".join(words) + (f"; and {len(rows) - 3} more" if len(rows) > 3 else "")


def _brief(row: dict[str, Any], side: str) -> str:
    if side not in row:
        return "absent"
    text = repr(row[side])
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
