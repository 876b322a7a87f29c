"""A rewind, an edit and a fork take the confirmation that a decision takes.

Where a policy asked for a password before each decision, a session that somebody had left open could change the amount
that was asked about, and fork the run, without any. Later it still could where the plan named a policy that the team
does not have, where only runs below asked for it, and where the fork went on under another version.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.definition import registry
from agents.errors import OrderNotConfirmed, RewindRefused
from agents.moves import confirmation
from agents.moves import fork as forks
from agents.moves import rewind as rewinds
from agents.moves.cancel import cancel
from agents.runs.start import start_run
from approvals.accounts.factors import ProofMethod
from approvals.models import Policy
from approvals.policy.step_up import Confirmed
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.children.families import children, to_rest
from tests.factories import ann, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, make_run
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in


@pytest.fixture(autouse=True)
def _these_agents(_only_these_agents: None, settings: Any) -> None:
    settings.HOLDPOINT_AGENTS = [*settings.HOLDPOINT_AGENTS, "tests.agents.moves.confirmed_agents"]
    registry.forget()


PASSWORD = "open sesame again"
RULE = {"name": "large", "when": "amount > 5", "require": {"step_up": True}}
PATCH = [{"op": "replace", "path": "/size", "value": 90}]


def waiting(ledger: str, **policy: Any) -> Run:
    """A booking at its gate, in a team whose default policy is this."""
    make_policy(team := make_team(), name="default", **policy)
    return advance_to_rest(make_run("booking", team=team, ledger=ledger))


def ways(run: Run, by: User, confirmed: Confirmed | None) -> dict[str, bool]:
    """Which orders are carried out."""
    orders: dict[str, Callable[[], Run]] = {
        "edit": lambda: rewinds.edit(run, at=1, patch=PATCH, by=by, confirmed=confirmed),
        "rewind": lambda: rewinds.rewind(run, to=1, by=by, confirmed=confirmed),
        "fork": lambda: forks.fork(run, at=1, by=by, confirmed=confirmed),
    }
    done = {}
    for name, order in orders.items():
        try:
            order()
            done[name] = True
        except OrderNotConfirmed:
            done[name] = False
    return done


@pytest.mark.parametrize(
    ("policy", "method"),
    [
        ({}, ""),
        ({"step_up": True}, "any"),
        ({"step_up": True, "step_up_method": "passkey"}, "passkey"),
        ({"rules": [RULE]}, "any"),
    ],
)
def test_an_order_takes_what_a_decision_may_take(ledger: str, policy: dict[str, Any], method: str) -> None:
    run = waiting(ledger, **policy)
    assert confirmation.needed(run) == method
    by = ann(run.team)
    password = Confirmed(by.pk, {ProofMethod.PASSWORD: timezone.now()})
    passkey = Confirmed(by.pk, {ProofMethod.PASSKEY: timezone.now()})
    assert set(ways(run, by, None).values()) == {not method}
    assert set(ways(run, by, password).values()) == {method != "passkey"}
    assert set(ways(run, by, passkey).values()) == {True}


def test_the_strictest_policy_of_the_plan_and_of_the_gate_decides(ledger: str) -> None:
    """The gate keeps the version that it was opened under; a later one may ask for more."""
    run = waiting(ledger)
    make_policy(run.team, name="default", version=2, step_up=True)
    assert confirmation.needed(run) == "any"
    run = waiting(ledger, step_up=True)
    make_policy(run.team, name="default", version=2)
    assert confirmation.needed(run) == "any"


def test_a_name_that_the_team_does_not_have_is_resolved_as_its_gates_resolve_it() -> None:
    make_policy(team := make_team(), name="default", step_up=True)
    run = make_run("wired", team=team)
    assert confirmation.needed(run) == "any"
    run = advance_to_rest(run)
    make_policy(team, name="default", version=2, step_up=True, step_up_method="passkey")
    assert confirmation.needed(run) == "passkey"


def test_to_ask_what_an_order_takes_writes_no_policy() -> None:
    assert confirmation.needed(run := make_run("wired")) == ""
    assert not Policy.objects.filter(team=run.team).exists()


def test_an_order_takes_what_the_gates_of_the_runs_below_take() -> None:
    """The grandparent has no gate: its orders change what the runs below ask about, by their gates or later ones."""
    make_policy(team := make_team(), name="default")
    make_policy(team, name="payments", step_up=True)
    run = to_rest(make_run("manager", team=team))
    [below] = children(run)
    [lowest] = children(below)
    assert [confirmation.needed(each) for each in (run, below, lowest)] == ["any"] * 3
    make_policy(team, name="payments", version=2)
    assert confirmation.needed(run) == "any", "its gate keeps the version that it was opened under"
    cancel(lowest, by=SYSTEM, reason="")
    to_rest(run)
    make_policy(team, name="payments", version=3, step_up=True)
    assert confirmation.needed(run) == "", "nothing below lives any more"


def test_a_fork_to_another_version_takes_what_its_gates_take() -> None:
    make_policy(team := make_team(), name="default")
    make_policy(team, name="payments", step_up=True)
    run = advance_to_rest(start_run(registry.agent_named("branched", "1"), {}, by=SYSTEM, team=team))
    by = ann(team)
    assert forks.fork(run, at=1, by=by).pk
    with pytest.raises(OrderNotConfirmed):
        forks.fork(run, at=1, by=by, version="2")
    assert forks.fork(run, at=1, by=by, version="2", confirmed=just_confirmed(by)).plan.version == "2"


def just_confirmed(by: User) -> Confirmed:
    return Confirmed(by.pk, {ProofMethod.PASSWORD: timezone.now()})


def test_the_page_asks_before_anything_is_typed_and_a_form_without_it_keeps_its_input(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    client = signed_in(make_user("Ann Okafor", run.team, password=PASSWORD))
    for kind in ("edit", "fork"):
        page = f"/runs/{run.pk}/checkpoints/1/{kind}/"
        asked = client.get(page)
        assert (asked.status_code, asked["Location"].split("?")[0]) == (302, "/accounts/reauthenticate/")
    refused = client.post(f"/runs/{run.pk}/edits/", {"kind": "edit", "at": "1", "state/size": "90"})
    assert refused.status_code == 403
    assert "Confirm in another tab" in refused.content.decode()
    confirm(client)
    assert client.get(f"/runs/{run.pk}/checkpoints/1/edit/").status_code == 200
    assert client.post(f"/runs/{run.pk}/rewinds/", {"kind": "rewind", "at": "1", "to": "1"}).status_code == 302


def test_a_token_confirms_nothing(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    _, sent = make_token(ann(run.team))
    answer = bearing(sent).post(
        f"/api/runs/{run.pk}/edits", json.dumps({"at": 1, "patch": PATCH}), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "not_confirmed")


def test_an_order_that_was_done_is_the_same_order_later(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    by = ann(run.team)
    lately = Confirmed(by.pk, {ProofMethod.PASSWORD: timezone.now()})
    made = forks.fork(run, at=1, by=by, key="once", confirmed=lately)
    assert forks.fork(run, at=1, by=by, key="once").pk == made.pk
    with pytest.raises(RewindRefused):
        forks.fork(run, at=1, by=by, key="another")


def confirm(client: Client) -> None:
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/"})
