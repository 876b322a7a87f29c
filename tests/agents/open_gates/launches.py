"""Driving a launch by hand: its gates by their step, and the decisions at them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.models import Decision, Gate
from checkpoints.models import Run
from tests.factories import REJECTION, ann
from tests.factories.driven_runs import advance, make_run


def launch(ledger: Path) -> Run:
    """A run with both gates open, which waits for one of them."""
    return advance(make_run("launch", topic="tea", ledger=str(ledger)))


def done(ledger: Path) -> list[str]:
    """What was done, in order."""
    return ledger.read_text().splitlines()


def gate(run: Run, step: str) -> Gate:
    """The newest gate of a step."""
    return Gate.objects.select_related("run__plan", "policy").filter(run=run, step=step).order_by("-pk")[0]


def open_steps(run: Run) -> list[str]:
    """The steps of the open gates, oldest first."""
    return list(Gate.objects.open().filter(run=run).order_by("pk").values_list("step", flat=True))


def decide(run: Run, step: str, verdict: str = "approve", **said: Any) -> Decision:
    """Decide at the newest gate of a step, as ann."""
    asked = gate(run, step)
    given = {"seen": bytes(asked.standing().digest), "key": secrets.token_hex(8)}
    given |= REJECTION if verdict == "reject" else {}
    return deciding.decide(asked, Submission(verdict=verdict, **{**given, **said}), by=ann(run.team))
