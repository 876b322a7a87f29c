"""A double click decides once."""

from __future__ import annotations

from functools import partial

import pytest

from approvals.errors import Invalid
from approvals.models import Decision, Gate
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team
from tests.harness.racing_threads import race


def test_the_same_key_gives_the_same_decision_also_after_the_gate_has_closed() -> None:
    team = make_team()
    gate = make_gate(team=team)
    person = ann(team)
    first = decide(gate, person, key="a click")
    assert decide(gate, person, key="a click") == first
    assert gate.decisions.count() == 1


def test_the_same_key_from_twenty_racing_tabs_is_one_decision() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    results = race([partial(decide, gate, person, key="a click")] * 20)
    assert {result.pk for result in results if isinstance(result, Decision)} == {gate.decisions.get().pk}
    assert len(results) == sum(isinstance(result, Decision) for result in results)
    assert Gate.objects.get(pk=gate.pk).version == 2


def test_a_key_used_for_something_else_is_refused() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    person = ann(team)
    decide(gate, person, key="a click")
    with pytest.raises(Invalid, match="sent before with other content"):
        decide(gate, person, "reject", key="a click")


def test_two_people_may_use_the_same_key() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, ann(team), key="a click")
    decide(gate, bob(team), key="a click")
    assert Gate.objects.get(pk=gate.pk).status == "decided"
