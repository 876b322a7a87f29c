"""The idempotency key of an effect."""

from __future__ import annotations

from agents.session.run_session import RunSession
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests


def key_of(slice: RunSession, spec: StepSpec, generation: int) -> str:
    """Return the idempotency key: H(run, step, input digest, occurrence, generation), hex."""
    digest = slice.input_digest(spec)
    occurrence = slice.path.occurrences(spec.name, digest)
    return digests.of_value(["effect", slice.run.pk, spec.name, digest.hex(), occurrence, generation]).hex()
