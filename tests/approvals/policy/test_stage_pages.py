"""Stages, rejections and rules as the pages and the API say them."""

from __future__ import annotations

import html
import json
import re

from django.contrib.auth.models import User

from tests.approvals.policy.test_stages import Chain
from tests.factories.gates import decide, make_gate, make_policy
from tests.factories.people import make_team, make_user
from tests.harness.signed_in_clients import signed_in


def read(person: User, address: str) -> str:
    page = html.unescape(signed_in(person).get(address).content.decode())
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


def test_the_gate_says_who_is_needed_now_and_later_and_whose_turn_comes_later() -> None:
    chain = Chain(denials=2)
    support, finance, legal = chain.support.name, chain.finance.name, chain.legal.name
    decide(chain.gate, chain.fin)
    address = f"/gates/{chain.gate.pk}/"
    mine = read(chain.ann, address)
    assert f"One of {finance} and one of {support}, then one of {legal}. Two rejections reject." in mine
    assert f"Now one of {support}. Then one of {legal}." in mine
    assert f"Nothing runs until one more person approves. Still needed: one of {legal}" in mine
    assert "Yours is rejection 1 of 2. The gate stays open until one more person rejects" in mine
    assert f"Your turn comes later. First one of {support} must approve." in read(chain.lee, address)
    assert f"waits for {support}" in read(chain.ann, "/")
    decide(chain.gate, chain.ann, "reject")
    assert "The gate is rejected once one more person rejects it." in read(chain.ann, address)
    assert "1 of 2 rejections" in read(chain.fin, address)


def test_the_gate_says_which_rule_counts_and_which_could_not_be_evaluated() -> None:
    team = make_team("Support")
    ann = make_user("ann", team)
    rules = [
        {"name": "gold", "when": 'customer.tier == "gold"', "require": {"quorum": 1}},
        {"name": "large", "when": "amount >= 100", "require": {"denials": 2, "step_up": True}},
    ]
    gate = make_gate(policy=make_policy(team, rules=rules))
    said = read(ann, f"/gates/{gate.pk}/")
    assert "By the rule “large”." in said
    assert "The rule “gold” could not be evaluated (there is no “customer”)" in said
    told = json.loads(signed_in(ann).get(f"/api/gates/{gate.pk}").content)
    assert told["step_up"] is True
    assert told["agreement"]["rules"][0] == "By the rule “large”."
    assert (told["agreement"]["denials"], told["agreement"]["rejected"]) == (1, 0)


def test_the_api_previews_what_is_left_by_roles_and_refuses_who_comes_later() -> None:
    chain = Chain()
    impacts = f"/api/gates/{chain.gate.pk}/impacts"
    left = {each["choice"]: each["left"] for each in signed_in(chain.ann).get(impacts).json()["items"]}
    assert (left["approve"], left["stop"]) == (2, 0)
    told = signed_in(chain.lee).get(f"/api/gates/{chain.gate.pk}").json()["agreement"]
    assert told["asked"].startswith("Now one of")
    sent = {"seen": bytes(chain.gate.standing().digest).hex(), "verdict": "approve"}
    answer = signed_in(chain.lee).post(impacts, sent, content_type="application/json")
    assert answer.status_code == 403
    assert "Your turn comes later" in answer.json()["detail"]
