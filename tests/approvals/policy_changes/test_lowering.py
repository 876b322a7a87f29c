"""A change of a policy is milder or not, setting by setting; where it cannot be told, it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Policy
from approvals.models.policy import SETTINGS
from approvals.policy.requirements import Requirements, Role, Rule, Stage
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
