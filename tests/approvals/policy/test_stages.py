"""Who may decide when, and when a gate closes: quorums, stages, roles, named people, separated duties."""

from __future__ import annotations

import html
import json
import re
from functools import partial
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection

from approvals.errors import AlreadySaid, NotAllowed, NotVerifiable, SecondLookNeeded
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.models import Decision, Gate, Outcome, Policy
from approvals.policy import authority, required, separation
from approvals.policy.requirements import Requirements, Role, Stage
from checkpoints.models import Event
from tests.factories import (
    READER,
    ann,
    bob,
    decide,
    edit_amount,
    eve,
    make_gate,
    make_policy,
    make_team,
    make_user,
    waiting,
)
from tests.factories.gates import change_gate
from tests.harness.altered_rows import altered
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in


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


def test_two_last_voters_of_different_stages_at_once_leave_one_order() -> None:
    for _ in range(2):
        chain = Chain()
        decide(chain.gate, chain.fin)
        found = race([partial(decide, chain.gate, chain.ann), partial(decide, chain.gate, chain.lee)])
        early = [each for each in found if isinstance(each, NotAllowed)]
        assert len(early) + len([each for each in found if isinstance(each, Decision)]) == 2
        assert chain.status() == ("open" if early else "decided")
        if early:
            decide(chain.gate, chain.lee)
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


@pytest.mark.parametrize(
    ("of", "columns"),
    [
        ("proposal", {"requirements": Requirements(stages=(Stage(roles=(Role(people=(1,)),)),)).to_text()}),
        ("policy", {"rules": ""}),
        ("policy", {"denials": 9}),
    ],
)
def test_requirements_lowered_and_people_slipped_in_let_nobody_decide(of: str, columns: dict[str, Any]) -> None:
    chain = Chain(rules=[{"name": "all", "when": "true", "require": {"second_look": True}}])
    row = chain.policy if of == "policy" else chain.gate.standing()
    with altered(row, **columns), pytest.raises(NotVerifiable):
        decide(chain.gate, chain.fin)

    outsider = eve()
    chain.policy.people.add(outsider)
    with pytest.raises(NotVerifiable):
        decide(chain.gate, outsider)
    chain.policy.people.remove(outsider)
    with pytest.raises(NotAllowed):
        decide(chain.gate, outsider)


def test_one_rejection_closes_a_gate_also_by_whoever_approved_it_and_where_a_version_asked_for_two() -> None:
    team = make_team()
    rules = [{"name": "all", "when": "true", "require": {"denials": 2, "quorum": 3}}]
    gate, person = make_gate(policy=make_policy(team, denials=2, quorum=3, rules=rules)), ann(team)
    decide(gate, person)
    decide(gate, person, "reject", then="back", comment="Look again")
    outcome = Outcome.objects.get(gate=gate)
    assert (outcome.kind, outcome.then, outcome.back_to) == ("rejected", "back", "propose")
    assert (outcome.to_run, outcome.grants.count(), outcome.words) == (None, 0, "Look again")
    assert outcome.decisions.get().verdict == "reject"


def refused(gate: Gate, person: User) -> str:
    """Say why the person's approval was refused; the gate is as it was."""
    before = Gate.objects.values().get(pk=gate.pk)
    with pytest.raises(NotAllowed) as caught:
        decide(gate, person)
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert not gate.decisions.exists()
    return str(caught.value)


def test_outsiders_members_without_the_permission_and_superusers_are_refused_and_the_attempt_is_kept() -> None:
    gate = make_gate()
    outsider = eve()
    assert "with the permission “decide at the gates" in refused(gate, outsider)
    event = Event.objects.get(subject=gate.subject, kind="decision.refused")
    assert event.actor == f"user:{outsider.pk}"
    assert b'"kind":"not_allowed"' in bytes(event.data)

    team = make_team(may=READER)
    assert refused(make_gate(team=team), bob(team))

    gate, root = make_gate(), make_user("Root", superuser=True)
    assert refused(gate, root)
    assert gate.pk not in waiting(root)
    assert Gate.objects.visible_to(root).filter(pk=gate.pk).exists()


def test_an_account_switched_off_after_its_page_was_loaded_is_refused() -> None:
    team = make_team()
    person = ann(team)
    gate = make_gate(team=team)
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert refused(gate, person) == str(authority.SWITCHED_OFF)


APART = f"""
SELECT {separation.APART} FROM approvals_gate g JOIN approvals_policy s ON s.id = g.policy_id WHERE g.id = %s
"""


def apart_in_sql(person: User, gate: Gate) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(APART, [person.pk, person.pk, person.pk, gate.pk])
        ((answer,),) = cursor.fetchall()
    assert isinstance(answer, bool), "NULL is neither yes nor no, and NOT of it hides a gate from everybody"
    return answer


@pytest.mark.parametrize("separated", [True, False])
def test_both_forms_agree_whoever_started_the_run_asks_and_wrote_its_state(separated: bool) -> None:
    team = make_team()
    people = [ann(team), bob(team)]
    policy = make_policy(team, separation=separated)
    seen = set()
    for starter, asker, author in product([people[0], None], repeat=3):
        gate = make_gate(policy=policy, started_by=starter)
        change_gate(gate, asked_by=asker, authors=[author.pk] if author else [])
        gate = Gate.objects.select_related("run", "policy").get(pk=gate.pk)
        for person in people:
            behind = separated and person in (starter, asker, author)
            assert apart_in_sql(person, gate) == (person.pk in separation.apart_from(gate)) == behind
            assert bool(separation.why_apart(person.pk, gate)) == bool(authority.why_not(person, gate)) == behind
            assert (gate.pk in ReaderReach.of(person).ids(MINE, most=100)) == (not behind)
            seen.add(behind)
    assert seen == {separated, False}


def read(person: User, address: str) -> str:
    page = html.unescape(signed_in(person).get(address).content.decode())
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


def test_the_gate_says_who_is_needed_now_and_later_and_whose_turn_comes_later() -> None:
    chain = Chain()
    support, finance, legal = chain.support.name, chain.finance.name, chain.legal.name
    decide(chain.gate, chain.fin)
    with pytest.raises(AlreadySaid, match="another person must approve too"):
        decide(chain.gate, chain.fin)
    address = f"/gates/{chain.gate.pk}/"
    mine = read(chain.ann, address)
    assert f"One of {finance} and one of {support}, then one of {legal}." in mine
    assert f"Now one of {support}. Then one of {legal}." in mine
    assert f"Nothing runs until one more person approves. Still needed: one of {legal}" in mine
    assert f"Your turn comes later. First one of {support} must approve." in read(chain.lee, address)
    hers = make_gate(policy=chain.policy, started_by=chain.ann)  # so that she may not decide it
    assert f"Now one of {finance} and one of {support}. Then one of {legal}." in read(chain.ann, f"/gates/{hers.pk}/")
    assert f"waits for {support}" in read(chain.ann, "/")


def test_the_gate_says_which_rule_counts_and_which_could_not_be_evaluated() -> None:
    team = make_team("Support")
    ann = make_user("ann", team)
    rules = [
        {"name": "gold", "when": 'customer.tier == "gold"', "require": {"quorum": 1}},
        {"name": "large", "when": "amount >= 100", "require": {"step_up": True}},
    ]
    gate = make_gate(policy=make_policy(team, rules=rules))
    said = read(ann, f"/gates/{gate.pk}/")
    assert "By the rule “large”." in said
    assert "The rule “gold” could not be evaluated (there is no “customer”)" in said
    told = json.loads(signed_in(ann).get(f"/api/gates/{gate.pk}").content)
    assert told["step_up"] is True
    assert told["agreement"]["rules"][0] == "By the rule “large”."
    assert told["agreement"]["rejected"] == 0
