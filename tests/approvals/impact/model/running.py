"""Takes the runs of the tests' plans on, by the rules that the runner goes by."""

from __future__ import annotations

from typing import Any

from approvals.cards import binding
from approvals.engine_rules import effects, gates, steps
from approvals.engine_rules.steps import EXECUTED
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests

from .rows import Gate, Grant, Point, Row, Run
from .store import Store


class Runner(Store):
    """Takes runs on until they wait or have ended."""

    def drive(self, run_id: int) -> str:
        """Take the run on until it waits or has ended; its status."""
        run = self.runs[run_id]
        if run.status != "queued":
            return run.status
        for _ in range(80):
            head = self.points[run.head]
            if not head.next_step:
                self._settle(run, "")
                run.status = "completed"
            else:
                spec = self.plan.step(head.next_step)
                {"step": self._step, "gate": self._gate, "effect": self._effect}[spec.kind](run, spec, head)
            if run.status != "queued":
                return run.status
        raise AssertionError(f"{run} goes on for ever")

    def _step(self, run: Run, spec: StepSpec, head: Point) -> None:
        if not steps.runs_anyway(spec, forced=self._forced(run, spec.name)) and self._branched(run):
            digest = self._input(head, spec)
            wanted = (spec.name, digest, bytes.fromhex(spec.code_hash), self._times(run, spec.name, digest))
            every = [p for p in self.points.values() if p.digest is not None]
            twin = next((p for p in reversed(every) if (p.step, p.digest, p.code, p.occurrence) == wanted), None)
            if twin is not None and steps.fits(self.plan, spec, twin.next_step):
                self._land(run, "reused", spec, twin.writes, twin.next_step)
                self.trace.append(("reused", spec.name))
                return
        writes, goto = self._call(spec, head)
        self.trace.append(("ran", spec.name))
        self._land(run, "step", spec, writes, self._goes(spec, goto))

    def _gate(self, run: Run, spec: StepSpec, head: Point) -> None:
        asks = self._call(spec, head)
        reopened = self.path(run)[-1].kind == "reopen"
        free = self._branched(run) and not reopened and not self._forced(run, spec.name)
        digest = self._input(head, spec)
        shown = {name: head.fields[name] for name in (*spec.edits, *spec.reads) if name in head.fields}
        body = digests.of_value([spec.name, {name: value.hex() for name, value in sorted(shown.items())}])
        if not asks:
            key = (spec.name, digest, bytes.fromhex(spec.code_hash), self._times(run, spec.name, digest))
            twins = [p for p in self.points.values() if (p.step, p.digest, p.code, p.occurrence) == key]
            self._land(run, "reused" if free and twins else "gate", spec, {}, self.plan.passed(spec.name))
            self.trace.append(("reused" if free and twins else "ran", spec.name))
            return
        earlier = self._same(run, spec, digest, body) if free else None
        if earlier is not None and self._stands(earlier):
            writes = earlier.patch | self._told(earlier)
            self._land(run, "reused", spec, writes, self.plan.next_after(spec.name))
            self.trace.append(("reused", spec.name))
            return
        self._ask(run, spec, head, digest, body, {name: head.fields.get(name, b"") for name in spec.edits})

    def _ask(
        self, run: Run, spec: StepSpec, head: Point, digest: bytes, body: bytes, shown: dict[str, bytes], **more: Any
    ) -> None:
        gate = Gate(len(self.gates) + 1, run.id, head.seq, spec.name, head.id, digest, body, shown, **more)
        self.gates.append(gate)
        self.trace.append(("asked", spec.name))
        run.status = "waiting"

    def _same(self, run: Run, spec: StepSpec, digest: bytes, body: bytes) -> Gate | None:
        for gate in reversed(self.gates):
            if gate.run != run.id or gate.step != spec.name or gate.recovery or not gate.execution:
                continue
            closed = gate.kind in ("approved", "edited")
            if closed and gate.digest == digest and gate.body == body:
                return gate
        return None

    def _stands(self, gate: Gate) -> bool:
        rows = {row.id: row for row in self.rows}
        return gates.stands(gate.kind, [rows.get(grant.used_by) for grant in gate.grants])

    def _effect(self, run: Run, spec: StepSpec, head: Point) -> None:
        digest = self._input(head, spec)
        row = self._newest(run, spec, digest)
        if row is not None and effects.adoptable(row):
            row.status = "done"
            self._land(run, "reused", spec, row.result[0], self._goes(spec, row.result[1]))
            self.trace.append(("reused", spec.name))
            return
        if row is None and self._origin(run, spec) is not None:
            self._ask(run, spec, head, digest, b"", {}, recovery=True)
            return
        grant = self._permit(run, spec, head)
        if spec.guarded and grant is None:
            self._put(run, head.id, "reopen", spec.name, self._reopens(run, spec), head.state, head.fields)
            return
        self._settle(run, spec.name)
        generation = 0 if row is None else row.generation + 1
        writes, goto = self._call(spec, head)
        at = self._times(run, spec.name, digest)
        made = self._row(run, spec, digest, at, (writes, goto), generation=generation)
        if grant is not None:
            grant.used_by = made.id
        self._land(run, "step", spec, writes, self._goes(spec, goto))
        self.trace.append(("ran", spec.name))

    def _permit(self, run: Run, spec: StepSpec, head: Point) -> Grant | None:
        last = self._last_gate(run, spec)
        if not spec.guarded or last is None:
            return None
        grants = [grant for grant in last.grants if grant.effect == spec.name]
        unused = [grant for grant in grants if not grant.used_by]
        ids = [p.id for p in self.path(run)]
        after = self.path(run)[ids.index(last.point) + 1 :]
        landed = sum(p.step == spec.name and p.kind in EXECUTED for p in after)
        if not gates.permission_left(given=len(grants), unused=len(unused), executed=landed):
            return None
        if self.changed_by_hand(after) & binding.loose_names(self.plan, gate_step=last.step, effect=spec.name):
            return None
        now = {name: head.fields.get(name, b"") for name in unused[0].fields}
        return unused[0] if now == unused[0].fields else None

    def changed_by_hand(self, points: list[Point]) -> set[str]:
        """The fields that somebody changed at one of these points."""
        found: set[str] = set()
        for point in points:
            if point.kind in ("edit", "rewind") and point.step == point.next_step:
                was = self.points[point.parent].fields
                found |= {name for name in was.keys() | point.fields if was.get(name) != point.fields.get(name)}
        return found

    def _last_gate(self, run: Run, spec: StepSpec) -> Gate | None:
        stood = {p.parent for p in self.path(run) if p.kind in ("gate", "recovery")}
        asking = gates.allowing(self.plan, spec.name)
        found = [
            gate
            for gate in self.gates
            if gate.run == run.id and gate.point in stood and gate.kind != "open"
            and (gate.step == spec.name and gate.grants if gate.recovery else gate.step in asking)
        ]  # fmt: skip
        return found[-1] if found else None

    def _reopens(self, run: Run, spec: StepSpec) -> str:
        last = self._last_gate(run, spec)
        return gates.reopened(self.plan, spec.name, last.step if last else "")

    def _unsettled(self, run: Run) -> list[Row]:
        held = {(p.step, p.digest, p.occurrence) for p in self.path(run) if p.kind in EXECUTED}
        mine = [row for row in self.rows if row.run == run.id]
        return [row for row in mine if effects.left_behind(row, on_path=(row.step, row.digest, row.occurrence) in held)]

    def _settle(self, run: Run, about_to: str) -> None:
        rows = self._unsettled(run) if self._branched(run) else []
        chosen = effects.due(rows, self.plan, about_to=about_to)
        ids = {each.id for row in chosen for each in [row, *effects.made_of(row, rows, self.plan)]}
        for row in reversed([row for row in rows if row.id in ids]):
            row.status = "undone" if effects.undoable(row, undo=row.undo, shared=lambda: False) else "kept"
            self.trace.append((row.status, row.step))
