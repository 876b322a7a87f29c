"""A secret that a person gives, in an action's place or to a question, is told to nobody else.

It stood in the gate's card, its outcome and its page, and was written into fields of the state that hide nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Draft, Gate
from checkpoints import store
from checkpoints.models import Run
from tests.factories import make_policy, make_user
from tests.factories.driven_runs import advance_to_rest, answer, open_gate
from tests.factories.driven_runs import decide as decide_run
from tests.factories.driven_runs import make_run as started
from tests.harness.signed_in_clients import form_of, post, signed_in

from .vault_runs import make_people, member

GIVEN = "given-5b1e77aa"
APPROVE = {"verdict": "approve"}


def waiting(ledger: str, *, quorum: int = 1, **more: Any) -> tuple[Run, User]:
    """A run that waits at its gate, and somebody who may decide it but see no secret."""
    team = make_people()
    if quorum > 1:
        make_policy(team, name="default", version=2, quorum=quorum, separation=False)
    return advance_to_rest(started("teller", team=team, ledger=ledger, **more)), member(team)


def told_by(run: Run, reader: User) -> list[str]:
    """The addresses that tell what was given."""
    client, found = signed_in(reader), []
    addresses = [f"/runs/{run.pk}/", f"/runs/{run.pk}/events/"]
    for seq in range(1, Run.objects.get(pk=run.pk).seq + 1):
        addresses += [f"/runs/{run.pk}/?at={seq}&view=state", f"/api/runs/{run.pk}/checkpoints/{seq}"]
    for gate in Gate.objects.filter(run=run).values_list("pk", flat=True):
        addresses += [f"/gates/{gate}/", f"/gates/{gate}/preview/", f"/gates/{gate}/status/?seen=1"]
        addresses += [f"/api/gates/{gate}", f"/api/gates/{gate}/outcome"]
    for address in addresses:
        said = client.get(address)
        assert said.status_code == 200, address
        found += [address] if GIVEN.encode() in said.content else []
    return found


def respond(gate: Gate, by: User) -> Any:
    """Give the code instead of having it fetched."""
    body = {
        "seen": bytes(gate.standing().digest).hex(),
        "actions": {"fetch": {"verdict": "respond", "response": GIVEN}, "tell": APPROVE},
    }
    return signed_in(by).post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")


@pytest.mark.parametrize("quorum", [1, 2])
def test_a_secret_given_in_an_actions_place_is_told_nowhere(ledger: str, quorum: int) -> None:
    run, ann = waiting(ledger, quorum=quorum)
    gate = open_gate(run)
    assert respond(gate, ann).status_code == 201
    reader = make_user("Bob Reed", run.team)
    assert told_by(run, reader) == []
    if quorum > 1:
        decide_run(run, by=reader)
    run = advance_to_rest(run)
    state = store.load(run).state
    assert (run.status, state["code"]) == ("completed", GIVEN)
    assert GIVEN not in json.dumps([state["feedback"], state["decision"]])
    assert told_by(run, reader) == []


def test_a_secret_given_to_a_question_is_told_nowhere(ledger: str) -> None:
    run, _ = waiting(ledger, lost=True)
    decide_run(run)
    run = advance_to_rest(run)
    answer(run, "happened", {"code": GIVEN})
    reader = make_user("Bob Reed", run.team)
    assert told_by(run, reader) == []
    run = advance_to_rest(run)
    assert (run.status, store.load(run).state["code"]) == ("completed", GIVEN)
    assert told_by(run, reader) == []


def test_a_secret_given_to_a_question_is_not_told_to_who_comes_second(ledger: str) -> None:
    run, _ = waiting(ledger, quorum=2, lost=True)
    for name in ("Ann Okafor", "Bob Reed"):
        decide_run(run, by=make_user(name, run.team))
    run = advance_to_rest(run)
    gate = open_gate(run)
    body = {"seen": bytes(gate.standing().digest).hex(), "verdict": "answer", "answer": {"choice": "not_happened"}}
    answer(run, "happened", {"code": GIVEN})
    late = signed_in(make_user("Bob Reed", run.team))
    said = late.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json")
    assert (said.status_code, said.json()["code"]) == (409, "stale")
    assert said.json()["changes"]
    assert GIVEN not in said.content.decode()


@pytest.mark.parametrize("closed", [False, True])
def test_a_secret_that_was_typed_comes_back_on_no_page(ledger: str, closed: bool) -> None:
    run, ann = waiting(ledger)
    gate = open_gate(run)
    beside = "approve" if closed else "edit"
    typed = {"verdict.fetch": "respond", "response.fetch": json.dumps(GIVEN), "verdict.tell": beside}
    form = form_of(gate, "each", **typed)
    if closed:
        decide_run(run)
    page = post(ann, gate, form)
    assert page.status_code == (409 if closed else 422)
    assert GIVEN not in page.content.decode()


@pytest.mark.parametrize("lost", [False, True])
def test_a_draft_keeps_no_secret_that_was_given(ledger: str, lost: bool) -> None:
    run, ann = waiting(ledger, lost=lost)
    typed = {"response.fetch": GIVEN, "verdict.fetch": "respond"}
    if lost:
        decide_run(run)
        run = advance_to_rest(run)
        typed = {"answer": "happened", "value.happened/code": GIVEN}
    gate = open_gate(run)
    form = form_of(gate, "each" if not lost else "answer", comment="later", **typed)
    signed_in(ann).post(f"/gates/{gate.pk}/drafts/", form)
    kept = Draft.objects.get(gate=gate).fields
    assert kept["comment"] == "later"
    assert GIVEN not in str(kept)
