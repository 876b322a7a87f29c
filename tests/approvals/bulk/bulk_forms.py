"""A reviewer's bulk decision, as their browser posts it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.test import Client

from approvals.models import Gate, Policy
from checkpoints.models import Plan
from tests.factories import make_card, make_gate, make_run
from tests.factories.runs import STEPS, make_plan, make_spec

CHOICE = re.compile(r'name="choice" value="([^"]+)"')
KEY = re.compile(r'name="key" value="([^"]+)"')
REASON = "Checked against the ledger."


def make_stuck_plan() -> Plan:
    """Store a plan of the same agent whose step names none that a rejection goes back to."""
    steps = tuple(replace(step, on_reject="") for step in STEPS)
    return make_plan(make_spec("robo", steps=steps, version="2"))


def alike(number: int, *, policy: Policy, risk: str = "low", plan: Plan | None = None, **card: Any) -> list[Gate]:
    """Open gates of one agent, step and policy."""
    plan = plan or make_plan(make_spec("robo"))
    return [
        make_gate(
            policy=policy,
            run=make_run(team=policy.team, plan=plan),
            card=make_card(title=f"Refund {place}", risk=risk, **card),
        )
        for place in range(1, number + 1)
    ]


def preview(client: Client, gates: Sequence[Gate], verdict: str = "approve") -> str:
    answer = client.post("/inbox/bulk/", {"gate": [gate.pk for gate in gates], "verdict": verdict})
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def form(page: str, **said: Any) -> dict[str, Any]:
    key = KEY.search(page)
    assert key is not None
    filled = {"key": key[1], "verdict": "approve", "comment": REASON, "second_look": "yes"}
    return {**filled, "choice": CHOICE.findall(page), **said}


def send(client: Client, filled: dict[str, Any]) -> str:
    answer = client.post("/inbox/bulk/decisions/", filled)
    assert answer.status_code == 303, answer.content.decode()
    return client.get(answer["Location"]).content.decode()
