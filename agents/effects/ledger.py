"""Reads the ledger of effects: a run's rows and which it has left behind, and what gates caused or would repeat.

A gate would repeat an effect if it allows it again and it is not on the path to the gate; for a step that performs any
call of the agent, only the very same call counts. An impact knows more: which results would be reused. For lists, where
no impact is computed, that takes one statement, and others only where there are such effects.

Also here: the columns of a new row of the effect ledger: its execution and its idempotency key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db.models import DateTimeField, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce, NullIf

from agents.models import Effect
from agents.runs.course import WAY, Course, course_of
from agents.session.run_session import RunSession
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.cards.likeness import Likeness
from approvals.consequences.performed import AlikeAsked, DoneAlike, GivenGrant, GivenGrants, PerformedEffect
from approvals.engine_rules import effects
from approvals.impact.performing import titles
from approvals.impact.result import Repeat
from approvals.models import Gate
from approvals.models.outcome import Grant
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.postgresql.sql import run_sql
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical

# Only checkpoints of the effect's own run: one that was pruned is missing.
LANDED_IN = RawSQL(
    """ARRAY(SELECT c.seq FROM unnest(agents_effect.landings) WITH ORDINALITY l (id, n)
       JOIN checkpoints_checkpoint c ON c.id = l.id AND c.run_id = agents_effect.run_id ORDER BY l.n)""",
    (),
    output_field=ArrayField(IntegerField()),
)
# When its result was first saved; null if it never was, or if that checkpoint was pruned.
LANDED_AT = RawSQL(
    "(SELECT c.at FROM checkpoints_checkpoint c WHERE c.id = agents_effect.landings[1])",
    (),
    output_field=DateTimeField(null=True),
)
# $2: whether results are read too. An effect that was begun before the gate closed was not begun under it: where a
# checkpoint since holds its result, that was taken over.
_GIVEN = """
SELECT o.gate_id, EXISTS (SELECT FROM approvals_gate_replaces WHERE to_gate_id = o.gate_id),
  t.id, t.action, t.effect, e.status, e.key, e.intended_at, e.settled_at, e.attempts, e.error,
  CASE WHEN $2::boolean THEN e.result END, u.status, u.settled_at,
  e.id IS NULL AND EXISTS (
    SELECT FROM agents_effect b JOIN checkpoints_checkpoint l ON l.id = ANY(b.landings) AND l.run_id = b.run_id
    WHERE b.run_id = g.run_id AND b.step = t.effect AND b.action IN ('', t.action) AND b.undoes_id IS NULL
      AND b.intended_at < g.closed_at AND l.seq > asked.seq),
  e.id IS NULL AND EXISTS (
    SELECT FROM checkpoints_checkpoint c JOIN checkpoints_checkpoint p ON p.id = c.parent
    WHERE c.run_id = g.run_id AND c.seq > asked.seq AND c.kind IN ('rewind', 'edit')
      AND (p.run_id <> c.run_id OR p.seq <= asked.seq))
FROM approvals_outcome o JOIN approvals_gate g ON g.id = o.gate_id
LEFT JOIN approvals_grant t ON t.outcome_id = o.id
LEFT JOIN checkpoints_checkpoint asked ON asked.id = g.checkpoint
LEFT JOIN agents_effect e ON e.grant_id = t.id
LEFT JOIN LATERAL (
  SELECT status, settled_at FROM agents_effect WHERE undoes_id = e.id ORDER BY id DESC LIMIT 1) u ON true
WHERE o.gate_id = ANY($1) ORDER BY o.gate_id, t.id
"""
# One part for each kind of likeness, along its index. Of what was done very often the newest grants are looked at.
_PART = """
SELECT w.gate, '{how}', o.gate_id, e.id, t.action, t.effect, e.status IN ('done', 'kept'),
  coalesce(e.settled_at, e.intended_at)
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) w(gate, lineage, how, digest)
CROSS JOIN LATERAL (
  SELECT id, outcome_id, action, effect FROM approvals_grant
  WHERE same_{how} = w.digest AND same_{how} <> '' ORDER BY id DESC LIMIT 20) t
JOIN agents_effect e ON e.grant_id = t.id AND e.status IN ('done', 'kept', 'intended', 'unknown', 'abandoned')
JOIN approvals_outcome o ON o.id = t.outcome_id JOIN approvals_gate g ON g.id = o.gate_id
JOIN checkpoints_run r ON r.id = g.run_id
WHERE w.how = '{how}' AND coalesce(r.lineage, r.id) <> w.lineage
"""
_ALIKE = " UNION ALL ".join(_PART.format(how=how) for how in Likeness._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One row of the effect ledger without its result. `error` is untrusted.

    A row that `undoes` another is that one's undo, and no effect of its own. `again`: a person sent the run back to
    it, so that it is undone and done again. `left_open`: a person let it be although nobody knows whether it happened.
    """

    id: int = 0
    run: int = 0
    step: str
    base: str
    base_seq: int = 0  # 0: of another run, or removed
    key: str
    status: str
    irreversible: bool = False
    error: str = ""
    intended_at: datetime | None = None
    settled_at: datetime | None = None
    execution: str = ""
    generation: int = 0
    undoes: int = 0
    again: bool = False
    left_open: bool = False
    action: str = ""
    grant: int | None = None
    attempts: int = 1
    taken_from: int = 0  # the run that performed it
    landings: Collection[UUID] = ()  # the checkpoints with its result
    landed: Sequence[int] = ()  # the numbers of those in its own run
    undo: str = ""  # by the plan: the method that undoes it
    unsettled: bool = False  # off the path to the head

    @property
    def at(self) -> datetime | None:
        """Return when its result was known; until then, when it was begun."""
        return self.settled_at or self.intended_at


def execution_of(step: str, input_digest: bytes | memoryview | None, occurrence: int) -> str:
    """Return a name for an execution: step, input and occurrence. Empty for a checkpoint that is no execution."""
    return "" if input_digest is None else f"{step}/{bytes(input_digest).hex()}/{occurrence}"


def rows_of(runs: Collection[int]) -> list[LedgerRow]:
    """Return the ledger's rows of some runs, undos among them, in the order in which they were intended."""
    rows: list[Any] = _effects_of(list(runs))
    return [
        LedgerRow(
            id=row.pk, run=row.run_id, step=row.step, base=row.base.hex, base_seq=row.place, key=row.key,
            status=row.status, irreversible=row.irreversible, error=row.error, intended_at=row.intended_at,
            settled_at=row.settled_at, execution=execution_of(row.step, row.input_digest, row.occurrence),
            generation=row.generation, undoes=row.undoes_id or 0, again=row.again,
            left_open=effects.left_open(row.status, known=not row.empty), action=row.performs, grant=row.grant_id,
            attempts=row.attempts, taken_from=row.of, landings=row.landings, landed=row.carried,
        )
        for row in rows
    ]  # fmt: skip


@prepared_statement
def _effects_of(runs: Any) -> QuerySet[Effect]:
    base = Checkpoint.objects.filter(pk=OuterRef("base"), run=OuterRef("run")).values("seq")
    found = Effect.objects.filter(OneOf(F("run_id"), runs)).order_by("pk")
    rows = found.annotate(
        performs=Coalesce(NullIf("action", Value("")), "grant__action", Value("")), empty=Q(result=b"null"),
        of=Coalesce("taken_from__run", 0), carried=LANDED_IN,
        place=Coalesce(Subquery(base), 0),
    )  # fmt: skip
    return rows.defer("result")


def off_course(rows: Iterable[LedgerRow], course: Course) -> set[int]:
    """Return the ids of the run's effects that it has left behind and that are not settled."""
    open_ones = [row for row in rows if row.run == course.run and not row.undoes and row.status in effects.OPEN]
    held = course.on_path([seq for row in open_ones for seq in row.landed])
    here = {row.id for row in open_ones if held.intersection(row.landed) or course.awaits(row.base_seq, row.step)}
    return {row.id for row in open_ones if effects.left_behind(row, on_path=row.id in here)}


def done_of(plan: PlanSpec, rows: Collection[LedgerRow], course: Course) -> list[LedgerRow]:
    """Return the rows with the method that undoes each, and with those marked that the run has left behind."""
    undo, off = {step.name: step.undo for step in plan.steps}, off_course(rows, course)
    return [replace(effect, undo=undo.get(effect.step, ""), unsettled=effect.id in off) for effect in rows]


def done_alike(asked: Sequence[AlikeAsked]) -> list[DoneAlike]:
    """List what other lineages did, or may have done, that is like what these gates ask for. One statement."""
    columns = [list(column) for column in zip(*asked, strict=True)]
    return [
        DoneAlike(asked=gate, how=how, gate=under, effect_id=id, action=action, effect=effect, done=done, at=at)
        for gate, how, under, id, action, effect, done, at in run_sql(_ALIKE, columns)
    ]


def given(gates: Sequence[int], results: bool) -> dict[int, GivenGrants]:
    """Return the grants of these gates with the effects that were begun under them, and the newest undo of each."""
    found: dict[int, GivenGrants] = {}
    for gate, rows in groupby(run_sql(_GIVEN, [list(gates), results]), itemgetter(0)):
        every = list(rows)
        found[gate] = GivenGrants(grants=[_given(*row[2:]) for row in every if row[2]], again=every[0][1])
    return found


def _given(id: int, action: str, effect: str, *rest: Any) -> GivenGrant:
    *begun, reused, passed_by = rest
    return GivenGrant(
        id=id, action=action, effect=effect, begun=_begun(*begun) if begun[0] else None, reused=reused,
        passed_by=bool(passed_by),
    )  # fmt: skip


def _begun(
    status: str, key: str, begun_at: datetime, ended_at: datetime | None, attempts: int, error: str,
    result: bytes | None, undo: str | None, undone_at: datetime | None,
) -> PerformedEffect:  # fmt: skip
    return PerformedEffect(
        status=status, key=key, begun_at=begun_at, ended_at=ended_at, attempts=attempts, error=error,
        result=None if result is None else decode_canonical(bytes(result)), undo=undo or "", undone_at=undone_at,
    )  # fmt: skip


def repeats_of(gates: Sequence[Gate]) -> dict[int, list[Repeat]]:
    """Return the repeats by gate, oldest first. Needs each gate's run."""
    cards = {gate.pk: gate.asked for gate in gates}
    done: dict[int, list[Any]] = defaultdict(list)
    for row in _rows(gates, {step for card in cards.values() for step in card.allows}):
        done[row.run.lineage].append(row)
    found = {gate.pk: done.get(gate.run.lineage, []) for gate in gates}
    asked = [gate for gate in gates if any(row.step in cards[gate.pk].allows for row in found[gate.pk])]
    ways = {run.pk: run for run in _ways(list({gate.run_id for gate in asked}))} if asked else {}
    calls = _calls(row for gate in asked for row in found[gate.pk])
    values: dict[int, list[Repeat]] = defaultdict(list)
    for gate in asked:
        run: Any = ways[gate.run_id]
        card, way, plan = cards[gate.pk], _Way(run), spec_of(run.plan)
        steps = {step.name: step for step in plan.steps if step.name in card.allows}
        for row in found[gate.pk]:
            spec = steps.get(row.step)
            if spec and way.leaves(row, spec):
                values[gate.pk] += [_repeat_of(row, action, plan) for action in _again(spec, row, card, calls)]
    return {gate: rows for gate, rows in values.items() if rows}


def _rows(gates: Sequence[Gate], steps: set[str]) -> Sequence[Any]:
    roots = {gate.run.lineage for gate in gates}
    if not roots or not steps:
        return []
    found: list[Any] = _performed(list(roots), list(steps))
    return effects.repeatable(found)


@prepared_statement
def _performed(roots: Any, steps: Any) -> QuerySet[Effect]:
    kin = Run.objects.filter(Q(OneOf(F("pk"), roots)) | Q(OneOf(F("lineage"), roots), forked_from__isnull=False))
    found = Effect.objects.filter(OneOf(F("step"), steps), run__in=kin, undoes__isnull=True).select_related("run")
    return found.annotate(carried=LANDED_IN, at=LANDED_AT).order_by("pk")


@prepared_statement
def _ways(runs: Any) -> QuerySet[Run]:
    return Run.objects.filter(OneOf(F("pk"), runs)).select_related("plan").annotate(whole=WAY)


@prepared_statement
def _decided(grants: Any) -> QuerySet[Grant]:
    given = Grant.objects.filter(OneOf(F("pk"), grants)).select_related("outcome")
    return given.exclude(action="")


def _calls(rows: Iterable[Any]) -> dict[int, bytes]:
    """Map each grant to the decided arguments of its action."""
    given = list({row.grant_id for row in rows if row.grant_id})
    found = {}
    for grant in _decided(given) if given else ():
        decided = decode_canonical(bytes(grant.outcome.arguments))
        if grant.action in decided:
            found[grant.pk] = encode_canonical(decided[grant.action])
    return found


def _again(spec: StepSpec, row: Any, card: Card, calls: Mapping[int, bytes]) -> Sequence[Action | None]:
    """Return the action that would repeat it, [None] for a step without one; empty if none does the same."""
    acting = [action for action in card.actions if action.effect == row.step]
    if not spec.action:
        return [next(iter(acting), None)]
    return [action for action in acting if encode_canonical(action.arguments) == calls.get(row.grant_id)][:1]


class _Way:
    """The path to a run's head, with the part before its fork."""

    def __init__(self, run: Any) -> None:
        self.course: Course = course_of(run, run.whole)
        self.origin = next(((at, seq) for number, at, seq in run.whole["turns"] if number == 1), (0, 0))

    def leaves(self, row: Any, spec: StepSpec) -> bool:
        """Tell whether the effect is off the path, and is not undone when another takes its place.

        For a step that performs any call of the agent, an effect on the path was another call than the next one.
        """
        if row.run_id != self.course.run:
            run, seq = self.origin
            return bool(spec.action) or row.run_id != run or not row.carried or min(row.carried) > seq
        if self.course.on_path(row.carried):
            return bool(spec.action)
        due = effects.left_behind(row, on_path=False)
        return not (due and effects.undoable(row, undo=spec.undo, shared=lambda: False))


def _repeat_of(row: Any, again: Action | None, plan: PlanSpec) -> Repeat:
    return Repeat(
        effect=row.pk, step=row.step, action=again.id if again else "", titles=titles(plan, row.step, again),
        run=row.run_id, checkpoint=min(row.carried, default=0), at=row.at or row.intended_at,
        done=effects.happened(row), irreversible=row.irreversible,
    )  # fmt: skip


def columns(session: RunSession, spec: StepSpec, generation: int) -> dict[str, Any]:
    """Return the columns of the row for performing `spec` at the head, whether it is performed or taken over.

    Its key is H(run, step, input digest, occurrence, generation), hex.
    """
    digest = session.input_digest(spec)
    occurrence = session.path.occurrences(spec.name, digest)
    key = digests.of_value(["effect", session.run.pk, spec.name, digest.hex(), occurrence, generation]).hex()
    return {
        "run": session.run,
        "step": spec.name,
        "key": key,
        "base": session.snapshot.id,
        "input_digest": digest,
        "occurrence": occurrence,
        "generation": generation,
        "token": session.claim.token,
        "irreversible": spec.irreversible,
    }
