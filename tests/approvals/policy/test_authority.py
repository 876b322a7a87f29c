"""Who may decide: the policy's people, not the one who started the run, and nobody by rank alone."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from approvals.errors import NotAllowed
from approvals.models import Gate
from approvals.policy import authority, separation
from checkpoints.models import Event
from tests.factories import READER, ann, bob, decide, eve, make_gate, make_policy, make_team, make_user, mira, waiting


def refused(gate: Gate, person: User) -> str:
    """Say why the person's approval was refused; the gate is as it was."""
    before = Gate.objects.values().get(pk=gate.pk)
    with pytest.raises(NotAllowed) as caught:
        decide(gate, person)
    assert Gate.objects.values().get(pk=gate.pk) == before
    assert not gate.decisions.exists()
    return str(caught.value)


def test_an_outsider_is_refused_and_the_attempt_is_kept() -> None:
    gate = make_gate()
    outsider = eve()
    assert "with the permission “decide at the gates" in refused(gate, outsider)
    event = Event.objects.get(subject=gate.subject, kind="decision.refused")
    assert event.actor == f"user:{outsider.pk}"
    assert b'"kind":"not_allowed"' in bytes(event.data)


def test_a_member_without_the_permission_is_refused() -> None:
    team = make_team(may=READER)
    assert refused(make_gate(team=team), bob(team))


def test_a_permission_of_ones_own_counts_only_within_the_team() -> None:
    team = make_team(may=READER)
    gate = make_gate(team=team)
    assert refused(gate, make_user("Eve Marlow", may=("approvals.decide_gate",)))
    assert decide(gate, make_user("Ann Okafor", team, may=("approvals.decide_gate",)))


def test_with_groups_named_the_team_itself_may_not_decide_and_the_groups_may() -> None:
    team, finance = make_team(), make_team("Finance")
    gate = make_gate(policy=make_policy(team, groups=(finance,)))
    assert finance.name in refused(gate, ann(team))
    assert decide(gate, mira(finance))


def test_a_superuser_who_is_in_no_group_is_refused() -> None:
    gate = make_gate()
    root = make_user("Root", superuser=True)
    assert refused(gate, root)
    assert gate.pk not in waiting(root)
    assert Gate.objects.visible_to(root).filter(pk=gate.pk).exists()


def test_whoever_started_the_run_may_not_decide_where_duties_are_separated() -> None:
    team = make_team()
    starter = ann(team)
    gate = make_gate(team=team, started_by=starter)
    assert refused(gate, starter) == str(separation.STARTED_IT)
    assert gate.pk not in waiting(starter)
    assert decide(gate, bob(team))


def test_whoever_started_the_run_may_decide_where_the_policy_does_not_separate_duties() -> None:
    team = make_team()
    starter = ann(team)
    gate = make_gate(policy=make_policy(team, separation=False), started_by=starter)
    assert gate.pk in waiting(starter)
    assert decide(gate, starter)


def test_an_account_switched_off_after_its_page_was_loaded_is_refused() -> None:
    team = make_team()
    person = ann(team)
    gate = make_gate(team=team)
    User.objects.filter(pk=person.pk).update(is_active=False)
    assert refused(gate, person) == str(authority.SWITCHED_OFF)


def test_gates_show_to_the_team_and_to_its_reviewers_from_elsewhere_and_to_nobody_else() -> None:
    team, finance = make_team(may=READER), make_team("Finance")
    gate = make_gate(policy=make_policy(team, groups=(finance,)))
    seers = {"team": bob(team), "finance": mira(finance), "outsider": eve()}
    visible = {name: Gate.objects.visible_to(who).filter(pk=gate.pk).exists() for name, who in seers.items()}
    assert visible == {"team": True, "finance": True, "outsider": False}
    decidable = {name: gate.pk in waiting(who) for name, who in seers.items()}
    assert decidable == {"team": False, "finance": True, "outsider": False}


def test_a_gate_keeps_the_policy_version_under_which_it_was_opened() -> None:
    team, finance = make_team(), make_team("Finance")
    gate = make_gate(policy=make_policy(team))
    make_policy(team, version=2, groups=(finance,))
    assert decide(gate, ann(team))
    assert "Finance" in refused(make_gate(policy=make_policy(team, version=3, groups=(finance,))), ann(team))
