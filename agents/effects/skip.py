"""Skips an effect whose action people rejected, or answered in its place, while the run goes on.

The checkpoint is no execution of the step, so that nothing is adopted by it and what the step did on another branch is
not taken for done. The agent was told of the refusal in the gate's own checkpoint.
"""

from __future__ import annotations

import structlog

from agents.definition import fields
from agents.errors import InvariantBroken, StepFailed
from agents.session.run_session import RunSession
from agents.steps import execute
from approvals.cards import verdicts
from approvals.cards.action import RESPOND, Action, SettledAction
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import StepSpec

log = structlog.get_logger()


def pass_by(session: RunSession, spec: StepSpec, action: Action, settled: SettledAction) -> bool:
    """Save a checkpoint that skips the effect, with the answer in its place; True if the session goes on."""
    log.info("effect.passed", step=spec.name, action=action.id, verdict=settled.verdict)
    try:
        given = verdicts.written(session.plan, action)
        writes = {name: fields.dumped(session.agent.State, name, value) for name, value in given.items()}
    except ValueRefused as error:
        return execute.failed(session, spec, StepFailed(f"The answer that was given does not fit: {error}"))
    note = f"{settled.by} rejected it, so it did not run: {settled.reason}"
    if settled.verdict == RESPOND:
        note = f"{settled.by} answered instead, so it did not run."
    try:
        return session.save("skipped", spec, writes, session.plan.next_after(spec.name), notes=[note])
    except InvariantBroken as error:
        return execute.failed(session, spec, error)
