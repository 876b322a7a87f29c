"""Not only an edit writes what is asked about: a signal, an edit at another gate and the runs around this one do.

Somebody sent the account to be paid as a signal, or changed the sum in the run that was started for it, and approved.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.definition import registry
from agents.models import TokenScope
from agents.moves import rewind as rewinds
from agents.waits import signals
from approvals.models import Gate
from approvals.policy import authority
from approvals.presentation.gate_facts import authors
from approvals.presentation.gate_facts.agreement import agreement
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.children.families import children, to_rest
from tests.factories import ann, bob, make_team, mira
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.factories.tokens import bearing, make_token


@pytest.fixture(autouse=True)
def _these_agents(_only_these_agents: None, settings: Any) -> None:
    settings.HOLDPOINT_AGENTS = ["tests.agents.moves.authored_agents"]
    registry.forget()


def is_apart(person: User, run: Run) -> bool:
    gate = Gate.objects.select_related("run", "policy").get(pk=open_gate(run).pk)
    return bool(authority.why_not(person, gate))


def heard(run: Run, by: User) -> Run:
    """The run, once this person has sent it the account to pay."""
    signals.send(run, "account", {"iban": "DE01"}, key=str(by.pk), by=actors.of_user(by))
    return advance_to_rest(run)


def test_who_sent_a_signal_does_not_approve_what_came_of_it() -> None:
    sender = ann(team := make_team())
    run = heard(advance_to_rest(make_run("payout", team=team)), sender)
    assert is_apart(sender, run)
    assert not is_apart(bob(team), run)
    assert authors.changes(open_gate(run)) == ["Ann Okafor sent the signal “account”"]


def test_whose_approval_is_needed_names_everybody_who_wrote_and_may_not_decide() -> None:
    """Of those who are apart, it named the starter of the run and the token's owner alone."""
    sender = ann(team := make_team())
    gate = open_gate(heard(advance_to_rest(make_run("payout", team=team)), sender))
    who = agreement(gate, gate.standing(), user=bob(team)).who
    assert "not the person who started it or owns its token, nor Ann Okafor, who wrote part of it" in who


def test_who_answers_for_the_program_that_sent_a_signal_is_apart() -> None:
    owner = ann(team := make_team())
    run = advance_to_rest(make_run("payout", team=team))
    _, sent = make_token(owner, TokenScope.READ, TokenScope.SIGNAL, team=team, agent="payout")
    answer = bearing(sent).post(
        f"/api/runs/{run.pk}/signals/account", {"value": {"iban": "DE01"}}, content_type="application/json"
    )
    assert answer.status_code == 201, answer.content
    assert is_apart(owner, advance_to_rest(run))


def test_who_edited_at_another_gate_does_not_approve_the_next_and_a_mere_verdict_is_no_authorship() -> None:
    team = make_team()
    sender, editor, approver = ann(team), bob(team), mira(team)
    run = heard(advance_to_rest(make_run("payout", team=team)), sender)
    first = open_gate(run)
    decide(run, "edit", by=editor, arguments={"sum": 7})
    run = advance_to_rest(run)
    assert is_apart(editor, run)
    assert authors.changes(open_gate(run))[1:] == [f"Bob Lindqvist answered or edited gate {first.pk}"]
    run = advance_to_rest(rewinds.rewind(run, to=2, by=sender))
    decide(run, by=approver)
    run = advance_to_rest(run)
    assert not is_apart(approver, run)
    assert not is_apart(editor, run), "the edit was left behind by the rewind"


def test_who_edits_at_a_gate_still_decides_when_the_same_step_asks_again() -> None:
    team = make_team()
    run = heard(advance_to_rest(make_run("payout", team=team, more=1)), ann(team))
    decide(run)
    editor = bob(team)
    decide(advance_to_rest(run), "edit", by=editor, arguments={"sum": 7})
    assert not is_apart(editor, advance_to_rest(run))


def test_an_author_of_the_parent_is_apart_in_its_child_and_of_a_child_in_its_parent() -> None:
    team = make_team()
    above, below = ann(team), bob(team)
    parent = make_run("above", team=team)
    parent = rewinds.edit(parent, at=1, patch=[{"op": "replace", "path": "/first", "value": 5}], by=above)
    to_rest(parent)
    [child] = children(parent)
    assert is_apart(above, child)
    assert authors.changes(open_gate(child)) == [f"Ann Okafor changed the state at checkpoint 1 of R-{parent.pk}"]
    rewinds.edit(child, at=1, patch=[{"op": "replace", "path": "/sum", "value": 900}], by=below)
    to_rest(parent)
    decide(child, by=mira(team))
    to_rest(parent)
    assert is_apart(below, parent)
    assert is_apart(above, parent)
    assert not is_apart(mira(team), parent)
