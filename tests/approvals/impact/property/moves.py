"""What people do to a run: a rewind, an edit, a fork, a word at a gate. Each can be foretold, and made."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.contrib.auth.models import User

from agents.errors import RewindRefused
from agents.moves import fork, impact, rewind
from approvals.cards import verdicts
from approvals.cards.card import AnswerChoice
from approvals.consequences.gate import GateImpacts
from approvals.decisions import deciding, per_action
from approvals.decisions.edit import CurrentProposal
from approvals.decisions.submission import Submission
from approvals.gates import closing
from approvals.impact import Impact
from approvals.models import Gate
from checkpoints.models import Run
from checkpoints.values.patch import Op
from tests.factories import repeatable

# What a move is refused for: its target says of an effect that it is done, or counts on a decision that is not there.
REFUSED = ("was undone since", "that is not there")


@dataclass(frozen=True)
class People:
    """Who moves runs, and who decides gates: whoever forks a run has started one, and may not decide it."""

    mover: User
    reviewer: User


class Move(Protocol):
    """One choice."""

    def foretell(self, run: Run) -> Impact:
        """What it would do. Raises RewindRefused."""

    def make(self, run: Run, people: People, seen: str) -> Run:
        """Do it; the run that goes on. Raises RewindRefused."""


@dataclass(frozen=True)
class Rewind:
    seq: int
    feedback: str

    def foretell(self, run: Run) -> Impact:
        return impact.of_rewind(run, self.seq, self.feedback)

    def make(self, run: Run, people: People, seen: str) -> Run:
        return rewind.rewind(run, to=self.seq, by=people.mover, feedback=self.feedback, confirm=True, seen=seen)


@dataclass(frozen=True)
class Edit:
    seq: int
    patch: list[Op]
    feedback: str

    def foretell(self, run: Run) -> Impact:
        return impact.of_edit(run, self.seq, self.patch, self.feedback)

    def make(self, run: Run, people: People, seen: str) -> Run:
        return rewind.edit(run, at=self.seq, patch=self.patch, by=people.mover, feedback=self.feedback, seen=seen)


@dataclass(frozen=True)
class Fork:
    """Another run from a checkpoint, perhaps with another state."""

    seq: int
    patch: list[Op]

    def foretell(self, run: Run) -> Impact:
        return impact.of_fork(run, self.seq, self.patch)

    def make(self, run: Run, people: People, seen: str) -> Run:
        return fork.fork(run, at=self.seq, by=people.mover, patch=self.patch, seen=seen)


@dataclass(frozen=True)
class Word:
    gate: int
    verdict: str  # approve, edit, reject or mixed
    each: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a mixed word, what is said of each action
    arguments: dict[str, Any] = field(default_factory=dict)
    back_to: str = ""  # empty: a rejection ends the run

    def foretell(self, run: Run) -> Impact:
        gate = open_gate(run, self.gate)
        standing = gate.standing()
        foretold = GateImpacts(gate, standing.card, standing.state_patch)
        if self.verdict == "approve":
            return foretold.approve()
        if self.verdict == "edit":
            [(id, value)] = self.arguments.items()
            action = standing.card.action(id)
            assert action is not None
            return foretold.with_patch([{"op": "replace", "path": action.pointer, "value": value}])
        if self.verdict == "mixed":
            by_action = verdicts.read(self.each, standing.card)
            made = per_action.mixed(CurrentProposal.of(gate, standing), by_action, by="somebody")
            return foretold.with_patch(made.patch, made.card)
        return foretold.back(self.back_to) if self.back_to else foretold.stop()

    def make(self, run: Run, people: People, seen: str) -> Run:
        gate = open_gate(run, self.gate)
        said: dict[str, Any] = {"then": "back" if self.back_to else "stop", "back_to": self.back_to, "comment": "no"}
        said = {"arguments": self.arguments} if self.verdict == "edit" else said if self.verdict == "reject" else {}
        said |= {"verdicts": self.each} if self.verdict == "mixed" else {}
        said |= {"confirm": repeatable(run)}
        digest = bytes(gate.standing().digest)
        deciding.decide(
            gate, Submission(verdict=self.verdict, seen=digest, key=secrets.token_hex(8), **said), by=people.reviewer
        )
        return run


@dataclass(frozen=True)
class Silence:
    """Nobody answers at a review until its deadline."""

    gate: int

    def foretell(self, run: Run) -> Impact:
        gate = open_gate(run, self.gate)
        return GateImpacts(gate, gate.standing().card, []).expire()

    def make(self, run: Run, people: People, seen: str) -> Run:
        closing.pass_deadline(open_gate(run, self.gate))
        assert closing.expire(open_gate(run, self.gate)) is not None
        return run


@dataclass(frozen=True)
class Answer:
    """What somebody answers to the question at which the run waits."""

    gate: int
    choice: str

    def foretell(self, run: Run) -> Impact:
        gate = open_gate(run, self.gate)
        told = GateImpacts(gate, gate.standing().card, []).answering(self.choice)
        assert told is not None
        return told

    def make(self, run: Run, people: People, seen: str) -> Run:
        gate = open_gate(run, self.gate)
        choice = next(each for each in questions(gate) if each["id"] == self.choice)
        fields = (choice.get("schema") or {}).get("properties", {})
        value = dict.fromkeys(fields, "told") if choice.get("needs_value") else None
        said = {"choice": self.choice, "value": value}
        digest = bytes(gate.standing().digest)
        deciding.decide(
            gate,
            Submission(verdict="answer", seen=digest, key=secrets.token_hex(8), answer=said),
            by=people.reviewer,
        )
        return run


def questions(gate: Gate) -> list[AnswerChoice]:
    question = gate.asked.question
    return list(question["choices"]) if question else []


def open_gates(run: Run) -> list[Gate]:
    """The run's open gates, oldest first: several where it goes on while people decide."""
    return list(Gate.objects.open().select_related("run__plan", "policy").filter(run=run).order_by("pk"))


def open_gate(run: Run, gate: int) -> Gate:
    return Gate.objects.open().select_related("run__plan", "policy").get(run=run, pk=gate)


def refused(error: RewindRefused) -> bool:
    """Whether a move is refused as it may be. Raises it again where not."""
    if not any(why in str(error) for why in REFUSED):
        raise error
    return True
