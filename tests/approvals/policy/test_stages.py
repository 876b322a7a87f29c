"""Stages, roles and named people at a gate: who may decide when, and when it closes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group

from approvals.errors import AlreadySaid, NotAllowed, NotVerifiable, SecondLookNeeded
from approvals.models import Decision, Gate, Policy
from approvals.policy import required
from approvals.policy.requirements import Requirements, Role, Stage
from checkpoints.models import Event
from tests.factories.gates import add_team, decide, edit_amount, make_card, make_gate, make_policy, waiting
from tests.factories.people import make_team, make_user
from tests.harness.altered_rows import altered
from tests.harness.racing_threads import race


def stage(*roles: tuple[int, list[Group], list[int]]) -> dict[str, object]:
    return {
        "roles": [
            {"quorum": quorum, "groups": sorted(each.pk for each in groups), "people": people}
            for quorum, groups, people in roles
        ],
    }


class Chain:
    """One of Finance and one of Support, then one of Legal."""

    def __init__(self, **policy: object) -> None:
        self.support, self.finance, self.legal = make_team("Support"), make_team("Finance"), make_team("Legal")
        self.ann, self.fin, self.lee = (
            make_user("ann", self.support), make_user("fin", self.finance), make_user("lee", self.legal),
        )  # fmt: skip
        stages = [stage((1, [self.finance], []), (1, [self.support], [])), stage((1, [self.legal], []))]
        self.policy: Policy = make_policy(self.support, stages=stages, **policy)  # type: ignore[arg-type]
        self.gate = make_gate(policy=self.policy)

    def status(self) -> str:
        return Gate.objects.get(pk=self.gate.pk).status


def test_an_added_team_may_stand_in_for_a_person_who_is_named() -> None:
    support, directors = make_team("Support"), make_team("Directors")
    mira, dora = make_user("mira", support), make_user("dora", directors)
    policy = make_policy(support, stages=[stage((1, [], [mira.pk]))])
    gate = make_gate(policy=policy)
    add_team(gate, directors)
    decide(gate, dora)
    assert Gate.objects.get(pk=gate.pk).status == "decided"


def test_a_later_stage_sees_the_gate_but_decides_only_when_it_is_reached() -> None:
    chain = Chain()
    assert Gate.objects.visible_to(chain.lee).filter(pk=chain.gate.pk).exists()
    assert waiting(chain.lee) == []
    assert waiting(chain.fin) == waiting(chain.ann) == [chain.gate.pk]
    with pytest.raises(NotAllowed, match=r"First one of Finance-\w+ and one of Support-\w+ must approve"):
        decide(chain.gate, chain.lee)
    decide(chain.gate, chain.fin)
    assert (waiting(chain.fin), waiting(chain.ann)) == ([], [chain.gate.pk])
    with pytest.raises(AlreadySaid):
        decide(chain.gate, chain.fin)
    decide(chain.gate, chain.ann)
    assert (chain.status(), waiting(chain.lee)) == ("open", [chain.gate.pk])
    decide(chain.gate, chain.lee)
    assert chain.status() == "decided"
    assert chain.gate.outcome.decisions.count() == 3


def test_rules_raise_what_an_edit_needs_and_never_lower_it() -> None:
    rules = [{"name": "large", "when": "amount >= 100", "require": {"quorum": 2, "risk": "high"}}]
    team = make_team("Support")
    ann, bob = make_user("ann", team), make_user("bob", team)
    gate = make_gate(policy=make_policy(team, rules=rules))
    needs = required.of(gate.standing(), gate.policy)
    assert (needs.slots, needs.rules, gate.risk) == (2, ("large",), "high")
    decide(gate, ann, "edit", arguments=edit_amount(gate, "5.00"))
    gate.refresh_from_db()
    assert (gate.status, required.of(gate.standing(), gate.policy).slots) == ("open", 2)
    decide(gate, bob)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_two_rejections_reject_and_an_edit_washes_none_away() -> None:
    team = make_team("Support")
    ann, bob, mira = make_user("ann", team), make_user("bob", team), make_user("mira", team)
    gate = make_gate(policy=make_policy(team, denials=2, quorum=2))
    decide(gate, ann, "reject")
    gate.refresh_from_db()
    assert gate.status == "open"
    decide(gate, bob, "edit", arguments=edit_amount(gate, "5.00"))
    decide(gate, mira, "reject")
    gate.refresh_from_db()
    assert (gate.status, gate.outcome.kind) == ("decided", "rejected")
    assert gate.outcome.decisions.count() == 2


def test_a_person_named_beside_the_groups_decides_without_a_team() -> None:
    team = make_team("Support")
    eve = make_user("eve")
    gate = make_gate(policy=make_policy(team, people=(eve,)))
    assert waiting(eve) == [gate.pk]
    decide(gate, eve)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_two_last_voters_of_different_stages_at_once_leave_one_order() -> None:
    for _ in range(6):
        chain = Chain()
        decide(chain.gate, chain.fin)
        found = race([partial(decide, chain.gate, chain.ann), partial(decide, chain.gate, chain.lee)])
        early = [each for each in found if isinstance(each, NotAllowed)]
        assert len(early) + len([each for each in found if isinstance(each, Decision)]) == 2
        assert chain.status() == ("open" if early else "decided")
        if early:
            decide(chain.gate, chain.lee)
        assert chain.status() == "decided"


def test_two_last_voters_of_one_stage_at_once_close_it_once() -> None:
    chain = Chain()
    found = race([partial(decide, chain.gate, chain.ann), partial(decide, chain.gate, chain.fin)])
    assert all(isinstance(each, Decision) for each in found)
    assert waiting(chain.lee) == [chain.gate.pk]


def test_a_vote_of_somebody_who_lost_their_team_lapses_and_their_stage_is_asked_again() -> None:
    chain = Chain()
    decide(chain.gate, chain.fin)
    decide(chain.gate, chain.ann)
    chain.fin.groups.clear()
    other = make_user("other", chain.finance)
    with pytest.raises(NotAllowed, match=r"First one of Finance-\w+ must approve"):
        decide(chain.gate, chain.lee)
    assert (waiting(chain.lee), waiting(other)) == ([], [chain.gate.pk])
    decide(chain.gate, other)
    decide(chain.gate, chain.lee)
    assert chain.status() == "decided"
    assert set(chain.gate.outcome.decisions.values_list("user", flat=True)) == {chain.ann.pk, other.pk, chain.lee.pk}


def test_an_edit_by_a_later_stage_counts_as_its_approval_and_the_earlier_ones_are_asked_again() -> None:
    chain = Chain()
    decide(chain.gate, chain.fin)
    decide(chain.gate, chain.ann)
    decide(chain.gate, chain.lee, "edit", arguments=edit_amount(chain.gate, "80.00"))
    assert (waiting(chain.fin), waiting(chain.ann), waiting(chain.lee)) == ([chain.gate.pk], [chain.gate.pk], [])
    decide(chain.gate, chain.fin)
    decide(chain.gate, chain.ann)
    assert chain.status() == "decided"


def test_an_edit_that_raises_the_amount_asks_more_people() -> None:
    team, legal = make_team("Support"), make_team("Legal")
    ann, lee = make_user("ann", team), make_user("lee", legal)
    stages = [stage((1, [team], [])), stage((1, [legal], []))]
    rules = [{"name": "large", "when": "amount >= 1000", "require": {"stages": stages, "risk": "critical"}}]
    gate = make_gate(policy=make_policy(team, rules=rules))
    assert (gate.risk, waiting(lee)) == ("medium", [])
    with pytest.raises(NotAllowed, match="others decide this one: One of Support"):
        decide(gate, lee)
    decide(gate, ann, "edit", arguments=edit_amount(gate, "5000.00"))
    gate.refresh_from_db()
    assert (gate.status, gate.risk, waiting(lee)) == ("open", "critical", [gate.pk])
    told = Event.objects.get(subject=gate.subject, kind="gate.decided")
    assert b'"rules":["large"]' in bytes(told.data)
    decide(gate, lee)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_a_rule_may_ask_for_a_second_look() -> None:
    team = make_team("Support")
    ann = make_user("ann", team)
    rules = [{"name": "look", "when": "true", "require": {"second_look": True}}]
    gate = make_gate(policy=make_policy(team, rules=rules))
    with pytest.raises(SecondLookNeeded, match="policy asks for a second look"):
        decide(gate, ann)
    decide(gate, ann, second_look=True)
    gate.refresh_from_db()
    assert gate.status == "decided"


def test_a_rule_that_cannot_be_evaluated_is_said_on_the_gate() -> None:
    team = make_team("Support")
    rules = [{"name": "gold", "when": 'customer.tier == "gold"', "require": {"quorum": 1}}]
    gate = make_gate(policy=make_policy(team, quorum=2, rules=rules), card=replace(make_card(), title="Refund"))
    needs = required.of(gate.standing(), gate.policy)
    assert (needs.slots, needs.unclear) == (2, (("gold", "there is no “customer”"),))


@pytest.mark.parametrize(
    ("of", "columns"),
    [
        ("proposal", {"requirements": ""}),
        ("proposal", {"requirements": Requirements(stages=(Stage(roles=(Role(people=(1,)),)),)).to_text()}),
        ("policy", {"rules": ""}),
        ("policy", {"stages": ""}),
        ("policy", {"denials": 9}),
    ],
)
def test_requirements_that_were_lowered_in_their_rows_let_nobody_decide(of: str, columns: dict[str, Any]) -> None:
    chain = Chain(rules=[{"name": "all", "when": "true", "require": {"denials": 2}}])
    row = chain.policy if of == "policy" else chain.gate.standing()
    with altered(row, **columns), pytest.raises(NotVerifiable):
        decide(chain.gate, chain.fin)


def test_nor_does_a_person_whom_somebody_slipped_in() -> None:
    chain, eve = Chain(), make_user("eve")
    chain.policy.people.add(eve)
    with pytest.raises(NotVerifiable):
        decide(chain.gate, eve)
    chain.policy.people.remove(eve)
    with pytest.raises(NotAllowed):
        decide(chain.gate, eve)


def test_whoever_takes_a_rejection_back_by_an_approval_counts_once() -> None:
    team = make_team("Support")
    ann, bob = make_user("ann", team), make_user("bob", team)
    gate = make_gate(policy=make_policy(team, denials=2))
    decide(gate, ann, "reject")
    with pytest.raises(AlreadySaid):
        decide(gate, ann, "reject")
    decide(gate, ann)
    gate.refresh_from_db()
    assert (gate.status, gate.outcome.kind) == ("decided", "approved")
    other = make_gate(policy=gate.policy)
    decide(other, ann, "reject")
    decide(other, bob, "reject", comment="Nor I.")
    other.refresh_from_db()
    assert (other.outcome.kind, other.outcome.words) == ("rejected", "Not like this.\n\nNor I.")
