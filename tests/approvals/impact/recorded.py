"""Builds the facts of an impact, literally: each call records one thing that happened, and none judges whether it may.

`approvals.impact` reads these facts as it reads those of the tables; tests/approvals/impact/property compares it with
what the runner does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from agents.session.run_path import RunPath
from approvals.cards import binding
from approvals.impact.choices import SavedState
from approvals.impact.facts import ByHand, EffectFact, GateFact, GrantFact, MoveTarget, RecordedHistory, Writes
from checkpoints.runs.plans import PlanSpec, StepSpec, input_digest
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.checkpoint_kinds import OUTCOMES
from checkpoints.values.digests import StretchDigest

MOVED = ("input", "fork", "edit", "rewind")  # kinds of checkpoints by which a person sent the run somewhere
NOTHING: Writes = {}


class Recorded:
    """A lineage. Calls are about the run `run`; run 1 begins with the input."""

    def __init__(self, plan: PlanSpec, **values: Any) -> None:
        self.plan, self.run, self.forks = plan, 1, set[int]()
        self.places: dict[UUID, CheckpointHeader] = {}
        self.states: dict[UUID, SavedState] = {}
        self.writes: dict[UUID, Writes] = {}
        self.effects: list[EffectFact] = []
        self.gates: list[GateFact] = []
        self.opened: dict[UUID, int] = {}  # the gate that asked at a checkpoint
        self._put(
            "input", "input", plan.steps[0].name, SavedState({}, {}, StretchDigest).with_writes(values), parent=None
        )

    @property
    def head(self) -> CheckpointHeader:
        return [each for each in self.places.values() if each.run_id == self.run][-1]

    @property
    def now(self) -> SavedState:
        return self.states[self.head.id]

    def at(self, next_step: str) -> CheckpointHeader:
        """The run's last checkpoint from which it went on with that step; its first one for ""."""
        mine = [each for each in self.places.values() if each.run_id == self.run]
        return [each for each in mine if each.next_step == next_step][-1] if next_step else mine[0]

    def path(self, to: CheckpointHeader) -> RunPath:
        return RunPath.within(to.id, self.places)

    def ran(self, step: str, writes: Writes = NOTHING, goto: str | None = None) -> Recorded:
        """An execution; one of an effect did something, by the newest permission."""
        spec = self.plan.step(step)
        if spec.kind == "effect":
            self._did(spec, writes, goto)
        landing = self._execution("step", spec, writes, self.plan.next_after(step) if goto is None else goto)
        if spec.kind == "effect":
            self.effects[-1] = replace(self.effects[-1], landings=frozenset([landing]))
        return self

    def began(self, effect: str) -> Recorded:
        """An effect of which nobody knows whether it happened."""
        self._did(self.plan.step(effect), {}, None)
        return self.changed(effect, status="unknown")

    def passed(self, gate: str) -> Recorded:
        """A gate that had nothing to ask."""
        self._execution("gate", self.plan.step(gate), {}, self.plan.passed(gate))
        return self

    def reused(self, step: str, writes: Writes = NOTHING, goto: str | None = None) -> Recorded:
        """A result that was taken without an execution."""
        self._execution("reused", self.plan.step(step), writes, self.plan.next_after(step) if goto is None else goto)
        return self

    def asked(self, step: str) -> Recorded:
        """A gate that asks at the head."""
        spec, fields = self.plan.step(step), self.now.fields
        shown = {name: fields.get(name, b"") for name in spec.edits}
        made = GateFact(
            id=len(self.gates) + 1, run=self.run, seq=self.head.seq, step=step, input_digest=input_digest(spec, fields),
            code_hash=bytes.fromhex(spec.code_hash), fields=partial(dict, shown),
        )  # fmt: skip
        self.gates.append(made)
        self.opened[self.head.id] = made.id
        return self

    def agreed(self, step: str, edit: Writes = NOTHING, **told: Any) -> Recorded:
        """An approval of the gate, with an edit; `told` is written too."""
        self.asked(step)
        kind, given = "edited" if edit else "approved", self.given(edit)
        goes = self.head.step if self.head.kind == "reopen" else self.plan.next_after(step)
        execution = self._execution("gate", self.plan.step(step), {**edit, **told}, goes)
        self.gates[-1] = replace(self.gates[-1], kind=kind, grants=given, execution=execution)
        return self

    def moved(self, kind: str, before: str, **writes: Any) -> Recorded:
        """A rewind or an edit."""
        to = self.at(before)
        self._put(kind, to.next_step, to.next_step, self.states[to.id].with_writes(writes), parent=to.id)
        return self

    def reopened(self, gate: str) -> Recorded:
        """The next effect had no permission, so that the run went back to its gate."""
        self._put("reopen", self.head.next_step, gate, self.now, parent=self.head.id)
        return self

    def forked(self, before: str, **writes: Any) -> Recorded:
        """A fork; what is recorded next is its."""
        to = self.at(before)
        self.run += 1
        self.forks.add(self.run)
        self._put("fork", "fork", to.next_step, self.states[to.id].with_writes(writes), parent=to.id)
        return self

    def changed(self, step: str, **columns: Any) -> Recorded:
        """What became of a step's newest effect."""
        at = max(at for at, row in enumerate(self.effects) if row.step == step)
        self.effects[at] = replace(self.effects[at], **columns)
        return self

    def given(self, edit: Mapping[str, Any] = NOTHING) -> list[GrantFact]:
        """What approving the newest gate with an edit gives."""
        step, fields = self.gates[-1].step, self.now.with_writes(edit).fields
        spec, found = self.plan.step(step), []
        for effect in spec.allows:
            names = {*spec.edits, *binding.bound_names(self.plan, gate_step=step, effect=effect)}
            covered = {name: fields.get(name, b"") for name in names}
            found.append(GrantFact(effect=effect, fields=partial(dict, covered)))
        return found

    def history(self) -> RecordedHistory:
        """All of it, where the run goes on from its head."""
        path = self.path(self.head)
        sent = max(at for at, place in enumerate(path) if place.kind in MOVED)
        head = self._target(self.head, self.run)
        forced, executed = path.forced(head.next_step), sum(bool(place.input_digest) for place in path.places[:sent])
        return RecordedHistory(
            plan=self.plan, head=replace(head, sent=executed, forced=forced), effects=self.effects, gates=self.gates,
            executions=[each for each in self.places.values() if each.input_digest],
            places=path.places, writes=self.writes.__getitem__,
            reopened=self.head.step if self.head.kind == "reopen" else "",
        )  # fmt: skip

    def target(self, before: str, *, fork: bool = False, rewind: bool = False, **writes: Any) -> MoveTarget:
        """An edit of the run at the last checkpoint before a step, a rewind to there, or a fork from there."""
        to = self.at(before)
        made, now = self._target(to, 0 if fork else self.run), self.states[to.id].with_writes(writes)
        ordered = ByHand(len(made.path), self._differing(self.states[to.id], now))
        return replace(
            made, state=now.state, fields=now.fields, list_format=now.list_format, sent=len(made.path),
            by_hand=[*made.by_hand, ordered], takes_up=not fork, forced=rewind, again=rewind,
        )  # fmt: skip

    def _target(self, to: CheckpointHeader, run: int) -> MoveTarget:
        path = self.path(to)
        settled = [
            self.opened[place.parent] for place in path if place.kind in OUTCOMES and place.parent in self.opened
        ]
        return MoveTarget(
            run=run, next_step=to.next_step, path=[each for each in path if each.input_digest],
            gates=[id for id in settled if self.gates[id - 1].run == run], by_hand=self._by_hand(path),
            fork=run in {0, *self.forks}, branched=not run or path.branched(run, self.head.seq),
        )  # fmt: skip

    def _by_hand(self, path: RunPath) -> list[ByHand]:
        found, executed = [], 0
        for place in path:
            if place.kind in ("edit", "rewind") and place.parent and place.step == place.next_step:
                changed = self._differing(self.states[place.parent], self.states[place.id])
                found.append(ByHand(executed, changed))
            executed += bool(place.input_digest)
        return found

    @staticmethod
    def _differing(was: SavedState, now: SavedState) -> frozenset[str]:
        names = was.fields.keys() | now.fields.keys()
        return frozenset(name for name in names if was.fields.get(name) != now.fields.get(name))

    def _did(self, spec: StepSpec, writes: Writes, goto: str | None) -> None:
        fields = self.now.fields
        digest, read = input_digest(spec, fields), {name: fields[name] for name in spec.reads if name in fields}
        at = self.path(self.head).occurrences(spec.name, digest)
        same = [row for row in self.effects if (row.run, row.step, row.input_digest) == (self.run, spec.name, digest)]
        row = EffectFact(
            id=len(self.effects) + 1, run=self.run, step=spec.name, input_digest=digest, occurrence=at, undo=spec.undo,
            generation=sum(each.occurrence == at for each in same), irreversible=spec.irreversible,
            returned=lambda: (writes, goto), reads=lambda: read,
        )  # fmt: skip
        self.effects.append(row)
        if spec.guarded:
            gate = self.gates[-1]
            used = [replace(each, used_by=row.id) if each.effect == spec.name else each for each in gate.grants]
            self.gates[-1] = replace(gate, grants=used)

    def _execution(self, kind: str, spec: StepSpec, writes: Writes, next_step: str) -> UUID:
        digest = input_digest(spec, self.now.fields)
        id = self._put(
            kind, spec.name, next_step, self.now.with_writes(writes), parent=self.head.id, input_digest=digest,
            code_hash=bytes.fromhex(spec.code_hash), occurrence=self.path(self.head).occurrences(spec.name, digest),
        )  # fmt: skip
        self.writes[id] = writes
        return id

    def _put(
        self, kind: str, step: str, next_step: str, saved: SavedState, *, parent: UUID | None, occurrence: int = 0,
        input_digest: bytes | None = None, code_hash: bytes | None = None,
    ) -> UUID:  # fmt: skip
        made = CheckpointHeader(
            id=UUID(int=1000 + len(self.places)), run_id=self.run, parent=parent, kind=kind, step=step,
            seq=1 + sum(each.run_id == self.run for each in self.places.values()), next_step=next_step, attempt=0,
            occurrence=occurrence, input_digest=input_digest, code_hash=code_hash, took_us=1_000_000, at=datetime.max,
            plan_id=0,
        )  # fmt: skip
        self.places[made.id], self.states[made.id] = made, saved
        return made.id
