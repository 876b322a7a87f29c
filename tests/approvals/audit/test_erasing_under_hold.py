"""What people wrote in a run stays while a legal hold stands on it."""

from __future__ import annotations

import pytest

from approvals.audit import erasing
from checkpoints.actors import SYSTEM, Actor
from checkpoints.events import event_log
from checkpoints.models import Event, EventText, Run
from checkpoints.runs import holds
from tests.factories import make_run, make_team, make_user
from tests.harness import racing_threads
from tests.harness.signed_in_clients import signed_in

ERASER = ("checkpoints.view_audit", "checkpoints.erase_text")


def told_of(run: Run) -> Event:
    """An event of a run, with a text."""
    by = Actor("user:7", "Ann")
    event_log.record("test.said", subject=f"run:{run.pk}", by=by, run=run, data={}, text="a secret")
    return Event.objects.filter(run_id=run.pk, kind="test.said").latest("pk")


@pytest.mark.parametrize("seq", [None, 1])
def test_nothing_of_a_run_is_erased_while_a_legal_hold_stands_on_it(seq: int | None) -> None:
    run = make_run(team=(team := make_team()))
    event, address = told_of(run), "/audit/events/{}/erasures/"
    eraser = signed_in(make_user("Erik Eraser", team, may=ERASER))
    held = holds.hold(run, seq, "Lawsuit", by=SYSTEM)
    refused = eraser.post(address.format(event.pk), {"reason": "asked"})
    assert refused.status_code == 409
    assert "This run has a legal hold" in refused.content.decode()
    assert EventText.objects.filter(pk=event.pk).exists()
    assert not Event.objects.filter(kind="text.erased", subject=f"event:{event.pk}").exists()
    holds.release(held, by=SYSTEM)
    assert eraser.post(address.format(event.pk), {"reason": "asked"}).status_code == 302
    assert not EventText.objects.filter(pk=event.pk).exists()


def test_an_erasure_that_comes_while_a_hold_is_set_sees_it() -> None:
    run = make_run(team=(team := make_team()))
    event, user = told_of(run), make_user("Erik Eraser", team, may=ERASER)

    came = racing_threads.meet_lock(
        lambda: holds.hold(run, None, "Lawsuit", by=SYSTEM), lambda: erasing.erase(event, reason="asked", by=user)
    )
    assert isinstance(came, erasing.HeldByLaw)
    assert EventText.objects.filter(pk=event.pk).exists()


def test_what_an_erasure_leaves_is_said_beside_its_button() -> None:
    run = make_run(team=(team := make_team()))
    told_of(run)
    page = signed_in(make_user("Erik Eraser", team, may=ERASER)).get("/audit/").content.decode()
    assert "Copies in decisions, outcomes, proposals and past exports remain." in page


def test_the_reason_of_an_erasure_stays() -> None:
    """Whoever erased a text erased the reason after it; the audit has no other word of why."""
    run = make_run(team=(team := make_team()))
    event, eraser = told_of(run), make_user("Erik Eraser", team, may=ERASER)
    erasing.erase(event, reason="to hide what I wrote", by=eraser)
    order = Event.objects.get(kind="text.erased", subject=f"event:{event.pk}")
    with pytest.raises(erasing.ReasonStays):
        erasing.erase(order, reason="-", by=eraser)
    assert EventText.objects.filter(pk=order.pk).exists()
    page = signed_in(eraser).get("/audit/", {"kind": "text.erased"}).content.decode()
    assert "to hide what I wrote" in page
    assert "audit-erase" not in page
