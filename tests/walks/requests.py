"""The requests: one reviewer, a plain policy, no limits on agents; a decision is sent as the page's script sends it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

from django.conf import settings

from agents.runner import engine
from tests.agents.remote.outside_program import WIRE, Program
from tests.factories import ann, change_gate, driven_runs, make_gate, make_policy, make_team
from tests.harness import vouched_policies
from tests.harness.session import Session
from tests.harness.signed_in_clients import form_of, signed_in

from .walk import Request, Walk, walk

SCRIPT = {"X-Tell-Redirect": "yes"}


def walk_all(session: Session) -> dict[str, Walk]:
    settings.ALLOWED_HOSTS = ["testserver"]
    vouched_policies.install()
    log = session.home / f"postgres-{session.name}.log"
    return {name: walk(prepare, log) for name, prepare in prepare_all(str(session.folder / "ledger")).items()}


def prepare_all(ledger: str) -> dict[str, Callable[[], Request]]:
    busy, read = make_team(), make_team()
    for team in (busy, read):
        make_policy(team, name="default", hourly=None, pause=None)
    reviewer, program, amounts = ann(busy), Program(team=busy), count(1)
    decider, reader = signed_in(reviewer), signed_in(ann(read))
    for gate in [make_gate(team=read) for _ in range(10)]:  # a page of the inbox; the ages of young ones are drawn anew
        change_gate(gate, opened_at=gate.opened_at - timedelta(hours=30))

    def decide() -> Request:
        fresh = make_gate(team=busy)
        form = form_of(fresh)
        return lambda: expect(decider.post(f"/gates/{fresh.pk}/decisions/", form, headers=SCRIPT), 204)

    def post() -> Request:
        amount = f"{next(amounts)}.00"  # no two are alike
        action = {"id": "wire", "arguments": {**WIRE, "amount": amount}}
        return lambda: expect(program.post("gates", {"title": f"Wire {amount}", "actions": [action]}), 201)

    def resume() -> Request:
        run = driven_runs.advance(driven_runs.make_run("payer", team=busy, ledger=ledger))
        driven_runs.decide(run, by=reviewer)
        return lambda: engine.advance(run.pk)  # to its end: a step, and two effects that the gate allowed

    return {
        "POST a decision": decide,
        "GET a gate's page": lambda: lambda: expect(reader.get(f"/gates/{gate.pk}/"), 200),
        "GET the inbox": lambda: lambda: expect(reader.get("/"), 200),
        "POST a gate by the API": post,
        "resume a run": resume,
    }


def expect(response: Any, status: int) -> None:
    assert response.status_code == status, response.content
