"""An order to do an effect again holds until the run comes to it; one that is dropped before that is none."""

from __future__ import annotations

import pytest

from agents.errors import NeedsConfirmation
from agents.moves import cancel
from checkpoints.models import Event, Run
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, make_run

from .moved_runs import before, fates, lines, rewind


def ordered_again(ledger: str) -> Run:
    """A run that has told something for good, and is to tell it again by a person's order; no worker knows yet."""
    run = advance_to_rest(make_run("final", ledger=ledger))
    rewind(run, before(run, "tell"), confirm=True)
    return run


def cancelled(ledger: str) -> Run:
    """The same, and somebody cancelled it before a worker came."""
    run = ordered_again(ledger)
    cancel.cancel(run, by=ann(run.team), reason="leave it")
    assert advance_to_rest(run).status == "cancelled"
    return run


def test_an_order_that_was_cancelled_is_not_carried_out_later(ledger: str) -> None:
    """Sent back to a step before it, the run did once more what cannot be undone, and nobody had confirmed that."""
    run = cancelled(ledger)
    rewind(run, 1)
    assert advance_to_rest(run).status == "completed"
    assert (lines(ledger), fates(run)) == (["tell 1"], [("tell", "done")])


def test_an_order_is_dropped_where_the_run_is_moved_elsewhere_before_it_is_carried_out(ledger: str) -> None:
    """The order outlived the change of mind: what cannot be undone was done once more."""
    run = ordered_again(ledger)
    rewind(run, 1)
    assert advance_to_rest(run).status == "completed"
    assert (lines(ledger), fates(run)) == (["tell 1"], [("tell", "done")])


def test_an_order_that_was_cancelled_has_to_be_given_and_confirmed_anew(ledger: str) -> None:
    run = cancelled(ledger)
    with pytest.raises(NeedsConfirmation):
        rewind(run, before(run, "tell"))
    told = Event.objects.filter(run_id=run.pk, kind="effect.done")
    known = told.count()
    rewind(run, before(run, "tell"), confirm=True)
    assert told.order_by("pk")[known].actor_name == "Ann Okafor", "what was left counts again, by whose word"
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["tell 1", "tell 1"]
