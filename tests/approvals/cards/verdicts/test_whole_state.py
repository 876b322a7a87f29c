"""An edit of the whole state lands in the run byte for byte, and effects do what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from approvals.models import Gate
from checkpoints import store
from checkpoints.models import Checkpoint, Run
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import ann, make_policy, make_team
from tests.factories.driven_runs import advance_to_rest, open_gate, state
from tests.harness.signed_in_clients import signed_in

from .verdict_forms import lines, make_three


def make_waiting(ledger: Path, *, allowed: bool) -> Run:
    team = make_team()
    make_policy(team, name="three", whole_state=allowed)
    return make_three(ledger, team=team)


def sent(by: User, gate: Gate, wanted: dict[str, Any]) -> Any:
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "edit", "state": wanted}
    return signed_in(by).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")


def wanted_of(run: Run) -> dict[str, Any]:
    """New values in two actions, in what no action shows, and a field less."""
    saved = state(run)
    wanted = {
        **saved,
        "one": {**saved["one"], "amount": 11},
        "two": {**saved["two"], "amount": 22},
        "said": "été \u200b",
    }
    del wanted["did_two"]
    return wanted


def test_it_lands_in_the_runs_state_byte_for_byte_and_is_what_the_effects_do(ledger: Path) -> None:
    run = make_waiting(ledger, allowed=True)
    wanted = wanted_of(run)
    assert sent(ann(run.team), open_gate(run), wanted).status_code == 201
    advance_to_rest(run)
    landed = store.load_checkpoint(Checkpoint.objects.get(run=run, kind="gate").id).state
    assert landed["decision"]["kind"] == "edited"
    told = {name: landed[name] for name in ("decision", "feedback")}  # the gate's own words to the agent
    assert encode_canonical(landed) == encode_canonical(wanted | told)
    assert (run.status, lines(ledger)[:2]) == ("completed", ["one 11", "two 22"])


def test_the_api_refuses_it_where_the_policy_does_not_allow_it(ledger: Path) -> None:
    run = make_waiting(ledger, allowed=False)
    before = state(run)
    answer = sent(ann(run.team), open_gate(run), wanted_of(run))
    assert answer.status_code == 422
    assert "does not let the state be edited as a whole" in answer.content.decode()
    assert (state(run), lines(ledger), open_gate(run).status) == (before, [], "open")


def test_the_api_names_a_fault_by_its_place_in_the_state(ledger: Path) -> None:
    run = make_waiting(ledger, allowed=True)
    answer = sent(ann(run.team), open_gate(run), state(run) | {"said": "x" * 31})
    assert answer.status_code == 422
    assert [each["parameter"] for each in answer.json()["errors"]] == ["/state/said"]
