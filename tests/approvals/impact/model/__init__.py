"""Histories for the tables of tests: runs of small plans, kept as plain data, in the words of an impact.

A plan's steps are functions of what they read. What is reused, adopted, settled and allowed follows from the rules that
the runner goes by, `approvals.engine_rules`; tests/approvals/impact/property says whether those foretell the runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from approvals.impact.facts import ByHand, EffectFact, GateFact, GrantFact, MoveTarget, RecordedHistory
from checkpoints.store.header import CheckpointHeader

from .deciding import Decided
from .rows import SENT, Gate, Method, Point, Run

__all__ = ["Engine", "Gate", "Method", "Point"]


def number(id: str) -> UUID:
    """The id of a checkpoint, from a table's word for it."""
    return uuid5(NAMESPACE_OID, id)


class Engine(Decided):
    """The engine, with what it did as the facts of an impact."""

    def execution(self, point: Point) -> CheckpointHeader:
        return CheckpointHeader(
            id=number(point.id), parent=number(point.parent), run_id=point.run, seq=point.seq, step=point.step,
            kind=point.kind, input_digest=point.digest or b"", code_hash=point.code, occurrence=point.occurrence,
            next_step=point.next_step, took_us=1_000_000, attempt=0, at=datetime.max, plan_id=0,
        )  # fmt: skip

    def point(self, id: UUID | None) -> Point:
        """The checkpoint with the id that a history gives it."""
        return next(each for each in self.points.values() if number(each.id) == id)

    def _reads(self, step: str, at: str) -> dict[str, bytes]:
        fields = self.points[at].fields
        return {name: fields[name] for name in self.plan.step(step).reads if name in fields}

    def path_of(self, to: str) -> tuple[list[CheckpointHeader], list[int]]:
        """(the executions up to a checkpoint, the gates whose outcome is on the path)."""
        found, at = [], to
        while at:
            found.append(self.points[at])
            at = self.points[at].parent
        stood = {p.parent for p in found if p.kind in ("gate", "recovery")}
        gates = [gate.id for gate in self.gates if gate.point in stood and gate.kind != "open"]
        return [self.execution(p) for p in reversed(found) if p.digest is not None], gates

    def history(self, run_id: int) -> RecordedHistory:
        run = self.runs[run_id]
        path, gates = self.path_of(run.head)
        gates = [id for id in gates if self.gates[id - 1].run == run_id]
        effects = [
            EffectFact(
                id=row.id, run=row.run, step=row.step, input_digest=row.digest, occurrence=row.occurrence,
                generation=row.generation, status=row.status, irreversible=row.irreversible,
                undo=row.undo, again=row.again, going=row.going, taken=row.taken, shared=row.shared,
                left_open=row.left_open, returned=lambda row=row: row.result,  # type: ignore[misc]
                reads=lambda row=row: self._reads(row.step, row.base),  # type: ignore[misc]
            )
            for row in self.rows
        ]  # fmt: skip
        facts = [
            GateFact(
                id=gate.id, run=gate.run, seq=gate.seq, step=gate.step, input_digest=gate.digest,
                code_hash=bytes.fromhex(self.plan.step(gate.step).code_hash), kind=gate.kind,
                grants=[
                    GrantFact(effect=g.effect, used_by=g.used_by, fields=partial(dict, g.fields)) for g in gate.grants
                ],
                execution=number(gate.execution) if gate.execution else None, recovery=gate.recovery,
                fields=partial(dict, gate.shown), choice=gate.choice,
            )
            for gate in self.gates
        ]  # fmt: skip
        points = self.path(run)
        by_hand = self._by_hand(points)
        sent = max(at for at, point in enumerate(points) if point.kind in SENT)
        head = MoveTarget(
            run=run_id, next_step=points[-1].next_step, path=path, gates=gates, by_hand=by_hand, fork=run.fork,
            branched=self._branched(run), own=frozenset(self._own(run)),
            forced=self._forced(run, points[-1].next_step),
            sent=sum(point.digest is not None for point in points[:sent]),
        )  # fmt: skip
        return RecordedHistory(
            plan=self.plan, head=head, executions=[self.execution(p) for p in self.points.values() if p.digest],
            effects=effects, gates=facts, writes=lambda id: self.point(id).writes,
            reopened=points[-1].step if points[-1].kind == "reopen" else "",
        )  # fmt: skip

    def _by_hand(self, points: list[Point]) -> list[ByHand]:
        counts = [sum(each.digest is not None for each in points[:at]) for at in range(len(points))]
        return [ByHand(at, frozenset(self.changed_by_hand([point]))) for at, point in zip(counts, points, strict=True)]

    def fact(self, gate: Gate) -> GateFact:
        """A gate of this engine, as its history has it."""
        return next(each for each in self.history(gate.run).gates if each.id == gate.id)

    def given(self, gate: Gate, writes: Mapping[str, Any]) -> list[GrantFact]:
        """What an agreement would give, after its edit."""
        fields = self._written(self.points[self.runs[gate.run].head], writes)[1]
        effects = self.plan.step(gate.step).allows
        return [GrantFact(effect=name, fields=partial(self._covered, name, gate, fields)) for name in effects]

    def target_of(self, run_id: int, to: str, kind: str, writes: Mapping[str, Any]) -> MoveTarget:
        """A rewind or an edit of a run, or with the run 0 a fork."""
        at = self.points[to]
        state, fields = self._written(at, writes)
        path, gates = self.path_of(to)
        run = self.runs.get(run_id)
        places, on_way = [], to
        while on_way:
            places.append(self.points[on_way])
            on_way = places[-1].parent
        mine = [gate for gate in gates if self.gates[gate - 1].run == run_id]
        made = MoveTarget(
            run=run_id, next_step=at.next_step, path=path, state=state, fields=fields, gates=mine, sent=len(path),
            by_hand=[*self._by_hand(places[::-1]), ByHand(len(path), frozenset(self._differing(at, fields)))],
            fork=run.fork if run else True, own=frozenset(self._own_at(run_id, to)),
            branched=self._beside(run, to) if run else True, takes_up=bool(run),
        )  # fmt: skip
        return replace(made, forced=True, again=True) if kind == "rewind" else made

    @staticmethod
    def _differing(at: Point, fields: Mapping[str, bytes]) -> set[str]:
        return {name for name in at.fields.keys() | fields if at.fields.get(name) != fields.get(name)}

    def _beside(self, run: Run, to: str) -> bool:
        places, at = [], to
        while at:
            places.append(self.points[at])
            at = self.points[at].parent
        return places[-1].run != run.id or len(places) < run.seq

    def _own_at(self, run_id: int, to: str) -> set[str]:
        if run_id not in self.runs:
            return set()
        return self._said_at(run_id, to)
