"""What nobody knows is asked of the provider, where it can tell, before anybody else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Effect
from checkpoints.models import Run
from tests.agents.moves.moved_runs import lines
from tests.factories.driven_runs import advance, advance_to_rest, make_run, open_gate, state


@pytest.fixture
def world(tmp_path: Path) -> str:
    """What the provider has done."""
    (tmp_path / "world").mkdir()
    return str(tmp_path / "world")


def ended(run: Run) -> None:
    """As if the effect's own timeout had passed since it was sent."""
    row = Effect.objects.get(run=run)
    Effect.objects.filter(pk=row.pk).update(intended_at=row.intended_at.replace(year=2020))


def test_what_happened_is_read_back_and_not_done_again(ledger: str, world: str) -> None:
    run = advance_to_rest(make_run("reader", ledger=ledger, world=world, mode="cut"))
    (row,) = Effect.objects.filter(run=run)
    assert (run.status, row.status, row.attempts, len(lines(ledger))) == ("completed", "done", 1, 1)
    assert state(run)["receipt"] == row.key


def test_a_no_is_believed_only_once_the_request_cannot_be_under_way_any_more(ledger: str, world: str) -> None:
    run = advance(make_run("reader", ledger=ledger, world=world, mode="lost"))
    assert run.status == "queued"
    assert (advance(run).status, len(lines(ledger))) == ("queued", 1)
    ended(run)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == [lines(ledger)[0]] * 2, "sent again under its key"


def test_a_provider_that_does_not_answer_leaves_it_to_a_person(ledger: str, world: str) -> None:
    run = advance_to_rest(make_run("reader", ledger=ledger, world=world, mode="mute"))
    assert (run.status, open_gate(run).step, len(lines(ledger))) == ("waiting", "send", 1)
