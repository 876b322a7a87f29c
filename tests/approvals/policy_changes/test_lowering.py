"""A change of a policy is milder or not, setting by setting; where it cannot be told, it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Policy
from approvals.models.policy import SETTINGS
from approvals.policy.requirements import Requirements, Role, Rule, Stage, stages_json
from approvals.policy_changes import lowering
from approvals.policy_changes.lowering import PolicyTerms, covers, milder

FINANCE, LEGAL = 1, 2
HOUR = timedelta(hours=1)


def stage(*roles: tuple[int, int]) -> Stage:
    """A stage of roles, each as (how many, of which team)."""
    return Stage(roles=tuple(Role(quorum=number, teams=(team,)) for number, team in roles))


def terms(*stages: Stage, rules: tuple[Rule, ...] = (), denials: int = 1, **settings: Any) -> PolicyTerms:
    values = (
        {name: getattr(Policy(), name) for name in SETTINGS if name not in lowering.STRUCTURE}
        | {"denials": denials}
        | settings
    )
    own = Requirements(stages=stages or (stage((2, FINANCE)),), denials=denials, step_up=values["step_up"])
    return PolicyTerms(settings=values, own=own, rules=rules)


def test_every_setting_is_compared() -> None:
    """One that is not is taken for milder whenever it changes."""
    assert set(SETTINGS) == lowering.SETTINGS.keys() | lowering.STRUCTURE


def test_a_version_is_no_milder_than_itself() -> None:
    assert milder(terms(), terms()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"denials": 1}, {"denials": 2}),
        ({"separation": True}, {"separation": False}),
        ({"step_up": True}, {"step_up": False}),
        ({"tokens_decide": False}, {"tokens_decide": True}),
        ({"whole_state": False}, {"whole_state": True}),
        ({"registered_only": True}, {"registered_only": False}),
        ({"reason_required": True}, {"reason_required": False}),
        ({"on_expiry": "expire"}, {"on_expiry": "approve"}),
        ({"on_expiry": "stop"}, {"on_expiry": "escalate"}),
        ({"on_expiry": "approve", "deadline": 2 * HOUR}, {"on_expiry": "approve", "deadline": HOUR}),
        ({"hourly": 10}, {"hourly": 11}),
        ({"hourly": 10}, {"hourly": None}),
        ({"pause": HOUR}, {"pause": None}),
        ({"pause": 2 * HOUR}, {"pause": HOUR}),
    ],
)
def test_a_setting_is_milder_in_one_direction_alone(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert len(milder(terms(**before), terms(**after))) == 1
    assert milder(terms(**after), terms(**before)) == []


def test_a_deadline_that_does_not_approve_may_be_shorter() -> None:
    assert milder(terms(deadline=2 * HOUR), terms(deadline=HOUR)) == []


def test_a_shorter_deadline_is_milder_where_a_rule_approves_at_it() -> None:
    approves = Rule(name="small", when="amount < 9", require={"on_expiry": "approve"})
    before = terms(rules=(approves,), deadline=2 * HOUR)
    assert len(milder(before, terms(rules=(approves,), deadline=HOUR))) == 1
    assert milder(terms(rules=(approves,), deadline=HOUR), before) == []


def test_a_setting_without_a_rule_is_milder_whenever_it_changes() -> None:
    before, after = terms(), terms()
    before.settings["new"], after.settings["new"] = 1, 2  # type: ignore[index]
    assert milder(before, after) == ["new: 1, would be 2."]


@pytest.mark.parametrize(
    ("after", "before", "covered"),
    [
        ([stage((2, FINANCE))], [stage((2, FINANCE))], True),
        ([stage((3, FINANCE))], [stage((2, FINANCE))], True),
        ([stage((1, FINANCE))], [stage((2, FINANCE))], False),
        ([stage((2, LEGAL))], [stage((2, FINANCE))], False),
        ([stage((1, FINANCE)), stage((1, LEGAL))], [stage((1, FINANCE))], True),
        ([stage((1, FINANCE))], [stage((1, FINANCE)), stage((1, LEGAL))], False),
        ([stage((1, LEGAL), (1, FINANCE))], [stage((1, FINANCE), (1, LEGAL))], True),
        ([stage((1, FINANCE))], [stage((1, FINANCE), (1, FINANCE))], False),
    ],
)
def test_stages_cover_others_where_each_is_as_strict_in_its_place(
    after: list[Stage], before: list[Stage], covered: bool
) -> None:
    assert covers(after, before) is covered


def test_more_people_who_may_decide_is_milder() -> None:
    wider = Stage(roles=(Role(quorum=2, teams=(FINANCE, LEGAL)),))
    assert milder(terms(), terms(wider))
    assert milder(terms(wider), terms()) == []


def test_a_stricter_rule_may_be_added_at_the_end_alone() -> None:
    strict, mild = (
        Rule(name="large", when="amount > 9", require={"quorum": 3}),
        Rule(name="a", when="true", require={"quorum": 1}),
    )
    other = Rule(name="b", when="true", require={"denials": 1})
    assert milder(terms(), terms(rules=(strict,))) == []
    assert milder(terms(rules=(other,)), terms(rules=(other, strict))) == []
    assert milder(terms(rules=(other,)), terms(rules=(strict, other)))  # it hides the one behind it
    assert milder(terms(), terms(rules=(mild,)))
    assert milder(terms(rules=(strict,)), terms())


@pytest.mark.parametrize("require", [{"deadline": 60}, {"on_expiry": "approve"}, {"denials": 2}])
def test_a_rule_that_may_let_something_through_is_milder(require: dict[str, Any]) -> None:
    assert milder(terms(), terms(rules=(Rule(name="a", when="true", require=require),)))


LARGE = Rule(name="large", when="amount > 1000", require={"quorum": 2})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (stage((1, FINANCE)), stage((1, LEGAL), (1, FINANCE))),
        (stage((1, FINANCE), (1, LEGAL)), stage((1, LEGAL), (1, FINANCE))),
    ],
    ids=["another team before it", "another order"],
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


def test_so_may_more_of_them_though_each_two_ask_as_much_as_before() -> None:
    one, two = (Role(quorum=count, teams=(FINANCE, LEGAL)) for count in (1, 2))
    own, alone = (
        Stage(roles=(two,)),
        Rule(name="alone", when="a", require={"stages": stages_json([stage((1, FINANCE))])}),
    )
    before, after = (
        Rule(
            name="both",
            when="b",
            require={"stages": stages_json([Stage(roles=(one, Role(quorum=count, teams=(LEGAL,))))])},
        )
        for count in (1, 2)
    )
    assert milder(terms(own, rules=(before,)), terms(own, rules=(after,))) == []
    assert milder(terms(own, rules=(alone, before)), terms(own, rules=(alone, after)))


@pytest.mark.parametrize(
    ("require", "less"),
    [
        ({"quorum": 4}, False), ({"quorum": 2}, True), ({"quorum": 3, "step_up": True}, False),
        ({"quorum": 3, "denials": 2}, True), ({"quorum": 3, "auto": True}, True),
        ({"quorum": 3, "risk": "high"}, False), ({"quorum": 3, "on_expiry": "approve"}, True),
        ({"quorum": 3, "deadline": 60}, True),
    ],
    ids=str,
)  # fmt: skip
def test_a_rule_that_changes_in_its_place_is_milder_where_it_asks_less(require: dict[str, Any], less: bool) -> None:
    before, after = (Rule(name="a", when="amount > 9", require=each) for each in ({"quorum": 3}, require))
    assert bool(milder(terms(rules=(before,)), terms(rules=(after,)))) is less
    other = Rule(name="a", when="amount > 10", require=require)
    assert milder(terms(rules=(before,)), terms(rules=(other,))), "what the condition is true of cannot be told"


AT_DEADLINE = {"team": LEGAL, "after": None, "extend": 86400}
AFTER_TWO_HOURS = {"team": LEGAL, "after": 7200, "extend": None}


@pytest.mark.parametrize(
    ("level", "before", "after"),
    [
        (AT_DEADLINE, 2 * HOUR, HOUR),
        (AT_DEADLINE, None, HOUR),
        (AFTER_TWO_HOURS, HOUR, 3 * HOUR),
        (AFTER_TWO_HOURS, HOUR, None),
    ],
    ids=["sooner", "at all", "before it expires", "as it never expires"],
)
def test_a_deadline_that_brings_an_escalation_nearer_is_milder(
    level: dict[str, Any], before: timedelta | None, after: timedelta | None
) -> None:
    """The other team decided after a minute instead of two days, and nobody had confirmed that."""
    one, other = (terms(escalation=[level], deadline=each) for each in (before, after))
    assert len(milder(one, other)) == 1
    assert milder(other, one) == []


def test_a_deadline_after_an_escalation_by_time_does_not_move_it() -> None:
    one, other = (terms(escalation=[AFTER_TWO_HOURS], deadline=each * HOUR) for each in (3, 4))
    assert milder(one, other) == milder(other, one) == []
