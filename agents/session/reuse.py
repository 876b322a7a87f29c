"""Reuses an earlier execution: the same step, on the same input, with the same code, at the same occurrence.

Its recorded output is written again and nothing runs. After an edit only the steps run that read a change; where
their outputs are the same as before, the steps after them are reused.

It also packs what an execution of a step keeps as a memo, such as the result of a call.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from agents.definition import fields
from agents.errors import AgentError
from agents.models import OpenResource
from approvals.engine_rules import effects
from checkpoints.errors import NoSuchCheckpoint, NotVerified, ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.checkpoint_kinds import OUTPUT_LANDED
from checkpoints.values.ops import Append, Splice

from . import child_runs
from .performer import Beside
from .run_session import RunSession

log = structlog.get_logger()


def reused(session: RunSession, spec: StepSpec) -> bool | None:
    """Write the recorded output of this execution; True if the session goes on, None where it has to run."""
    if effects.runs_anyway(spec, forced=session.path.forced(spec.name)):
        return None
    twin = twin_of(session, spec)
    if twin is None or twin.kind not in OUTPUT_LANDED or not effects.fits(session.plan, spec, twin.next_step):
        return None
    children = [row for row in session.kin_children if twin.id in row.landings]
    if any(row.undone for row in children):  # what the output says of them is no longer so
        return None
    try:
        writes = executions.writes_of([twin.id])[twin.id]
        for name, value in writes.items():
            _check(session, name, value)
    except (NotVerified, NoSuchCheckpoint, ValueRefused) as error:
        log.warning("step.not_reused", step=spec.name, reason=str(error))
        return None
    try:
        notes, beside = [said_of(session, twin)], [_held_by(session, twin)] if spec.holds else []
        told: dict[str, Any] = {"took": 0.0, "notes": notes, "kind": "reused", "beside": beside}
        if not children:
            return session.executed(spec, writes, twin.next_step, **told)
        ids = [row.pk for row in children]
        session.flush()  # outside, as in agents.children.orders
        with transaction.atomic():
            session.hold_token()
            landed = child_runs.count_on(ids)
            return session.executed(spec, writes, twin.next_step, children=ids, **told) if landed else None
    except ValueRefused as error:  # an append or a splice to a list that is another one here
        log.warning("step.not_reused", step=spec.name, reason=str(error))
        return None


def twin_of(session: RunSession, spec: StepSpec) -> CheckpointHeader | None:
    """Return the record of this execution on another branch or in a fork; None where it was never done."""
    if not session.branched:
        return None
    digest = session.input_digest(spec)
    occurrence = session.path.occurrences(spec.name, digest)
    return session.recorded.get((spec.name, digest, bytes.fromhex(spec.code_hash), occurrence))


def said_of(session: RunSession, twin: CheckpointHeader) -> str:
    """Say for the run's page where the output came from."""
    run = "" if twin.run_id == session.run.pk else f" of R-{twin.run_id}"
    return f"Same input and code as checkpoint {twin.seq}{run}: its output was reused, nothing ran."


def _held_by(session: RunSession, twin: CheckpointHeader) -> Beside:
    """Return what keeps the descriptions of what the recorded execution held open: that is to be reopened here too."""
    return lambda saved: OpenResource.objects.copy(session.run.pk, twin.id, saved.id)


def _check(session: RunSession, name: str, value: Any) -> None:
    """Raise ValueRefused for a field or value that this version of the state does not take."""
    if name not in session.agent.State.model_fields:
        raise ValueRefused(f"/{name}", "is not a field of this version's state")
    if not isinstance(value, (Append, Splice)):
        fields.dumped(session.agent.State, name, value)


def packed(call: str, result: Any, *, instead: str) -> bytes:
    """Return a result as canonical JSON of at most as many bytes as a state may have. Raises AgentError.

    `instead`: what to do where it is larger.
    """
    try:
        content = encode_canonical(result)
    except ValueRefused as error:
        where = f"at {error.pointer} " if error.pointer else ""
        raise AgentError(f"{call}: the result {where}{error.reason}, so it cannot be kept.") from error
    if len(content) > (most := settings.HOLDPOINT_STATE_LIMIT):
        raise AgentError(f"{call}: the result has {len(content):,} bytes; {most:,} are the most. {instead}")
    return content
