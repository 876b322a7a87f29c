"""The columns of a new row of the effect ledger: its execution and its idempotency key."""

from __future__ import annotations

from typing import Any

from agents.session.run_session import RunSession
from checkpoints.runs.plans import StepSpec
from checkpoints.values import digests


def columns(session: RunSession, spec: StepSpec, generation: int) -> dict[str, Any]:
    """Return the columns of the row for performing `spec` at the head, whether it is performed or taken over.

    Its key is H(run, step, input digest, occurrence, generation), hex.
    """
    digest = session.input_digest(spec)
    occurrence = session.path.occurrences(spec.name, digest)
    key = digests.of_value(["effect", session.run.pk, spec.name, digest.hex(), occurrence, generation]).hex()
    return {
        "run": session.run,
        "step": spec.name,
        "key": key,
        "base": session.snapshot.id,
        "input_digest": digest,
        "occurrence": occurrence,
        "generation": generation,
        "token": session.claim.token,
        "irreversible": spec.irreversible,
    }
