"""Saves a step that counts on children, and gives up those that an earlier execution of it had started."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from agents.definition.outputs import StepOutput
from agents.errors import Retry
from agents.session import child_runs
from agents.session.performer import Returned
from agents.session.run_session import RunSession
from checkpoints.runs.plans import StepSpec

from . import orders


def executed(session: RunSession, spec: StepSpec, output: StepOutput, returned: Returned) -> bool:
    """Save an execution with the landing of its children; as `RunSession.executed`.

    Children of the same step that were left behind and that no later step may take over are undone from now on. In a
    loop they wait until the run ends, since a later turn may take them over. Raises Retry if what the step took from
    another run of the lineage was undone meanwhile.
    """
    told: dict[str, Any] = {
        "took": returned.took, "notes": returned.notes, "children": returned.children, "beside": returned.beside
    }  # fmt: skip
    if not returned.children:
        return session.executed(spec, output.writes, output.goto, **told)
    session.flush()  # outside: what a rollback takes back is not written again
    with transaction.atomic():
        session.hold_token()
        if session.run.forked_from and not child_runs.count_on(returned.children):
            raise Retry("what another run did for this step was undone meanwhile")
        going = session.executed(spec, output.writes, output.goto, **told)
        next_step = session.snapshot.next_step
        passed = not next_step or spec.name not in session.plan.reachable(next_step)
        if passed and session.left_children():
            orders.undo_left(session, spec.name)
    return going
