"""A preview at a gate that was opened again says what the runner then does."""

from __future__ import annotations

from django.test import Client

from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, before, fates, rewind
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, trail
from tests.harness.signed_in_clients import form_of, signed_in

from .test_previews_at_the_gate import previewed, rows


def reopened(ledger: str) -> tuple[Run, Gate, Client]:
    """A finished booking that was sent back to its payment: that needs another permission."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    rewind(run, before(run, "pay"))
    advance_to_rest(run)
    assert trail(run)[-1] == ("reopen", "pay")
    return run, open_gate(run), signed_in(ann(run.team))


def test_a_yes_goes_on_with_the_effect_that_was_not_granted(ledger: str) -> None:
    """The booking was told to run, or to stand, once more."""
    run, gate, client = reopened(ledger)
    told = rows(client.get(f"/gates/{gate.pk}/").content.decode(), "approve")
    assert any(row.startswith("Runs: Pay") for row in told)
    assert "Undone: Pay" in told
    assert not any("Book" in row for row in told if not row.startswith("Kept"))
    at = after(run, "plan")
    decide(run)
    advance_to_rest(run)
    assert [each for each in trail(run)[at:] if each[1] == "book"] == [("step", "book")]
    assert fates(run)[:3] == [("book", "done"), ("pay", "undone"), ("tell", "kept")]


def test_an_edit_of_what_was_booked_with_asks_again(ledger: str) -> None:
    run, gate, client = reopened(ledger)
    name = "args.offer"
    told = previewed(client, gate, form_of(gate) | {"verdict": "edit", name: "20"})
    assert any(row == "Runs nothing: “Review” asks first" for row in told)
    assert any(row.startswith("May be undone: Book") for row in told)
    assert "Undone: Pay" in told
    decide(run, "edit", arguments={"offer": 20})
    assert advance_to_rest(run).status == "waiting"
    assert open_gate(run).step == "review"
    assert trail(run)[-2:] == [("gate", "review"), ("rewind", "review")]
    decide(run)
    advance_to_rest(run)
    assert fates(run)[:2] == [("book", "undone"), ("pay", "undone")]
