"""Reads the records of one lineage as the facts of an impact: its executions, effects and gates.

Read once, for any number of impacts; whatever is expensive is read on first use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.functional import cached_property

from agents.errors import UpcastFailed
from agents.models import Effect
from agents.session import translate_history
from agents.session.run_path import RunPath
from approvals.cards import binding
from approvals.cards.card import Card
from approvals.consequences import done_before
from approvals.engine_rules import effects
from approvals.impact.facts import ABSENT, EffectFact, Fields, GateFact, GrantFact, Writes
from approvals.models import Gate
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified, ValueRefused
from checkpoints.models import Plan, Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import input_digest, spec_of
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import decode_canonical, encode_canonical


class Lineage:
    """A run with its origin and its forks, read in terms of one plan."""

    def __init__(self, run: Run, plan: Plan, config: dict[str, Any]) -> None:
        self.run, self.row, self.plan, self.config = run, plan, spec_of(plan), config
        self.steps = {step.name: step for step in self.plan.steps}
        self._loaded: dict[UUID, Fields | None] = {}

    @cached_property
    def effect_facts(self) -> list[EffectFact]:
        return [self._effect(row) for row in self.rows]

    @cached_property
    def gate_facts(self) -> list[GateFact]:
        return [self._gate(gate) for gate in self.gates]

    @cached_property
    def saved(self) -> dict[UUID, CheckpointHeader]:
        """Return every checkpoint's header, by run and number."""
        return {each.id: each for each in executions.of_lineage(self.run.lineage)}

    def path(self, head: UUID | None) -> RunPath:
        """Return the path from the root to a checkpoint."""
        return RunPath.within(head, self.saved) if head else RunPath([])

    @cached_property
    def records(self) -> list[CheckpointHeader]:
        """Return the headers of executions, by run and number."""
        return [each for each in self.saved.values() if each.input_digest is not None]

    @cached_property
    def executions(self) -> dict[UUID, CheckpointHeader]:
        """Return the executions by time."""
        ordered = sorted(self.records, key=lambda each: each.at)
        return {each.id: each for each in ordered if each.input_digest and each.code_hash}

    @cached_property
    def writes(self) -> dict[UUID, Writes]:
        """Return the writes of every execution, all read on first use; empty where one cannot be read."""
        with suppress(NotVerified, NoSuchCheckpoint):
            return dict(executions.writes_of([each.id for each in self.records if not each.removed]))
        return {}

    def written(self, id: UUID) -> Writes:
        """Return the writes of one execution. Raises NotVerified and NoSuchCheckpoint, of this one alone."""
        return self.writes[id] if id in self.writes else executions.writes_of([id])[id]

    @cached_property
    def ledger(self) -> list[Effect]:
        """Return the effects and their undos, as they were begun."""
        return _effects(self.run.lineage)

    @cached_property
    def rows(self) -> list[Effect]:
        """Return the effects, each with its undos."""
        undos: dict[int, list[Effect]] = defaultdict(list)
        for row in self.ledger:
            undos[row.undoes_id or 0].append(row)
        for row in undos[0]:
            row._prefetched_objects_cache = {"undos": undos[row.pk]}  # type: ignore[attr-defined]
        return undos[0]

    @cached_property
    def shared(self) -> set[int]:
        """Return the effects that another run depends on."""
        taken: dict[int, list[Effect]] = defaultdict(list)
        for row in self.rows:
            taken[row.taken_from_id or 0].append(row)
        begun = {each.run_id: self.path(each.parent).ids for each in self.saved.values() if each.kind == "fork"}

        def depended_on(row: Effect) -> bool:
            forks = (path for run, path in begun.items() if run != row.run_id)
            return effects.depended_on(row.landings, taken=taken[row.pk], forks=forks)

        return {row.pk for row in self.rows if depended_on(row)}

    @cached_property
    def gates(self) -> list[Any]:
        """Return the gates, each as past_gates has it."""
        return done_before.of_lineage(self.run.lineage)

    @cached_property
    def outcomes(self) -> dict[UUID, CheckpointHeader]:
        """Return the gates' executions, by the gate's checkpoint: each saved the outcome, or that the run went on."""
        return {each.parent: each for each in reversed(self.records) if each.parent and each.kind in ("gate", "asked")}

    @cached_property
    def head(self) -> RunPath:
        """Return the path to the run's head."""
        return self.path(self.run.head)

    @cached_property
    def asking(self) -> dict[UUID, str]:
        """Return the gates that the run went on from: checkpoint -> step."""
        return self.head.asking() if self.plan.goes_on_asking else {}

    @cached_property
    def used(self) -> dict[int, int]:
        """Map each grant to the effect that consumed it."""
        return {row.grant_id: row.pk for row in self.rows if row.grant_id}

    @cached_property
    def given(self) -> dict[int, tuple[Gate, str]]:
        """Map each grant to the gate that gave it, and the action that it is for."""
        return {grant["id"]: (gate, grant["action"]) for gate in self.gates for grant in gate.granted}

    def _effect(self, row: Effect) -> EffectFact:
        spec = self.steps.get(row.step)
        reads = spec.reads if spec else ()

        def read() -> Fields:
            return {name: each for name, each in store.fields_of(row.base).items() if name in reads}

        def returned() -> tuple[Writes, str | None]:
            if row.returned is None:  # people are about to say that it was done, and what it returned is with them
                raise ValueRefused("", "its result is not known yet")
            try:
                base = self.saved.get(row.base)
                output = translate_history.output_of(row, self.row, base_plan=base.plan_id if base else None)
            except UpcastFailed as error:
                raise ValueRefused("", str(error)) from error
            return output.writes, output.goto

        def arguments() -> bytes | None:
            gate, action = self.given.get(row.grant_id or 0, (None, ""))
            final = decode_canonical(bytes(gate.outcome.arguments)) if gate else {}
            return encode_canonical(final[action]) if action in final else None

        landed = self.saved.get(row.landings[0]) if row.landings else None
        return EffectFact(
            id=row.pk,
            run=row.run_id,
            step=row.step,
            input_digest=bytes(row.input_digest),
            occurrence=row.occurrence,
            generation=row.generation,
            status=row.status,
            irreversible=row.irreversible,
            undo=spec.undo if spec else "",
            again=row.again,
            going=row.going,
            taken=row.taken,
            shared=row.pk in self.shared,
            left_open=row.left_open,
            landings=frozenset(row.landings),
            at=landed.at if landed else row.intended_at,
            landed=landed.seq if landed else 0,
            arguments=arguments,
            returned=returned,
            reads=read,
        )

    def _gate(self, gate: Any) -> GateFact:
        saved, at = self.outcomes.get(gate.checkpoint), self.saved.get(gate.checkpoint)
        outcome, recovery = getattr(gate, "outcome", None), gate.kind == Gate.Kind.RECOVERY
        decided = Card.from_json(decode_canonical(bytes(gate.decided))).actions if gate.decided else ()
        return GateFact(
            id=gate.id,
            run=gate.run_id,
            seq=at.seq if at else 0,
            step=gate.step,
            input_digest=self._asked_over(gate, saved),
            code_hash=saved.code_hash or b"" if saved else b"",
            kind=outcome.kind if outcome else "open",
            grants=self._grants(gate, saved),
            execution=saved.id if saved else None,
            recovery=recovery,
            current=gate.run.plan_id == self.run.plan_id,
            fields=partial(self._shown, gate),
            reads=partial(self._read, gate),
            choice=str(((outcome and outcome.answered) or {}).get("choice", "")),
            permits=not recovery or gate.step in gate.asked.allows,
            about=self._about(gate),
            runs=frozenset((gate.asked.question or {}).get("runs", ())) if recovery else frozenset(),
            opened_at=gate.opened_at,
            closed_at=gate.closed_at,
            beside=self.asking.get(gate.checkpoint) == gate.step,
            refused=[action for action in decided if action.settled],
            actions=frozenset(action.id for action in gate.asked.actions) if recovery else frozenset(),
        )

    def _about(self, gate: Gate) -> int:
        """Return the id of the effect left behind that the gate asks about; 0 if there is none."""
        question = gate.asked.question if gate.kind == Gate.Kind.RECOVERY else None
        key = question.get("effect") if question else None
        return next((row.pk for row in self.rows if row.key == key), 0) if key else 0

    def _read(self, gate: Gate) -> Fields | None:
        """Return the digests of the fields that the gate's step read, as they were when it asked."""
        saved = self._stood(gate)
        spec = self.steps.get(gate.step)
        if saved is None or spec is None:
            return None
        return {name: saved[name] for name in spec.reads if name in saved}

    def _shown(self, gate: Gate) -> Fields | None:
        """Return the digests of the fields that the gate's actions point into, as they were when it asked."""
        saved = self._stood(gate)
        if saved is None:
            return None
        names = {json_pointer.split_pointer(action.pointer)[0] for action in gate.asked.actions if action.pointer}
        return {name: saved.get(name, ABSENT) for name in names}

    def _stood(self, gate: Gate) -> Fields | None:
        """Return the field digests of the state at which a gate was opened; None if it no longer verifies."""
        if gate.checkpoint not in self._loaded:
            self._loaded[gate.checkpoint] = None
            with suppress(NotVerified, NoSuchCheckpoint):
                self._loaded[gate.checkpoint] = store.fields_of(gate.checkpoint)
        return self._loaded[gate.checkpoint]

    def _asked_over(self, gate: Gate, saved: CheckpointHeader | None) -> bytes | None:
        """Return the input digest of the gate's step when it asked; None unless that is an open gate of this plan."""
        if saved is not None:
            return saved.input_digest
        spec = self.steps.get(gate.step)
        if spec is None or spec.kind != "gate" or gate.status != Gate.Status.OPEN:
            return None
        stood = self._stood(gate)
        return None if stood is None else input_digest(spec, stood, self.config)

    def _grants(self, gate: Any, saved: CheckpointHeader | None) -> list[GrantFact]:
        found = []
        for grant in gate.granted:
            covered = cache(partial(self._covered, gate, grant["effect"], saved))
            used_by = self.used.get(grant["id"], 0)
            found.append(GrantFact(effect=grant["effect"], action=grant["action"], used_by=used_by, fields=covered))
        return found

    def _covered(self, gate: Gate, effect: str, saved: CheckpointHeader | None) -> Fields | None:
        """Return the digests of the fields that the approval covers for an effect, as they were when it was given."""
        bound = {
            name: ABSENT if each == binding.GONE else bytes.fromhex(each)
            for name, each in decode_canonical(bytes(gate.outcome.bound)).get(effect, {}).items()
        }
        if saved is None:
            return None
        # An edit changes the arguments of a card, never their pointers.
        shown = {json_pointer.split_pointer(action.pointer)[0] for action in gate.asked.actions if action.pointer}
        try:
            after = store.fields_of(saved.id)
        except NoSuchCheckpoint:  # removed by retention
            return None
        return {name: after.get(name, ABSENT) for name in shown} | bound


@prepared_statement
def _effects(root: Any) -> QuerySet[Effect]:
    return Effect.objects.filter(run__in=Run.objects.of_lineage(root)).order_by("pk")


@prepared_statement
def _statuses(root: Any) -> QuerySet[Effect]:
    return Effect.objects.filter(run__in=Run.objects.of_lineage(root)).order_by("pk").only("pk", "status")


def stamp_of(run: Run) -> str:
    """Return a text that changes whenever a run of the lineage begins an effect, or one is settled."""
    return stamped(_statuses(run.lineage))


def stamped(ledger: Iterable[Effect]) -> str:
    """Return the stamp of a lineage's effects and undos."""
    return " ".join(f"{each.pk}:{each.status}" for each in ledger)
