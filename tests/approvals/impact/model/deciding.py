"""What people do to the model engine's runs: they move them, and they decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from approvals.engine_rules import effects, gates
from approvals.engine_rules.steps import EXECUTED
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests

from .rows import Gate, Grant, Run
from .running import Runner


class Decided(Runner):
    """Runs that are begun, moved, forked and answered."""

    def start(self, **values: Any) -> int:
        run = Run(len(self.runs) + 1, "", 0)
        self.runs[run.id] = run
        fields = {name: digests.of_field(value) for name, value in values.items()}
        self._put(run, "", "input", "input", self.plan.steps[0].name, dict(values), fields)
        return run.id

    def move(self, run_id: int, to: str, kind: str, writes: Mapping[str, Any]) -> None:
        """A rewind, or an edit."""
        run, at = self.runs[run_id], self.points[to]
        for gate in self.gates:
            if gate.run == run_id and gate.kind == "open":
                gate.kind = "withdrawn"
        state, fields = self._written(at, writes)
        run.status = "queued"
        self._put(run, to, kind, at.next_step, at.next_step, state, fields)
        for row in self.rows:
            if row.run == run_id:
                row.again = False
        if kind == "rewind":
            self._order_again(run, self.plan.step(at.next_step))
        self._take_up(run)

    def _take_up(self, run: Run) -> None:
        held = {(p.step, p.digest, p.occurrence) for p in self.path(run) if p.kind in EXECUTED}
        newest = {(row.step, row.digest, row.occurrence): row for row in self.rows if row.run == run.id}
        for key, row in newest.items():
            if effects.taken_up(row, on_path=key in held):
                row.status, row.again = "done", False

    def fork(self, to: str, writes: Mapping[str, Any]) -> int:
        at = self.points[to]
        run = Run(len(self.runs) + 1, "", 0, fork=True)
        self.runs[run.id] = run
        state, fields = self._written(at, writes)
        self._put(run, to, "fork", "fork", at.next_step, state, fields)
        return run.id

    def open_gate(self, run_id: int) -> Gate | None:
        return next((gate for gate in self.gates if gate.run == run_id and gate.kind == "open"), None)

    def decide(self, gate: Gate, kind: str, *, patch: Mapping[str, Any] | None = None, choice: str = "") -> None:
        """Close a gate by a yes or an answer, and save its outcome as the runner does."""
        run, spec = self.runs[gate.run], self.plan.step(gate.step)
        head = self.points[run.head]
        gate.kind, gate.choice, gate.patch = kind, choice, dict(patch or {})
        run.status = "queued"
        if gate.recovery:
            self._put(run, head.id, "recovery", spec.name, spec.name, head.state, head.fields)
            return
        told = self._told(gate)
        fields = self._written(head, gate.patch | told)[1]
        gate.grants = [Grant(name, self._covered(name, gate, fields)) for name in spec.allows]
        self._agreed(run, gate, spec, told)

    def _agreed(self, run: Run, gate: Gate, spec: StepSpec, told: dict[str, Any]) -> None:
        head, path = self.points[run.head], self.path(run)
        closed: Any  # the rule reads the step and the kind alone, which a point has too
        closed, since = gates.closed_last(cast("list[Any]", path), spec.name)
        goes = head.step if head.kind == "reopen" else self.plan.next_after(spec.name)
        gate.execution = self._land(run, "gate", spec, gate.patch | told, goes).id
        if head.kind == "reopen" and closed and gates.edit_goes_back(self.plan, since, gate.patch.keys()):
            state, fields = self._written(self.points[closed.parent], gate.patch)
            self._put(run, closed.parent, "rewind", spec.name, spec.name, state, fields)

    def _order_again(self, run: Run, spec: StepSpec) -> None:
        if spec.kind != "effect":
            return
        head = self.points[run.head]
        row = self._newest(run, spec, self._input(head, spec))
        if row is not None and effects.adoptable(row):
            row.again = True
