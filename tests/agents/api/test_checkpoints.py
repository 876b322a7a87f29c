"""Checkpoints over the API: what was saved is what is read, byte by byte."""

from __future__ import annotations

import json
from typing import Any

from checkpoints import store
from checkpoints.models import Checkpoint
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.factories import ann, make_run, make_team
from tests.harness.signed_in_clients import signed_in

from .sent_requests import EXACT, ask, make_exact_run, save, walk
from .test_doors import refusal


def test_a_state_is_sent_as_the_bytes_that_its_digest_covers() -> None:
    run = make_exact_run()
    answer = signed_in(ann(run.team)).get(f"/api/runs/{run.pk}/checkpoints/1")
    state = store.load(run).state
    assert answer.content.endswith(b',"state":' + encode_canonical(state) + b"}")
    for text in (b'"count":1,', b'"share":1.0,', b'"huge":18446744073709551617,', b'"tiny":-0.0', b"[1,1.0,1844"):
        assert text in answer.content


def test_a_number_keeps_its_type_and_its_size() -> None:
    run = make_exact_run()
    order = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/1")["state"]["order"]
    assert encode_canonical(order) == encode_canonical(EXACT)


def test_a_value_as_deep_as_the_store_takes_is_read_back() -> None:
    deep: Any = 2**64
    for _ in range(129):
        deep = [deep]
    run = make_run(state={"order": {"deep": deep[0]}, "feedback": [deep]})
    run = save(run, order={}, feedback=[])
    state = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/1")["state"]
    assert state == {"order": {"deep": deep[0]}, "feedback": [deep]}
    path = f"/api/runs/{run.pk}/checkpoints/2/diff"
    assert patch.apply(ask(ann(run.team), path, to=1), {"order": {}, "feedback": []}) == state


def test_a_header_says_how_a_checkpoint_came_to_be_and_what_it_follows() -> None:
    run = save(make_run(), feedback=[{"text": "Again"}])
    found = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/2")
    first = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/1")
    snapshot = store.load(run)
    assert (found["kind"], found["step"], found["next_step"], found["seq"]) == ("step", "propose", "review", 2)
    assert (found["parent"], found["parent_digest"]) == (first["id"], first["digest"])
    assert (found["digest"], found["state_digest"]) == (snapshot.digest.hex(), snapshot.state_digest.hex())
    assert (first["kind"], first["parent"], first["parent_digest"]) == ("input", None, None)


def test_pages_of_checkpoints_follow_each_other_without_a_gap_or_a_repeat() -> None:
    run = make_run()
    for number in range(6):
        run = save(run, mailed=bool(number % 2))
    path = f"/api/runs/{run.pk}/checkpoints"
    assert [each["seq"] for each in walk(ann(run.team), path, limit=3)] == [7, 6, 5, 4, 3, 2, 1]
    before = ask(ann(run.team), path, limit=2)
    save(run, mailed=False)
    assert [each["seq"] for each in ask(ann(run.team), path, limit=2, cursor=before["next"])["items"]] == [5, 4]
    assert ask(ann(run.team), path)["items"][0].get("state") is None


def test_a_difference_is_the_patch_from_one_state_to_the_other_exact_to_the_type() -> None:
    run = save(make_exact_run(), order={**EXACT, "count": 1.0, "huge": 2**64 + 2}, feedback=[1, 1, 2**64, "new"])
    answer = signed_in(ann(run.team)).get(f"/api/runs/{run.pk}/checkpoints/1/diff", {"to": 2})
    assert answer["Content-Type"] == "application/json-patch+json"
    first, second = (store.load_checkpoint(row.id).state for row in Checkpoint.objects.filter(run=run).order_by("seq"))
    found = json.loads(answer.content)
    assert sorted(each["path"] for each in found) == ["/feedback/1", "/feedback/3", "/order/count", "/order/huge"]
    assert encode_canonical(patch.apply(found, first)) == encode_canonical(second)
    back = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/2/diff", to=1)
    assert encode_canonical(patch.apply(back, second)) == encode_canonical(first)
    assert ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/2/diff", to=2) == []


def test_a_checkpoint_of_another_run_is_not_there() -> None:
    team = make_team()
    run, other = make_run(team=team), save(make_run(team=team), mailed=True)
    reader = signed_in(ann(team))
    assert ask(ann(team), f"/api/runs/{other.pk}/checkpoints/2")["seq"] == 2
    told = refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/2"), 404)
    assert f"GET /api/runs/{run.pk}/checkpoints lists" in told["detail"]
    refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/1/diff", {"to": 2}), 404)


def test_a_checkpoint_that_does_not_verify_is_not_shown() -> None:
    run = save(make_run(), mailed=True)
    Checkpoint.objects.filter(run=run, seq=2).update(state_digest=b"\0" * 32)
    reader = signed_in(ann(run.team))
    told = refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/2"), 409)
    assert "do not match their digest" in told["detail"]
    refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/1/diff", {"to": 2}), 409)
    assert reader.get(f"/api/runs/{run.pk}/checkpoints/1").status_code == 200
