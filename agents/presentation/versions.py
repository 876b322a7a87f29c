"""Compares the steps of two versions of an agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from checkpoints.runs.plans import PlanSpec, StepSpec


@dataclass(frozen=True, slots=True)
class Change:
    """One step that was "added", "removed" or "changed", and how."""

    step: str
    kind: str
    words: str = ""


def steps(before: PlanSpec, after: PlanSpec) -> list[Change]:
    """Return the changes: removed steps first, then by the newer plan."""
    old, new = ({step.name: step for step in plan.steps} for plan in (before, after))
    found = [Change(name, "removed") for name in old if name not in new]
    for name, step in new.items():
        if name not in old:
            found.append(Change(name, "added"))
        elif words := ", ".join(_different(old[name], step)):
            found.append(Change(name, "changed", words))
    return found


def _different(before: StepSpec, after: StepSpec) -> Iterator[str]:
    for field in fields(StepSpec):
        if getattr(before, field.name) != getattr(after, field.name):
            yield "its code" if field.name == "code_hash" else field.name.replace("_", " ")
