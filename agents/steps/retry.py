"""A step's policies: backoff between attempts, `catch` after the last of them, and the loop guard.

They have the names that ALAS gives them (docs/alas.md).
"""

from __future__ import annotations

import random

import structlog

from agents.definition.feedback import Words, append_words
from agents.session.run_session import RunSession
from approvals.engine_rules import effects
from approvals.models import Gate
from checkpoints.runs.plans import StepSpec

from . import recovery_gate

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 300.0  # seconds
log = structlog.get_logger()


def backoff(attempt: int, first: float = FIRST_BACKOFF) -> float:
    """Return the seconds until the next attempt: doubling, and spread so that failed runs do not come back together."""
    spread = random.uniform(0.75, 1.25)  # noqa: S311 - no secret
    longest = max(LONGEST_BACKOFF, first)
    return min(longest, first * 2.0 ** min(attempt - 1, 64)) * spread


def catch(session: RunSession, spec: StepSpec, error: str) -> bool:
    """Go on with the step that catches the failure; True if the session goes on. Raises Fenced."""
    log.warning("step.caught", step=spec.name, by=spec.catch)
    said = Words(text=error, by=spec.name, at=session.claim.clock())
    return session.save("recovery", spec, append_words(session.agent, spec.feedback, [said]), spec.catch)


def looping(session: RunSession, spec: StepSpec) -> bool:
    """Ask a person, and return True, if the step ran as often as its loop guard allows. Releases the run to waiting."""
    times = turns(session, spec) if spec.loop_guard else 0
    if not effects.at_guard(spec, times):
        return False
    session.flush()
    log.warning("step.looping", step=spec.name, times=times)
    recovery_gate.looping(session, spec, times)
    return True


def turns(session: RunSession, spec: StepSpec) -> int:
    """Count the step's executions and caught failures on this path since a person last answered about it."""
    mine = [place for place in session.path if place.step == spec.name]
    aside = [place.parent for place in mine if place.kind == "recovery" and place.parent]
    asked = Gate.objects.filter(checkpoint__in=aside, kind=Gate.Kind.RECOVERY) if aside else Gate.objects.none()
    answered = set(asked.values_list("checkpoint", flat=True))
    times = 0
    for place in mine:
        if place.kind == "recovery" and place.parent in answered:
            times = 0
        elif place.input_digest is not None or (place.kind == "recovery" and spec.catch):
            times += 1
    return times
