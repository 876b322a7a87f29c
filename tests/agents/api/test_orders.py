"""Orders over the API: what each does, would do and is refused for; each is done once for its Idempotency-Key."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agents.api.protocol import idempotency_keys
from agents.api.runs import moves
from agents.models import Answer
from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from config.housekeeping import clear_answers
from tests.agents.api.sent_requests import check_shape
from tests.agents.api.test_doors import refusal
from tests.agents.moves.conftest import _only_these_agents, ledger
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import booked, member
from tests.factories import MEMBER, ann, make_gate, make_team
from tests.factories.driven_runs import advance_to_rest, state
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

__all__ = ["_only_these_agents", "ledger"]
SIZE = [{"op": "replace", "path": "/size", "value": 2}]
KEY = {"Idempotency-Key": "mine"}
ORDERS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rewinds", {"to": 1}, {"to": 1, "feedback": "Once more."}),
    ("edits", {"at": 1, "patch": SIZE}, {"at": 1, "patch": [{**SIZE[0], "value": 3}]}),
    ("forks", {"at": 1, "patch": SIZE}, {"at": 1}),
]


def post(client: Client, run: Run, noun: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    return client.post(f"/api/runs/{run.pk}/{noun}", body or {}, content_type="application/json", headers=headers)


def stands(run: Run) -> tuple[int, int]:
    """How many checkpoints and runs there are of its lineage."""
    kin = Run.objects.filter(lineage=run.lineage)
    return Checkpoint.objects.filter(run_id__in=kin.values("pk")).count(), kin.count()


def test_asking_writes_nothing_and_an_order_is_done_as_its_impact_said_or_refused_with_what_is_true_now(
    ledger: str,
) -> None:
    run = booked(ledger)
    client, to, was = member(run), before(run, "plan"), Run.objects.values().get(pk=run.pk)
    for kind, more in (("edit", {"patch": SIZE}), ("fork", {"patch": SIZE}), ("rewind", {"feedback": "Once more."})):
        told = post(client, run, "impacts", {"kind": kind, "at": to, **more})
        assert told.status_code == 200
        check_shape(told.json(), "ImpactAnswer")
    assert Run.objects.values().get(pk=run.pk) == was
    assert stands(run)[1] == 1
    assert {row["step"]: row["verdict"] for row in told.json()["rows"]}["plan"] == "will"
    stale = refusal(post(client, run, "rewinds", {"to": to, "seen": "00" * 32}), 409)
    assert stale["code"] == "impact_changed"
    check_shape(stale["impact"], "ImpactAnswer")
    assert Run.objects.values().get(pk=run.pk) == was
    done = post(client, run, "rewinds", {"to": to, "feedback": "Once more.", "seen": told.json()["digest"]})
    assert (done.status_code, done.json()["status"], done.json()["seq"]) == (200, "queued", run.seq + 1)
    check_shape(done.json(), "RunSummary")
    assert state(run)["feedback"][0]["text"] == "Once more."


def test_a_rewind_and_an_edit_that_are_sent_twice_are_done_once(ledger: str) -> None:
    """The impact alone did not tell them apart: from where a rewind has led, the same rewind does the same."""
    run = booked(ledger)
    client = member(run)
    for noun, body, _ in ORDERS[:2]:
        newest = Run.objects.get(pk=run.pk).seq
        assert post(client, run, noun, body | {"newest": newest}).status_code == 200
        assert "changed since" in refusal(post(client, run, noun, body | {"newest": newest}), 409)["detail"]
        assert Run.objects.get(pk=run.pk).seq == newest + 1


def test_what_is_final_is_done_once_more_only_with_confirm_and_what_does_not_fit_is_named(ledger: str) -> None:
    run = booked(ledger)
    client, to = member(run), before(run, "tell")
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("rewinds", {"to": to}, "/confirm"), ("rewinds", {}, "/to"), ("rewinds", {"to": 1, "seeen": "ab"}, "/seeen"),
        ("edits", {"at": 1}, "/patch"), ("edits", {"at": 1, "patch": ["x"]}, "/patch/0"), ("forks", {"at": 0}, "/at"),
        ("edits", {"at": 1, "patch": [{**SIZE[0], "value": "many"}]}, "/size"),
        ("forks", {"at": 1, "config": 7}, "/config"), ("forks", {"at": 1, "config": {"tone": 7}}, "/config/tone"),
        ("impacts", {"kind": "cancel", "at": 1}, "/kind"),
    ]  # fmt: skip
    for noun, body, place in wrong:
        told = refusal(post(client, run, noun, body), 422)
        assert [fault["parameter"] for fault in told["errors"]] == [place]
    for noun, body in (("rewinds", {"to": 99}), ("edits", {"at": 99, "patch": SIZE}), ("forks", {"at": 99})):
        assert f"GET /api/runs/{run.pk}/checkpoints" in refusal(post(client, run, noun, body), 404)["detail"]
    told = refusal(post(client, run, "forks", {"at": 1, "version": "99"}), 409)
    assert "no agent named booking 99" in told["detail"]
    assert post(client, run, "rewinds", {"to": to, "confirm": True}).status_code == 200
    huge = [{"op": "replace", "path": "/offer", "value": 2**64 + 1}]
    assert post(client, run, "edits", {"at": 1, "patch": huge}).status_code == 200
    assert state(run)["offer"] == 2**64 + 1


def test_two_branches_are_compared_with_steps_effects_and_states(ledger: str) -> None:
    run = booked(ledger)
    last = after(run, "tell")
    edit(run, 1, size=2)
    advance_to_rest(run)
    answer = member(run).get(f"/api/runs/{run.pk}/comparisons", {"a": last, "b": after(run, "plan")})
    assert answer.status_code == 200
    told = answer.json()
    assert (told["ancestor_run"], told["ancestor_seq"]) == (run.pk, 1)
    assert [step["step"] for step in told["a"]["way"]] == ["plan", "review", "book", "pay", "tell"]
    assert [fate["fate"] for fate in told["a"]["effects"]][-1] == "from an abandoned branch; cannot be undone"
    assert told["b"]["effects"] == []
    assert {"op": "replace", "path": "/size", "value": 2} in told["patch"]
    for place in ("99", f"{run.pk + 10_000}.1"):
        refusal(member(run).get(f"/api/runs/{run.pk}/comparisons", {"a": "1", "b": place}), 404)


def test_each_order_is_done_once_for_its_key_and_answered_the_same(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    for noun, body, other in ORDERS:
        key = {"Idempotency-Key": noun}
        first = post(client, run, noun, body, **key)
        assert first.status_code in (200, 201)
        assert idempotency_keys.REPLAYED not in first
        standing = stands(run)
        again = post(client, run, noun, body, **key)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.get("Location") == first.get("Location")
        assert again[idempotency_keys.REPLAYED] == "true"
        assert refusal(post(client, run, noun, other, **key), 409)["code"] == "key_reused"
        assert stands(run) == standing
    told = refusal(post(client, run, "rewinds", {"to": 1}, **{"Idempotency-Key": "my key"}), 422)
    assert told["code"] == "invalid"
    assert [each["parameter"] for each in told["errors"]] == ["Idempotency-Key"]


def test_a_fork_is_made_once_for_one_key_whatever_it_has_done_since_and_for_nobody_else(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    impact = post(client, run, "impacts", {"kind": "fork", "at": 1, "patch": SIZE}).json()
    body = {"at": 1, "patch": SIZE, "title": "For two", "seen": impact["digest"]}
    made = post(client, run, "forks", body, **KEY)
    assert made.status_code == 201
    number = made.json()["id"]
    assert (made["Location"], made.json()["title"]) == (f"/api/runs/{number}", "For two")
    advance_to_rest(Run.objects.get(pk=number))
    assert post(client, run, "forks", body, **KEY).json()["id"] == number
    others = post(member(run), run, "forks", {"at": 1}, **KEY)
    assert idempotency_keys.REPLAYED not in others
    assert len({number, others.json()["id"], post(client, run, "forks", {"at": 1}).json()["id"]}) == 3


def test_what_was_left_behind_is_settled_once_for_a_key_though_its_answer_was_lost(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    assert "left no effects behind" in refusal(post(client, run, "settlements", {}, **KEY), 409)["detail"]
    edit(run, 1, size=2)
    first = post(client, run, "settlements", {}, **KEY)
    assert first.status_code == 200, "what was refused leaves its key free"
    assert client.get(f"/api/runs/{run.pk}").json()["ending"] == "now"
    assert (Run.objects.get(pk=run.pk).settling, Run.objects.get(pk=run.pk).ending) == (True, "")
    again = post(client, run, "settlements", {}, **KEY)
    assert (again.content, again[idempotency_keys.REPLAYED]) == (first.content, "true")
    assert Answer.objects.filter(key="mine", body=first.content).update(status=0, body=b"") == 1
    settled = Run.objects.get(pk=advance_to_rest(run).pk)
    assert post(client, run, "settlements", {}, **KEY).status_code == 200
    run.refresh_from_db()
    assert (run.status, run.seq, run.token) == (settled.status, settled.seq, settled.token)


@pytest.mark.parametrize(("noun", "body", "other"), [pytest.param(*ORDERS[0], marks=pytest.mark.long), *ORDERS[1:]])
def test_the_key_of_an_order_whose_process_died_before_it_answered_is_that_orders_alone(
    ledger: str, monkeypatch: pytest.MonkeyPatch, noun: str, body: dict[str, Any], other: dict[str, Any]
) -> None:
    """The same again is done once; no order that was refused keeps a key."""
    run = booked(ledger)
    client = member(run)

    def died(*_: Any, **__: Any) -> Any:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(moves, "summed_up", died)
        with pytest.raises(SystemExit):
            post(client, run, noun, body, **KEY)
    standing = stands(run)
    assert refusal(post(client, run, noun, other, **KEY), 409)["code"] == "key_reused"
    assert post(client, run, noun, body, **KEY).status_code in (200, 201)
    assert stands(run) == standing
    refusal(post(client, run, noun, {**body, "seen": "00"}, **{"Idempotency-Key": "refused"}), 409)
    assert not Answer.objects.filter(key="refused").exists()


def test_of_two_that_come_at_once_one_is_done_and_both_are_answered_the_same(ledger: str) -> None:
    run = booked(ledger)
    cookies, standing = member(run).cookies, stands(run)
    clients = [Client() for _ in range(3)]
    for client in clients:
        client.cookies = cookies
    answers = race([partial(post, client, run, "edits", {"at": 1, "patch": SIZE}, **KEY) for client in clients])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sorted(idempotency_keys.REPLAYED in answer for answer in answers) == [False, True, True]
    assert stands(run) == (standing[0] + 1, standing[1])


def test_answers_are_kept_for_a_week() -> None:
    rows = []
    for days, location in ((6, ""), (8, ""), (8, "/api/webhooks/7")):
        row = Answer.objects.create(who="user:0", key=f"{days} days {location}", request=b"", location=location)
        Answer.objects.filter(pk=row.pk).update(at=timezone.now() - timedelta(days=days))
        rows.append(row.pk)
    clear_answers()
    assert list(Answer.objects.filter(pk__in=rows).values_list("pk", flat=True)) == rows[:1]


def test_a_run_is_cancelled_once_for_a_key_and_a_second_time_it_says_how_it_ended() -> None:
    asked = make_gate(team=make_team(may=MEMBER))
    client, body = signed_in(ann(asked.team)), {"reason": "Withdrawn."}
    first = post(client, asked.run, "cancellations", body, **KEY)
    assert first.status_code == 200
    assert (first.json()["status"], first.json()["gates"]) == ("cancelled", [])
    assert Gate.objects.get(pk=asked.pk).status == "withdrawn"
    assert Run.objects.get(pk=asked.run_id).reason == "Withdrawn."
    again = post(client, asked.run, "cancellations", body, **KEY)
    assert (again.status_code, again.content, again[idempotency_keys.REPLAYED]) == (200, first.content, "true")
    assert refusal(post(client, asked.run, "cancellations", {}, **KEY), 409)["code"] == "key_reused"
    assert "already ended as cancelled" in refusal(post(client, asked.run, "cancellations"), 409)["detail"]
