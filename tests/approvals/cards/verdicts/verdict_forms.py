"""Runs of the tests' agents, and words about each of their actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User

from approvals.models import Decision
from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate

APPROVE = {"verdict": "approve"}


def reject(reason: str = "Not this one.") -> dict[str, Any]:
    return {"verdict": "reject", "reason": reason}


def respond(response: Any) -> dict[str, Any]:
    return {"verdict": "respond", "response": response}


def edit(run: Run, action: str, **changes: Any) -> dict[str, Any]:
    """New values for some of an action's arguments, from what stands."""
    standing = open_gate(run).standing().card.action(action)
    assert standing is not None
    return {"verdict": "edit", "arguments": {**standing.arguments, **changes}}


def make_calls(ledger: Path, **more: Any) -> Run:
    """A run that asks about three calls, x1 first."""
    calls = [{"id": f"x{n}", "tool": f"tool{n}", "amount": n} for n in (1, 2, 3)]
    return advance_to_rest(make_run("dialler", ledger=str(ledger), calls=calls, **more))


def make_three(ledger: Path, *, team: Group | None = None) -> Run:
    calls: dict[str, Any] = {
        name: {"id": name, "tool": name, "amount": n} for n, name in enumerate(("one", "two", "three"), 1)
    }
    return advance_to_rest(make_run("three", team=team, ledger=str(ledger), **calls))


def say(run: Run, *, by: User | None = None, each: dict[str, Any], **said: Any) -> Decision:
    return decide(run, "", by=by, verdicts=each, **said)


def lines(ledger: Path) -> list[str]:
    """What was done in the world outside, oldest first."""
    return ledger.read_text().splitlines()
