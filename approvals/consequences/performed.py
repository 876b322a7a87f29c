"""Registry of the reader of what was performed under an approval; the app with the ledger of effects registers it.

Without one nothing is known to have run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from approvals.models import Gate


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
