"""Asks for an effect's result when the state may not take the recorded one: it would break the agent's own rules.

The effect happened, so its result is in the ledger before anybody is asked, and it is not performed again. What a
person enters instead is written to the state; or they change the state first, by an edit, and the result is adopted.
"""

from __future__ import annotations

from django.db import transaction

from agents.errors import InvariantBroken
from agents.models import Effect
from agents.session.run_session import RunSession
from agents.steps import execute, recovery_gate
from approvals.cards.recovery_answers import RecoveryAnswer
from checkpoints.errors import Fenced
from checkpoints.runs.plans import StepSpec

from . import late_reports


def keep(session: RunSession, spec: StepSpec, row: Effect, result: object, error: InvariantBroken) -> bool:
    """Record that the effect happened, with its result, and ask a person. Returns False: the run waits. Raises Fenced.

    The result, the failure and the question are one transaction.
    """
    row.refresh_from_db()  # the transaction that would have saved the state too was rolled back
    try:
        with transaction.atomic():
            row.done(result, by=session.by)
            ask(session, spec, row, error)
    except Fenced:
        late_reports.done(row, result)
        raise
    return False


def ask(session: RunSession, spec: StepSpec, row: Effect, error: InvariantBroken) -> None:
    """Ask for a result of an effect that was done, in the place of one that breaks the state's rules. Raises Fenced."""
    gave = recovery_gate.choice(
        RecoveryAnswer.GAVE, "Go on with this result", recovery_gate.result_schema(session, spec)
    )
    step = recovery_gate.named(spec)
    choices = [gave, recovery_gate.choice(RecoveryAnswer.STOP, "Stop the run")]
    text = (
        f"{step} is done, under its key {row.key}, and its result is kept. With that result, the state would break its "
        f"own rules. Enter the result that the run goes on with, or edit the state so that it can take it. {step} is "
        "not done again."
    )
    title, reasons = f"The result of {step} does not fit:", [f"{step} is done and was not undone"]
    with transaction.atomic():
        execute.keep(session, spec, error)
        recovery_gate.ask(
            session, spec, title, text, choices, reasons=reasons, error=str(error), effect=row, permits=False
        )
