"""What people do to the model engine's runs: they move them, and they decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests

from .rows import EXECUTED, LANDED, Gate, Grant, Point, Run
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
        run.status, run.ending, run.refused = "queued", "", {}
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
            if key in held and row.status in LANDED:
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

    def decide(
        self, gate: Gate, kind: str, *, patch: Mapping[str, Any] | None = None, back_to: str = "", choice: str = ""
    ) -> None:
        """Close a gate, and save its outcome as the runner does."""
        run, spec = self.runs[gate.run], self.plan.step(gate.step)
        head = self.points[run.head]
        gate.kind, gate.choice, gate.patch = kind, choice, dict(patch or {})
        run.status, run.refused = "queued", {}
        if gate.recovery:
            self._answer(run, gate, spec, head)
            return
        told = self._told(gate)
        if kind in ("approved", "edited"):
            fields = self._written(head, gate.patch | told)[1]
            gate.grants = [Grant(name, self._covered(name, gate, fields)) for name in spec.allows]
            self._agreed(run, gate, spec, told)
        elif kind == "rejected" and back_to:
            self._send_back(run, gate, spec, back_to, told)
        elif kind == "expired" and spec.on_expire:
            gate.execution = self._land(run, "gate", spec, told, spec.on_expire).id
        else:
            gate.execution = self._land(run, "gate", spec, told, spec.name).id
            run.ending = "cancelled"

    def _agreed(self, run: Run, gate: Gate, spec: StepSpec, told: dict[str, Any]) -> None:
        head, path = self.points[run.head], self.path(run)
        goes = head.step if head.kind == "reopen" else self.plan.next_after(spec.name)
        closed = [at for at, p in enumerate(path) if p.step == spec.name and p.kind in ("gate", "reused")]
        since = {p.step for p in path[closed[-1] + 1 :] if p.kind in EXECUTED} if closed else set()
        gate.execution = self._land(run, "gate", spec, gate.patch | told, goes).id
        read = {name for step in since for name in self.plan.step(step).reads}
        if head.kind == "reopen" and closed and read & gate.patch.keys():
            before = path[closed[-1]].parent
            state, fields = self._written(self.points[before], gate.patch)
            self._put(run, before, "rewind", spec.name, spec.name, state, fields)

    def _send_back(self, run: Run, gate: Gate, spec: StepSpec, back_to: str, told: dict[str, Any]) -> None:
        words = {spec.feedback: [*self.points[run.head].state.get(spec.feedback, []), self._now()]}
        feedback = words if spec.feedback else {}
        before = next((p.parent for p in reversed(self.path(run)) if p.step == back_to and p.kind in EXECUTED), None)
        if before is None:
            gate.execution = self._land(run, "gate", spec, told | feedback, back_to).id
            return
        gate.execution = self._land(run, "gate", spec, told, back_to).id
        at = self.points[before]
        words = {spec.feedback: [*at.state.get(spec.feedback, []), self._now()]}
        state, fields = self._written(at, told | (words if spec.feedback else {}))
        self._put(run, before, "rewind", spec.name, back_to, state, fields)
        self._order_again(run, self.plan.step(back_to))

    def _answer(self, run: Run, gate: Gate, spec: StepSpec, head: Point) -> None:
        gate.kind = "answered"
        origin = self._origin(run, spec) if gate.choice == "take" else None
        if origin is not None:
            digest, at = self._input(head, spec), self._times(run, spec.name, self._input(head, spec))
            self._row(run, spec, digest, at, origin.result, taken=True)
            self._land(run, "reused", spec, origin.result[0], self._goes(spec, origin.result[1]))
            self.trace.append(("reused", spec.name))
            return
        gives = spec.guarded and gate.choice == "retry"
        gate.grants = [Grant(spec.name, self._covered(spec.name, gate, head.fields))] if gives else []
        if gate.choice == "stop":
            run.ending = "failed"
        self._put(run, head.id, "recovery", spec.name, spec.name, head.state, head.fields)

    def _order_again(self, run: Run, spec: StepSpec) -> None:
        if spec.kind != "effect":
            return
        head = self.points[run.head]
        row = self._newest(run, spec, self._input(head, spec))
        if row is not None and row.status in LANDED:
            row.again = True
