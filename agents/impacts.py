"""The facts from which an impact is worked out, read from a run and its lineage; see approvals.impact.

The gate's page asks for them through a registration, since `approvals` may not import agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from approvals import binding
from approvals.impact import Impact, impact
from approvals.impact.facts import EffectFact, Execution, Fields, GateFact, GrantFact, History, Target, Writes
from approvals.models import Gate, Outcome
from checkpoints import digests, records, store
from checkpoints import patch as patches
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.ops import Drop
from checkpoints.patch import Op
from checkpoints.plans import PlanSpec, input_digest, spec_of
from checkpoints.records import Record
from checkpoints.values import decode

from . import environment, outputs, wishes
from .history import Path
from .models import Effect


def history_of(run: Run, plan: Plan | None = None) -> History:
    """All that is recorded of the run's lineage, for a run that would go on under `plan`, its own unless given."""
    return Reader(run, plan or run.plan).history()


def of_rewind(run: Run, to: int, feedback: str = "") -> Impact:
    """What rewinding to checkpoint `to` would do. Raises as rewinds.rewind does for a checkpoint that is not there."""
    reader = Reader(run, _plan_at(run, to))
    return impact(reader.history(), reader.target(to, forced=True, feedback=feedback))


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
    return impact(reader.history(), replace(target, run=0))


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
            config=self.config,
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
        path = Path.to(saved.id)
        changed = {name: value for name, value in (writes or {}).items() if not isinstance(value, Drop)}
        gone = (writes or {}).keys() - changed.keys()
        state = {name: value for name, value in (saved.state | changed).items() if name not in gone}
        fields = {name: digest for name, digest in saved.fields.items() if name not in gone}
        fields |= {name: digests.of_field(value) for name, value in changed.items()}
        told = next((step.feedback for step in self.plan.steps if step.feedback), "")
        return Target(
            run=self.run.pk,
            next_step=saved.next_step if next_step is None else next_step,
            path=self._on(path),
            gates=self._settled(path),
            state=state,
            fields=fields,
            forced=forced,
            again=forced,
            novel=frozenset([told]) if feedback and told else frozenset(),
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
        """What every execution wrote, read at once when the first is asked for."""
        return dict(records.writes_of([each.id for each in self.records]))

    @cached_property
    def rows(self) -> list[Effect]:
        lineage = Run.objects.filter(lineage=self.run.lineage or self.run.pk)
        return list(Effect.objects.filter(run__in=lineage, undoes__isnull=True).order_by("pk"))

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
            writes=lambda: self.writes[record.id],
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
            irreversible=row.irreversible or row.taken_from_id is not None,
            undo=spec.undo if spec else "",
            again=row.again,
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
        )

    def _asked_over(self, gate: Gate, saved: Record | None) -> bytes | None:
        """The input digest of the gate's step when it asked; None where the step is no gate of this plan."""
        if saved is not None:
            return saved.input_digest
        spec = next((step for step in self.plan.steps if step.name == gate.step and step.kind == "gate"), None)
        if spec is None or gate.status != Gate.Status.OPEN:
            return None
        return input_digest(spec, store.load_checkpoint(gate.checkpoint).fields, self.config)

    def _grants(self, outcome: Outcome, saved: Record | None) -> list[GrantFact]:
        used = {row.grant_id: row.pk for row in self.rows if row.grant_id}
        found = []
        for grant in outcome.grants.all():
            fields = self._covered(outcome, grant.effect, saved)
            found.append(GrantFact(effect=grant.effect, used_by=used.get(grant.pk, 0), fields=fields))
        return found

    def _covered(self, outcome: Outcome, effect: str, saved: Record | None) -> Fields | None:
        """The digests of the fields that the approval covers for an effect, as they were when it was given."""
        bound = {name: bytes.fromhex(each) for name, each in decode(bytes(outcome.bound)).get(effect, {}).items()
                 if each != binding.GONE}  # fmt: skip
        if saved is None:
            return None
        shown = {patches.tokens(action.pointer)[0] for action in outcome.proposal.card.actions if action.pointer}
        fields = store.load_checkpoint(saved.id).fields
        return {name: fields[name] for name in shown if name in fields} | bound


def _plan_at(run: Run, seq: int) -> Plan:
    """The plan under which a checkpoint was saved; the run's own where there is no such checkpoint."""
    found = Checkpoint.objects.select_related("plan").filter(run=run, seq=seq).first()
    return run.plan if found is None else found.plan
