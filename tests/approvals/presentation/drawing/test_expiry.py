"""A gate with a deadline says what follows where nobody answers."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from approvals.models import Gate, Policy
from approvals.presentation.drawing import impact_words
from tests.factories import ann, make_gate, make_plan, make_policy, make_run, make_spec, make_team
from tests.harness.signed_in_clients import signed_in

from .test_impact_words import ALL

SOON = dt.timedelta(hours=2)


def told(gate: Gate) -> str:
    return signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()


def test_the_run_ends_where_the_plan_says_nothing_else() -> None:
    gate = make_gate(policy=make_policy(make_team(), deadline=SOON))
    assert "After that the gate expires and nothing is done" in told(gate)


def test_the_run_goes_on_where_the_plan_says_so() -> None:
    """It was told that nothing runs, and a step ran."""
    team = make_team()
    steps = tuple(
        replace(step, on_expire="reply") if step.name == "review" else replace(step, guarded=False)
        for step in make_spec().steps
    )
    run = make_run(team=team, plan=make_plan(make_spec(steps=steps)))
    gate = make_gate(run=run, policy=make_policy(team, deadline=SOON))
    assert "After that the gate expires: “Reply” runs" in told(gate)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("review", "Then it is approved automatically"),
        ("recovery", "After that the gate expires and nothing is done"),
    ],
)
def test_a_deadline_that_approves_answers_no_question(kind: str, said: str) -> None:
    """A question was told to be approved, and the run ended."""
    gate = make_gate(policy=make_policy(make_team(), deadline=SOON, on_expiry="approve"), kind=kind)
    assert said in told(gate)


@pytest.mark.parametrize("end", ["expire", "approve"])
def test_a_deadline_at_which_the_next_team_is_asked_ends_nothing(end: str) -> None:
    """It said that the gate expires, or is approved, beside the line that says to whom it goes."""
    team, leads, directors = make_team(), make_team("Leads"), make_team("Directors")
    policy = make_policy(team, deadline=SOON, on_expiry=end)
    levels = [(leads, 60, None), (directors, None, 3600)]
    escalation = [{"team": each.pk, "after": after, "extend": extend} for each, after, extend in levels]
    Policy.objects.filter(pk=policy.pk).update(escalation=escalation)
    page = told(make_gate(policy=policy))
    assert f"Then {directors.name} is asked too, and there is more time" in page
    assert "After that the gate expires" not in page
    assert "approved automatically" not in page


def test_what_runs_may_run_is_undone_and_asks_is_said_in_one_line() -> None:
    assert impact_words.expiry(ALL) == (
        "After that the gate expires: “Plan” runs, “Check” and “Mail” may run, “Book” is undone, "
        "“Pay” may be undone and “Ask” may ask"
    )
