"""Turns each decision at a gate into the target from which the run would go on.

The run waits at the gate, so its head is the gate's checkpoint; if it went on from the gate, it goes on from its head,
and `now` is the state there. The person's words and name, which the agent is told,
are not known before the decision.

It also computes the impact from the facts.

It also predicts what a repair may take back: after a refused output the run goes back to the steps that made its
input.

Steps that stood may run again then, and effects in between are left behind, to be adopted or undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any

from approvals.cards.action import Action
from approvals.cards.answer import GRANTING, STATUS_BY_ANSWER, TRIED_AGAIN, RecoveryAnswer
from approvals.engine_rules import effects, permissions
from approvals.engine_rules.effects import at_guard
from approvals.engine_rules.permissions import holds_up
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.runs.plans import StepSpec, input_digest
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.digests import ListDigest, of_field
from checkpoints.values.ops import DROP, apply_write

from . import performing, steps
from .facts import ABSENT, ByHand, EffectFact, Fields, GateFact, GrantFact, MoveTarget, RecordedHistory, Writes
from .records import NOW, PredictedState, Records, Steps
from .result import Impact, ImpactRow, ImpactVerdict
from .walk import Flow, Walk, left, questions, undoable
from .words import by_action, words_in


def finished(walk: Walk) -> list[ImpactRow]:
    """Return the rows of a finished walk, with those marked as uncertain that a repair may take back.

    After them come the effects that run, or may, and that a repair after them may undo.
    """
    rows = list(walk.rows)
    for stretch, on in walk.losses:
        for entry in walk.path[stretch]:
            if entry.row >= 0:
                rows[entry.row] = _shaken(walk, rows[entry.row], on)
    named = {
        row.step: row for row in rows if row.verdict in (ImpactVerdict.WILL, ImpactVerdict.MAY) and row.kind == "effect"
    }
    found: dict[str, set[str]] = {}
    for judged in walk.judged:
        between = walk.flow.reach(walk.flow.suspects(judged), avoiding=[judged])
        for name in between & named.keys():
            found.setdefault(name, set()).add(judged)
    return rows + [
        replace(
            named[name],
            verdict=ImpactVerdict.MAY_UNDONE,
            on=walk.in_order(found[name]),
            why="repair",
            effect=0,
            asks=False,
        )
        for name in walk.flow.steps
        if name in found and walk.flow.steps[name].undo
    ]


def _shaken(walk: Walk, row: ImpactRow, on: Steps) -> ImpactRow:
    """Mark a row that stands as uncertain, since the run may go back to before it."""
    if row.verdict is not ImpactVerdict.STANDS:
        return row
    lost = ImpactVerdict.MAY
    if row.effect:
        known = any(each.id == row.effect and undoable(each) for each in walk.records.own)
        lost = ImpactVerdict.MAY_UNDONE if known else ImpactVerdict.CANNOT
    asks = row.kind == "gate" and lost is ImpactVerdict.MAY
    return replace(row, verdict=lost, on=walk.in_order(on), why="repair", asks=asks)


@dataclass(frozen=True)
class SavedState:
    """A state with the digests of its fields, and the format of those of lists."""

    state: Mapping[str, Any]
    fields: Fields
    list_format: type[ListDigest]

    def with_writes(self, writes: Writes) -> SavedState:
        """Return the state after `writes`. Raises ValueRefused."""
        state, fields = dict(self.state), dict(self.fields)
        for name, write in writes.items():
            if write is DROP:
                state.pop(name, None)
                fields.pop(name, None)
            else:
                state[name] = apply_write(state.get(name), write)
                fields[name] = of_field(state[name], self.list_format)
        return SavedState(state, fields, self.list_format)


@dataclass(frozen=True)
class GateChoices:
    """The choices at a gate, each as the target from which the run would go on.

    `now` is the state that the gate shows, with the chosen edit if there is one.
    """

    history: RecordedHistory
    gate: GateFact
    now: SavedState

    def approving(
        self, *, grants: Sequence[GrantFact] = (), refused: Sequence[Action] = (), decision: str = "approved"
    ) -> MoveTarget:
        """Return the target of an approval, of all actions or of those that are not refused.

        A gate that was reopened for an effect goes on with that effect: what was done since stands.
        """
        after = self.history.head.next_step if self.gate.beside else self.history.plan.next_after(self.gate.step)
        made = self._landed(after if self.gate.beside else self.history.reopened or after)
        novel, unknown = by_action(self.history.plan, self._spec, decision, refused)
        return replace(
            made, decision=decision, grants=grants, refused=refused, novel=novel, unknown={**made.unknown, **unknown}
        )

    def reached(self, touched: Set[str]) -> CheckpointHeader | None:
        """Find where a reopened gate last closed, if an edit of the fields `touched` sends the run back to there.

        None where the run goes on: nothing that was executed since reads those fields.
        """
        if not self.history.reopened or self.gate.beside:
            return None
        closed, since = permissions.closed_last(self.history.head.path, self.gate.step)
        return closed if permissions.edit_goes_back(self.history.plan, since, touched) else None

    def asking_anew(
        self, start: CheckpointHeader, *, touched: Set[str], before: SavedState, decision: str
    ) -> MoveTarget:
        """Return the target of an edit that sends the run back to `start`, see `reached`; the gate asks from `before`.

        `before` is the state from which it asked then; the edit is applied to it.
        """
        writes = {name: self.now.state.get(name, DROP) for name in touched}
        back = self._back(start, before.with_writes(writes))
        changed = frozenset(name for name in touched if before.fields.get(name) != self.now.fields.get(name))
        by_hand = [*back.by_hand, ByHand(back.sent, changed)]
        return replace(back, next_step=self.gate.step, decision=decision, by_hand=by_hand)

    def stopping(self, *, decision: str = "rejected") -> MoveTarget:
        """Return the target where the run ends at the gate: rejected, cancelled, or expired."""
        return replace(self._at_head(self.now), next_step="", decision=decision, fails=True, asking={})

    def expiring(self, then: str = "") -> MoveTarget:
        """Return the target of an expiry; a recovery gate ends the run, or leaves effects left behind as they are.

        `then`: "stop" or "rollback" where the policy ends the run.
        """
        if then == "rollback":
            back = self._back(self.history.places[0], self.now)
            return replace(back, next_step="", decision="expired", fails=True, asking={})
        if then == "stop":
            return self.stopping(decision="expired")
        if self.gate.recovery:
            stopped = self.answering(RecoveryAnswer.STOP) or self.stopping()
            return replace(stopped, decision="expired", leave=bool(self.gate.about))
        next_step = self._spec.on_expire
        return replace(self._landed(next_step), decision="expired") if next_step else self.stopping(decision="expired")

    def going_back(self, step: str, *, before: SavedState | None) -> MoveTarget:
        """Return the target of a rejection to `step`. `before`: the state from which it starts; None: the head's."""
        start = permissions.sent_back_to(self.history.places, self.gate.step, step, beside=self.gate.beside)
        novel, unknown = words_in(self.history.plan, self._spec.feedback, said_at=self.gate.step)
        if start is None or before is None:
            made = self._landed(step)
            return replace(made, decision="rejected", novel=novel, unknown={**made.unknown, **unknown})
        back = self._back(start, before)
        told = self._told | unknown
        words = [ByHand(back.sent, frozenset(told.keys() | novel))] if step == self.gate.step else []
        return replace(
            back,
            next_step=step,
            again=True,
            by_hand=[*back.by_hand, *words],
            novel=novel,
            unknown=told,
            decision="rejected",
        )

    def answering(self, choice: str) -> MoveTarget | None:
        """Return the target of an answer to a recovery gate; None for an unknown answer."""
        spec, head = self._spec, self.history.head
        here = replace(self._at_head(self.now), gates=[*head.gates, self.gate.id], decision="answered")
        if choice in STATUS_BY_ANSWER:
            next_step = "" if self.history.ending else head.next_step
            return replace(here, next_step=next_step, settled={self.gate.about: STATUS_BY_ANSWER[choice]})
        doubtful = self._doubtful()
        if choice == RecoveryAnswer.STOP:
            return replace(here, next_step="", awaited=frozenset(doubtful), fails=True, asking={})
        if choice in TRIED_AGAIN:
            by_answer: dict[str, str] = {RecoveryAnswer.NOT_HAPPENED: "failed", RecoveryAnswer.AGAIN: "abandoned"}
            status = by_answer.get(choice, "")
            permitted = spec.guarded and self.gate.permits and choice in GRANTING
            return replace(
                here,
                next_step=spec.name,
                forced=head.forced,
                own=head.own | {spec.name} if choice == RecoveryAnswer.DO_AGAIN else head.own,
                settled=dict.fromkeys(doubtful, status) if status else {},
                withdrawn=self.gate.runs if choice == RecoveryAnswer.WITHDRAW else frozenset(),
                grants=[GrantFact(effect=spec.name, fields=self._covered)] * permitted,
            )
        if choice == RecoveryAnswer.REVISE:
            return replace(here, next_step=permissions.asked_last(self.history.plan, spec.name, head.path), forced=True)
        if choice == RecoveryAnswer.SKIP:
            return replace(here, next_step=self.history.plan.next_after(spec.name))
        if choice in (RecoveryAnswer.HAPPENED, RecoveryAnswer.TAKE, RecoveryAnswer.ACCEPT):
            return self._as_done(here, choice)
        return None

    def _as_done(self, here: MoveTarget, choice: str) -> MoveTarget | None:
        """Return the target where the step counts as executed, as a person says or by another run; None if unknown."""
        spec = self._spec
        path = [*self.history.head.path, self._execution("step")]
        settled = dict.fromkeys(self._doubtful(), "done") if choice == RecoveryAnswer.HAPPENED else {}
        after = self.history.plan.next_after(spec.name)
        if choice == RecoveryAnswer.TAKE:
            taken = self._foreign(path[-1])
            if taken is None:
                return replace(here, next_step=spec.name)  # it was undone meanwhile, so there is no result to take
            try:
                writes, goto = taken.returned()
                saved = self.now.with_writes(writes)
            except (CheckpointError, ValueRefused):
                return None
            next_step = after if goto is None else goto
            return replace(here, path=path, state=saved.state, fields=saved.fields, next_step=next_step)
        if choice == RecoveryAnswer.ACCEPT and (spec.jumps or spec.ends):
            after = spec.name  # the refused output's next step is not known here: treated like a retry
            path = path[:-1]
        unknown = {name: frozenset({spec.name}) for name in spec.writes}
        return replace(here, path=path, next_step=after, unknown={**here.unknown, **unknown}, settled=settled)

    def _at_head(self, saved: SavedState) -> MoveTarget:
        head, gate = self.history.head, self.gate
        asking = {name: seq for name, seq in head.asking.items() if name != gate.step}
        return replace(
            head, next_step=gate.step, forced=False, deciding=gate.id, asking=asking,
            state=saved.state, fields=saved.fields, list_format=saved.list_format,
        )  # fmt: skip

    def _landed(self, next_step: str) -> MoveTarget:
        """Return the target with the gate's outcome saved on the path."""
        head = self.history.head
        return replace(
            self._at_head(self.now),
            next_step=next_step,
            path=[*head.path, *([] if self.gate.beside else [self._execution("gate")])],
            gates=[*head.gates, self.gate.id],
            unknown=self._told,
        )

    def _back(self, start: CheckpointHeader, before: SavedState) -> MoveTarget:
        """Return the target where a decision at the head sends the run back to the start of the execution `start`."""
        head = self.history.head
        earlier = {each.id for each in takewhile(lambda each: each.id != start.id, self.history.places)}
        path = [each for each in head.path if each.id in earlier]  # `start` is none of them if it has no code hash
        on_path = [each for each in self.history.gates if each.id in head.gates and each.run == start.run_id]
        stood = [each for each in on_path if each.seq < start.seq - 1]
        mine = [each for each in stood if each.run == head.run and each.choice == RecoveryAnswer.DO_AGAIN]
        here = self._at_head(before)
        return replace(
            here,
            path=path,
            asking={name: seq for name, seq in here.asking.items() if seq < start.seq},
            gates=[each.id for each in stood],
            by_hand=[each for each in head.by_hand if each.at <= len(path)],
            own=frozenset(each.step for each in mine if not _landed_since(each, path)),
            sent=len(path),
            branched=True,
            forced=True,
        )

    def _execution(self, kind: str) -> CheckpointHeader:
        digest = self.gate.input_digest or self._reads
        return CheckpointHeader(
            id=NOW, parent=None, run_id=self.history.head.run, seq=self.gate.seq + 1, step=self.gate.step, kind=kind,
            input_digest=digest, code_hash=bytes.fromhex(self._spec.code_hash), occurrence=self._times(digest),
            next_step="", attempt=0, took_us=0, at=datetime.max, plan_id=0,
        )  # fmt: skip

    def _doubtful(self) -> list[int]:
        """List the run's effect at the head if its outcome is unknown; else []."""
        key = (self.history.head.run, self.gate.step, self._reads, self._times(self._reads))
        same = [row for row in self.history.effects if (row.run, row.step, row.input_digest, row.occurrence) == key]
        newest = max(same, key=lambda row: row.generation, default=None)
        return [newest.id] if newest is not None and newest.status in effects.IN_DOUBT else []

    def _foreign(self, here: CheckpointHeader) -> EffectFact | None:
        """Find the effect that another run performed for the same execution."""
        others = [row for row in self.history.effects if row.run != here.run_id and effects.asked_about(row)]
        key = (self.gate.step, self._reads, here.occurrence)
        same = [row for row in others if (row.step, row.input_digest, row.occurrence) == key]
        return same[-1] if same and effects.there(same[-1]) else None

    def _covered(self) -> Fields:
        """Return the fields that a permission covers which is given for the effect on this very state."""
        return {name: self.now.fields.get(name, ABSENT) for name in self._spec.reads}

    def _times(self, digest: bytes) -> int:
        """Count the executions of the step with this input on the path."""
        return sum(each.step == self.gate.step and each.input_digest == digest for each in self.history.head.path)

    @property
    def _spec(self) -> StepSpec:
        return self.history.plan.step(self.gate.step)

    @property
    def _reads(self) -> bytes:
        return input_digest(self._spec, self.now.fields, self.history.head.config)

    @property
    def _told(self) -> dict[str, Steps]:
        """Return the field that tells the agent of the decision as unknown, where its state has that field."""
        schema = self.history.plan.state_schema.get("properties")
        return (
            {permissions.DECISION: frozenset({self.gate.step})}
            if schema is None or permissions.DECISION in schema
            else {}
        )


def _landed_since(gate: GateFact, path: Sequence[CheckpointHeader]) -> bool:
    """Tell whether the step that a gate asked about was executed after it."""
    after = [each for each in path if each.run_id == gate.run and each.seq > gate.seq]
    return bool(permissions.executed_since(after, gate.step))


VISIT = {"step": steps.predict_step, "gate": steps.predict_gate, "effect": performing.effect}


def impact(history: RecordedHistory, target: MoveTarget) -> Impact:
    """Compute what would happen if the run went on as `target` says."""
    records = Records(history, target)
    walk = Walk(records=records, flow=Flow(history.plan), target=target, state=PredictedState.at(target))
    for each in target.path:
        walk.came_by(each)
    at: str | None = target.next_step
    forced = target.forced
    while at:
        at, forced = _visit(walk, at, forced=forced), False
    if at == "" and target.asking:
        walk.over((), frozenset(target.asking))
    asked = questions(walk)
    ends = at == "" and walk.ahead is None and not asked
    rows = (*finished(walk), *asked, *left(walk))
    return Impact(rows=rows, asks=walk.asks, ends=ends, titles=history.plan.titles, beside=tuple(target.asking))


def _visit(walk: Walk, name: str, *, forced: bool) -> str | None:
    spec = walk.flow.steps.get(name)
    if spec is None:  # the plan no longer has the step: nothing can be predicted
        walk.over(walk.flow.steps, frozenset())
        return None
    held_by = [gate for gate in walk.target.asking if holds_up(walk.flow.plan, walk.flow.steps[gate], name)]
    if held_by:
        walk.over({name}, frozenset(held_by))
        return None
    times = sum(entry.step == name for entry in walk.path)
    if spec.loop_guard and (at_guard(spec, times) or spec.catch or name in walk.blurred):  # it may be reached here
        walk.name(spec, ImpactVerdict.MAY, "guard", frozenset({name}), asks=True)
        walk.state.blur(spec.writes, frozenset({name}))
        walk.over({name}, frozenset({name}))
        return None
    return VISIT[spec.kind](walk, spec, forced=forced)
