"""Names of checkpoints over the API: who may give one, what it holds, and what each refusal says."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from checkpoints.models import Hold, Run
from tests.agents.pages.moves.sent_orders import member
from tests.factories import make_user
from tests.factories.driven_runs import advance, make_run
from tests.harness.known_agents import sample_agents
from tests.harness.signed_in_clients import signed_in

from .test_doors import refusal

__all__ = ["sample_agents"]


def post(client: Client, run: Run, seq: int, noun: str = "names", body: Any = None, **headers: str) -> Any:
    address = f"/api/runs/{run.pk}/checkpoints/{seq}/{noun}"
    return client.post(address, body or {}, content_type="application/json", headers=headers)


def named(run: Run) -> list[str]:
    return list(Hold.objects.standing().filter(run=run, kind="name").values_list("reason", flat=True))


@pytest.fixture
def run() -> Run:
    """A run at its first checkpoint."""
    return make_run("sender", ledger="")


def test_a_checkpoint_is_named_and_the_name_removed_again(run: Run) -> None:
    client = member(run)
    told = post(client, run, 1, body={"name": "Before paying"})
    assert (told.status_code, told.json()) == (201, {"run": run.pk, "seq": 1, "name": "Before paying"})
    assert client.get(f"/api/runs/{run.pk}/checkpoints/1").json()["name"] == "Before paying"
    assert post(client, run, 1).json()["name"] == "Checkpoint 1"
    assert named(run) == ["Checkpoint 1"]
    for _ in range(2):
        gone = post(client, run, 1, "names/removals")
        assert (gone.status_code, gone.json()["name"], named(run)) == (200, "", [])


def test_the_same_request_sent_again_names_it_once(run: Run) -> None:
    client = member(run)
    first, again = (post(client, run, 1, body={"name": "A"}, **{"Idempotency-Key": "one"}) for _ in range(2))
    assert first.json() == again.json()
    assert Hold.objects.filter(run=run, kind="name").count() == 1


@pytest.mark.parametrize(
    ("seq", "body", "status"), [(1, {"name": "x" * 101}, 422), (9, {}, 404), (1, {"nam": ""}, 422)]
)
def test_what_cannot_be_named_is_refused(seq: int, body: Any, status: int, run: Run) -> None:
    refusal(post(member(run), run, seq, body=body), status)
    assert named(run) == []


@pytest.mark.parametrize("noun", ["names", "names/removals"])
def test_who_may_only_read_and_who_may_not_name_nothing(noun: str, run: Run) -> None:
    post(member(run), run, 1, body={"name": "A"})
    refusal(post(signed_in(make_user("Eve")), run, 1, noun), 404)
    run.team.permissions.remove(*Permission.objects.filter(codename="rewind_run"))
    refusal(post(member(run), run, 1, noun), 403)
    assert member(run).get(f"/api/runs/{run.pk}/checkpoints/1/{noun}").status_code == 405
    assert named(run) == ["A"]


def test_a_checkpoint_tells_what_its_step_held_open(run: Run) -> None:
    assert member(run).get(f"/api/runs/{run.pk}/checkpoints/1").json()["held"] == {}
    advance(run)
