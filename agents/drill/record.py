"""The record of a run's end: plain data that a child process sends to its parent.

It also answers the gates of a drill's runs.

Each gets an approval, a rejection, or the answer in a JSON file: `{"gate step": {"verdict": "edit", "arguments":
{…}}}`; of a list, the first visit of the gate gets the first answer, and the last one is used for all later visits.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import User

from agents.definition.registered import RegisteredAgent
from agents.errors import AgentError
from agents.models import Effect, Signal, Wait
from agents.waits import signals
from approvals.cards.answer import RecoveryAnswer
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.models import Gate
from checkpoints import store
from checkpoints.actors import Actor
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


DRILL = Actor("system", "Drill")
REJECTION = {"verdict": "reject", "then": "stop", "comment": "Rejected by a drill."}
SAID = {"verdict", "verdicts", "arguments", "comment", "then", "back_to", "answer"}


def read_signals(text: str) -> dict[str, list[Any]]:
    """Parse the value of --signals: JSON, or a file. Raises AgentError."""
    try:
        data = json.loads(text if text.lstrip().startswith("{") else Path(text).read_bytes())
        return {name: item if isinstance(item, list) else [item] for name, item in data.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise AgentError(f"--signals is JSON, or a JSON file, of values by the signal's name: {error}") from error


class Stuck(AgentError):
    """The run asks something that the drill cannot answer."""


@dataclass(frozen=True)
class Answers:
    """The answers to give. `people`: the ids of those who decide, as many as the policy requires."""

    people: tuple[int, ...] = ()
    verdict: str = "approve"
    by_gate: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    signals: dict[str, list[Any]] = field(default_factory=dict)  # name -> the values to send, as `by_gate`

    @classmethod
    def read(cls, text: str) -> Answers:
        """Parse the value of --answer. Raises AgentError."""
        if text in ("approve", "reject"):
            return cls(verdict=text)
        try:
            data = json.loads(Path(text).read_bytes())
            by_gate = {step: item if isinstance(item, list) else [item] for step, item in data.items()}
            strange = {word for value in by_gate.values() for item in value for word in item} - SAID
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise AgentError(f"--answer is approve, reject or a JSON file of answers by gate: {error}") from error
        if strange:
            raise AgentError(f"An answer has {', '.join(sorted(SAID))}; {text} has {', '.join(sorted(strange))}.")
        return cls(by_gate=by_gate)

    def signal(self, wait: Wait) -> bool:
        """Send the signal that a run waits for; False where there is none to send."""
        known = self.signals.get(wait.name)
        if not known:
            return False
        before = Signal.objects.filter(run=wait.run_id, name=wait.name).count()
        signals.send(wait.run, wait.name, known[min(before, len(known) - 1)], key=f"drill-{before}", by=DRILL)
        return True

    def give(self, gate: Gate, happened: Any) -> None:
        """Answer one gate. Raises Stuck, and DecisionRefused where the people may not.

        `happened`: the result of the effect that a recovery gate asks about; None where that is not known.
        """
        values = self._recovered(gate, happened) if gate.kind == Gate.Kind.RECOVERY else self._answer_to(gate)
        if not self.people:
            raise Stuck(f"The gate {gate.step} asks, and nobody answers: say who decides with --as.")
        for user in User.objects.filter(pk__in=self.people).order_by("pk"):
            done = list(Effect.objects.filter(run=gate.run).values_list("pk", flat=True))  # a drill may repeat them
            seen, key = bytes(gate.standing().digest), secrets.token_hex(8)
            deciding.decide(gate, Submission(seen=seen, key=key, confirm=done, second_look=True, **values), by=user)
            gate.refresh_from_db()
            if gate.status != Gate.Status.OPEN:
                return
            values = {"verdict": "approve"}  # the others agree with the first
        raise Stuck(f"The gate {gate.step} wants more people to agree: name them with --as.")

    def _answer_to(self, gate: Gate) -> dict[str, Any]:
        known = self.by_gate.get(gate.step)
        if not known:
            return REJECTION if self.verdict == "reject" else {"verdict": self.verdict}
        visit = Gate.objects.filter(run=gate.run, step=gate.step, kind=gate.kind).exclude(pk=gate.pk).count()
        answer = known[min(visit, len(known) - 1)]
        return answer if "verdicts" in answer else {"verdict": "approve", **answer}

    def _recovered(self, gate: Gate, happened: Any) -> dict[str, Any]:
        question = gate.asked.question
        choices = {choice["id"] for choice in question["choices"]} if question else set()
        if RecoveryAnswer.HAPPENED not in choices or happened is None:
            raise Stuck(f"{gate.title}: {gate.asked.summary}")
        return {"verdict": "answer", "answer": {"choice": RecoveryAnswer.HAPPENED, "value": happened}}
