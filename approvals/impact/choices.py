"""A person's decision at a gate, as the target from which the run would go on.

The run waits at the gate, so its head is the gate's checkpoint. What the agent is told of the decision, and in whose
name, is not known before it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from approvals.cards.action import Action
from approvals.cards.recovery_answers import GRANTING, STATUS_BY_ANSWER, RecoveryAnswer
from approvals.engine_rules import effects, gates, steps
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.runs.plans import StepSpec, input_digest
from checkpoints.store.header import CheckpointHeader
from checkpoints.values import digests
from checkpoints.values.ops import DROP, apply

from .facts import (
    ABSENT,
    ByHand,
    EffectFact,
    Fields,
    GateFact,
    GrantFact,
    MoveTarget,
    RecordedHistory,
    Writes,
)
from .records import NOW
from .values import Steps
from .walk import DECISION
from .words import by_action, words_in


@dataclass(frozen=True)
class SavedState:
    """A state with the digests of its fields."""

    state: Mapping[str, Any]
    fields: Fields

    def with_writes(self, writes: Writes) -> SavedState:
        """Return the state after `writes`. Raises ValueRefused."""
        state, fields = dict(self.state), dict(self.fields)
        for name, write in writes.items():
            if write is DROP:
                state.pop(name, None)
                fields.pop(name, None)
            else:
                state[name] = apply(state.get(name), write)
                fields[name] = digests.of_field(state[name])
        return SavedState(state, fields)


def approving(
    history: RecordedHistory,
    gate: GateFact,
    now: SavedState,
    *,
    grants: Sequence[GrantFact] = (),
    refused: Sequence[Action] = (),
    decision: str = "approved",
) -> MoveTarget:
    """Return the target where people agree, to all of it or to what they do not refuse. `now`: the state, edited.

    A gate that was opened again for the sake of an effect goes on with that effect: what was done since stands.
    """
    next_step = history.reopened or history.plan.next_after(gate.step)
    made = _landed(history, gate, now, next_step)
    novel, unknown = by_action(history.plan, _spec(history, gate), decision, refused)
    return replace(
        made, decision=decision, grants=grants, refused=refused, novel=novel, unknown={**made.unknown, **unknown}
    )


def reached(history: RecordedHistory, gate: GateFact, touched: Set[str]) -> CheckpointHeader | None:
    """Find where a reopened gate last closed, if an edit of the fields `touched` sends the run back to there.

    None where it goes on: nothing that was executed since reads what is edited.
    """
    if not history.reopened:
        return None
    closed, since = gates.closed_last(history.head.path, gate.step)
    return closed if gates.edit_goes_back(history.plan, since, touched) else None


def asking_anew(
    history: RecordedHistory,
    gate: GateFact,
    start: CheckpointHeader,
    now: SavedState,
    *,
    touched: Set[str],
    before: SavedState,
    decision: str,
) -> MoveTarget:
    """Return the target of an edit that sends the run back to `start`, see `reached`; the gate asks from `before`.

    That is the state from which it asked then, to which the edit is made; `now` the one that it shows, edited.
    """
    writes = {name: now.state.get(name, DROP) for name in touched}
    back = _back(history, gate, start, before.with_writes(writes))
    changed = frozenset(name for name in touched if before.fields.get(name) != now.fields.get(name))
    return replace(back, next_step=gate.step, decision=decision, by_hand=[*back.by_hand, ByHand(back.sent, changed)])


def stopping(history: RecordedHistory, gate: GateFact, now: SavedState, *, decision: str = "rejected") -> MoveTarget:
    """Return the target where the run ends there: rejected, cancelled, or because nobody answered."""
    return replace(_at_head(history, gate, now), next_step="", decision=decision)


def expiring(history: RecordedHistory, gate: GateFact, now: SavedState) -> MoveTarget:
    """Return the target where nobody answers in time: a recovery gate ends the run, or leaves what was left behind."""
    if gate.recovery:
        stopped = answering(history, gate, RecoveryAnswer.STOP, now) or stopping(history, gate, now)
        return replace(stopped, decision="expired", leave=bool(gate.about))
    next_step = _spec(history, gate).on_expire
    if not next_step:
        return stopping(history, gate, now, decision="expired")
    return replace(_landed(history, gate, now, next_step), decision="expired")


def going_back(
    history: RecordedHistory, gate: GateFact, step: str, now: SavedState, *, before: SavedState | None
) -> MoveTarget:
    """Return the target of a rejection to `step`. `before`: the state from which that last started, None for never."""
    spec, start = _spec(history, gate), steps.last_start(history.head.path, step)
    novel, unknown = words_in(history.plan, spec.feedback, said_at=gate.step)
    if start is None or before is None:
        made = _landed(history, gate, now, step)
        return replace(made, decision="rejected", novel=novel, unknown={**made.unknown, **unknown})
    back = _back(history, gate, start, before)
    told = _told(history, gate) | unknown
    words = [ByHand(back.sent, frozenset(told.keys() | novel))] if step == gate.step else []
    return replace(
        back,
        next_step=step,
        again=True,
        by_hand=[*back.by_hand, *words],
        novel=novel,
        unknown=told,
        decision="rejected",
    )


def _back(history: RecordedHistory, gate: GateFact, start: CheckpointHeader, before: SavedState) -> MoveTarget:
    """Return the target where a decision at the head sends the run back to where `start` started from."""
    path = list(history.head.path[: history.head.path.index(start)])
    on_path = [each for each in history.gates if each.id in history.head.gates and each.run == start.run_id]
    stood = [each for each in on_path if each.seq < start.seq - 1]
    mine = [each for each in stood if each.run == history.head.run and each.choice == RecoveryAnswer.DO_AGAIN]
    return replace(
        _at_head(history, gate, before),
        path=path,
        gates=[each.id for each in stood],
        by_hand=[each for each in history.head.by_hand if each.at <= len(path)],
        own=frozenset(each.step for each in mine if not _landed_since(each, path)),
        sent=len(path),
        branched=True,
        forced=True,
    )


def _landed_since(gate: GateFact, path: Sequence[CheckpointHeader]) -> bool:
    """Tell whether the step that a gate asked about was executed after it."""
    after = [each for each in path if each.run_id == gate.run and each.seq > gate.seq and each.kind in steps.EXECUTED]
    return any(each.step == gate.step for each in after)


def answering(history: RecordedHistory, gate: GateFact, choice: str, now: SavedState) -> MoveTarget | None:
    """Return the target of an answer to a recovery gate's question; None for an answer of which nothing is known."""
    spec = _spec(history, gate)
    here = replace(_at_head(history, gate, now), gates=[*history.head.gates, gate.id], decision="answered")
    if choice in STATUS_BY_ANSWER:
        next_step = "" if history.ending else history.head.next_step
        return replace(here, next_step=next_step, settled={gate.about: STATUS_BY_ANSWER[choice]})
    doubtful = _doubtful(history, spec, now)
    if choice == RecoveryAnswer.STOP:
        return replace(here, next_step="", awaited=frozenset(doubtful))
    if choice in (RecoveryAnswer.RETRY, RecoveryAnswer.NOT_HAPPENED, RecoveryAnswer.AGAIN, RecoveryAnswer.DO_AGAIN):
        by_answer: dict[str, str] = {RecoveryAnswer.NOT_HAPPENED: "failed", RecoveryAnswer.AGAIN: "abandoned"}
        status = by_answer.get(choice, "")
        permitted = spec.guarded and gate.permits and choice in GRANTING
        return replace(
            here,
            next_step=spec.name,
            forced=history.head.forced,
            own=history.head.own | {spec.name} if choice == RecoveryAnswer.DO_AGAIN else history.head.own,
            settled=dict.fromkeys(doubtful, status) if status else {},
            grants=[GrantFact(effect=spec.name, fields=partial(now_covered, spec, now))] * permitted,
        )
    if choice == RecoveryAnswer.REVISE:
        return replace(here, next_step=gates.asked_last(history.plan, spec.name, history.head.path), forced=True)
    if choice == RecoveryAnswer.SKIP:
        return replace(here, next_step=history.plan.next_after(spec.name))
    if choice in (RecoveryAnswer.HAPPENED, RecoveryAnswer.TAKE, RecoveryAnswer.ACCEPT):
        return _as_done(history, here, gate, spec, now, choice)
    return None


def now_covered(spec: StepSpec, now: SavedState) -> Fields:
    """Return what a permission covers that is given for exactly what the effect would do on this state."""
    return {name: now.fields.get(name, ABSENT) for name in spec.reads}


def _as_done(
    history: RecordedHistory, here: MoveTarget, gate: GateFact, spec: StepSpec, now: SavedState, choice: str
) -> MoveTarget | None:
    """Return the target where the step counts as executed, as a person says or another run did; None for unknown."""
    path = [*history.head.path, _execution(history, gate, spec, now, "step")]
    settled = dict.fromkeys(_doubtful(history, spec, now), "done") if choice == RecoveryAnswer.HAPPENED else {}
    after = history.plan.next_after(spec.name)
    if choice == RecoveryAnswer.TAKE:
        taken = _foreign(history, spec, now, path[-1])
        if taken is None:
            return replace(here, next_step=spec.name)  # it was undone meanwhile: there is nothing to take
        try:
            writes, goto = taken.returned()
            saved = now.with_writes(writes)
        except (CheckpointError, ValueRefused):
            return None
        return replace(
            here, path=path, state=saved.state, fields=saved.fields, next_step=after if goto is None else goto
        )
    if choice == RecoveryAnswer.ACCEPT and (spec.jumps or spec.ends):
        after = spec.name  # where a refused output goes is not known here: as if it were tried again
        path = path[:-1]
    unknown = {name: frozenset({spec.name}) for name in spec.writes}
    return replace(here, path=path, next_step=after, unknown={**here.unknown, **unknown}, settled=settled)


def _at_head(history: RecordedHistory, gate: GateFact, now: SavedState) -> MoveTarget:
    return replace(
        history.head, next_step=gate.step, forced=False, state=now.state, fields=now.fields, deciding=gate.id
    )


def _landed(history: RecordedHistory, gate: GateFact, now: SavedState, next_step: str) -> MoveTarget:
    """Return the target where the gate's outcome is saved on the path."""
    spec = _spec(history, gate)
    return replace(
        _at_head(history, gate, now),
        next_step=next_step,
        path=[*history.head.path, _execution(history, gate, spec, now, "gate")],
        gates=[*history.head.gates, gate.id],
        unknown=_told(history, gate),
    )


def _execution(
    history: RecordedHistory, gate: GateFact, spec: StepSpec, now: SavedState, kind: str
) -> CheckpointHeader:
    digest = gate.input_digest or input_digest(spec, now.fields, history.head.config)
    before = [each for each in history.head.path if each.step == spec.name and each.input_digest == digest]
    return CheckpointHeader(
        id=NOW, parent=None, run_id=history.head.run, seq=gate.seq + 1, step=spec.name, kind=kind, input_digest=digest,
        code_hash=bytes.fromhex(spec.code_hash), occurrence=len(before), next_step="", attempt=0, took_us=0,
        at=datetime.max, plan_id=0,
    )  # fmt: skip


def _doubtful(history: RecordedHistory, spec: StepSpec, now: SavedState) -> list[int]:
    """List the run's effect at the head, where nobody knows what became of it; else []."""
    digest = input_digest(spec, now.fields, history.head.config)
    at = sum(each.step == spec.name and each.input_digest == digest for each in history.head.path)
    mine = [row for row in history.effects if row.run == history.head.run and row.step == spec.name]
    same = [row for row in mine if (row.input_digest, row.occurrence) == (digest, at)]
    newest = max(same, key=lambda row: row.generation, default=None)
    return [newest.id] if newest is not None and newest.status in effects.IN_DOUBT else []


def _foreign(history: RecordedHistory, spec: StepSpec, now: SavedState, here: CheckpointHeader) -> EffectFact | None:
    digest = input_digest(spec, now.fields, history.head.config)
    others = [row for row in history.effects if row.run != history.head.run and effects.asked_about(row)]
    key = (spec.name, digest, here.occurrence)
    same = [row for row in others if (row.step, row.input_digest, row.occurrence) == key]
    return same[-1] if same and effects.there(same[-1]) else None


def _told(history: RecordedHistory, gate: GateFact) -> dict[str, Steps]:
    """Name the field that tells the agent of the decision, where its state has a place for it."""
    schema = history.plan.state_schema.get("properties")
    return {DECISION: frozenset({gate.step})} if schema is None or DECISION in schema else {}


def _spec(history: RecordedHistory, gate: GateFact) -> StepSpec:
    return history.plan.step(gate.step)
