"""A change of a policy is milder or not, setting by setting, and is tried on the last gates; in doubt it is milder."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals.gates import closing
from approvals.models import Policy
from approvals.models.policy import SETTINGS
from approvals.policy.requirements import Requirements, Role, Rule, Stage, stages_json
from approvals.policy_changes import lowering
from approvals.policy_changes.lowering import PolicyTerms, covers, milder
from approvals.policy_changes.simulation import Simulation, simulate
from checkpoints.actors import SYSTEM
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import make_gate, make_policy, make_run, make_team

FINANCE, LEGAL = 1, 2
HOUR = timedelta(hours=1)


def stage(*roles: tuple[int, int]) -> Stage:
    """A stage of roles, each as (how many, of which team)."""
    return Stage(roles=tuple(Role(quorum=number, teams=(team,)) for number, team in roles))


def terms(*stages: Stage, rules: tuple[Rule, ...] = (), **settings: Any) -> PolicyTerms:
    values = {name: getattr(Policy(), name) for name in SETTINGS if name not in lowering.STRUCTURE}
    values |= settings
    own = Requirements(stages=stages or (stage((2, FINANCE)),), step_up=values["step_up"])
    return PolicyTerms(settings=values, own=own, rules=rules)


def test_every_setting_is_compared_and_one_without_a_rule_is_milder_whenever_it_changes() -> None:
    assert set(SETTINGS) == lowering.SETTINGS.keys() | lowering.STRUCTURE

    before, after = terms(), terms()
    before.settings["new"], after.settings["new"] = 1, 2  # type: ignore[index]
    assert milder(before, after) == ["new: 1, would be 2."]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"separation": True}, {"separation": False}),
        ({"step_up": True}, {"step_up": False}), ({"on_expiry": "expire"}, {"on_expiry": "approve"}),
        ({"on_expiry": "stop"}, {"on_expiry": "escalate"}),
        ({"on_expiry": "approve", "deadline": 2 * HOUR}, {"on_expiry": "approve", "deadline": HOUR}),
        ({"hourly": 10}, {"hourly": None}), ({"pause": 2 * HOUR}, {"pause": HOUR}),
    ],
)  # fmt: skip
def test_a_setting_is_milder_in_one_direction_alone(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert len(milder(terms(**before), terms(**after))) == 1
    assert milder(terms(**after), terms(**before)) == []


def test_a_shorter_deadline_is_milder_only_where_something_approves_at_it() -> None:
    assert milder(terms(deadline=2 * HOUR), terms(deadline=HOUR)) == []

    approves = Rule(name="small", when="amount < 9", require={"on_expiry": "approve"})
    before = terms(rules=(approves,), deadline=2 * HOUR)
    assert len(milder(before, terms(rules=(approves,), deadline=HOUR))) == 1
    assert milder(terms(rules=(approves,), deadline=HOUR), before) == []


@pytest.mark.parametrize(
    ("after", "before", "covered"),
    [
        ([stage((1, FINANCE))], [stage((2, FINANCE))], False),
        ([stage((2, LEGAL))], [stage((2, FINANCE))], False),
        ([stage((1, FINANCE)), stage((1, LEGAL))], [stage((1, FINANCE))], True),
        ([stage((1, FINANCE))], [stage((1, FINANCE)), stage((1, LEGAL))], False),
        ([stage((1, LEGAL), (1, FINANCE))], [stage((1, FINANCE), (1, LEGAL))], True),
    ],
)
def test_stages_cover_others_that_ask_no_more_in_place(after: list[Stage], before: list[Stage], covered: bool) -> None:
    assert covers(after, before) is covered


def test_a_stricter_rule_may_be_added_at_the_end_alone_and_more_people_is_milder() -> None:
    strict, mild = (
        Rule(name="large", when="amount > 9", require={"quorum": 3}),
        Rule(name="a", when="true", require={"quorum": 1}),
    )
    other = Rule(name="b", when="true", require={"risk": "low"})
    assert milder(terms(), terms(rules=(strict,))) == []
    assert milder(terms(rules=(other,)), terms(rules=(other, strict))) == []
    assert milder(terms(rules=(other,)), terms(rules=(strict, other)))  # it hides the one behind it
    assert milder(terms(), terms(rules=(mild,)))
    assert milder(terms(rules=(strict,)), terms())

    wider = Stage(roles=(Role(quorum=2, teams=(FINANCE, LEGAL)),))
    assert milder(terms(), terms(wider))
    assert milder(terms(wider), terms()) == []


@pytest.mark.parametrize("require", [{"deadline": 60}, {"on_expiry": "approve"}])
def test_a_rule_that_may_let_something_through_is_milder(require: dict[str, Any]) -> None:
    assert milder(terms(), terms(rules=(Rule(name="a", when="true", require=require),)))


LARGE = Rule(name="large", when="amount > 1000", require={"quorum": 2})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (stage((1, FINANCE)), stage((1, LEGAL), (1, FINANCE))),
        (stage((1, FINANCE), (1, LEGAL)), stage((1, LEGAL), (1, FINANCE))),
    ],
)
def test_a_rule_that_stays_as_it_was_may_ask_less_of_other_stages(before: Stage, after: Stage) -> None:
    """A rule's number is of the first team: two of Finance became two of Legal and one of Finance, at once."""
    assert milder(terms(before), terms(after)) == []
    found = milder(terms(before, rules=(LARGE,)), terms(after, rules=(LARGE,)))
    assert found == ["By its rules it may ask less of some proposals."]


def test_rules_that_count_together_may_ask_less_though_each_asks_more() -> None:
    """Two of Finance are taken for the two of either, so that two people approve what three had to."""
    mail = Rule(name="mail", when="tool == 'mail'", require={"stages": stages_json([stage((1, FINANCE))])})
    more = Rule(name="mail", when="tool == 'mail'", require={"stages": stages_json([stage((2, FINANCE))])})
    either = Stage(roles=(Role(quorum=2, teams=(FINANCE, LEGAL)),))
    pay = Rule(name="pay", when="tool == 'pay'", require={"stages": stages_json([either])})
    assert milder(terms(rules=(mail,)), terms(rules=(more,))) == []
    assert milder(terms(rules=(mail, pay)), terms(rules=(more, pay)))


@pytest.mark.parametrize(
    ("require", "less"),
    [
        ({"quorum": 4}, False), ({"quorum": 2}, True), ({"quorum": 3, "step_up": True}, False),
        ({"quorum": 3, "auto": True}, True), ({"quorum": 3, "deadline": 60}, True),
    ],
    ids=str,
)  # fmt: skip
def test_a_rule_that_changes_in_its_place_is_milder_where_it_asks_less(require: dict[str, Any], less: bool) -> None:
    before, after = (Rule(name="a", when="amount > 9", require=each) for each in ({"quorum": 3}, require))
    assert bool(milder(terms(rules=(before,)), terms(rules=(after,)))) is less
    other = Rule(name="a", when="amount > 10", require=require)
    assert milder(terms(rules=(before,)), terms(rules=(other,))), "what the condition is true of cannot be told"


def test_a_deadline_that_brings_an_escalation_nearer_is_milder() -> None:
    """The other team decided after a minute instead of two days, and nobody had confirmed that."""
    at_deadline = {"team": LEGAL, "after": None, "extend": 86400}
    before_it = {"team": LEGAL, "after": 7200, "extend": None}
    for level, deadlines in ((at_deadline, (2 * HOUR, HOUR)), (before_it, (HOUR, 3 * HOUR))):
        one, other = (terms(escalation=[level], deadline=each) for each in deadlines)
        assert (len(milder(one, other)), milder(other, one)) == (1, [])


SMALL_ALONE = {"name": "small", "when": "amount < 500", "require": {"auto": True}}


def tried(policy: Policy, *, gates: int = 2, sample: int = 10, **said: Any) -> Simulation:
    """Open gates under a policy, and try another version on them."""
    for _ in range(gates):
        make_gate(run=make_run(team=policy.team), policy=policy)
    rules = encode_canonical(said.pop("rules", [])).decode() if said.get("rules") else ""
    drafted = Policy(team=policy.team, name=policy.name, rules=rules, auto_sample=sample, **said)
    return simulate(drafted, groups=(), people=())


def test_what_a_rule_would_approve_is_no_gate_that_would_have_asked_one_person() -> None:
    """It said that each would have asked one person, and "Nothing else than was asked."."""
    found = tried(make_policy(make_team()), rules=[SMALL_ALONE])
    assert found.sentences == [
        "A rule would have approved 2 of the last 2 gates without asking anybody, except for a sample of 10 percent.",
        "2 would have needed less than was asked.",
    ]
    assert [after.startswith("Approved automatically.") for _gate, _before, after in found.rows()] == [True] * 2
    without = tried(make_policy(make_team()), rules=[SMALL_ALONE], sample=0).sentences
    assert without[0] == "A rule would have approved 2 of the last 2 gates without asking anybody."


@pytest.mark.parametrize("rules", [
    [{**SMALL_ALONE, "require": {"auto": True, "step_up": True}}],
    [{**SMALL_ALONE, "when": "customer.tier == 'gold'"}],  # it cannot be evaluated
])  # fmt: skip
def test_what_it_would_not_approve_by_itself_after_all_would_have_asked_people(rules: list[Any]) -> None:
    said = tried(make_policy(make_team()), rules=rules).sentences
    assert said[0] == "2 of the last 2 gates would have asked one person."


def test_samples_that_nobody_decided_are_told_of() -> None:
    policy = make_policy(make_team(), rules=[SMALL_ALONE])
    Policy.objects.filter(pk=policy.pk).update(auto_sample=100)
    for _ in range(2):
        closing.withdraw(make_gate(run=make_run(team=policy.team), policy=policy), by=SYSTEM, reason="Not needed.")
    said = tried(policy, gates=0, rules=[SMALL_ALONE]).sentences
    assert said[1] == "People decide the next 2 too: as many samples were withdrawn or expired undecided."
