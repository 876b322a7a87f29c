"""A rule approves a gate by itself where it says so; a share is shown to people, and whatever is in doubt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import override_settings

from approvals.gates import automatic, closing
from approvals.models import Gate, Outcome, Policy
from approvals.policy import required
from checkpoints.actors import SYSTEM
from checkpoints.models import Event, Plan
from tests.factories import (
    decide,
    edit_amount,
    make_action,
    make_card,
    make_gate,
    make_policy,
    make_question,
    make_run,
    make_team,
    make_user,
)  # fmt: skip
from tests.factories import driven_runs as driven
from tests.factories.runs import make_plan
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

SMALL = {"name": "small", "when": "amount < 50", "require": {"auto": True}}
NEVER, ALWAYS = 0, 100  # percent that people see
EVERY = [{**SMALL, "when": "true"}]


def payments(team: Group, *, sample: int = NEVER, rules: Any = (SMALL,), **said: Any) -> Policy:
    policy = make_policy(team, name="payments", rules=list(rules), **said)
    Policy.objects.filter(pk=policy.pk).update(auto_sample=sample)
    return policy


@pytest.fixture
def team() -> Group:
    return make_team()


def test_a_run_goes_on_by_itself_and_all_of_it_is_marked_as_the_rules(team: Group, tmp_path: Path) -> None:
    policy = payments(team)
    run = driven.advance_to_rest(driven.make_run("payer", team=team, ledger=str(tmp_path / "ledger")))
    assert run.status == "completed"
    assert (tmp_path / "ledger").read_text().count("pay") == 1
    outcome = Outcome.objects.get(gate__run=run)
    assert (outcome.kind, outcome.by, outcome.by_name) == (
        "approved", f"policy:{policy.pk}", "the rule small of payments",
    )  # fmt: skip
    assert outcome.decisions.count() == 0
    assert Event.objects.get(kind="gate.closed", subject=f"gate:{outcome.gate_id}").actor == f"policy:{policy.pk}"
    page = signed_in(make_user("Ann", team)).get(f"/gates/{outcome.gate_id}/").content.decode()
    assert "the rule small of payments" in page


def test_a_sample_is_shown_to_people_and_says_so(team: Group, tmp_path: Path) -> None:
    payments(team, sample=ALWAYS)
    run = driven.advance_to_rest(driven.make_run("payer", team=team, ledger=str(tmp_path / "ledger")))
    gate = driven.open_gate(run)
    needs = required.of(gate.standing(), gate.policy)
    assert needs.sampled
    assert list(needs.rules) == ["small"]
    page = signed_in(make_user("Ann", team)).get(f"/gates/{gate.pk}/").content.decode()
    assert "A sample: the rule “small” would have approved this by itself." in page
    driven.decide(run)
    assert driven.advance_to_rest(run).status == "completed"


def test_a_sample_that_somebody_edited_says_by_which_rules_it_needs_what_it_needs(team: Group) -> None:
    """It said that these rules would have approved it by themselves, also the one that asks for two people."""
    large = {"name": "large", "when": "amount >= 500", "require": {"quorum": 2}}
    policy = payments(team, sample=ALWAYS, rules=[{**SMALL, "when": "amount < 500"}, large], quorum=2)
    gate, reviewer = make_gate(policy=policy), make_user("Ann", team)
    decide(gate, reviewer, "edit", arguments=edit_amount(gate, "900.00"))
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert "By the rules “small” and “large”." in page
    assert "would have approved this" not in page


def test_the_draw_is_a_share_that_nobody_can_tell_beforehand() -> None:
    policy = Policy(pk=7, auto_sample=10)
    asked = [str(number) for number in range(2000)]
    drawn = {each for each in asked if automatic.drawn(each, policy)}
    assert 130 < len(drawn) < 270
    with override_settings(SECRET_KEY="another-key-of-some-length-0123456789"):
        assert {each for each in asked if automatic.drawn(each, policy)} != drawn
    assert {each for each in asked if automatic.drawn(each, Policy(pk=8, auto_sample=10))} != drawn, "a version's own"
    assert not any(automatic.drawn(each, Policy(pk=7, auto_sample=NEVER)) for each in asked)
    assert all(automatic.drawn(each, Policy(pk=7, auto_sample=ALWAYS)) for each in asked)


def test_who_asks_for_the_same_again_or_with_another_note_draws_the_same_lot(team: Group) -> None:
    """A drawn payment was left open, and asked for again with another note until the rule approved it."""
    policy = payments(team, sample=50, rules=[{**SMALL, "when": "true"}])
    plan, lots = make_plan(), []
    for number in range(10):
        paid = {"to": f"Recipient {number}", "amount": "40.00"}
        cards = [
            make_card(actions=[make_action(pointer="", arguments=paid | {"note": note}, pinned=["/to", "/amount"])])
            for note in (("", "", "please") if number < 3 else ("",))
        ]
        gates = [make_gate(run=make_run(plan=plan, team=team), policy=policy, card=card) for card in cards]
        lots.append({gate.standing().requirements for gate in gates})
    assert [len(each) for each in lots] == [1] * 10
    assert len(set.union(*lots)) == 2, "some are drawn, and some not"
    questions = [make_card(title=f"Pay {number}", actions=[]) for number in range(10)]
    lots = [{make_gate(policy=policy, card=card).standing().requirements} for card in questions]
    assert len(set.union(*lots)) == 2, "one without actions draws by what its card says"


def asked(policy: Policy, plan: Plan, what: str, tool: str = "payments.refund") -> Gate:
    card = make_card(actions=[make_action(tool=tool, pointer="", arguments={"amount": "40.00", "to": what})])
    return Gate.objects.get(pk=make_gate(run=make_run(plan=plan, team=policy.team), policy=policy, card=card).pk)


def withdraw(gate: Gate) -> None:
    closing.withdraw(gate, by=SYSTEM, reason="Not needed.")


def expire(gate: Gate) -> None:
    closing.pass_deadline(gate)
    closing.expire(gate)


@pytest.mark.parametrize("closes", [withdraw, expire])
def test_a_draw_that_nobody_decided_goes_to_the_next_request_alike(team: Group, closes: Callable[[Gate], None]) -> None:
    """Whoever withdrew what was drawn and changed a word of it drew again: 5 of 12 were drawn, and none was decided."""
    plan = make_plan()
    closes(asked(payments(team, sample=ALWAYS, rules=EVERY), plan, "first"))
    policy = payments(team, rules=EVERY, version=2)
    carried = asked(policy, plan, "second")
    assert (carried.status, required.of(carried.standing(), policy).sampled) == ("open", True)
    assert asked(policy, plan, "beside").status == "decided", "one draw is for one gate"
    closes(carried)
    again = asked(policy, plan, "third")
    assert again.status == "open"
    decide(again, make_user("Ann", team))
    assert asked(policy, plan, "fourth").status == "decided"


def owing(team: Group, plan: Plan) -> Policy:
    """A policy under which the agent of this plan owes one sample, and that draws nothing itself."""
    withdraw(asked(payments(team, sample=ALWAYS, rules=EVERY), plan, "first"))
    return payments(team, rules=EVERY, version=2)


def test_a_draw_goes_to_no_other_agent_no_other_policy_no_harmless_request_and_no_gate_that_did_not_open(
    team: Group,
) -> None:
    """Whoever withdrew a drawn payment asked for a mail next: people saw the mail, and the payment drew again."""
    plan = make_plan()
    policy = owing(team, plan)
    other = make_policy(team, name="others", rules=EVERY)
    Policy.objects.filter(pk=other.pk).update(auto_sample=NEVER)
    assert asked(policy, make_plan(), "second").status == "decided"
    assert asked(other, plan, "second").status == "decided"
    assert asked(policy, plan, "decoy", tool="mail.send").status == "decided"
    with transaction.atomic():
        asked(policy, plan, "second")
        transaction.set_rollback(True)
    assert asked(policy, plan, "third").status == "open"


def test_two_requests_at_once_take_one_draw_over(team: Group) -> None:
    plan = make_plan()
    policy = owing(team, plan)
    found = race([partial(asked, policy, plan, str(number)) for number in range(4)])
    assert sorted(each.status for each in found) == ["decided", "decided", "decided", "open"]


def test_what_is_in_doubt_waits_for_people_and_so_does_what_the_rule_does_not_match(team: Group) -> None:
    doubts: list[list[Any]] = [
        [{"name": "unclear", "when": "customer.tier == 'gold'", "require": {"auto": True}}],  # no such field
        [{"name": "other", "when": "amount > 1", "require": {"quorum": 1}}, SMALL],  # an earlier rule counts
        [{"name": "small", "when": "amount < 50", "require": {"auto": True, "step_up": True}}],
        [{"name": "small", "when": "amount < 50", "require": {"auto": True, "second_look": True}}],
        [{**SMALL, "when": "amount < 1"}],
    ]
    for version, rules in enumerate(doubts, 1):
        gate = make_gate(policy=payments(team, rules=rules, version=version))
        assert Gate.objects.get(pk=gate.pk).status == "open", rules
    always = payments(team, rules=EVERY, version=len(doubts) + 1)
    question = make_gate(policy=always, card=make_question(), kind="recovery")
    assert Gate.objects.get(pk=question.pk).status == "open"


def test_what_was_rejected_before_waits_for_people(team: Group, tmp_path: Path) -> None:
    make_policy(team, name="payments")
    ledger = str(tmp_path / "ledger")
    run = driven.advance_to_rest(driven.make_run("payer", team=team, ledger=ledger))
    driven.decide(run, "reject")
    payments(team, version=2)
    again = driven.advance_to_rest(driven.make_run("payer", team=team, ledger=ledger))
    assert (again.status, driven.open_gate(again).attempt) == ("waiting", 2)
