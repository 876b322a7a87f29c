"""A small engine over plain data, with the rules of reuse, adoption, settling and standing, and nothing else.

It runs the plans of the tests, whose steps are functions of what they read, and gives the facts of what it did as an
impact reads them. What fails, times out or is not known does not happen here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from approvals.impact import EffectFact, Execution, GateFact, GrantFact, History, Target
from checkpoints import digests
from checkpoints.ops import DROP, apply
from checkpoints.plans import PlanSpec, StepSpec, input_digest

Output = tuple[Mapping[str, Any], str | None]
Method = Callable[..., Any]
LANDED, OPEN = ("done", "kept"), ("done",)
EXECUTED = ("step", "reused")
SENT = ("input", "fork", "edit", "rewind")


class Endless(Exception):
    """The run went on for longer than a test wants to wait."""


@dataclass
class Point:
    """A checkpoint."""

    id: str
    parent: str
    run: int
    seq: int
    kind: str
    step: str
    next_step: str
    state: dict[str, Any]
    fields: dict[str, bytes]
    digest: bytes | None = None
    code: bytes = b""
    occurrence: int = 0
    writes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Row:
    """An effect."""

    id: int
    run: int
    step: str
    digest: bytes
    occurrence: int
    generation: int
    irreversible: bool
    undo: str
    base: str
    result: Output = ((), None)  # type: ignore[assignment]
    status: str = "done"
    again: bool = False
    taken: bool = False


@dataclass
class Grant:
    """A right that an outcome gave."""

    effect: str
    fields: dict[str, bytes]
    used_by: int = 0


@dataclass
class Gate:
    """A gate that asks, or a question about taking over."""

    id: int
    run: int
    seq: int
    step: str
    point: str
    digest: bytes
    body: bytes
    shown: dict[str, bytes]
    recovery: bool = False
    kind: str = "open"
    grants: list[Grant] = field(default_factory=list)
    execution: str = ""
    patch: dict[str, Any] = field(default_factory=dict)
    choice: str = ""


@dataclass
class Run:
    """A run's head, its newest number, and in what it ends."""

    id: int
    head: str
    seq: int
    fork: bool = False
    status: str = "queued"
    ending: str = ""
    refused: dict[str, int] = field(default_factory=dict)  # step -> its outputs refused since one was accepted


class Engine:
    """`methods` gives each step's function of what it reads: an Output; a gate's says whether it asks."""

    def __init__(self, plan: PlanSpec, methods: Mapping[str, Method]) -> None:
        self.plan, self.methods = plan, methods
        self.points: dict[str, Point] = {}
        self.rows: list[Row] = []
        self.gates: list[Gate] = []
        self.runs: dict[int, Run] = {}
        self.clock = 0
        self.trace: list[tuple[str, str]] = []  # (ran, reused, asked, undone, kept; the step)

    # Beginning, and moving by a person's word.

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
        if kind == "rewind":
            self._order_again(run, self.plan.step(at.next_step))

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
            gate.execution = self._land(run, "gate", spec, gate.patch | told, self.plan.next_after(spec.name)).id
        elif kind == "rejected" and back_to:
            self._send_back(run, gate, spec, back_to, told)
        elif kind == "expired" and spec.on_expire:
            gate.execution = self._land(run, "gate", spec, told, spec.on_expire).id
        else:
            gate.execution = self._land(run, "gate", spec, told, spec.name).id
            run.ending = "cancelled"

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
        gate.grants = [Grant(spec.name, self._covered(spec.name, gate, head.fields))] if spec.guarded else []
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

    # Running.

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
        return places[min(found)]

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
        if not unused or landed >= len(grants):
            return None
        now = {name: head.fields.get(name, b"") for name in unused[0].fields}
        return unused[0] if now == unused[0].fields else None

    def _last_gate(self, run: Run, spec: StepSpec) -> Gate | None:
        stood = {p.parent for p in self.path(run) if p.kind in ("gate", "recovery")}
        asking = [step.name for step in self.plan.steps if spec.name in step.allows]
        found = [
            gate
            for gate in self.gates
            if gate.run == run.id and gate.point in stood and gate.kind != "open"
            and (gate.step == spec.name if gate.recovery else gate.step in asking)
        ]  # fmt: skip
        return found[-1] if found else None

    def _reopens(self, run: Run, spec: StepSpec) -> str:
        asking = [step.name for step in self.plan.steps if spec.name in step.allows]
        last = self._last_gate(run, spec)
        return last.step if last is not None and last.step in asking else asking[-1]

    # Settling.

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

    # The store.

    def path(self, run: Run) -> list[Point]:
        found, at = [], run.head
        while at:
            found.append(self.points[at])
            at = self.points[at].parent
        return found[::-1]

    def _places(self, run: Run) -> list[Point]:
        return self.path(run)

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

    def _row(
        self, run: Run, spec: StepSpec, digest: bytes, at: int, result: Output, *, generation: int = 0,
        taken: bool = False,
    ) -> Row:  # fmt: skip
        made = Row(
            len(self.rows) + 1, run.id, spec.name, digest, at, generation, spec.irreversible, spec.undo, run.head,
            result, taken=taken,
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
        others = [row for row in self.rows if row.run != run.id and not row.taken and row.status in LANDED]
        same = [row for row in others if (row.step, row.digest, row.occurrence) == (spec.name, digest, at)]
        return same[-1] if same else None

    def _own(self, run: Run) -> set[str]:
        stood = {p.parent for p in self.path(run) if p.kind == "recovery"}
        return {g.step for g in self.gates if g.run == run.id and g.point in stood and g.choice == "do_again"}

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

    def _now(self) -> str:
        self.clock += 1
        return f"word {self.clock}"

    def _covered(self, effect: str, gate: Gate, fields: Mapping[str, bytes]) -> dict[str, bytes]:
        names = [step.name for step in self.plan.steps]
        between = self.plan.steps[names.index(gate.step) + 1 : names.index(effect)]
        written = {name for step in between for name in step.writes}
        spec = self.plan.step(effect)
        wanted = {*self.plan.step(gate.step).edits, *(set(spec.reads) - written)}
        return {name: fields.get(name, b"") for name in wanted}

    # As facts.

    def execution(self, point: Point) -> Execution:
        return Execution(
            id=point.id, parent=point.parent, run=point.run, seq=point.seq, step=point.step, kind=point.kind,
            input_digest=point.digest or b"", code_hash=point.code, occurrence=point.occurrence,
            next_step=point.next_step, took=timedelta(seconds=1), writes=lambda: point.writes,
            reads=lambda: self._reads(point.step, point.parent),
        )  # fmt: skip

    def _reads(self, step: str, at: str) -> dict[str, bytes]:
        fields = self.points[at].fields
        return {name: fields[name] for name in self.plan.step(step).reads if name in fields}

    def path_of(self, to: str) -> tuple[list[Execution], list[int]]:
        """(the executions up to a checkpoint, the gates whose outcome is on the path)."""
        found, at = [], to
        while at:
            found.append(self.points[at])
            at = self.points[at].parent
        stood = {p.parent for p in found if p.kind in ("gate", "recovery")}
        gates = [gate.id for gate in self.gates if gate.point in stood and gate.kind != "open"]
        return [self.execution(p) for p in reversed(found) if p.digest is not None], gates

    def history(self, run_id: int) -> History:
        run = self.runs[run_id]
        path, gates = self.path_of(run.head)
        gates = [id for id in gates if self.gates[id - 1].run == run_id]
        effects = [
            EffectFact(
                id=row.id, run=row.run, step=row.step, input_digest=row.digest, occurrence=row.occurrence,
                generation=row.generation, status=row.status, irreversible=row.irreversible,
                undo=row.undo, again=row.again, taken=row.taken, returned=lambda row=row: row.result,  # type: ignore[misc]
                reads=lambda row=row: self._reads(row.step, row.base),  # type: ignore[misc]
            )
            for row in self.rows
        ]  # fmt: skip
        facts = [
            GateFact(
                id=gate.id, run=gate.run, seq=gate.seq, step=gate.step, input_digest=gate.digest,
                code_hash=bytes.fromhex(self.plan.step(gate.step).code_hash), kind=gate.kind,
                grants=[GrantFact(effect=g.effect, used_by=g.used_by, fields=g.fields) for g in gate.grants],
                execution=gate.execution, recovery=gate.recovery, fields=gate.shown,
            )
            for gate in self.gates
        ]  # fmt: skip
        points = self.path(run)
        sent = max(at for at, point in enumerate(points) if point.kind in SENT)
        return History(
            run=run_id, plan=self.plan, executions=[self.execution(p) for p in self.points.values() if p.digest],
            effects=effects, gates=facts, head_path=path, head_gates=gates,
            fork=run.fork, branched=self._branched(run), own=frozenset(self._own(run)),
            next_step=points[-1].next_step, ending=bool(run.ending),
            forced=self._forced(run, points[-1].next_step),
            sent=sum(point.digest is not None for point in points[:sent]),
        )  # fmt: skip

    def fact(self, gate: Gate) -> GateFact:
        """A gate of this engine, as its history has it."""
        return next(each for each in self.history(gate.run).gates if each.id == gate.id)

    def given(self, gate: Gate, writes: Mapping[str, Any]) -> list[GrantFact]:
        """What an agreement would give, after its edit."""
        fields = self._written(self.points[self.runs[gate.run].head], writes)[1]
        effects = self.plan.step(gate.step).allows
        return [GrantFact(effect=name, fields=self._covered(name, gate, fields)) for name in effects]

    def target_of(self, run_id: int, to: str, kind: str, writes: Mapping[str, Any]) -> Target:
        """A rewind or an edit of a run, or with the run 0 a fork."""
        at = self.points[to]
        state, fields = self._written(at, writes)
        path, gates = self.path_of(to)
        run = self.runs.get(run_id)
        mine = [gate for gate in gates if self.gates[gate - 1].run == run_id]
        made = Target(
            run=run_id, next_step=at.next_step, path=path, state=state, fields=fields, gates=mine, sent=len(path),
            fork=run.fork if run else True, own=frozenset(self._own_at(run_id, to)),
            branched=self._beside(run, to) if run else True,
        )  # fmt: skip
        return replace(made, forced=True, again=True) if kind == "rewind" else made

    def _beside(self, run: Run, to: str) -> bool:
        places, at = [], to
        while at:
            places.append(self.points[at])
            at = self.points[at].parent
        return places[-1].run != run.id or len(places) < run.seq

    def _own_at(self, run_id: int, to: str) -> set[str]:
        if run_id not in self.runs:
            return set()
        stood = self.path_of(to)[1]
        return {g.step for g in self.gates if g.run == run_id and g.id in stood and g.choice == "do_again"}
