"""What a policy would have asked of the last gates is what it would ask, with what it would approve by itself."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.gates import closing
from approvals.models import Policy
from approvals.policy_changes.simulation import Simulation, simulate
from checkpoints.actors import SYSTEM
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import make_card, make_gate, make_policy, make_run, make_team

SMALL = {"name": "small", "when": "amount < 500", "require": {"auto": True}}


def tried(policy: Policy, *, gates: int = 2, sample: int = 10, **said: Any) -> Simulation:
    """Open gates under a policy, and try another version on them."""
    for _ in range(gates):
        make_gate(run=make_run(team=policy.team), policy=policy)
    rules = encode_canonical(said.pop("rules", [])).decode() if said.get("rules") else ""
    drafted = Policy(team=policy.team, name=policy.name, rules=rules, auto_sample=sample, **said)
    return simulate(drafted, groups=(), people=())


def test_what_a_rule_would_approve_is_no_gate_that_would_have_asked_one_person() -> None:
    """It said that each would have asked one person, and "Nothing else than was asked."."""
    found = tried(make_policy(make_team()), rules=[SMALL])
    assert found.sentences == [
        "A rule would have approved 2 of the last 2 gates without asking anybody, except for a sample of 10 percent.",
        "2 would have needed less than was asked.",
    ]
    assert [after.startswith("Approved automatically.") for _gate, _before, after in found.rows()] == [True] * 2
    without = tried(make_policy(make_team()), rules=[SMALL], sample=0).sentences
    assert without[0] == "A rule would have approved 2 of the last 2 gates without asking anybody."


@pytest.mark.parametrize("rules", [
    [{**SMALL, "require": {"auto": True, "step_up": True}}],
    [{**SMALL, "when": "customer.tier == 'gold'"}],  # it cannot be evaluated
])  # fmt: skip
def test_what_it_would_not_approve_by_itself_after_all_would_have_asked_people(rules: list[Any]) -> None:
    said = tried(make_policy(make_team()), rules=rules).sentences
    assert said[0] == "2 of the last 2 gates would have asked one person."


def test_a_question_is_never_approved_by_a_rule_in_a_trial_either() -> None:
    policy = make_policy(make_team())
    make_gate(policy=policy, card=make_card(actions=[]), kind="review")
    assert "without asking anybody" not in str(tried(policy, gates=0, rules=[SMALL]).sentences)


def test_a_second_look_less_is_less() -> None:
    """It was told as "more, or other people"."""
    policy = make_policy(make_team(), rules=[{"name": "all", "when": "true", "require": {"second_look": True}}])
    assert "2 would have needed less than was asked." in tried(policy).sentences


def test_samples_that_nobody_decided_are_told_of() -> None:
    policy = make_policy(make_team(), rules=[SMALL])
    Policy.objects.filter(pk=policy.pk).update(auto_sample=100)
    for _ in range(2):
        closing.withdraw(make_gate(run=make_run(team=policy.team), policy=policy), by=SYSTEM, reason="Not needed.")
    said = tried(policy, gates=0, rules=[SMALL]).sentences
    assert said[1] == "People decide the next 2 too: as many samples were withdrawn or expired undecided."
