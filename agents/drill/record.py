"""The record of a run's end: plain data that a child process sends to its parent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from agents.definition.registered import RegisteredAgent
from agents.models import Effect
from approvals.models import Gate
from checkpoints import store
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint, Run
from checkpoints.store import executions
from checkpoints.values.checkpoint_kinds import EXECUTIONS

Digests = dict[str, str]


@dataclass(frozen=True)
class DrilledExecution:
    """One execution, by its checkpoint. `before` and `after`: digests of the fields that it may write."""

    seq: int
    step: str
    input: str
    before: Digests
    after: Digests
    written: dict[str, Any]  # the values of the fields that differ
    asked: bool  # a gate that people answered
    standing: bool  # on the path to the head


@dataclass(frozen=True)
class DrilledEffect:
    """One effect row."""

    step: str
    input: str
    status: str
    attempts: int


@dataclass(frozen=True)
class DrillRecord:
    """A run's end."""

    run: int
    status: str
    reason: str
    state: dict[str, Any]
    executions: tuple[DrilledExecution, ...]  # on all branches
    effects: tuple[DrilledEffect, ...]
    problems: tuple[str, ...]  # what `verify` found
    children: tuple[tuple[str, str], ...] = ()  # (agent, status) of each run that it started

    @property
    def path(self) -> list[DrilledExecution]:
        """Return the executions on the path to the head."""
        return [execution for execution in self.executions if execution.standing]


def read_run(run_id: int, known: RegisteredAgent) -> DrillRecord:
    """Read a run's end from the database."""
    run = Run.objects.get(pk=run_id)
    rows = Effect.objects.filter(run=run).order_by("pk")
    return DrillRecord(
        run=run.pk,
        status=run.status,
        reason=run.reason,
        state=store.load(run).state,
        executions=tuple(_executions(run, known)),
        effects=tuple(DrilledEffect(row.step, bytes(row.input_digest).hex(), row.status, row.attempts) for row in rows),
        children=tuple(Run.objects.filter(parent=run).order_by("pk").values_list("plan__agent", "status")),
        problems=tuple(str(problem) for problem in verify_runs.verify_run(run)),
    )


def _executions(run: Run, known: RegisteredAgent) -> Iterator[DrilledExecution]:
    gates = set(Gate.objects.filter(run=run, kind=Gate.Kind.REVIEW).values_list("checkpoint", flat=True))
    path = {row.id for row in executions.path(cast(UUID, run.head))}
    there = Checkpoint.objects.filter(run=run).values("pk")
    rows = Checkpoint.objects.filter(run=run, kind__in=EXECUTIONS, parent__in=there)
    for row in rows.defer("payload").order_by("seq"):
        before, after = store.load_checkpoint(cast(UUID, row.parent)), store.load_checkpoint(row.id)
        writes = known.spec.step(row.step).writes
        changed = [name for name in after.state if before.fields.get(name) != after.fields.get(name)]
        yield DrilledExecution(
            seq=row.seq,
            step=row.step,
            input=bytes(row.input_digest or b"").hex(),
            before={name: bytes(before.fields.get(name, b"")).hex() for name in writes},
            after={name: bytes(after.fields.get(name, b"")).hex() for name in writes},
            written={name: after.state[name] for name in changed},
            asked=row.kind in ("gate", "asked") and row.parent in gates,
            standing=row.id in path,
        )
