"""The facts from which an impact is worked out, read from a run and its lineage; see approvals.impact.

The gate's page asks for them through a registration, since `approvals` may not import agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

import structlog

from approvals import binding
from approvals.impact import Impact, choices, impact
from approvals.impact.facts import ABSENT, EffectFact, Execution, Fields, GateFact, GrantFact, History, Target, Writes
from approvals.models import Gate, Outcome
from checkpoints import digests, records, store
from checkpoints import patch as patches
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.ops import Drop
from checkpoints.patch import Op
from checkpoints.plans import PlanSpec, input_digest, spec_of
from checkpoints.records import Record
from checkpoints.values import decode

from . import environment, fields, outputs, recovery, registry, wishes
from .base import RunInfo
from .history import Path
from .models import Effect

MOVED = ("rewind", "edit", "fork", "upcast")  # kinds of checkpoints by which somebody moved a run, or changed it
log = structlog.get_logger()


def history_of(run: Run, plan: Plan | None = None) -> History:
    """All that is recorded of the run's lineage, for a run that would go on under `plan`, its own unless given."""
    return Reader(run, plan or run.plan).history()


def of_rewind(run: Run, to: int, feedback: str = "") -> Impact:
    """What rewinding to checkpoint `to` would do. Raises as rewinds.rewind does for a checkpoint that is not there."""
    return rewinding(run, feedback)(to)


def rewinding(run: Run, feedback: str = "") -> Callable[[int], Impact]:
    """`of_rewind` for some checkpoints of one run: what is recorded is read once for all of them."""
    read: dict[int, tuple[Reader, History]] = {}

    def look(to: int) -> Impact:
        plan = _plan_at(run, to)
        if plan.pk not in read:
            reader = Reader(run, plan)
            read[plan.pk] = (reader, reader.history())
        reader, history = read[plan.pk]
        return impact(history, reader.target(to, forced=True, feedback=feedback))

    return look


def of_edit(run: Run, at: int, patch: Sequence[Op], feedback: str = "") -> Impact:
    """What editing checkpoint `at` would do. Raises RewindRefused for an edit that does not fit."""
    reader = Reader(run, _plan_at(run, at))
    writes = wishes.edited(run, wishes.target_of(run, at), patch)
    return impact(reader.history(), reader.target(at, writes=writes, feedback=feedback))


def of_fork(
    run: Run, at: int, patch: Sequence[Op] = (), config: Mapping[str, Any] | None = None, version: str = ""
) -> Impact:
    """What a fork from checkpoint `at` would do. Raises RewindRefused."""
    wanted = wishes.wanted(run, at, patch, config, version)
    reader = Reader(run, wanted.plan, config=wanted.environment.get("config", {}))
    target = reader.target(at, writes=wanted.writes, next_step=wanted.next_step)
    return impact(reader.history(), replace(target, run=0, gates=(), fork=True, own=frozenset()))


class Reader:
    """Reads one lineage once, for as many impacts as are asked of it."""

    def __init__(self, run: Run, plan: Plan, *, config: Mapping[str, Any] | None = None) -> None:
        self.run = run
        self.plan: PlanSpec = spec_of(plan)
        recorded = environment.recorded(run).get("config", {})
        self.config = dict(recorded if config is None else config)

    def history(self) -> History:
        """The whole lineage."""
        head = Path.to(self.run.head) if self.run.head else Path([])
        return History(
            run=self.run.pk,
            plan=self.plan,
            executions=list(self.executions.values()),
            effects=[self._effect(row) for row in self.rows],
            gates=[self._gate(gate) for gate in self.gates],
            head_path=self._on(head),
            head_gates=self._settled(head),
            next_step=self.run.next_step,
            sent=self._sent(head),
            forced=bool(head.places) and head.forced(self.run.next_step),
            ending=bool(self.run.ending),
            fork=self.run.forked_from is not None,
            branched=bool(head.places) and head.branched(self.run.pk, self.run.seq),
            own=self._own(head),
            config=self.config,
            draws=self.draws,
        )

    def target(
        self,
        seq: int,
        *,
        forced: bool = False,
        writes: Mapping[str, Any] | None = None,
        next_step: str | None = None,
        feedback: str = "",
    ) -> Target:
        """The state of checkpoint `seq` with `writes` over it, as the place from which the run would go on."""
        saved = wishes.target_of(self.run, seq)
        wishes.check_goes_on(saved)
        wishes.check_stands(self.run, saved)
        path = Path.to(saved.id)
        changed = {name: value for name, value in (writes or {}).items() if not isinstance(value, Drop)}
        gone = (writes or {}).keys() - changed.keys()
        state = {name: value for name, value in (saved.state | changed).items() if name not in gone}
        known = {name: digest for name, digest in saved.fields.items() if name not in gone}
        known |= {name: digests.of_field(value) for name, value in changed.items()}
        told = next((step.feedback for step in self.plan.steps if step.feedback), "")
        novel, unknown = choices.words_in(self.plan, told if feedback else "", said_at="")
        executed = self._on(path)
        return Target(
            run=self.run.pk,
            next_step=saved.next_step if next_step is None else next_step,
            path=executed,
            gates=self._settled(path),
            sent=len(executed),
            fork=self.run.forked_from is not None,
            branched=path.branched(self.run.pk, self.run.seq),
            own=self._own(path),
            state=state,
            fields=known,
            forced=forced,
            again=forced,
            novel=novel,
            unknown=unknown,
            config=self.config,
        )

    @cached_property
    def records(self) -> list[Record]:
        return records.executions(self.run.lineage or self.run.pk)

    @cached_property
    def executions(self) -> dict[UUID, Execution]:
        ordered = sorted(self.records, key=lambda each: each.at)
        return {each.id: self._execution(each) for each in ordered if each.input_digest and each.code_hash}

    @cached_property
    def writes(self) -> dict[UUID, Writes]:
        """What every execution wrote, read at once when the first is asked for; empty where one cannot be read."""
        with suppress(NotVerified, NoSuchCheckpoint):
            return dict(records.writes_of([each.id for each in self.records]))
        return {}

    def _written(self, id: UUID) -> Writes:
        """What one execution wrote. Raises NotVerified and NoSuchCheckpoint, of this one alone."""
        return self.writes[id] if id in self.writes else records.writes_of([id])[id]

    @cached_property
    def rows(self) -> list[Effect]:
        lineage = Run.objects.filter(lineage=self.run.lineage or self.run.pk)
        found = Effect.objects.filter(run__in=lineage, undoes__isnull=True).prefetch_related("undos")
        return list(found.order_by("pk"))

    @cached_property
    def gates(self) -> list[Gate]:
        lineage = Run.objects.filter(lineage=self.run.lineage or self.run.pk)
        found = Gate.objects.filter(run__in=lineage).select_related("outcome", "run").order_by("pk")
        return list(found.prefetch_related("outcome__grants"))

    @cached_property
    def seqs(self) -> dict[UUID, int]:
        """The numbers of the checkpoints at which gates stood."""
        stood = Checkpoint.objects.filter(pk__in=[gate.checkpoint for gate in self.gates])
        return dict(stood.values_list("pk", "seq"))

    def _on(self, path: Path) -> list[Execution]:
        return [self.executions[place.id] for place in path if place.id in self.executions]

    def _settled(self, path: Path) -> list[int]:
        settled = set(path.settled())
        return [gate.pk for gate in self.gates if gate.checkpoint in settled]

    def _sent(self, path: Path) -> int:
        """How many executions lie before the newest place on the path to which somebody moved the run."""
        places = [number for number, place in enumerate(path) if place.kind in MOVED]
        return len(self._on(Path(path.places[: places[-1]]))) if places else 0

    def _own(self, path: Path) -> frozenset[str]:
        """The effects that a person said this fork does itself."""
        settled = set(path.settled())
        said = [gate for gate in self.gates if gate.checkpoint in settled and gate.run_id == self.run.pk]
        answers = [(gate.step, (gate.outcome.answered or {}).get("choice")) for gate in said]
        return frozenset(step for step, choice in answers if choice == recovery.DO_AGAIN)

    def draws(self, step: str, state: Mapping[str, Any]) -> bool | None:
        """Whether a gate's method has something to ask of these values; None where it cannot be called here."""
        known = registry.agents().get((self.plan.agent, self.plan.version))
        spec = next((each for each in self.plan.steps if each.name == step), None)
        if known is None or spec is None or known.spec.step(step).code_hash != spec.code_hash:
            return None
        try:
            config = environment.configured(known.agent, self.config)
            values = {name: fields.read(known.agent.State, name, state) for name in spec.reads}
            return getattr(known.agent(RunInfo(0, ""), 1, config), step)(**values) is not None
        except Exception as error:  # noqa: BLE001 - whatever an agent raises, the impact is only less certain
            log.info("gate.not_drawn", step=step, error=str(error))
            return None

    def _execution(self, record: Record) -> Execution:
        return Execution(
            id=record.id.hex,
            parent=record.parent.hex if record.parent else "",
            run=record.run_id,
            seq=record.seq,
            step=record.step,
            kind=record.kind,
            input_digest=record.input_digest or b"",
            code_hash=record.code_hash or b"",
            occurrence=record.occurrence,
            next_step=record.next_step,
            took=timedelta(microseconds=record.took_us),
            writes=lambda: self._written(record.id),
        )

    def _effect(self, row: Effect) -> EffectFact:
        spec = next((step for step in self.plan.steps if step.name == row.step), None)
        reads = spec.reads if spec else ()

        def read() -> Fields:
            return {name: each for name, each in store.load_checkpoint(row.base).fields.items() if name in reads}

        def returned() -> tuple[Writes, str | None]:
            output = outputs.unpacked(row.returned)
            return output.writes, output.goto

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
            again=row.again or (row.going and row.status == Effect.Status.DONE),  # what an undo was begun of goes first
            taken=row.taken_from_id is not None,
            returned=returned,
            reads=read,
        )

    def _gate(self, gate: Gate) -> GateFact:
        outcome: Outcome | None = getattr(gate, "outcome", None)
        saved = next((each for each in self.records if each.parent == gate.checkpoint and each.kind == "gate"), None)
        return GateFact(
            id=gate.pk,
            run=gate.run_id,
            seq=self.seqs.get(gate.checkpoint, 0),
            step=gate.step,
            input_digest=self._asked_over(gate, saved),
            code_hash=saved.code_hash or b"" if saved else b"",
            kind=outcome.kind if outcome else "open",
            grants=self._grants(outcome, saved) if outcome else (),
            execution=saved.id.hex if saved else "",
            recovery=gate.kind == Gate.Kind.RECOVERY,
            current=gate.run.plan_id == self.run.plan_id,
            fields=self._shown(gate),
            reads=self._read(gate),
        )

    def _read(self, gate: Gate) -> Fields | None:
        """The digests of what the gate's step read, as they were when it asked."""
        saved = self.stood.get(gate.checkpoint)
        spec = next((step for step in self.plan.steps if step.name == gate.step), None)
        if saved is None or spec is None:
            return None
        return {name: saved[name] for name in spec.reads if name in saved}

    def _shown(self, gate: Gate) -> Fields | None:
        """The digests of the fields into which the gate's actions point, as they were when it asked."""
        saved = self.stood.get(gate.checkpoint)
        if saved is None:
            return None
        names = {patches.tokens(action.pointer)[0] for action in gate.asked.actions if action.pointer}
        return {name: saved.get(name, ABSENT) for name in names}

    @cached_property
    def stood(self) -> dict[UUID, Fields]:
        """The field digests of the states at which gates stood, of those that still verify."""
        found: dict[UUID, Fields] = {}
        for gate in self.gates:
            with suppress(NotVerified):
                found[gate.checkpoint] = store.load_checkpoint(gate.checkpoint).fields
        return found

    def _asked_over(self, gate: Gate, saved: Record | None) -> bytes | None:
        """The input digest of the gate's step when it asked; None where the step is no gate of this plan."""
        if saved is not None:
            return saved.input_digest
        spec = next((step for step in self.plan.steps if step.name == gate.step and step.kind == "gate"), None)
        if spec is None or gate.status != Gate.Status.OPEN:
            return None
        stood = self.stood.get(gate.checkpoint)
        return None if stood is None else input_digest(spec, stood, self.config)

    def _grants(self, outcome: Outcome, saved: Record | None) -> list[GrantFact]:
        used = {row.grant_id: row.pk for row in self.rows if row.grant_id}
        found = []
        for grant in outcome.grants.all():
            covered = self._covered(outcome, grant.effect, saved)
            found.append(GrantFact(effect=grant.effect, used_by=used.get(grant.pk, 0), fields=covered))
        return found

    def _covered(self, outcome: Outcome, effect: str, saved: Record | None) -> Fields | None:
        """The digests of the fields that the approval covers for an effect, as they were when it was given."""
        bound = {
            name: ABSENT if each == binding.GONE else bytes.fromhex(each)
            for name, each in decode(bytes(outcome.bound)).get(effect, {}).items()
        }
        if saved is None:
            return None
        shown = {patches.tokens(action.pointer)[0] for action in outcome.proposal.card.actions if action.pointer}
        after = store.load_checkpoint(saved.id).fields
        return {name: after.get(name, ABSENT) for name in shown} | bound


def _plan_at(run: Run, seq: int) -> Plan:
    """The plan under which a checkpoint was saved; the run's own where there is no such checkpoint."""
    found = Checkpoint.objects.select_related("plan").filter(run=run, seq=seq).first()
    return run.plan if found is None else found.plan
