"""Whoever wrote what a gate asks about is apart, over the whole lineage, however they wrote it; orders are confirmed.

Somebody edited a run's state, sent a signal, or changed the run beside it, and approved the new amount alone. And a
session that somebody had left open could do it without the confirmation that a decision takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.definition import registry
from agents.errors import OrderNotConfirmed, RewindRefused
from agents.models import TokenScope
from agents.moves import confirmation
from agents.moves import fork as forks
from agents.moves import rewind as rewinds
from agents.moves.cancel import cancel
from agents.runs.start import start_run
from agents.waits import signals
from approvals.accounts.factors import ProofMethod
from approvals.errors import NotAllowed
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.models import Gate
from approvals.policy import authority, enough_reviewers, required
from approvals.policy.step_up import Confirmed
from approvals.presentation.gate_page import earlier
from checkpoints import actors
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Run
from tests.agents.children.families import children, to_rest
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.factories import ann, bob, make_policy, make_team, make_user, mira
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.factories.tokens import bearing, make_token
from tests.harness.altered_rows import altered
from tests.harness.signed_in_clients import signed_in


@pytest.fixture
def asked(ledger: str) -> Run:
    """A booking that waits at its gate."""
    return advance_to_rest(make_run("booking", ledger=ledger))


def change(run: Run, at: int, *, by: User, **fields: Any) -> Run:
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
    return advance_to_rest(rewinds.edit(run, at=at, patch=patch, by=by))


def is_apart(person: User, run: Run) -> bool:
    """As the gate's page, its queue and the vote say, which have to agree."""
    gate = Gate.objects.select_related("run", "policy").get(pk=open_gate(run).pk)
    apart = bool(authority.why_not(person, gate))
    assert (gate.pk not in ReaderReach.of(person).ids(MINE, most=10)) == apart
    assert (person.pk not in authority.may_decide([gate])[gate.pk]) == apart
    if apart:
        with pytest.raises(NotAllowed):
            decide(run, by=person)
    return apart


def said(run: Run) -> list[str]:
    return earlier.changes(open_gate(run))


def test_an_editor_of_the_state_does_not_approve_it_and_the_gate_says_who_changed_what(asked: Run) -> None:
    editor = ann(asked.team)
    assert not is_apart(editor, asked)
    run = change(asked, 1, by=editor, size=90)
    assert said(run) == ["Ann Okafor changed size from 1 to 90 at checkpoint 1"]
    assert is_apart(editor, run)
    gate = open_gate(run)
    words = enough_reviewers.lacking(gate, required.of(gate.standing(), gate.policy))
    assert words.startswith("Nobody may decide in"), words
    assert "not counting the requester or who changed the run before this was asked" in words
    other = bob(asked.team)
    assert not is_apart(other, run)
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"


def test_an_edit_that_a_later_edit_undid_still_counts(asked: Run) -> None:
    first, second = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=first, size=90)
    edited = Checkpoint.objects.get(run=run, kind="edit").seq
    run = change(run, edited, by=second, size=1)
    assert is_apart(first, run)
    assert is_apart(second, run)
    assert not is_apart(mira(run.team), run)
    assert len(said(run)) == 2


def test_a_fork_washes_nobody(ledger: str) -> None:
    team = make_team()
    starter, editor, forker = ann(team), bob(team), mira(team)
    run = advance_to_rest(make_run("booking", team=team, started_by=starter, ledger=ledger))
    run = change(run, 1, by=editor, size=90)
    seq = Checkpoint.objects.get(run=run, kind="edit").seq
    made = advance_to_rest(forks.fork(run, at=seq, by=forker))
    for person in (starter, editor, forker):
        assert is_apart(person, made)
    patch = [{"op": "replace", "path": "/size", "value": 2}]
    before = advance_to_rest(forks.fork(run, at=1, by=forker, patch=patch))
    assert not is_apart(editor, before), "the edit came after the fork's checkpoint"
    assert is_apart(starter, before)
    assert said(before) == [
        f"Ann Okafor started R-{run.pk}, from which this comes",
        f"Mira Sandoval changed size from 1 to 2 at checkpoint 1 for the fork R-{before.pk}",
    ]


def test_a_gate_whose_state_retention_removed_still_says_who_changed_the_run(asked: Run) -> None:
    """Its address in the API answered 500."""
    editor, other = ann(asked.team), bob(asked.team)
    run = change(asked, 1, by=editor, size=90)
    gate = open_gate(run)
    decide(run, by=other)
    assert advance_to_rest(run).status == "completed"
    keep(run, keep_last=1)
    pruned()
    for stored, told in ((gate.authors, ["Ann Okafor changed the run before"]), (None, [])):
        with altered(gate, authors=stored):
            answer = signed_in(other).get(f"/api/gates/{gate.pk}")
        assert (answer.status_code, answer.json()["changed_before"]) == (200, told)


def heard(run: Run, by: User) -> Run:
    """The run, once this person has sent it the account to pay."""
    signals.send(run, "account", {"iban": "DE01"}, key=str(by.pk), by=actors.of_user(by))
    return advance_to_rest(run)


def test_who_sent_a_signal_does_not_approve_what_came_of_it() -> None:
    sender = ann(team := make_team())
    run = heard(advance_to_rest(make_run("payout", team=team)), sender)
    assert is_apart(sender, run)
    assert not is_apart(bob(team), run)
    assert earlier.changes(open_gate(run)) == ["Ann Okafor sent the signal “account”"]


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
    assert earlier.changes(open_gate(run))[1:] == [f"Bob Lindqvist answered or edited gate {first.pk}"]
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
    assert earlier.changes(open_gate(child)) == [f"Ann Okafor changed the state at checkpoint 1 of R-{parent.pk}"]
    rewinds.edit(child, at=1, patch=[{"op": "replace", "path": "/sum", "value": 900}], by=below)
    to_rest(parent)
    decide(child, by=mira(team))
    to_rest(parent)
    assert is_apart(below, parent)
    assert is_apart(above, parent)
    assert not is_apart(mira(team), parent)


PASSWORD = "open sesame again"
RULE = {"name": "large", "when": "amount > 5", "require": {"step_up": True}}
PATCH = [{"op": "replace", "path": "/size", "value": 90}]


def waiting(ledger: str, **policy: Any) -> Run:
    """A booking at its gate, in a team whose default policy is this."""
    make_policy(team := make_team(), name="default", **policy)
    return advance_to_rest(make_run("booking", team=team, ledger=ledger))


def confirmed(by: User, method: ProofMethod = ProofMethod.PASSWORD) -> Confirmed:
    """Just now."""
    return Confirmed(by.pk, {method: timezone.now()})


@pytest.mark.parametrize(
    ("policy", "method"),
    [({"step_up": True, "step_up_method": "passkey"}, "passkey"), ({"rules": [RULE]}, "any")],
)
def test_an_order_takes_what_a_decision_may_take(ledger: str, policy: dict[str, Any], method: str) -> None:
    run = waiting(ledger, **policy)
    assert confirmation.needed(run) == method
    by = ann(run.team)
    orders: list[Callable[[Confirmed | None], Run]] = [
        lambda proof: rewinds.edit(run, at=1, patch=PATCH, by=by, confirmed=proof),
        lambda proof: rewinds.rewind(run, to=1, by=by, confirmed=proof),
        lambda proof: forks.fork(run, at=1, by=by, confirmed=proof),
    ]
    for order in orders:
        for proof in (None, confirmed(by))[: 2 if method == "passkey" else 1]:
            with pytest.raises(OrderNotConfirmed):
                order(proof)
        assert order(confirmed(by, ProofMethod.PASSKEY if method == "passkey" else ProofMethod.PASSWORD)).pk


def test_an_order_takes_what_the_gates_of_the_runs_below_take() -> None:
    """The grandparent has no gate: its orders change what the runs below ask about, by their gates or later ones."""
    make_policy(team := make_team(), name="default")
    make_policy(team, name="payments", step_up=True)
    run = to_rest(make_run("manager", team=team))
    [below] = children(run)
    [lowest] = children(below)
    assert [confirmation.needed(each) for each in (run, below, lowest)] == ["any"] * 3
    make_policy(team, name="payments", version=2)
    assert confirmation.needed(run) == "any", "its gate keeps the version that it was opened under"
    cancel(lowest, by=SYSTEM, reason="")
    to_rest(run)
    make_policy(team, name="payments", version=3, step_up=True)
    assert confirmation.needed(run) == "", "nothing below lives any more"


def test_a_fork_to_another_version_takes_what_its_gates_take() -> None:
    make_policy(team := make_team(), name="default")
    make_policy(team, name="payments", step_up=True)
    run = advance_to_rest(start_run(registry.agent_named("branched", "1"), {}, by=SYSTEM, team=team))
    by = ann(team)
    assert forks.fork(run, at=1, by=by).pk
    with pytest.raises(OrderNotConfirmed):
        forks.fork(run, at=1, by=by, version="2")
    assert forks.fork(run, at=1, by=by, version="2", confirmed=confirmed(by)).plan.version == "2"


def test_the_page_asks_before_anything_is_typed_and_a_form_without_it_keeps_its_input(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    client = signed_in(make_user("Ann Okafor", run.team, password=PASSWORD))
    for kind in ("edit", "fork"):
        page = f"/runs/{run.pk}/checkpoints/1/{kind}/"
        asked = client.get(page)
        assert (asked.status_code, asked["Location"].split("?")[0]) == (302, "/accounts/reauthenticate/")
    refused = client.post(f"/runs/{run.pk}/edits/", {"kind": "edit", "at": "1", "state/size": "90"})
    assert refused.status_code == 403
    assert "Confirm in another tab" in refused.content.decode()
    client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": "/"})
    assert client.get(f"/runs/{run.pk}/checkpoints/1/edit/").status_code == 200
    assert client.post(f"/runs/{run.pk}/rewinds/", {"kind": "rewind", "at": "1", "to": "1"}).status_code == 302


def test_a_token_confirms_nothing(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    _, sent = make_token(ann(run.team))
    answer = bearing(sent).post(
        f"/api/runs/{run.pk}/edits", json.dumps({"at": 1, "patch": PATCH}), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "not_confirmed")


def test_an_order_that_was_done_is_the_same_order_later(ledger: str) -> None:
    run = waiting(ledger, step_up=True)
    by = ann(run.team)
    made = forks.fork(run, at=1, by=by, key="once", confirmed=confirmed(by))
    assert forks.fork(run, at=1, by=by, key="once").pk == made.pk
    with pytest.raises(RewindRefused):
        forks.fork(run, at=1, by=by, key="another")
