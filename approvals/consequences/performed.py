"""Registry of the reader of what was performed under an approval; the app with the ledger of effects registers it.

Without one nothing is known to have run.

It also reads what became of closed gates: what they let run was done, is under way, failed, or is asked again.

Every page and answer that says how a gate ended says this too, by this one function: "approved" alone reads as done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from approvals.models import Gate
from checkpoints.models import Run


@dataclass(frozen=True, kw_only=True)
class PerformedEffect:
    """One effect that was begun under a grant."""

    status: str  # intended, done, failed, unknown, abandoned, undone or kept
    key: str  # the idempotency key, hex, by which the provider knows it
    begun_at: datetime
    ended_at: datetime | None
    attempts: int
    error: str  # what the provider or the agent said where it failed; untrusted
    result: Any  # what its step returned; None where it returned nothing, has not ended, or was not asked for
    undo: str = ""  # the status of the newest undo; "" where none was begun
    undone_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class GivenGrant:
    """One grant of a closed gate, with the effect that was begun under it."""

    id: int
    action: str  # the action's id; "" where the card has none
    effect: str  # the effect's step
    begun: PerformedEffect | None
    reused: bool  # not begun, as it was done before the gate closed and its result was taken over since
    passed_by: bool  # the run has gone back to a step before the gate since


@dataclass(frozen=True, kw_only=True)
class GivenGrants:
    """The grants of one closed gate, and whether another asks the same again."""

    grants: Sequence[GivenGrant]
    again: bool


class AlikeAsked(NamedTuple):
    """Something that a gate asks for, by a digest of approvals.cards.likeness."""

    gate: int
    lineage: int  # of the gate's run, whose own effects do not count
    how: str  # which of Likeness
    digest: str


@dataclass(frozen=True, kw_only=True)
class DoneAlike:
    """One effect that was done, or may have been, and shares a digest with what a gate asks for."""

    asked: int  # the gate that asks
    how: str  # which of Likeness
    gate: int  # the gate that let it run
    effect_id: int
    action: str
    effect: str  # its step
    done: bool  # False: nobody knows yet
    at: datetime  # when it ended; when it began where it has not


@dataclass(frozen=True)
class NotRun:
    """Why nothing that was approved has begun."""

    code: str  # failed, gate, program, no_worker, queued or running
    words: str
    gate: int | None = None  # the one that the run waits for


Read = Callable[[Sequence[int], bool], dict[int, GivenGrants]]
Why = Callable[[Gate], NotRun | None]
Alike = Callable[[Sequence[AlikeAsked]], list[DoneAlike]]
_registered: list[tuple[Read, Why, Alike]] = []


def register(read: Read, why: Why, alike: Alike) -> None:
    """Register functions: see `grants_of`, `why_not` and `done_alike`."""
    _registered.append((read, why, alike))


def grants_of(gates: Sequence[int], *, results: bool = False) -> dict[int, GivenGrants]:
    """Return by gate what these closed ones let run, and what was begun of it. One statement."""
    return {gate: given for read, *_ in _registered for gate, given in (read(gates, results) if gates else {}).items()}


def done_alike(asked: Sequence[AlikeAsked]) -> list[DoneAlike]:
    """List what was done, or may have been, that is like what gates ask for; the newest of each. One statement."""
    return [row for *_, alike in _registered for row in (alike(asked) if asked else ())]


def why_not(gate: Gate) -> NotRun | None:
    """Say why nothing of an approved gate has begun; None where that is as planned, or not known. Needs its run."""
    return next((found for _, why, _ in _registered if (found := why(gate)) is not None), None)


ASKED_AGAIN = "asked_again"
# The states of a grant, and of a gate: that of its grants which comes first here.
STATES = (
    "unknown", "abandoned", ASKED_AGAIN, "failed", "intended", "undoing", "waiting", "unreported", "stopped",
    "elsewhere", "never", "undone", "kept", "reused", "done",
)  # fmt: skip
UNSETTLED = ("intended", "unknown", "undoing", "waiting", "unreported", "stopped")  # may still change
OVER = (Run.Status.COMPLETED, Run.Status.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class GrantFate:
    """One thing that was let run, and what became of it."""

    grant: GivenGrant
    state: str  # of STATES


@dataclass(frozen=True, kw_only=True)
class OutcomeFate:
    """The fate of one closed gate's outcome."""

    grants: Sequence[GrantFate] = ()
    again: Gate | None = None  # the newest gate that asks the same again
    reopened: Mapping[str, Any] | None = None  # why it does, see Card.reopened; None where this gate was withdrawn

    @property
    def state(self) -> str:
        """Return one of STATES; "" where nothing was let run."""
        states = {each.state for each in self.grants}
        if self.again and (not states or "failed" in states):
            states.add(ASKED_AGAIN)
        return next((state for state in STATES if state in states), "")

    @property
    def open(self) -> bool:
        """Tell whether it may still change."""
        return any(each.state in UNSETTLED for each in self.grants)


def read_fates(gates: Sequence[Gate], *, results: bool = False) -> dict[int, OutcomeFate]:
    """Return by id what became of the closed gates among these, each with its run and plan.

    `results`: with what the effects returned. One statement, and one more where some are asked again.
    """
    closed = {gate.pk: gate for gate in gates if gate.status != Gate.Status.OPEN}
    given = grants_of(list(closed), results=results)
    later: dict[int, list[Gate]] = defaultdict(list)
    if again := [pk for pk, each in given.items() if each.again]:
        links = Gate.replaces.through.objects.filter(to_gate__in=again).select_related("from_gate")
        for link in links.order_by("from_gate"):
            later[link.to_gate_id].append(link.from_gate)
    return {pk: _fate(closed[pk], each.grants, later[pk]) for pk, each in given.items()}


def _fate(gate: Gate, grants: Sequence[GivenGrant], later: Sequence[Gate]) -> OutcomeFate:
    reasons = [each.asked.reopened for each in later]
    reopened = next((each for each in reversed(reasons) if each and each.get("gate") == gate.pk), None)
    fates = [GrantFate(grant=each, state=_state(each, gate, asked_again=bool(later))) for each in grants]
    return OutcomeFate(grants=fates, again=later[-1] if later else None, reopened=reopened)


def _state(grant: GivenGrant, gate: Gate, *, asked_again: bool) -> str:
    """Return the state of a grant. Pure."""
    begun, run = grant.begun, gate.run
    if begun is not None:
        undoing = begun.status in ("done", "kept") and begun.undo in ("intended", "unknown")
        return "undoing" if undoing else begun.status
    if grant.reused:
        return "reused"
    if asked_again:
        return ASKED_AGAIN
    if grant.passed_by:
        return "elsewhere"
    if run.status in OVER:
        return "never"
    if run.status == Run.Status.FAILED:
        return "stopped"
    return "unreported" if run.plan.external else "waiting"
