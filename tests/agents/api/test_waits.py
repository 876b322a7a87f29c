"""Signals to runs and waking them, over the API: who may, what is kept, and what each refusal says."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from agents.models import Signal, TokenScope, Wait
from checkpoints.actors import SYSTEM
from checkpoints.models import Event, Run
from tests.agents.api.test_doors import refusal
from tests.agents.api.test_orders import post
from tests.agents.pages.moves.sent_orders import member
from tests.agents.waits.conftest import own_agents
from tests.factories import REVIEWER, ann, make_team
from tests.factories.driven_runs import advance, make_run, state
from tests.factories.tokens import bearing, make_token

__all__ = ["own_agents"]


def test_a_signal_is_kept_and_wakes_the_run_that_waits_for_it() -> None:
    run = advance(make_run("listener"))
    client = member(run)
    told = post(client, run, "signals/health", {"value": {"percent": 80}, "key": "probe-1"})
    assert (told.status_code, told.json()["name"], told.json()["key"]) == (201, "health", "probe-1")
    again = post(client, run, "signals/health", {"value": {"percent": 80}, "key": "probe-1"})
    assert (again.status_code, again.json()) == (200, told.json())
    advance(run)
    assert state(run)["heard"] == [80]
    listed = client.get(f"/api/runs/{run.pk}/signals").json()["items"]
    assert [each["key"] for each in listed] == ["probe-1"]
    assert "value" not in listed[0]


def test_without_a_key_each_request_is_a_signal_of_its_own_but_for_its_idempotency_key() -> None:
    run = make_run("listener")
    client = member(run)
    body = {"value": {"percent": 1}}
    for _ in range(2):
        assert post(client, run, "signals/health", body).status_code == 201
        assert post(client, run, "signals/health", body, **{"Idempotency-Key": "one"}).status_code == 201
    assert Signal.objects.filter(run=run).count() == 3


def test_what_does_not_fit_is_refused_with_its_place_and_by_those_who_may_not_or_too_late() -> None:
    run = make_run("listener")
    client, fits = member(run), {"percent": 4}
    for name, body, place in (
        ("health", {"value": {"percent": 400}}, "/value/percent"), ("other", {}, "/"),
        ("health", {"value": fits, "key": "with blanks"}, "/key"), ("health", {"vaule": fits}, "/vaule"),
    ):  # fmt: skip
        told = refusal(post(client, run, f"signals/{name}", body), 422)
        assert place in [each["parameter"] for each in told["errors"]]
    theirs = make_run("listener", team=make_team(may=REVIEWER))
    refusal(post(member(theirs), theirs, "signals/go"), 403)
    assert not Signal.objects.filter(run__in=[run, theirs]).exists()
    post(client, run, "signals/health", {"value": fits, "key": "k"})
    told = refusal(post(client, run, "signals/health", {"value": {"percent": 2}, "key": "k"}), 409)
    assert told["code"] == "key_reused"
    run.cancel(by=SYSTEM)
    assert refusal(post(client, run, "signals/go"), 409)["code"] == "run_ended"


def test_secrets_of_a_signal_are_shown_to_its_runs_agent_alone() -> None:
    """Whoever could read the run was sent them, and an event held the digest of a PIN, from which it can be guessed."""
    run = advance(make_run("locked"))
    client = member(run)
    post(client, run, "signals/code", {"value": {"by": "ops", "pin": "4711"}, "key": "k"})
    read = client.get(f"/api/runs/{run.pk}/signals/code").json()["items"]
    assert [(each["masked"], each["value"]) for each in read] == [(["/pin"], {"by": "ops", "pin": "•••••••• /pin"})]
    agents = bearing(make_token(ann(run.team), TokenScope.READ, agent="locked", team=run.team)[1])
    own = agents.get(f"/api/runs/{run.pk}/signals/code")
    assert [(each["masked"], each["value"]["pin"]) for each in own.json()["items"]] == [([], "4711")]
    assert b'"digest"' not in bytes(Event.objects.get(kind="signal.received", subject=f"run:{run.pk}").data)
    assert state(advance(run))["length"] == 4


def test_an_answer_ends_after_the_signal_with_which_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred values of a megabyte were one answer."""
    monkeypatch.setattr("agents.api.runs.waits.ANSWER", 20)
    run = make_run("listener")
    client = member(run)
    for percent in (10, 11, 12):
        post(client, run, "signals/health", {"value": {"percent": percent}})
    address = f"/api/runs/{run.pk}/signals/health"
    read = client.get(address).json()["items"]
    assert [each["value"]["percent"] for each in read] == [10, 11]  # 14 bytes each
    rest = client.get(address, {"after": read[-1]["id"]}).json()["items"]
    assert [each["value"]["percent"] for each in rest] == [12]


def test_a_person_wakes_a_run_over_the_api(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger")
    other = advance(make_run("sleeper", team=make_team(may=REVIEWER), ledger=ledger))
    refusal(post(member(other), other, "wakes"), 403)
    run = advance(make_run("sleeper", ledger=ledger))
    client = member(run)
    told = post(client, run, "wakes")
    assert (told.status_code, told.json()["status"]) == (200, "queued")
    refusal(post(client, run, "wakes"), 409)


def test_a_run_is_started_with_a_deadline() -> None:
    run = make_run("listener")
    client = member(run)
    body = {"agent": "listener", "within": 3600}
    told = client.post("/api/runs", body, content_type="application/json")
    assert told.status_code == 201
    made = Run.objects.get(pk=told.json()["id"])
    assert made.deadline is not None
    assert timedelta(minutes=59) < made.deadline - made.created_at < timedelta(minutes=61)
    assert Wait.objects.filter(run=made).count() == 0
