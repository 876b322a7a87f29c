"""Several checkpoints saved in one call: a checkpoint each, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.models import Gate
from checkpoints.models import Checkpoint, Run

from .outside_program import WIRE, Program
from .test_refusals import refused, traces

ROUND: list[dict[str, Any]] = [{"name": "write", "writes": ["log", "summary"], "jumps": ["write"], "ends": True}]


def wrote(*items: str, **more: Any) -> dict[str, Any]:
    return {"step": "write", "ops": [{"op": "append", "field": "log", "items": items}], "next_step": "write", **more}


@pytest.fixture
def writing() -> Program:
    """A program at a step that goes round."""
    program = Program()
    program.register(steps=ROUND)
    program.run = program.ok(program.post("runs", {"agent": program.agent, "input": {"invoice": {}, "log": []}}))["id"]
    program.claim()
    return program


def logs(program: Program) -> list[list[str]]:
    """The list as each checkpoint has it, the oldest first."""
    assert program.ok(program.client.get(f"/api/runs/{program.run}/verification"))["ok"] is True
    newest = Run.objects.get(pk=program.run).seq
    said = [program.client.get(f"/api/runs/{program.run}/checkpoints/{seq}") for seq in range(1, newest + 1)]
    return [program.ok(each)["state"]["log"] for each in said]


def test_each_is_a_checkpoint_of_its_own(writing: Program) -> None:
    turn = writing.ok(writing.work("checkpoints/batches", checkpoints=[wrote("a"), wrote("b", "c"), wrote("d")]))
    assert (turn["seq"], turn["next"]["step"], turn["status"]) == (4, "write", "running")
    assert logs(writing) == [[], ["a"], ["a", "b", "c"], ["a", "b", "c", "d"]]
    assert writing.ok(writing.work("checkpoints", **wrote("e")))["seq"] == 5


def test_the_last_may_end_the_run_and_a_whole_state_be_among_them(writing: Program) -> None:
    before: dict[str, Any] = writing.ok(writing.client.get(f"/api/runs/{writing.run}/checkpoints/1"))["state"]
    whole = {"step": "write", "state": {**before, "log": ["a", "z"]}, "next_step": "write"}
    several = [wrote("a"), whole, wrote("b", next_step="")]
    assert writing.ok(writing.work("checkpoints/batches", checkpoints=several))["status"] == "completed"
    assert logs(writing)[2:] == [["a", "z"], ["a", "z", "b"]]


def test_sent_again_with_its_key_it_is_saved_once(writing: Program) -> None:
    first = writing.ok(writing.work("checkpoints/batches", key="k", checkpoints=[wrote("a"), wrote("b")]))
    assert writing.ok(writing.work("checkpoints/batches", key="k", checkpoints=[wrote("a"), wrote("b")])) == first
    assert Checkpoint.objects.filter(run_id=writing.run).count() == 3


def test_what_is_wrong_with_one_is_told_by_its_place_and_none_is_saved(writing: Program) -> None:
    before = traces(writing)
    wrong = wrote("b") | {"ops": [{"op": "set", "field": "summary", "value": 7}]}
    told = refused(
        writing,
        writing.work("checkpoints/batches", checkpoints=[wrote("a"), wrong]),
        422,
        code="invalid",
        before=before,
    )
    assert told["errors"][0]["parameter"].startswith("/checkpoints/1/")
    nothing = writing.work("checkpoints/batches", checkpoints=[])
    assert "/checkpoints" in str(refused(writing, nothing, 422, code="invalid", before=before)["errors"])
    assert writing.ok(writing.work("checkpoints", **wrote("a")))["seq"] == 2


def test_nothing_is_saved_where_a_gate_or_a_person_comes_between() -> None:
    program = Program()
    program.start()
    before = traces(program)
    draft = {"step": "draft", "ops": [{"op": "set", "field": "payment", "value": WIRE}]}
    report = {"step": "report", "ops": [{"op": "set", "field": "summary", "value": "Paid."}]}
    answer = program.work("checkpoints/batches", checkpoints=[draft, report])
    told = refused(program, answer, 409, code="out_of_turn", before=before)
    assert "after 1 of these the gate review comes" in told["detail"]
    assert not Gate.objects.filter(run_id=program.run).exists()
    assert program.ok(program.work("checkpoints/batches", checkpoints=[draft]))["next"]["kind"] == "gate"


def test_nothing_is_saved_where_somebody_asks_to_stop_between(writing: Program) -> None:
    Run.objects.filter(pk=writing.run).update(halt=True)
    before = traces(writing)
    answer = writing.work("checkpoints/batches", checkpoints=[wrote("a"), wrote("b")])
    told = refused(writing, answer, 409, code="out_of_turn", before=before)
    assert "the run is released, as somebody asked" in told["detail"]
    assert Run.objects.get(pk=writing.run).status == "running"
    assert writing.ok(writing.work("checkpoints", **wrote("a")))["status"] == "queued"


def test_a_stale_token_saves_nothing(writing: Program) -> None:
    program, before = writing, traces(writing)
    program.token += 1
    answer = program.work("checkpoints/batches", checkpoints=[wrote("a"), wrote("b")])
    refused(program, answer, 409, code="stale_token", before=before)
