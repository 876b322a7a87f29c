"""Registry of the reader of what was performed under an approval; the app with the ledger of effects registers it.

Without one nothing is known to have run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.models import Gate


@dataclass(frozen=True, kw_only=True)
class PerformedEffect:
    """One effect that was begun under a grant."""

    grant: int  # the grant's id
    status: str  # intended, done, failed, unknown, abandoned, undone or kept
    key: str  # the idempotency key, hex, by which the provider knows it
    begun_at: datetime
    ended_at: datetime | None
    attempts: int
    error: str  # what the provider or the agent said where it failed; untrusted
    result: Any  # what its step returned; None where it returned nothing, or has not ended
    undo: str = ""  # the status of the newest undo; "" where none was begun
    undone_at: datetime | None = None


@dataclass(frozen=True)
class NotRun:
    """Why nothing that was approved has begun."""

    code: str  # failed, gate, program, no_worker, queued or running
    words: str
    gate: int | None = None  # the one that the run waits for


Read = Callable[[Sequence[int]], list[PerformedEffect]]
Why = Callable[[Gate], NotRun | None]
_registered: list[tuple[Read, Why]] = []


def register(read: Read, why: Why) -> None:
    """Register functions: what was begun under these grants, and why nothing was of an approved gate."""
    _registered.append((read, why))


def under(grants: Sequence[int]) -> dict[int, PerformedEffect]:
    """Return by grant what was begun under it."""
    return {each.grant: each for read, _ in _registered for each in (read(grants) if grants else ())}


def why_not(gate: Gate) -> NotRun | None:
    """Say why nothing of an approved gate has begun; None where that is as planned, or not known. Needs its run."""
    return next((found for _, why in _registered if (found := why(gate)) is not None), None)
