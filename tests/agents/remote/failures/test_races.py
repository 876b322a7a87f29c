"""Several at once: one claims, one key is used once, one of two words about an effect counts."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from django.db import OperationalError

from agents.models import Effect
from agents.remote.session_cache import SESSIONS
from checkpoints.models import Checkpoint, Run
from tests.agents.remote.outside_program import WIRE, Program
from tests.harness.examples import first_alone
from tests.harness.waiting import PATIENCE

AT_ONCE = 8


def together(web: str, program: Program, address: str, bodies: list[dict[str, Any]], *, key: str = "") -> list[Any]:
    """POST all of these at once to the real web process."""
    headers = {"Authorization": f"Bearer {program.sent}", **({"Idempotency-Key": key} if key else {})}
    with httpx.Client(base_url=web, headers=headers, timeout=PATIENCE) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda body: client.post(f"/api/{address}", json=body), bodies))


def test_of_many_at_once_one_claims_the_run_saves_the_checkpoint_begins_the_effect_and_reports_it(web: str) -> None:
    program = Program()
    program.register()
    program.run = program.ok(program.post("runs", {"input": {"invoice": {}}}))["id"]
    answers = together(web, program, f"runs/{program.run}/claims", [{"worker": f"box:{n}"} for n in range(AT_ONCE)])
    assert Counter(each.status_code for each in answers) == {201: 1, 409: AT_ONCE - 1}
    assert Run.objects.get(pk=program.run).token == 1
    program.token = 1

    ops = [{"op": "set", "field": "payment", "value": WIRE}]
    body = {"token": program.token, "step": "draft", "ops": ops}
    answers = together(web, program, f"runs/{program.run}/checkpoints", [body] * AT_ONCE)
    assert Counter(each.status_code for each in answers) == {201: 1, 409: AT_ONCE - 1}
    assert {each.json()["code"] for each in answers if each.status_code == 409} == {"out_of_turn"}
    assert Checkpoint.objects.filter(run=program.run).count() == 2

    program.get_approved()
    begun = together(web, program, f"runs/{program.run}/effects", [{"token": program.token, "step": "wire"}] * AT_ONCE)
    effect = Effect.objects.get(run=program.run).pk
    assert {each.json()["next"]["effect"]["id"] for each in begun} == {effect}
    words: list[dict[str, Any]] = [
        {"token": program.token, "status": "done", "writes": {"receipt": {"id": f"tx_{n}"}}} for n in range(AT_ONCE)
    ]
    told = together(web, program, f"runs/{program.run}/effects/{effect}/results", words)
    assert Counter(each.status_code for each in told) == {201: 1, 409: AT_ONCE - 1}
    assert {each.json()["code"] for each in told if each.status_code == 409} == {"reported_before"}


def test_what_the_database_did_not_take_is_not_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn was kept for the next call before it was committed, and stayed when that failed."""
    program = Program()
    program.start()
    assert program.run in SESSIONS.entries

    def lost(*args: Any, **more: Any) -> Any:
        raise OperationalError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr("agents.api.programs.work.turn_response", lost)
        ops = [{"op": "set", "field": "payment", "value": WIRE}]
        with pytest.raises(OperationalError):
            program.work("checkpoints", step="draft", ops=ops)
    assert program.run not in SESSIONS.entries
    assert program.draft()["seq"] == 2


@pytest.mark.parametrize("time", first_alone([1, 0, 3]))
def test_a_late_report_and_the_next_claim_come_to_one_end(web: str, time: int) -> None:
    """The one held the effect and waited for the run, the other the run and waited for the effect: one was told 500."""
    program = Program()
    program.to_effect()
    effect = program.begin()
    program.lapse()
    headers = {"Authorization": f"Bearer {program.sent}"}
    report = {"token": program.token, "status": "done", "writes": {"receipt": {"id": "tx_1"}}}
    calls: list[tuple[str, dict[str, Any]]] = [("claims", {"worker": f"box:{n}"}) for n in range(3)]
    calls.insert(time, (f"effects/{effect['id']}/results", report))
    with httpx.Client(base_url=web, headers=headers, timeout=PATIENCE) as client, ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda call: client.post(f"/api/runs/{program.run}/{call[0]}", json=call[1]), calls))
    said = {each.status_code for (where, _), each in zip(calls, told, strict=True) if where == "claims"}
    assert told[time].status_code == 201
    assert said <= {201, 409}
    assert Effect.objects.get(pk=effect["id"]).status == "done"
