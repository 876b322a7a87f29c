"""Orders over the API: what each does, what it would do, and what it is refused for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.test import Client

from agents.api.interface import example_of
from checkpoints.models import Run
from tests.agents.moves.conftest import _only_these_agents, ledger
from tests.agents.moves.moved_runs import after, before, edit
from tests.agents.pages.moves.sent_orders import booked, member
from tests.factories.driven_runs import advance_to_rest, state

from .sent_requests import document
from .test_doors import refusal

__all__ = ["_only_these_agents", "ledger"]

SIZE = [{"op": "replace", "path": "/size", "value": 2}]


def post(client: Client, run: Run, noun: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
    return client.post(f"/api/runs/{run.pk}/{noun}", body or {}, content_type="application/json", headers=headers)


def schema(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}", "components": document()["components"]}


def bodies() -> Iterator[tuple[str, Any]]:
    """The shape of every body that the description names."""
    for path, operations in document()["paths"].items():
        for operation in operations.values():
            if "requestBody" in operation:
                yield path, operation["requestBody"]["content"]["application/json"]["schema"]


def test_every_body_is_described_by_a_shape_with_examples() -> None:
    found = dict(bodies())
    assert {"/api/runs", "/api/runs/{run_id}/forks", "/api/gates/{gate_id}/decisions"} <= set(found)
    for path, told in found.items():
        shapes = document()["components"]["schemas"]
        members = shapes[told["$ref"].rpartition("/")[2]]["properties"]
        example = {name: example_of(member, shapes) for name, member in members.items()}
        jsonschema.validate(example, schema(told["$ref"].rpartition("/")[2])), path


def test_an_order_is_done_as_its_impact_said(ledger: str) -> None:
    run = booked(ledger)
    client, to = member(run), before(run, "plan")
    told = post(client, run, "impacts", {"kind": "rewind", "at": to, "feedback": "Once more."})
    assert told.status_code == 200
    impact = told.json()
    jsonschema.validate(impact, schema("ImpactAnswer"))
    assert {row["step"]: row["verdict"] for row in impact["rows"]}["plan"] == "will"
    seq = run.seq
    done = post(client, run, "rewinds", {"to": to, "feedback": "Once more.", "seen": impact["digest"]})
    assert (done.status_code, done.json()["status"], done.json()["seq"]) == (200, "queued", seq + 1)
    jsonschema.validate(done.json(), schema("RunSummary"))
    assert state(run)["feedback"][0]["text"] == "Once more."


def test_asking_writes_nothing(ledger: str) -> None:
    run = booked(ledger)
    before_ = Run.objects.values().get(pk=run.pk)
    for body in (
        {"kind": "rewind", "at": 2},
        {"kind": "edit", "at": 1, "patch": SIZE},
        {"kind": "fork", "at": 1, "patch": SIZE},
    ):
        assert post(member(run), run, "impacts", body).status_code == 200
    assert Run.objects.values().get(pk=run.pk) == before_
    assert not Run.objects.filter(lineage=run.pk, forked_from__isnull=False).exists()


def test_what_was_seen_and_is_no_longer_true_answers_with_what_is(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    told = refusal(post(client, run, "rewinds", {"to": 1, "seen": "00" * 32}), 409)
    assert told["code"] == "impact_changed"
    jsonschema.validate(told["impact"], schema("ImpactAnswer"))
    assert Run.objects.get(pk=run.pk).status == "completed"
    assert post(client, run, "rewinds", {"to": 1, "seen": told["impact"]["digest"]}).status_code == 200


def test_a_rewind_and_an_edit_that_are_sent_twice_are_done_once(ledger: str) -> None:
    """The impact alone did not tell them apart: from where a rewind has led, the same rewind does the same."""
    run = booked(ledger)
    client = member(run)
    for noun, body in (("rewinds", {"to": 1}), ("edits", {"at": 1, "patch": SIZE})):
        newest = Run.objects.get(pk=run.pk).seq
        assert post(client, run, noun, body | {"newest": newest}).status_code == 200
        assert "changed since" in refusal(post(client, run, noun, body | {"newest": newest}), 409)["detail"]
        assert Run.objects.get(pk=run.pk).seq == newest + 1


def test_an_edit_keeps_the_type_of_its_numbers_and_names_what_does_not_fit(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    huge = [{"op": "replace", "path": "/offer", "value": 2**64 + 1}]
    assert post(client, run, "edits", {"at": 1, "patch": huge}).status_code == 200
    assert state(run)["offer"] == 2**64 + 1
    wrong = [{"op": "replace", "path": "/size", "value": "many"}]
    told = refusal(post(client, run, "edits", {"at": 1, "patch": wrong}), 422)
    assert [fault["parameter"] for fault in told["errors"]] == ["/size"]


def test_what_is_final_is_done_once_more_only_with_confirm(ledger: str) -> None:
    run = booked(ledger)
    client, to = member(run), before(run, "tell")
    told = refusal(post(client, run, "rewinds", {"to": to}), 422)
    assert [fault["parameter"] for fault in told["errors"]] == ["/confirm"]
    assert post(client, run, "rewinds", {"to": to, "confirm": True}).status_code == 200


def test_a_fork_is_made_once_for_one_key_whatever_it_has_done_since(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    impact = post(client, run, "impacts", {"kind": "fork", "at": 1, "patch": SIZE}).json()
    body = {"at": 1, "patch": SIZE, "title": "For two", "seen": impact["digest"]}
    made = post(client, run, "forks", body, **{"Idempotency-Key": "mine"})
    assert made.status_code == 201
    number = made.json()["id"]
    assert (made["Location"], made.json()["title"]) == (f"/api/runs/{number}", "For two")
    advance_to_rest(Run.objects.get(pk=number))
    assert post(client, run, "forks", body, **{"Idempotency-Key": "mine"}).json()["id"] == number
    assert post(member(run), run, "forks", {"at": 1}, **{"Idempotency-Key": "mine"}).json()["id"] != number
    assert post(client, run, "forks", {"at": 1}).json()["id"] != number


def test_what_was_left_behind_is_settled_and_nothing_is_refused(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    assert "left no effects behind" in refusal(post(client, run, "settlements"), 409)["detail"]
    edit(run, 1, size=2)
    assert post(client, run, "settlements").status_code == 200
    assert client.get(f"/api/runs/{run.pk}").json()["ending"] == "now"
    assert (Run.objects.get(pk=run.pk).settling, Run.objects.get(pk=run.pk).ending) == (True, "")


@pytest.mark.parametrize(
    ("noun", "body", "parameter"),
    [
        ("rewinds", {}, "/to"),
        ("rewinds", {"to": "one"}, "/to"),
        ("rewinds", {"to": 1, "seeen": "ab"}, "/seeen"),
        ("edits", {"at": 1}, "/patch"),
        ("edits", {"at": 1, "patch": ["x"]}, "/patch/0"),
        ("forks", {"at": 0}, "/at"),
        ("forks", {"at": 1, "config": 7}, "/config"),
        ("forks", {"at": 1, "config": {"tone": 7}}, "/config/tone"),
        ("impacts", {"kind": "cancel", "at": 1}, "/kind"),
    ],
)
def test_a_member_that_is_junk_is_named(ledger: str, noun: str, body: dict[str, Any], parameter: str) -> None:
    run = advance_to_rest(booked(ledger))
    told = refusal(post(member(run), run, noun, body), 422)
    assert [fault["parameter"] for fault in told["errors"]] == [parameter]


def test_a_checkpoint_or_a_version_that_is_not_there_is_refused_in_words(ledger: str) -> None:
    run = booked(ledger)
    for noun, body in (("rewinds", {"to": 99}), ("edits", {"at": 99, "patch": SIZE}), ("forks", {"at": 99})):
        assert f"GET /api/runs/{run.pk}/checkpoints" in refusal(post(member(run), run, noun, body), 404)["detail"]
    told = refusal(post(member(run), run, "forks", {"at": 1, "version": "99"}), 409)
    assert "no agent named booking 99" in told["detail"]


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


def test_a_place_that_is_not_there_is_not_found(ledger: str) -> None:
    run = booked(ledger)
    for place in ("99", f"{run.pk + 10_000}.1"):
        refusal(member(run).get(f"/api/runs/{run.pk}/comparisons", {"a": "1", "b": place}), 404)
