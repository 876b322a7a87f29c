"""The model engine at work: reuse, gates, effects, repairs and settling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests

from .rows import EXECUTED, LANDED, OPEN, SENT, Endless, Gate, Grant, Point, Row, Run
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
            if run.ending:
                self._settle(run, "")
                run.status, run.ending = run.ending, ""
            elif not head.next_step:
                if self._unsettled(run):
                    run.ending = "completed"
                    continue
                run.status = "completed"
            else:
                spec = self.plan.step(head.next_step)
                {"step": self._step, "gate": self._gate, "effect": self._effect}[spec.kind](run, spec, head)
            if run.status != "queued":
                return run.status
        raise Endless

    def _step(self, run: Run, spec: StepSpec, head: Point) -> None:
        if not spec.reads_world and not self._forced(run, spec.name) and self._branched(run):
            digest = self._input(head, spec)
            wanted = (spec.name, digest, bytes.fromhex(spec.code_hash), self._times(run, spec.name, digest))
            every = [p for p in self.points.values() if p.digest is not None]
            twin = next((p for p in reversed(every) if (p.step, p.digest, p.code, p.occurrence) == wanted), None)
            if twin is not None and twin.next_step in self.plan.successors(spec.name):
                self._land(run, "reused", spec, twin.writes, twin.next_step)
                self.trace.append(("reused", spec.name))
                return
        writes, goto = self._call(spec, head)
        self.trace.append(("ran", spec.name))
        if not (spec.validators and self._refuses(spec, writes) and self._repaired(run, spec)):
            self._land(run, "step", spec, writes, self._goes(spec, goto))
            run.refused.pop(spec.name, None)

    def _refuses(self, spec: StepSpec, writes: Mapping[str, Any]) -> bool:
        self.clock += 1
        return digests.of_value([spec.name, sorted(writes), self.clock])[0] % 2 == 0

    def _repaired(self, run: Run, spec: StepSpec) -> bool:
        """Send the run back for a better output; False where the rings are used up, and the output is taken."""
        ring = run.refused.get(spec.name, 0) // spec.tries
        producer = self._producer(run, spec, ring) if 0 < ring <= spec.rings else None
        if ring and producer is None:
            return False
        run.refused[spec.name] = run.refused.get(spec.name, 0) + 1
        to = run.head if producer is None else producer.parent
        at = self.points[to]
        words = {spec.feedback: [*at.state.get(spec.feedback, []), self._now()]} if spec.feedback else {}
        state, fields = self._written(at, words)
        self._put(run, to, "repair", spec.name, spec.name if producer is None else producer.step, state, fields)
        return True

    def _producer(self, run: Run, spec: StepSpec, ring: int) -> Point | None:
        places = self.path(run)
        reading, found = {len(places): spec}, set[int]()
        for _ in range(ring):
            makers = {self._maker(places, at, name) for at, reader in reading.items() for name in reader.reads}
            new = {at for at in makers if at is not None} - found
            if not new:
                return None
            found |= new
            reading = {at: self.plan.step(places[at].step) for at in new}
        return None if self._final_since(places[min(found) :], spec) else places[min(found)]

    def _final_since(self, places: list[Point], judged: StepSpec) -> bool:
        """Whether what cannot be undone lies there, and may come to read something else once the first runs again."""
        changed = {judged.feedback, *self.plan.step(places[0].step).writes}
        for spec in [self.plan.step(place.step) for place in places if place.kind in EXECUTED]:
            if spec.kind != "gate" and (spec.reads_world or changed & set(spec.reads)):
                if spec.irreversible:
                    return True
                changed |= set(spec.writes)
        return False

    def _maker(self, places: list[Point], at: int, name: str) -> int | None:
        for index in range(at - 1, 0, -1):
            place = places[index]
            if place.kind in SENT:
                return None
            if place.digest is not None and name in place.writes:
                return index if self.plan.step(place.step).kind == "step" and place.kind in EXECUTED else None
        return None

    def _gate(self, run: Run, spec: StepSpec, head: Point) -> None:
        asks = self._call(spec, head)
        reopened = self._places(run)[-1].kind == "reopen"
        free = self._branched(run) and not reopened and not self._forced(run, spec.name)
        digest = self._input(head, spec)
        shown = {name: head.fields[name] for name in (*spec.edits, *spec.reads) if name in head.fields}
        body = digests.of_value([spec.name, {name: value.hex() for name, value in sorted(shown.items())}])
        if not asks and not reopened:
            key = (spec.name, digest, bytes.fromhex(spec.code_hash), self._times(run, spec.name, digest))
            twins = [p for p in self.points.values() if (p.step, p.digest, p.code, p.occurrence) == key]
            self._land(run, "reused" if free and twins else "gate", spec, {}, self.plan.passed(spec.name))
            self.trace.append(("reused" if free and twins else "ran", spec.name))
            return
        if not asks:
            self._ask(run, spec, head, digest, b"", {}, recovery=True)
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
            closed = gate.kind in ("approved", "edited", "rejected")
            if closed and gate.digest == digest and gate.body == body:
                return gate
        return None

    def _stands(self, gate: Gate) -> bool:
        rows = {row.id: row for row in self.rows}
        used = [rows.get(grant.used_by) for grant in gate.grants]
        done = all(row is not None and row.status in LANDED and not row.again for row in used)
        return gate.kind in ("approved", "edited") and done

    def _effect(self, run: Run, spec: StepSpec, head: Point) -> None:
        digest = self._input(head, spec)
        row = self._newest(run, spec, digest)
        if row is not None and not row.again and row.status in LANDED:
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
        if not unused or landed >= len(grants) or self.changed_by_hand(after) & self._loose(spec, last):
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

    def _loose(self, spec: StepSpec, gate: Gate) -> set[str]:
        """What the effect is made of, as far as the steps after the gate make it."""
        fixed = self._covered(spec.name, gate, {}).keys() - self.plan.step(gate.step).edits
        found, after = set(spec.reads) - fixed, self.plan.reachable(self.plan.next_after(gate.step))
        for _ in self.plan.steps:
            found |= {name for each in self.plan.steps if each.name in after and found & {*each.writes}
                      for name in each.reads}  # fmt: skip
        return found

    def _last_gate(self, run: Run, spec: StepSpec) -> Gate | None:
        stood = {p.parent for p in self.path(run) if p.kind in ("gate", "recovery")}
        asking = [step.name for step in self.plan.steps if spec.name in step.allows]
        found = [
            gate
            for gate in self.gates
            if gate.run == run.id and gate.point in stood and gate.kind != "open"
            and (gate.step == spec.name and gate.grants if gate.recovery else gate.step in asking)
        ]  # fmt: skip
        return found[-1] if found else None

    def _reopens(self, run: Run, spec: StepSpec) -> str:
        asking = [step.name for step in self.plan.steps if spec.name in step.allows]
        last = self._last_gate(run, spec)
        return last.step if last is not None and last.step in asking else asking[-1]

    def _unsettled(self, run: Run) -> list[Row]:
        held = {(p.step, p.digest, p.occurrence) for p in self.path(run) if p.kind in EXECUTED}
        mine = [row for row in self.rows if row.run == run.id and row.status in OPEN]
        return [row for row in mine if row.again or (row.step, row.digest, row.occurrence) not in held]

    def _settle(self, run: Run, about_to: str) -> None:
        rows = self._unsettled(run) if self._branched(run) else []
        ways = self.plan.successors(about_to) if about_to else set()
        later = {name for way in ways for name in self.plan.reachable(way)}
        chosen = {row.id for row in rows if row.again or row.step not in later}
        for row in [row for row in rows if row.id in chosen]:
            of = self.plan.dependents(row.step)
            chosen |= {each.id for each in rows if each.id > row.id and each.step in of}
        for row in reversed([row for row in rows if row.id in chosen]):
            row.status = "kept" if row.irreversible or row.taken or not row.undo else "undone"
            self.trace.append((row.status, row.step))
