"""Gates that are rejected together: what that undoes is on the list, and no more is undone."""

from __future__ import annotations

import re
from pathlib import Path

from approvals.models import Gate, Policy
from checkpoints.models import Run
from tests.agents.moves.moved_runs import lines, rewind
from tests.approvals.bulk.bulk_forms import form, preview, send
from tests.factories import ann, make_policy, make_team
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.signed_in_clients import signed_in


def asked_again(ledger: str) -> tuple[Run, Gate]:
    """A booking that was approved, booked, charged and told, and is asked about once more: its effects are left."""
    team = make_team()
    Policy.objects.filter(pk=make_policy(team, name="default").pk).update(bulk_risk="medium")
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    decide(run)
    advance_to_rest(run)
    rewind(run, to=1, feedback="cheaper")
    advance_to_rest(run)
    return run, open_gate(run)


def words(page: str) -> str:
    return " ".join(re.sub("<[^>]+>", "", page).split())


def test_what_a_rejection_undoes_is_on_the_list(ledger: str) -> None:
    """It said that nothing runs, and the money was given back."""
    run, gate = asked_again(ledger)
    client = signed_in(ann(run.team))
    page = preview(client, [gate], "reject")
    assert "The run stops as rejected; “Pay” and “Book” are undone" in words(page)
    send(client, form(page, verdict="reject", then="stop", second_look=""))
    advance_to_rest(run)
    assert [line.split()[0] for line in lines(ledger)] == ["book", "pay", "tell", "refund", "unbook"]


def test_what_may_be_done_again_is_not_sent_back_with_the_others(ledger: str) -> None:
    """It was listed as one that will be, and then refused."""
    run, gate = asked_again(ledger)
    client = signed_in(ann(run.team))
    page = preview(client, [gate], "reject")
    assert "Stays open: sent back, it may do something again that was already done." in words(page)
    assert 'value="back" disabled' in page
    results = send(client, form(page, verdict="reject", then="back", second_look=""))
    assert "“Tell” was already done" in words(results)
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_what_would_be_undone_since_the_list_was_drawn_is_not(ledger: str) -> None:
    run, gate = asked_again(ledger)
    client = signed_in(ann(run.team))
    sent = form(preview(client, [gate], "reject"), verdict="reject", then="stop", second_look="")
    number, seen, shown = sent["choice"][0].split(":")
    less = {**sent, "choice": [f"{number}:{seen}:{shown[:32]}"]}  # as if the list had named less
    assert "The effect of your decision changed after you opened this page." in words(send(client, less))
    assert Gate.objects.get(pk=gate.pk).status == "open"
    assert "refund" not in Path(ledger).read_text()
