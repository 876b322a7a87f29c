"""Idempotency-Key: whatever is POSTed is done once for a key, and answered the same; with another request it is 409."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.api.protocol import idempotency_keys
from agents.api.runs import moves
from agents.models import Answer
from approvals.models import Decision, Gate
from checkpoints.models import Checkpoint, Run
from config.housekeeping import clear_answers
from tests.agents.api.sent_requests import document
from tests.agents.api.test_doors import refusal
from tests.agents.api.test_orders import SIZE, post
from tests.agents.moves.conftest import _only_these_agents, ledger
from tests.agents.moves.moved_runs import edit
from tests.agents.pages.moves.sent_orders import booked, member
from tests.factories import MEMBER, ann, make_gate, make_run, make_team
from tests.factories.driven_runs import advance_to_rest
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

__all__ = ["_only_these_agents", "ledger"]
KEY = {"Idempotency-Key": "mine"}
ORDERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rewinds", {"to": 1}, {"to": 1, "feedback": "Once more."}),
    ("edits", {"at": 1, "patch": SIZE}, {"at": 1, "patch": [{**SIZE[0], "value": 3}]}),
    ("forks", {"at": 1, "patch": SIZE}, {"at": 1}),
]
BY_NATURE = ("/impacts", "/heartbeats")  # nothing is written; the same again does the same
ANYBODY = "/device/"  # whoever asks has no name yet under which an answer could be kept


def stands(run: Run) -> tuple[int, int]:
    """How many checkpoints and runs there are of its lineage."""
    kin = Run.objects.filter(lineage=run.lineage)
    return Checkpoint.objects.filter(run_id__in=kin.values("pk")).count(), kin.count()


@pytest.mark.parametrize(("noun", "body", "other"), ORDERS, ids=[noun for noun, _, _ in ORDERS])
def test_an_order_is_done_once_for_a_key_and_answered_the_same(
    ledger: str, noun: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    run = booked(ledger)
    client = member(run)
    first = post(client, run, noun, body, **KEY)
    assert first.status_code in (200, 201)
    assert idempotency_keys.REPLAYED not in first
    after = stands(run)
    again = post(client, run, noun, body, **KEY)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.get("Location") == first.get("Location")
    assert again[idempotency_keys.REPLAYED] == "true"
    assert refusal(post(client, run, noun, other, **KEY), 409)["code"] == "key_reused"
    assert stands(run) == after


def test_a_settlement_is_ordered_once_for_a_key(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    refusal(post(client, run, "settlements", {}, **KEY), 409)
    edit(run, 1, size=2)
    first = post(client, run, "settlements", {}, **KEY)
    assert first.status_code == 200, "what was refused leaves its key free"
    again = post(client, run, "settlements", {}, **KEY)
    assert (again.content, again[idempotency_keys.REPLAYED]) == (first.content, "true")


def test_a_settlement_whose_answer_was_lost_before_it_was_kept_is_done_once(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    edit(run, 1, size=2)
    first = post(client, run, "settlements", {}, **KEY)
    assert Answer.objects.filter(key="mine", body=first.content).update(status=0, body=b"") == 1
    settled = Run.objects.get(pk=advance_to_rest(run).pk)
    assert post(client, run, "settlements", {}, **KEY).status_code == 200
    run.refresh_from_db()
    assert (run.status, run.seq, run.token) == (settled.status, settled.seq, settled.token)
    assert "left no effects behind" in refusal(post(client, run, "settlements", {}), 409)["detail"]


@pytest.mark.parametrize(("noun", "body", "other"), ORDERS)
def test_another_order_with_the_key_of_one_whose_answer_was_lost_is_refused(
    ledger: str, monkeypatch: pytest.MonkeyPatch, noun: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    """The process died before it answered; the key stays that order's, and no order that was refused keeps one."""
    run = booked(ledger)
    client = member(run)

    def died(*_: Any, **__: Any) -> Any:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(moves, "answer_run", died)
        with pytest.raises(SystemExit):
            post(client, run, noun, body, **KEY)
    after = stands(run)
    assert refusal(post(client, run, noun, other, **KEY), 409)["code"] == "key_reused"
    assert post(client, run, noun, body, **KEY).status_code in (200, 201)
    assert stands(run) == after
    refusal(post(client, run, noun, {**body, "seen": "00"}, **{"Idempotency-Key": "refused"}), 409)
    assert not Answer.objects.filter(key="refused").exists()


@pytest.mark.parametrize(("noun", "body"), [(noun, body) for noun, body, _ in ORDERS])
def test_an_order_whose_answer_was_lost_before_it_was_kept_is_done_once(
    ledger: str, noun: str, body: dict[str, Any]
) -> None:
    """The process died between the order and its answer."""
    run = booked(ledger)
    client = member(run)
    first = post(client, run, noun, body, **KEY)
    assert Answer.objects.filter(key="mine", body=first.content).update(status=0, body=b"") == 1
    after = stands(run)
    again = post(client, run, noun, body, **KEY)
    assert again.status_code == first.status_code
    assert again.json()["id"] == first.json()["id"]
    assert stands(run) == after


def test_of_two_that_come_at_once_one_is_done_and_both_are_answered_the_same(ledger: str) -> None:
    run = booked(ledger)
    cookies, before = member(run).cookies, stands(run)
    clients = [Client() for _ in range(3)]
    for client in clients:
        client.cookies = cookies
    answers = race([partial(post, client, run, "edits", {"at": 1, "patch": SIZE}, **KEY) for client in clients])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sorted(idempotency_keys.REPLAYED in answer for answer in answers) == [False, True, True]
    assert stands(run) == (before[0] + 1, before[1])


def decide(client: Client, gate: Gate, **word: Any) -> Any:
    seen = bytes(Gate.objects.get(pk=gate.pk).standing().digest).hex()
    body = {"seen": seen, "verdict": "approve", **word}
    return client.post(f"/api/gates/{gate.pk}/decisions", body, content_type="application/json", headers=KEY)


def test_a_decision_counts_once_for_a_key_which_serves_for_no_other_word() -> None:
    gate = make_gate(team=make_team(may=MEMBER))
    client = signed_in(ann(gate.team))
    first = decide(client, gate)
    assert first.status_code == 201
    again = decide(client, gate)
    assert (again.content, again[idempotency_keys.REPLAYED]) == (first.content, "true")
    assert refusal(decide(client, gate, verdict="reject", comment="No."), 409)["code"] == "key_reused"
    assert Decision.objects.filter(gate=gate).count() == 1


def test_nobody_meets_anothers_keys(ledger: str) -> None:
    run = booked(ledger)
    one, two = member(run), member(run)
    first = post(one, run, "forks", {"at": 1}, **KEY).json()["id"]
    second = post(two, run, "forks", {"at": 1}, **KEY)
    assert idempotency_keys.REPLAYED not in second
    assert second.json()["id"] != first


def test_a_key_that_is_none_is_refused(ledger: str) -> None:
    run = booked(ledger)
    told = refusal(post(member(run), run, "rewinds", {"to": 1}, **{"Idempotency-Key": "my key"}), 422)
    assert told["code"] == "invalid"
    assert [each["parameter"] for each in told["errors"]] == ["Idempotency-Key"]


def posted() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, of in document()["paths"].items():
        if "post" in of:
            yield path, of["post"]


@pytest.mark.parametrize(("path", "told"), list(posted()), ids=[path for path, _ in posted()])
def test_everything_that_is_posted_takes_a_key_but_what_needs_none(path: str, told: dict[str, Any]) -> None:
    named = {each["name"] for each in told["parameters"] if each["in"] == "header"}
    assert ("Idempotency-Key" in named) == (not path.endswith(BY_NATURE) and ANYBODY not in path)


def test_answers_are_kept_for_a_week() -> None:
    rows = []
    for days in (6, 8):
        row = Answer.objects.create(who="user:0", key=f"{days} days", request=b"")
        Answer.objects.filter(pk=row.pk).update(at=timezone.now() - timedelta(days=days))
        rows.append(row.pk)
    clear_answers()
    assert list(Answer.objects.filter(pk__in=rows).values_list("pk", flat=True)) == rows[:1]


class TestCancellations:
    """A run's end over the API."""

    def test_a_run_is_cancelled_and_a_second_time_it_says_how_it_ended(self) -> None:
        gate = make_gate(team=make_team(may=MEMBER))
        client = signed_in(ann(gate.team))
        told = post(client, gate.run, "cancellations", {"reason": "Withdrawn."})
        assert told.status_code == 200
        assert (told.json()["status"], told.json()["gates"]) == ("cancelled", [])
        assert Gate.objects.get(pk=gate.pk).status == "withdrawn"
        assert Run.objects.get(pk=gate.run_id).reason == "Withdrawn."
        assert "already ended as cancelled" in refusal(post(client, gate.run, "cancellations"), 409)["detail"]

    def test_it_is_ordered_once_for_a_key(self) -> None:
        gate = make_gate(team=make_team(may=MEMBER))
        client = signed_in(ann(gate.team))
        first = post(client, gate.run, "cancellations", {"reason": "Withdrawn."}, **KEY)
        again = post(client, gate.run, "cancellations", {"reason": "Withdrawn."}, **KEY)
        assert (again.status_code, again.content, again[idempotency_keys.REPLAYED]) == (200, first.content, "true")
        assert refusal(post(client, gate.run, "cancellations", {}, **KEY), 409)["code"] == "key_reused"

    def test_a_token_needs_the_scope_and_an_agents_has_none(self) -> None:
        team = make_team(may=MEMBER)
        run, owner = make_run(team=team), ann(team)
        for token in (make_token(owner, "runs:work"), make_token(owner, team=team, agent=run.plan.agent)):
            refusal(post(bearing(token[1]), run, "cancellations"), 403)
        assert Run.objects.get(pk=run.pk).status != "cancelled"
        assert post(bearing(make_token(owner, "runs:order")[1]), run, "cancellations").status_code == 200


class TestVerification:
    """The chain of a run's checkpoints over the API."""

    def test_it_holds_or_the_checkpoint_is_named(self, ledger: str) -> None:
        run = booked(ledger)
        client, address = member(run), f"/api/runs/{run.pk}/verification"
        assert client.get(address).json() == {"ok": True, "findings": []}
        row = Checkpoint.objects.get(run_id=run.pk, seq=2)
        Checkpoint.objects.filter(pk=row.pk).update(step="another")
        told = client.get(address).json()
        assert told["ok"] is False
        assert "its columns do not match its digest" in [each["reason"] for each in told["findings"]]
        assert any("2" in each["subject"] for each in told["findings"])
