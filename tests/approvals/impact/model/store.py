"""The model engine's store: paths, digests, and what lands on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.cards import binding
from approvals.engine_rules import effects
from approvals.engine_rules.steps import EXECUTED
from checkpoints.runs.plans import PlanSpec, StepSpec, input_digest
from checkpoints.values import digests
from checkpoints.values.ops import DROP, apply

from .rows import Gate, Method, Output, Point, Row, Run


class Store:
    """`methods` gives each step's function of what it reads: an Output; a gate's says whether it asks."""

    def __init__(self, plan: PlanSpec, methods: Mapping[str, Method]) -> None:
        self.plan, self.methods = plan, methods
        self.points: dict[str, Point] = {}
        self.rows: list[Row] = []
        self.gates: list[Gate] = []
        self.runs: dict[int, Run] = {}
        self.trace: list[tuple[str, str]] = []  # (ran, reused, asked, undone, kept; the step)

    def path(self, run: Run) -> list[Point]:
        found, at = [], run.head
        while at:
            found.append(self.points[at])
            at = self.points[at].parent
        return found[::-1]

    def _branched(self, run: Run) -> bool:
        path = self.path(run)
        return path[0].run != run.id or len(path) < run.seq

    def _forced(self, run: Run, step: str) -> bool:
        for point in reversed(self.path(run)):
            if not (point.kind in ("recovery", "reopen") and point.step == step):
                return point.kind in ("rewind", "repair")
        return False

    def _put(
        self, run: Run, parent: str, kind: str, step: str, next_step: str, state: dict[str, Any],
        fields: dict[str, bytes], **more: Any,
    ) -> Point:  # fmt: skip
        run.seq += 1
        made = Point(f"{run.id}/{run.seq}", parent, run.id, run.seq, kind, step, next_step, state, fields, **more)
        self.points[made.id] = made
        run.head = made.id
        return made

    def _land(self, run: Run, kind: str, spec: StepSpec, writes: Mapping[str, Any], next_step: str) -> Point:
        head = self.points[run.head]
        digest = self._input(head, spec)
        state, fields = self._written(head, writes)
        return self._put(
            run, head.id, kind, spec.name, next_step, state, fields, digest=digest, writes=dict(writes),
            code=bytes.fromhex(spec.code_hash), occurrence=self._times(run, spec.name, digest),
        )  # fmt: skip

    def _written(self, at: Point, writes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        state, fields = dict(at.state), dict(at.fields)
        for name, write in writes.items():
            if write is DROP:
                state.pop(name, None)
                fields.pop(name, None)
                continue
            state[name] = apply(state.get(name), write)
            fields[name] = digests.of_field(state[name])
        return state, fields

    def _row(self, run: Run, spec: StepSpec, digest: bytes, at: int, result: Output, *, generation: int = 0) -> Row:
        made = Row(
            len(self.rows) + 1, run.id, spec.name, digest, at, generation, spec.irreversible, spec.undo, run.head,
            result,
        )  # fmt: skip
        self.rows.append(made)
        return made

    def _newest(self, run: Run, spec: StepSpec, digest: bytes) -> Row | None:
        key = (run.id, spec.name, digest, self._times(run, spec.name, digest))
        rows = [row for row in self.rows if (row.run, row.step, row.digest, row.occurrence) == key]
        return max(rows, key=lambda row: row.generation, default=None)

    def _origin(self, run: Run, spec: StepSpec) -> Row | None:
        if not run.fork or spec.name in self._own(run):
            return None
        digest = self._input(self.points[run.head], spec)
        at = self._times(run, spec.name, digest)
        others = [row for row in self.rows if row.run != run.id and effects.asked_about(row)]
        same = [row for row in others if (row.step, row.digest, row.occurrence) == (spec.name, digest, at)]
        return same[-1] if same else None

    def _own(self, run: Run) -> set[str]:
        return self._said_at(run.id, run.head)

    def _said_at(self, run_id: int, at: str) -> set[str]:
        """The effects that a person said this run does itself, since they last ran."""
        said = {(g.point, g.step) for g in self.gates if g.run == run_id and g.choice == "do_again"}
        own, landed = set(), set()
        while at:
            point = self.points[at]
            if point.kind == "recovery" and (point.parent, point.step) in said and point.step not in landed:
                own.add(point.step)
            elif point.kind in EXECUTED:
                landed.add(point.step)
            at = point.parent
        return own

    def _times(self, run: Run, step: str, digest: bytes) -> int:
        return sum(p.step == step and p.digest == digest for p in self.path(run))

    def _input(self, at: Point, spec: StepSpec) -> bytes:
        return input_digest(spec, at.fields)

    def _call(self, spec: StepSpec, head: Point) -> Any:
        return self.methods[spec.name](self, *[head.state.get(name) for name in spec.reads])

    def _goes(self, spec: StepSpec, goto: str | None) -> str:
        return self.plan.next_after(spec.name) if goto is None else goto

    def _told(self, gate: Gate) -> dict[str, Any]:
        said = [gate.step, gate.kind, sorted(gate.patch)]
        return {"decision": said} if any("decision" in step.reads for step in self.plan.steps) else {}

    def _covered(self, effect: str, gate: Gate, fields: Mapping[str, bytes]) -> dict[str, bytes]:
        bound = binding.bound_names(self.plan, gate_step=gate.step, effect=effect)
        return {name: fields.get(name, b"") for name in {*self.plan.step(gate.step).edits, *bound}}
