"""Finds where a run may go by its plan, without anybody's decision.

A step whose output is not known may go any of the ways that its plan gives it. Its continuation is certain all the same
where every one of those ways leads to the same step, and nothing on them could stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from django.utils.functional import cached_property

from approvals.engine_rules.gates import allowing
from checkpoints.runs.plans import PlanSpec

END = ""


@dataclass(frozen=True)
class Merge:
    """The step to which every way leads, and the steps that may run on the way there."""

    step: str
    between: frozenset[str]


class Flow:
    """A plan's ways from step to step. Unknown names lead nowhere."""

    def __init__(self, plan: PlanSpec) -> None:
        self.plan = plan
        self.steps = {step.name: step for step in plan.steps}  # in the order of definition

    @cached_property
    def ways(self) -> dict[str, frozenset[str]]:
        """Return step -> the steps where it may go, "" for the end.

        A step with validators may also go back to the steps that made what it reads, and an effect without a permission
        to a gate.
        """
        return {name: self.onward[name] | self.asks_at(name) for name in self.steps}

    @cached_property
    def onward(self) -> dict[str, frozenset[str]]:
        """Return the ways without those of an effect back to a gate."""
        return {name: frozenset(self.plan.successors(name) | self.suspects(name)) for name in self.steps}

    def suspects(self, name: str) -> set[str]:
        """Return the steps to which a refused output of `name` may send the run back, without `name` itself."""
        step = self.steps[name]
        found: set[str] = set()
        reading = {name}
        for _ in range(step.rings if step.validators else 0):
            wanted = {field for each in reading for field in self.steps[each].reads}
            reading = {each.name for each in self.plan.steps if each.kind == "step" and wanted & set(each.writes)}
            found |= reading
        return found - {name}

    def reach(self, starts: Iterable[str], *, avoiding: Iterable[str] = ()) -> set[str]:
        """Return the steps that may run from `starts` on, these included, on ways that avoid `avoiding`."""
        return self._reached(starts, self.ways, set(avoiding))

    def gone_past(self, starts: Iterable[str]) -> set[str]:
        """Return the gates from which the run may go on while they are open, if it comes to them from `starts` on."""
        if not self.plan.goes_on_asking:
            return set()
        return {name for name in self._reached(starts, self.onward, set()) if not self.steps[name].waits}

    def _reached(self, starts: Iterable[str], ways: Mapping[str, frozenset[str]], barred: Set[str]) -> set[str]:
        found: set[str] = set()
        left = [name for name in starts if name in self.steps]
        while left:
            at = left.pop()
            if at in found or at in barred:
                continue
            found.add(at)
            left += [name for name in ways[at] if name in self.steps]
        return found

    def ends(self, starts: Iterable[str], *, avoiding: str) -> bool:
        """Tell whether the run may end, from `starts` on, without going through `avoiding`."""
        names = set(starts)
        return END in names or any(END in self.ways[name] for name in self.reach(names, avoiding=[avoiding]))

    def merge(self, starts: frozenset[str]) -> Merge | None:
        """Find the first step to which every way from `starts` leads; None without one, or where a way may stop.

        It assumes that every loop ends. A step that asks a person, or may need a permission, may stop.
        """
        found = [
            Merge(name, frozenset(self.reach(starts, avoiding=[name])))
            for name in self.reach(starts)
            if not self.ends(starts, avoiding=name)
        ]
        nearest = min(found, key=lambda each: len(each.between), default=None)
        between = [self.steps[name] for name in nearest.between] if nearest else []
        may_stop = any(step.kind == "gate" or step.guarded or step.loop_guard for step in between)
        return None if may_stop else nearest

    def asks_at(self, name: str) -> set[str]:
        """Return the gates to which the run goes back from a step that needs their permission."""
        return set(allowing(self.plan, name)) if self.steps[name].guarded else set()
