"""Stages, roles and named people at a gate: who may decide when, and when it closes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from approvals.errors import AlreadySaid, NotAllowed
from approvals.models import Gate, Policy
from approvals.policy import required
from tests.factories.gates import decide, edit_amount, make_gate, make_policy, waiting
from tests.factories.people import make_team, make_user


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


def test_a_later_stage_sees_the_gate_but_decides_only_when_it_is_reached() -> None:
    chain = Chain()
    assert Gate.objects.visible_to(chain.lee).filter(pk=chain.gate.pk).exists()
    assert waiting(chain.lee) == []
    assert waiting(chain.fin) == waiting(chain.ann) == [chain.gate.pk]
    with pytest.raises(NotAllowed, match=r"First one of Finance-\w+ and one of Support-\w+ must approve"):
        decide(chain.gate, chain.lee)
    decide(chain.gate, chain.fin)
    assert waiting(chain.fin) == [] and waiting(chain.ann) == [chain.gate.pk]
    with pytest.raises(AlreadySaid):
        decide(chain.gate, chain.fin)
    decide(chain.gate, chain.ann)
    assert chain.status() == "open" and waiting(chain.lee) == [chain.gate.pk]
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
    assert gate.status == "open" and required.of(gate.standing(), gate.policy).slots == 2
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
    assert gate.status == "decided" and gate.outcome.kind == "rejected"
    assert gate.outcome.decisions.count() == 2


def test_a_person_named_beside_the_groups_decides_without_a_team() -> None:
    team = make_team("Support")
    eve = make_user("eve")
    gate = make_gate(policy=make_policy(team, people=(eve,)))
    assert waiting(eve) == [gate.pk]
    decide(gate, eve)
    gate.refresh_from_db()
    assert gate.status == "decided"
