"""An approved gate of which nothing begins raises itself once, says why, and clears itself when something has begun."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from agents.models import Effect, Worker
from agents.serving import sweeps
from approvals.models import Gate, Grant, Unrun
from checkpoints import actors
from checkpoints.models import Event, Run
from tests.approvals.decisions.undoing.windows import make_held
from tests.factories import ann, bob, decide, make_gate, make_policy, make_team, make_user, unique
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in


def approved(**given: Any) -> Gate:
    """A gate that was approved so long ago that something should have begun."""
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), **given)
    Unrun.objects.filter(pk=gate.pk).update(due_at=timezone.now() - dt.timedelta(seconds=1))
    return Gate.objects.select_related("run__plan", "policy", "team").get(pk=gate.pk)


def look() -> None:
    for _ in range(3):
        sweeps.look(200)


def told(gate: Gate) -> list[str]:
    found = Event.objects.filter(subject=gate.subject, kind__in=("gate.not_run", "gate.begun"))
    return list(found.order_by("id").values_list("kind", flat=True))


def begin(gate: Gate) -> None:
    grant = Grant.objects.filter(outcome__gate=gate).first()
    assert grant is not None
    row = Effect.objects.create(
        run=gate.run, step=grant.effect, key=f"{grant.pk:064}", grant=grant, base=gate.checkpoint, input_digest=b"x",
        token=1, status="done", settled_at=timezone.now(), result=b'{"payment":{"id":"pay_7"}}',
    )  # fmt: skip
    row.intended(by=actors.SYSTEM)


def again(gate: Gate) -> None:
    Unrun.objects.filter(pk=gate.pk).update(due_at=timezone.now() - dt.timedelta(seconds=1))
    look()


def test_an_approval_is_watched_from_the_moment_that_it_closes_and_is_quiet_at_first_and_a_rejection_is_not() -> None:
    team = make_team()
    gate, rejected = make_gate(team=team), make_gate(team=team)
    decide(gate, ann(team))
    decide(rejected, ann(team), "reject")
    look()
    assert [each.raised_at for each in Unrun.objects.filter(pk__in=[gate.pk, rejected.pk])] == [None]
    assert told(gate) == []


def test_late_it_raises_itself_once_and_says_that_no_worker_is_there() -> None:
    gate = approved()
    look()
    again(gate)
    assert told(gate) == ["gate.not_run"]
    event = Event.objects.get(subject=gate.subject, kind="gate.not_run")
    assert b'"kind":"no_worker"' in bytes(event.data)
    page = " ".join(signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode().split())
    assert "ago and nothing has run." in page
    assert "No worker has ever served" in page


def test_it_says_that_a_worker_has_it_queued_and_that_its_run_failed() -> None:
    gate = approved()
    Worker.objects.beat("here", [gate.run.plan_id])
    for status in ("queued", "failed"):
        Run.objects.filter(pk=gate.run_id).update(status=status)
        gate.run.refresh_from_db()
        reason = sweeps.why(gate)
        assert reason is not None
        assert reason.code == status


def test_what_began_in_time_and_a_cancelled_run_are_never_told_of() -> None:
    begun, cancelled = approved(), approved()
    begin(begun)
    Run.objects.filter(pk=cancelled.run_id).update(status="cancelled")
    look()
    assert told(begun) + told(cancelled) == []
    assert not Unrun.objects.filter(pk__in=[begun.pk, cancelled.pk]).exists()


def test_a_run_that_waits_by_its_own_plan_is_left_alone_and_looked_at_again() -> None:
    gate = approved()
    Run.objects.filter(pk=gate.run_id).update(status="waiting")
    look()
    assert told(gate) == []
    assert Unrun.objects.get(pk=gate.pk).due_at > timezone.now()


def test_the_receipt_names_what_ran_when_and_with_what_result() -> None:
    gate = approved()
    begin(gate)
    reader = signed_in(ann(gate.team))
    page = " ".join(reader.get(f"/gates/{gate.pk}/").content.decode().split())
    assert "pay_7" in page
    assert "Not yet" in page  # the reply
    assert bytes(gate.outcome.to_run or b"").hex() in page
    whole = reader.get(f"/gates/{gate.pk}/receipt/")
    assert "pay_7" in whole.content.decode()
    assert "<html" in whole.content.decode()
    part = reader.get(f"/gates/{gate.pk}/receipt/", headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()


def test_the_inbox_names_it_to_whoever_may_see_it_and_to_nobody_else_until_something_has_begun() -> None:
    gate = approved()
    look()
    page = " ".join(signed_in(bob(gate.team)).get("/").content.decode().split())
    assert "1 approved gate has not run." in page
    assert f"/gates/{gate.pk}/#gate-receipt" in page
    other = signed_in(make_user("Eve")).get("/").content.decode()
    assert "has not run" not in other
    begin(gate)
    again(gate)
    assert told(gate) == ["gate.not_run", "gate.begun"]
    assert not Unrun.objects.filter(pk=gate.pk).exists()
    assert "has not run" not in signed_in(bob(gate.team)).get("/").content.decode()


MOST = 15


def statements(gate: Gate) -> list[str]:
    client = signed_in(bob(gate.team))
    client.cookies["hp-zone"] = "UTC"  # as a browser with scripts has it
    with sent() as found:
        assert client.get(f"/gates/{gate.pk}/").status_code == 200
    return list(found)


def test_a_gate_with_a_decision_that_may_be_undone_costs_what_an_open_one_does() -> None:
    team = make_team()
    held, plain = make_held(team), make_gate(policy=make_policy(team, name=unique("now")))
    before = statements(plain)
    decide(held, ann(team))
    found = statements(held)
    assert len(found) <= min(len(before) + 1, MOST), found


def test_a_closed_gate_with_its_receipt_is_within_the_budget() -> None:
    late, done = approved(), approved()
    begin(done)
    look()
    assert len(statements(done)) <= MOST, statements(done)
    assert len(statements(late)) <= MOST + 1, statements(late)  # why nothing runs takes some more, minutes later alone
