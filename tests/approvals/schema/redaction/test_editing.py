"""Edits over masked values: what is left alone is the true value, and no placeholder is ever written."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from approvals.models import Draft, Gate
from approvals.schema.redact import placeholder_for
from checkpoints import store
from tests.agents.pages.moves.sent_orders import hidden, texts
from tests.factories.driven_runs import advance_to_rest, open_gate
from tests.harness.signed_in_clients import form_of, post, signed_in

from .vault_agent import KEY, SECRETS, SEED, TOKEN
from .vault_runs import make_people, make_run, member

STRAY = {"op": "copy", "from": "/token", "path": "/note"}


@pytest.fixture
def gate(ledger: str) -> Gate:
    return open_gate(make_run(make_people(whole=True), ledger, note="alone"))


def field(page: str, pattern: str) -> str:
    """The text of the text area whose tag matches."""
    found = re.search(rf"<textarea[^>]*{pattern}[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


def test_an_edit_of_the_form_keeps_the_secrets_beside_it(gate: Gate) -> None:
    ann = member(gate.team)
    answer = post(ann, gate, form_of(gate, "edit", **{"args.pay/amount": "13.00"}))
    assert answer.status_code == 303
    assert Gate.objects.get(pk=gate.pk).outcome.approved().actions[0].arguments == {
        "amount": "13.00", "token": TOKEN, "via": {"name": "one", "key": KEY},
    }  # fmt: skip


def test_an_edit_of_the_whole_state_keeps_them_and_the_run_uses_them(gate: Gate) -> None:
    ann = member(gate.team)
    text = field(signed_in(ann).get(f"/gates/{gate.pk}/").content.decode(), 'id="whole-state"')
    state = json.loads(text)
    assert (state["token"], state["seed"]) == (placeholder_for("/token"), placeholder_for("/seed"))
    state["note"], state["accounts"] = "fine", state["accounts"][1:]
    answer = post(ann, gate, form_of(gate, "edit", state=json.dumps(state)))
    assert answer.status_code == 303
    run = advance_to_rest(gate.run)
    saved = store.load(run).state
    assert (saved["token"], saved["seed"], saved["note"]) == (TOKEN, SEED, "fine")
    assert saved["accounts"] == [{"name": "two", "key": f"{KEY}2"}]


@pytest.mark.parametrize(
    "change",
    [
        {"note": placeholder_for("/token")},
        {"token": placeholder_for("/seed")},
        {"session": placeholder_for("/session")},
    ],
    ids=str,
)
def test_a_placeholder_where_it_would_be_a_value_is_refused(gate: Gate, change: dict[str, Any]) -> None:
    ann = member(gate.team)
    state = json.loads(field(signed_in(ann).get(f"/gates/{gate.pk}/").content.decode(), 'id="whole-state"'))
    form = form_of(gate, "edit", state=json.dumps({**state, **change}))
    answer = post(ann, gate, form)
    assert answer.status_code == 422
    assert "the placeholder stands for a secret" in answer.content.decode()
    assert not any(secret in answer.content.decode() for secret in SECRETS)
    with_api = {"seen": form["seen"], "verdict": "edit", "state": {**state, **change}}
    said = signed_in(ann).post(f"/api/gates/{gate.pk}/decisions", with_api, content_type="application/json")
    assert said.status_code == 422
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_value_put_in_its_place_keeps_what_is_masked(gate: Gate) -> None:
    ann = member(gate.team)
    written = {
        "amount": "14.00",
        "token": placeholder_for("/token"),
        "via": {"name": "x", "key": placeholder_for("/via/key")},
    }
    form = form_of(gate, "reject", **{"then": "override", "override.pay": json.dumps(written)})
    assert post(ann, gate, form).status_code == 303
    final = Gate.objects.get(pk=gate.pk).outcome.approved().actions[0].arguments
    assert final == {"amount": "14.00", "token": TOKEN, "via": {"name": "x", "key": KEY}}


def test_a_patch_can_neither_copy_a_secret_nor_guess_at_it(gate: Gate) -> None:
    ann = member(gate.team)
    for patch in ([STRAY], [STRAY | {"op": "move"}], [{"op": "test", "path": "/token", "value": TOKEN}]):
        body = {"at": 2, "patch": patch}
        answer = signed_in(ann).post(f"/api/runs/{gate.run_id}/edits", body, content_type="application/json")
        assert answer.status_code == 422, answer.content
    body = {"at": 2, "patch": [{"op": "replace", "path": "/note", "value": "seen"}]}
    assert (
        signed_in(ann).post(f"/api/runs/{gate.run_id}/edits", body, content_type="application/json").status_code == 200
    )
    assert store.load(gate.run).state["token"] == TOKEN


def test_the_form_of_a_runs_state_shows_no_secret_and_keeps_those_that_are_left_alone(gate: Gate) -> None:
    client, address = signed_in(member(gate.team)), f"/runs/{gate.run_id}"
    page = client.get(f"{address}/checkpoints/2/edit/").content.decode()
    assert not any(secret in page for secret in SECRETS)
    form = texts(page)
    assert {"state/token", "state/accounts/0/key", "state/accounts/1/name"} <= set(form)
    assert not {form["state/token"], form["state/accounts/0/key"]} - {""}
    form |= {"state/note": "fine", "state/accounts/1/key": "typed-secret-1", "at": "2"}
    seen = hidden(
        client.post(f"{address}/impacts/", form | {"kind": "edit"}, headers={"HX-Request": "true"}).content.decode()
    )
    assert client.post(f"{address}/edits/", form | seen).status_code == 302
    saved = store.load(gate.run).state
    assert (saved["token"], saved["seed"], saved["note"]) == (TOKEN, SEED, "fine")
    assert [each["key"] for each in saved["accounts"]] == [KEY, "typed-secret-1"]


@pytest.mark.parametrize(("order", "left"), [("/1", [f"{KEY}2"]), ("/1/0", [f"{KEY}2", KEY])])
def test_an_item_that_moves_in_the_form_of_a_state_takes_its_secret_along(
    gate: Gate, order: str, left: list[str]
) -> None:
    client, address = signed_in(member(gate.team)), f"/runs/{gate.run_id}"
    form = texts(client.get(f"{address}/checkpoints/2/edit/").content.decode())
    form |= {"state!order/accounts": order, "at": "2"}
    assert client.post(f"{address}/edits/", form).status_code == 302
    assert [each["key"] for each in store.load(gate.run).state["accounts"]] == left


def test_a_draft_keeps_no_secret_that_was_typed(gate: Gate) -> None:
    ann = member(gate.team)
    state = json.loads(field(signed_in(ann).get(f"/gates/{gate.pk}/").content.decode(), 'id="whole-state"'))
    typed = {"args.pay/token": "typed-secret-1", "state": json.dumps({**state, "token": "typed-secret-2", "note": "n"})}
    typed["override.pay"] = '{"token": "typed-secret-3"'
    signed_in(ann).post(f"/gates/{gate.pk}/drafts/", form_of(gate, "edit", comment="later", **typed))
    kept = Draft.objects.get(gate=gate).fields
    assert kept["comment"] == "later"
    assert json.loads(kept["state"])["note"] == "n"
    assert "typed-secret" not in str(kept)
