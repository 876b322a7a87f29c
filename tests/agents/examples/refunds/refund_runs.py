"""Runs of the refunds agent over the mails that come with it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, User

from agents.examples.refunds import Refunds
from agents.runs.start import start_run
from approvals.models import Decision
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate
from tests.harness.session import ROOT

MAILS = ROOT / "agents" / "examples" / "refunds" / "mails"
CONDITION = "nothing-else-refunded"


def make_refund_run(mail: str, *, team: Group | None = None, started_by: User | None = None) -> Run:
    """A run over the bundled mail of that number, taken as far as it goes by itself."""
    [input] = Refunds.inputs_from(next(MAILS.glob(f"{mail}-*.eml")))
    run = start_run("refunds", input, by=actors.SYSTEM, team=team or make_team(), started_by=started_by)
    return advance_to_rest(run)


def past_doubts(run: Run) -> Run:
    """The run at its review: where it first asks whether the refund is right, it is."""
    if open_gate(run).step == "ask_doubts":
        answer(run, "pay")
        advance_to_rest(run)
    return run


def arguments(run: Run, action: str, **changes: Any) -> dict[str, Any]:
    standing = open_gate(run).standing().card.action(action)
    assert standing is not None
    return {action: {**standing.arguments, **changes}}


def edit(run: Run, action: str, *, by: User | None = None, **changes: Any) -> Decision:
    return decide(run, "edit", by=by, arguments=arguments(run, action, **changes))
