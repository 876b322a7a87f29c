"""Two kinds of gates, the moves that are made at them, and what must hold of them whatever was done."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from approvals.assignments import claims, reassigning
from approvals.audit import evidence
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.decisions.undo_window import settle, take_back
from approvals.errors import UndoRefused
from approvals.gates import closing, projection
from approvals.gates.reading import read
from approvals.models import Escalation, Gate, GateClaim, Outcome, Policy, versions
from approvals.policy import required
from checkpoints.actors import SYSTEM
from checkpoints.errors import NotVerified
from checkpoints.models import Event, Hold
from tests import factories
from tests.approvals.decisions.undoing.windows import WINDOW, now

from .schedules import Move

VOTES = ("approve", "reject", "edit")
MOVES = (*VOTES, "undo", "expire", "withdraw", "claim", "escalate", "leave", "policy change")
HOUR = timedelta(hours=1)
OPEN, DECIDED, WITHDRAWN = Gate.Status.OPEN, Gate.Status.DECIDED, Gate.Status.WITHDRAWN


@dataclass(frozen=True)
class World:
    """A kind of gate. `excluding`: sets of moves of which no two can be made at one gate."""

    name: str
    moves: tuple[str, ...]
    excluding: tuple[set[str], ...]
    window: bool = False

    def voted(self, first: str, second: str) -> bool:
        """Tell whether somebody has approved before, so that one more approval closes a gate that needs two."""
        return bool({"undo", "leave", "settle"} & {first, second}) or not (self.window or first == second)

    def excludes(self, first: str, second: str) -> bool:  # but the two approvals that are needed
        return any({first, second} <= moves for moves in self.excluding) and {first, second} != {"approve"}


TWO = World("two", MOVES, ({"approve", "reject", "expire", "withdraw"}, {"claim"}))
HELD = World("held", (*MOVES, "settle"), ({"expire", "withdraw", "settle"}, {"undo", "settle"}, {"claim"}), window=True)


class Cast:
    """Whoever moves: ann makes the first move, bob the second; the voter has voted, takes that back, and leaves."""

    def __init__(self) -> None:
        self.team, self.directors = factories.make_team(), factories.make_team("Directors")
        self.people = [factories.ann(self.team), factories.bob(self.team)]
        self.voter = factories.make_user("Vera Voter")

    def open_gate(self, world: World, first: str, second: str) -> Gate:
        """Open a gate at which both moves are due."""
        self.voter.groups.add(self.team)
        stages = [{"roles": [{"quorum": 1, "groups": [self.team.pk], "people": []}]}]
        asked: dict[str, Any] = {"undo_window": WINDOW, "stages": stages} if world.window else {"quorum": 2}
        asked |= {"escalation": [{"team": self.directors.pk, "after": 3600, "extend": None}], "on_expiry": "approve"}
        gate = factories.make_gate(policy=factories.make_policy(self.team, name=factories.unique("refunds"), **asked))
        if world.voted(first, second):
            factories.decide(gate, self.voter)
        columns = {"expire": "deadline", "settle": "settles_at"}
        if passed := {columns[move]: timezone.now() - HOUR for move in (first, second) if move in columns}:
            factories.change_gate(gate, **passed)
        Escalation.objects.filter(gate=gate).update(due_at=timezone.now() - HOUR)
        return gate

    def move(self, name: str, gate: Gate, *, by: User) -> Move:
        """Return a move of this person, of the voter or of the sweeper, who have all seen the gate as it is now."""
        gate = now(gate)
        if name in VOTES:
            words: dict[str, Any] = {"edit": {"arguments": factories.edit_amount(gate, "80.00")}}
            words |= {"reject": factories.REJECTION, "approve": {}}
            seen, key = bytes(gate.standing().digest), secrets.token_hex(8)
            return partial(deciding.decide, gate, Submission(verdict=name, seen=seen, key=key, **words[name]), by=by)
        moves: dict[str, Move] = {
            "undo": partial(take_back, gate, by=self.voter),
            "expire": partial(reassigning.pass_deadline, gate),
            "settle": lambda: settle(gate) or settle(gate),  # the sweeper comes again where the gate has just changed
            "withdraw": lambda: closing.withdraw(gate, by=SYSTEM, reason="Not needed.") is not None,
            "claim": partial(claims.claim, gate, by=by),
            "escalate": partial(reassigning.escalate, Escalation.objects.get(gate=gate)),
            "leave": partial(self.leave, gate),
            "policy change": partial(self._change_policy, gate.policy),
        }
        return moves[name]

    def leave(self, gate: Gate, *, between: Move = lambda: None) -> Any:
        """Have the voter leave, and the gate looked at again; `between`: what is done before that."""
        self.voter.groups.remove(self.team)
        result = between()
        projection.look_again(gate.pk)
        return result

    def _change_policy(self, policy: Policy) -> None:
        milder = Policy.objects.get(pk=policy.pk)
        milder.pk, milder._state.adding, milder.stages, milder.quorum = None, True, "", 1
        milder.on_expiry = "expire"
        versions.write(milder, by=SYSTEM, groups=[self.directors])


def faults_of(gate: Gate, world: World, cast: Cast) -> Iterator[str]:
    reading = read(gate.pk)
    gate, standing, outcome = reading.gate, reading.proposal, Outcome.objects.filter(gate=gate.pk).first()
    try:
        evidence.check(standing)
        evidence.check_voices(gate, list(gate.decisions.all()))
        if outcome:
            evidence.check_ended(gate, outcome)
    except NotVerified as fault:
        yield f"it does not verify: {fault}"
    moved = Event.objects.filter(subject=gate.subject, kind__in=evidence.MOVES).values_list("kind", "version")
    kinds, silent = Counter(kind for kind, _ in moved), {*range(1, gate.version + 1)} - {at for _, at in moved}
    if silent - ({gate.version - 1} if outcome else set()):  # an end without a vote moves the gate twice
        yield f"a change has no event: {silent}"
    if (kinds["gate.decided"], kinds["gate.edited"]) != (gate.decisions.count(), gate.proposals.count() - 1):
        yield "a decision or an edit has no event of its own"
    if not sum(kinds[end] for end in evidence.ENDS) == bool(outcome) == (gate.status != OPEN):
        yield "it has not one outcome and one end, or has them while it is open"
    voters = list(gate.decisions.filter(counts=True).values_list("user", flat=True))
    if len(voters) > len({*voters}):
        yield "somebody's vote counts twice"
    if outcome:
        cast.voter.groups.add(cast.team)  # who left after the end has voted all the same
    verdict = projection.judged(gate, required.of(standing, gate.policy), projection.counting(gate))
    end, kind = verdict.end, str(projection._kind(standing, verdict.end)) if verdict.end else ""
    if verdict.lapsed:
        yield "a vote counts that has lapsed"
    if outcome is None:
        waits, written = (end.digest if end else "", kind), (gate.ending, gate.settles_as)
        if waits != written or bool(end) != bool(gate.settles_at) or (end and not world.window):
            yield f"the votes come to {waits}, and the gate waits for {written} until {gate.settles_at}"
        if not end and gate.awaits != ([] if gate.policy.plain else verdict.awaits):
            yield f"it asks {gate.awaits}, and not {verdict.awaits}"
        return
    counted = tuple(outcome.decisions.order_by("pk").values_list("pk", flat=True))
    if gate.status == DECIDED and (outcome.kind, counted) != (kind, end.votes if end else None):
        yield f"it is {outcome.kind}, and the votes come to {kind or 'nothing'}"
    if gate.status != DECIDED and (counted or (end and not (world.window and gate.status == WITHDRAWN))):
        yield f"it is {gate.status}, and decided"
    with suppress(UndoRefused):
        take_back(now(gate), by=cast.voter)
        yield "a decision is undone after the end"


def observed(gate: Gate) -> list[Any]:
    """Return what two orders of the same moves are compared by."""
    row = now(gate)
    return [
        row.status, row.version, row.proposal, row.awaits, row.settles_as, row.ending, row.settles_at is None,
        row.run.status, Hold.objects.standing().filter(subject=row.subject).count(),
        sorted(Event.objects.filter(subject=row.subject).values_list("kind", flat=True)),
        sorted(row.decisions.values_list("user", "verdict", "proposal__number", "counts")),
        list(Outcome.objects.filter(gate=row).values_list("kind", "then", "proposal__number", "by")),
        list(GateClaim.objects.filter(gate=row).values_list("user", flat=True)),
        [*row.added.values_list("team", "open"), *row.escalations.values_list("status", flat=True)],
    ]  # fmt: skip
