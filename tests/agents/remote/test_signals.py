"""Signals to runs of external agents: declared with the version, read and awaited by the program."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from agents.api.protocol.waiting import AWAITS
from checkpoints import actors
from checkpoints.models import Plan, Run
from tests.agents.api.test_waiting import Answered
from tests.agents.remote.outside_program import SCHEMA, STEPS, Program
from tests.harness.waiting import PATIENCE

SIGNALS: dict[str, Any] = {
    "delivered": {"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]},
    "stop": {"type": "null"},
}


def started() -> Program:
    program = Program()
    program.register(signals=SIGNALS)
    told = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}}}))
    program.run = told["id"]
    program.claim()
    return program


def send(program: Program, name: str, value: Any, key: str = "") -> Any:
    return program.post(f"runs/{program.run}/signals/{name}", {"value": value, "key": key})


def values(program: Program, name: str, after: int = 0) -> list[tuple[int, Any]]:
    answer = program.client.get(f"/api/runs/{program.run}/signals/{name}", {"after": after})
    assert answer.status_code == 200, answer.content
    return [(each["id"], each["value"]) for each in answer.json()["items"]]


def test_a_program_reads_the_signals_of_its_run_each_once_and_in_order() -> None:
    program = started()
    assert values(program, "delivered") == []
    for by in ("ann", "bob"):
        assert send(program, "delivered", {"by": by}, key=by).status_code == 201
    assert send(program, "delivered", {"by": "ann"}, key="ann").status_code == 200  # sent twice
    send(program, "stop", None)
    read = values(program, "delivered")
    assert [value for _, value in read] == [{"by": "ann"}, {"by": "bob"}]
    assert values(program, "delivered", after=read[0][0]) == [read[1]]
    assert [value for _, value in values(program, "stop")] == [None]


def test_a_value_is_checked_by_the_schema_of_the_version() -> None:
    program = started()
    assert send(program, "delivered", {"by": 7}).json()["errors"][0]["parameter"] == "/value/by"
    assert send(program, "nothing", None).status_code == 422


def test_only_a_run_that_lives_is_waited_for() -> None:
    program = started()
    address = f"/api/runs/{program.run}/signals/stop"
    assert program.client.get(address)[AWAITS] == f"signals.{program.run}"
    Run.objects.filter(pk=program.run).update(status="cancelled")
    assert AWAITS not in program.client.get(address)


def test_a_waiting_program_hears_of_a_signal_as_soon_as_it_is_there(web: str) -> None:
    program = started()
    with httpx.Client(base_url=web, headers={"Authorization": f"Bearer {program.sent}"}, timeout=PATIENCE) as client:
        waiting = Answered(client, f"/api/runs/{program.run}/signals/stop", wait=60)
        waiting.join(0.5)
        assert waiting.answer is None
        send(program, "stop", None)
        assert [each["value"] for each in waiting.told()["items"]] == [None]


def test_a_waiting_program_hears_that_its_run_has_ended(web: str) -> None:
    program = started()
    with httpx.Client(base_url=web, headers={"Authorization": f"Bearer {program.sent}"}, timeout=PATIENCE) as client:
        waiting = Answered(client, f"/api/runs/{program.run}/signals/stop", wait=60)
        waiting.join(0.5)
        assert waiting.answer is None
        Run.objects.get(pk=program.run).cancel(by=actors.SYSTEM)
        assert waiting.told()["items"] == []


@pytest.mark.parametrize(
    ("signals", "pointer"),
    [({"Not a name": {}}, "/signals/Not a name"), ({"go": {"type": "nothing"}}, "/signals/go")],
)
def test_signals_that_cannot_be_are_refused(signals: dict[str, Any], pointer: str) -> None:
    program = Program()
    body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS, "signals": signals}
    answer = program.post(f"agents/{program.agent}/versions", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["parameter"] == pointer


def test_a_plan_without_signals_is_the_same_as_before_there_were_any() -> None:
    program = Program()
    program.register()
    assert b"signals" not in bytes(Plan.objects.get(agent=program.agent).body)
