"""Verifies the seals in slices, on any worker.

A request writes a row; the sweeper queues slices for it until it ends. A slice claims the row, checks seals for some
seconds, and stores where the next one goes on: so nothing is lost with a worker or a message, a slice that is delivered
twice does nothing, and no worker is busy for long.
"""

from __future__ import annotations

import time

import structlog
from django.db import InterfaceError, OperationalError

from checkpoints.audit import database
from checkpoints.audit.database import VerificationWalk
from checkpoints.events import event_proof
from checkpoints.models import Verification
from checkpoints.seals.problem import IntegrityProblem
from checkpoints.values.canonical_json import decode_canonical

SLICE = 5.0  # seconds
log = structlog.get_logger(__name__)


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
