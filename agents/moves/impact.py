"""Computes the impact of an order to move or fork a run: where it would go on, and which recorded results it reuses.

The gate's page asks for impacts through a registration, since `approvals` may not import agents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any
from uuid import UUID

import structlog
from django.utils import timezone
from django.utils.functional import cached_property

from agents.definition import environment, fields, registry
from agents.definition.agent import RunInfo
from agents.definition.plan_builder import takes_observed
from agents.effects import takeover
from agents.models import ChildLink
from agents.session import child_runs, run_path
from agents.session.run_path import RunPath
from approvals.cards.answer import RecoveryAnswer
from approvals.impact import Impact, impact
from approvals.impact.choices import SavedState
from approvals.impact.facts import ByHand, MoveTarget, RecordedHistory
from approvals.impact.result import ImpactChild, ToolsInside
from approvals.impact.words import words_in
from approvals.models import Gate
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.store import Snapshot
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import json_pointer
from checkpoints.values.checkpoint_kinds import STARTED_ANEW, Kind
from checkpoints.values.patch import Op

from . import child_impact, request
from .impact_facts import Lineage, stamped

log = structlog.get_logger()


def history_of(run: Run) -> RecordedHistory:
    """Return everything recorded of the lineage, for a run that goes on under its own plan."""
    return ImpactReader(run, run.plan).history()


def of_rewind(run: Run, to: int, feedback: str = "") -> Impact:
    """Return the impact of a rewind to checkpoint `to`. Raises RewindRefused."""
    return rewinding(run, feedback)(to)


def rewinding(run: Run, feedback: str = "") -> Callable[[int], Impact]:
    """Return `of_rewind` for checkpoints of one run, which reads the records once for all of them."""
    read: dict[int, tuple[ImpactReader, RecordedHistory]] = {}

    def look(to: int) -> Impact:
        saved = request.target_of(run, to)
        if saved.plan_id not in read:
            reader = ImpactReader(run, request.plan_of(run, saved))
            read[saved.plan_id] = (reader, reader.history())
        reader, history = read[saved.plan_id]
        found = impact(history, reader.target(saved, forced=True, feedback=feedback))
        return reader.of_move(found, saved)

    return look


def of_edit(run: Run, at: int, patch: Sequence[Op], feedback: str = "") -> Impact:
    """Return the impact of an edit of checkpoint `at`. Raises RewindRefused for an edit that does not fit."""
    saved = request.target_of(run, at)
    reader = ImpactReader(run, request.plan_of(run, saved))
    writes = request.edited(run, saved, patch)
    found = impact(reader.history(), reader.target(saved, writes=writes, feedback=feedback))
    return reader.of_move(found, saved)


def of_fork(
    run: Run, at: int, patch: Sequence[Op] = (), config: Mapping[str, Any] | None = None, version: str = ""
) -> Impact:
    """Return the impact of a fork from checkpoint `at`. Raises RewindRefused."""
    wanted = request.wanted(run, at, patch, config, version)
    reader = ImpactReader(run, wanted.plan, config=wanted.environment.get("config", {}))
    target = reader.target(wanted.target, writes=wanted.writes, next_step=wanted.next_step)
    found = impact(reader.history(), replace(target, run=0, gates=(), fork=True, own=frozenset()))
    rows, path = child_runs.of_lineage(run.lineage), reader.lineage.path(wanted.target.id)
    children = child_impact.of_fork(found, rows, path.holds, reader.plan, target.next_step)
    return replace(found, children=children, inside=reader.inside(path))


class ImpactReader:
    """Reads one lineage once, for any number of impacts."""

    def __init__(self, run: Run, plan: Plan, *, config: Mapping[str, Any] | None = None) -> None:
        self.run = run
        self.plan: PlanSpec = spec_of(plan)
        recorded = environment.recorded(run).get("config", {})
        self.config = dict(recorded if config is None else config)
        self.lineage = Lineage(run, plan, self.config)

    def history(self) -> RecordedHistory:
        """Return the recorded history of the whole lineage."""
        stamp = stamped(self.lineage.ledger)  # read first, so that it tells of what begins while the rest is read
        head = self.lineage.head
        store.expect(self._returns(head))
        forced = bool(head.places) and head.forced(self.run.next_step)
        return RecordedHistory(
            plan=self.plan,
            head=replace(self._at(head, self.run.next_step), sent=self._sent(head), forced=forced),
            executions=list(self.lineage.executions.values()),
            effects=self.lineage.effect_facts,
            gates=self.lineage.gate_facts,
            places=head.places,
            ending=bool(self.run.ending),
            reopened=head.head.step if head.places and head.head.kind == "reopen" else "",
            draws=self.draws,
            writes=self.lineage.written,
            children=self._children_at_gate,
            stamp=stamp,
        )

    def target(
        self,
        saved: Snapshot,
        *,
        forced: bool = False,
        writes: Mapping[str, Any] | None = None,
        next_step: str | None = None,
        feedback: str = "",
    ) -> MoveTarget:
        """Return a saved state with `writes` over it, as the target of a move."""
        request.check_goes_on(saved)
        request.check_stands(self.run, saved)
        path = self.lineage.path(saved.id)
        after = SavedState(saved.state, saved.fields, saved.list_format).with_writes(writes or {})
        told = next((step.feedback for step in self.plan.steps if step.feedback), "")
        novel, unknown = words_in(self.plan, told if feedback else "", said_at="")
        words = frozenset({told} - {""} if feedback else ())
        target = self._at(path, saved.next_step if next_step is None else next_step)
        executed = len(target.path)
        ordered = ByHand(executed, frozenset(writes or ()) | words)
        return replace(
            target,
            by_hand=[*target.by_hand, ordered],
            sent=executed,
            takes_up=True,
            state=after.state,
            fields=after.fields,
            list_format=after.list_format,
            forced=forced,
            again=forced,
            novel=novel,
            unknown=unknown,
        )

    @cached_property
    def children(self) -> list[ChildLink]:
        """Return the runs that the run started."""
        return child_runs.of_run(self.run.pk)

    def of_move(self, found: Impact, saved: Snapshot) -> Impact:
        """Return the impact of a move to `saved` with what becomes of the run's children and its deadline."""
        path = self.lineage.path(saved.id)
        told = child_impact.of_move(found, self.children, path.holds, self.plan, saved.next_step)
        deadline = self.run.deadline
        past = deadline is not None and deadline <= timezone.now()
        return replace(found, children=told, inside=self.inside(path), deadline=deadline if past else None)

    def inside(self, path: RunPath) -> tuple[ToolsInside, ...]:
        """Return the tools that were called inside the run's steps after the end of a path."""
        known = registry.agents().get((self.plan.agent, self.plan.version))
        if known is None or not known.agent.calls_at:
            return ()
        found = []
        for place in self.lineage.head:
            if place.kind == Kind.STEP and place.id not in path.ids:
                tools = self._called(place, known.agent.calls_at)
                found += [ToolsInside(checkpoint=place.seq, tools=tools)] if tools else []
        return tuple(found)

    def _called(self, place: CheckpointHeader, pointer: str) -> tuple[str, ...]:
        try:
            names = json_pointer.get(dict(self.lineage.written(place.id)), pointer)
        except (NotVerified, NoSuchCheckpoint):  # it stays to be seen what they were
            return ("?",)
        return tuple(map(str, names)) if isinstance(names, list) else ()

    def _children_at_gate(self, target: MoveTarget, found: Impact) -> tuple[ImpactChild, ...]:
        """Return what becomes of the run's children by a decision at its gate."""
        if not self.children:
            return ()  # as of most runs; a page asks for each way to decide
        head = self.lineage.path(self.run.head)
        if target.fails:
            return child_impact.of_failure(self.children, head)
        ids = {each.id for each in target.path}
        taken = {each.step for each in target.path if each.id not in self.lineage.saved}  # an output that is accepted
        landing = [row.pk for row in self.children if row.step in taken and child_runs.stands(row, head)]
        return child_impact.of_move(
            found, self.children, lambda landings: not ids.isdisjoint(landings), self.plan, target.next_step,
            landing=landing, withdrawn=target.withdrawn,
        )  # fmt: skip

    def _at(self, path: RunPath, next_step: str) -> MoveTarget:
        """Return the end of a path as the target of a move without any change."""
        settled, before = set(path.settled()), self._before(path)
        by_hand = run_path.on(path.places, self.plan)
        return MoveTarget(
            run=self.run.pk,
            next_step=next_step,
            path=[self.lineage.executions[place.id] for place in path if place.id in self.lineage.executions],
            gates=[gate.id for gate in self.lineage.gates if gate.checkpoint in settled],
            by_hand=[ByHand(before[each.place.id], each.fields) for each in by_hand],
            fork=self.run.forked_from is not None,
            branched=bool(path.places) and path.branched(self.run.pk, self.run.seq),
            own=self._own(path),
            asking={step: self.lineage.saved[at].seq for at, step in path.asking().items()},
            config=self.config,
        )

    def _returns(self, head: RunPath) -> list[UUID]:
        """Return the checkpoints to which an open gate of the run may send it back."""
        mine = [gate for gate in self.lineage.gates if gate.run_id == self.run.pk and gate.kind == Gate.Kind.REVIEW]
        asked = [gate.asked for gate in mine if gate.status == Gate.Status.OPEN]
        steps = {step for card in asked for step in (*card.back_to, card.on_reject)}
        return [at for step in sorted(steps) if (at := head.before_last(step)) is not None]

    def _sent(self, path: RunPath) -> int:
        """Count the executions on the path before its newest manual move."""
        newest = next((place for place in reversed(path.places) if place.kind in STARTED_ANEW), None)
        return self._before(path)[newest.id] if newest else 0

    def _before(self, path: RunPath) -> dict[UUID, int]:
        """Count the executions before each place of a path."""
        known = accumulate((place.id in self.lineage.executions for place in path), initial=0)
        return {place.id: number for place, number in zip(path, known, strict=False)}

    def _own(self, path: RunPath) -> frozenset[str]:
        """Return the effects that this fork does itself, by a person's answer since they last ran."""
        mine = [gate for gate in self.lineage.gate_facts if gate.run == self.run.pk and gate.recovery]
        said = {gate.id for gate in mine if gate.choice == RecoveryAnswer.DO_AGAIN}
        asked = {(gate.checkpoint, gate.step) for gate in self.lineage.gates if gate.id in said}
        return takeover.done_by_fork(path, asked)

    def draws(self, step: str, state: Mapping[str, Any]) -> bool | None:
        """Tell whether a gate's method asks something for these values; None where it cannot be called here."""
        known = registry.agents().get((self.plan.agent, self.plan.version))
        spec = self.lineage.steps.get(step)
        if known is None or spec is None or known.spec.step(step).code_hash != spec.code_hash:
            return None
        try:
            config = environment.configured(known.agent, self.config)
            values = {name: fields.read(known.agent.State, name, state) for name in spec.reads}
            if takes_observed(known.agent, spec):  # a preview does not observe the world
                return None
            return getattr(known.agent(RunInfo(0, ""), 1, config), step)(**values) is not None
        except Exception as error:  # noqa: BLE001 - if an agent raises, the impact is only less certain
            log.info("gate.not_drawn", step=step, error=str(error))
            return None
