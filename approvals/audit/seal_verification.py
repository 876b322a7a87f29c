"""Verifies the seals in slices, on any worker, and reads how they stand for the sheet at the top of the audit's page.

A request writes a row; the sweeper queues slices for it until it ends. A slice claims the row, checks seals for some
seconds, and stores where the next one goes on: so nothing is lost with a worker or a message, a slice that is delivered
twice does nothing, and no worker is busy for long.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog
from django.db import InterfaceError, OperationalError

from checkpoints.audit import database, sealer
from checkpoints.audit.database import VerificationWalk
from checkpoints.audit.sealer import UnsealedTail
from checkpoints.events import event_proof
from checkpoints.models import Seal, Verification
from checkpoints.postgresql.capped_count import Capped
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.values.canonical_json import decode_canonical

SHOWN = 5  # findings on the page
SLICE = 5.0  # seconds
log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class SealStatus:
    """The newest seal, what it does not cover yet, the verification under way and the last one that ended."""

    seal: Seal | None
    tail: UnsealedTail
    underway: Verification | None
    last: Verification | None

    @property
    def waiting(self) -> Capped:
        """Count the settled events that no seal covers yet."""
        return Capped(min(self.tail.count, sealer.COUNTED - 1), self.tail.count >= sealer.COUNTED)

    @property
    def findings(self) -> list[str]:
        """List the first findings of the last verification."""
        return [str(problem) for problem in self.last.problems()[:SHOWN]] if self.last else []

    @property
    def unshown(self) -> int:
        """Count the findings that are not shown."""
        return max(self.last.faults - SHOWN, 0) if self.last else 0


def standing() -> SealStatus:
    """Read the seals' status as it is now."""
    ended = Verification.objects.exclude(status=Verification.Status.UNDERWAY)
    return SealStatus(
        Seal.objects.order_by("-pk").defer("marks", "heads").first(),
        sealer.tail(),
        Verification.objects.underway().first(),
        ended.order_by("-pk").first(),
    )


def go_on(verification: int, *, within: float = SLICE) -> bool:
    """Run one slice of a verification; False where it has ended, or another worker holds it.

    After a passing error of the database the next slice tries again. Any other error ends it, and is one of its
    findings.
    """
    found = Verification.objects.filter(pk=verification).first()
    if found is None or not found.take():
        return False
    try:
        return _slice(found, within)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("verification.failed", verification=verification)
        cannot = IntegrityProblem("the verification", f"could not be finished: {type(error).__name__}")
        return found.end(decode_canonical(bytes(found.place)), [cannot])


def _slice(verification: Verification, within: float) -> bool:
    place = decode_canonical(bytes(verification.place))
    walk = VerificationWalk.from_json(place, key=event_proof.seal_key()) if place else database.begin()
    until = time.monotonic() + within
    problems: list[IntegrityProblem] = []
    while not walk.done:
        problems += walk.step()
        if time.monotonic() >= until and not walk.done:
            return verification.put_down(walk.to_json(), problems, total=database.total_seals(walk))
    problems += walk.chain.digests()
    problems += database.exported_seals()
    return verification.end(walk.to_json(), problems)
