"""One effect step performs several actions, one after the other: each under its own grant, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import Effect
from agents.moves import fork as forks
from agents.moves import rewind
from approvals.consequences import impact_sources
from approvals.consequences.gate import GateImpacts
from checkpoints.models import Checkpoint, Run
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate, state, trail
from tests.harness.sent_statements import sent

from .verdict_forms import APPROVE, edit, lines, make_calls, reject, respond, say

MIXED = {"x1": APPROVE, "x2": reject("Not this tool."), "x3": APPROVE}


def seq_of(run: Run, step: str, kind: str = "step") -> int:
    """The number of the newest checkpoint of a step."""
    return Checkpoint.objects.filter(run=run, step=step, kind=kind).order_by("-seq")[0].seq


def test_the_refused_one_of_three_is_passed_by_and_the_others_run_once(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["call x1 1", "call x3 3"]
    used = Effect.objects.filter(run=run).order_by("pk").values_list("action", "grant__action")
    assert list(used) == [("x1", "x1"), ("x3", "x3")]
    assert [kind for kind, step in trail(run) if step == "call_tool"] == ["step", "skipped", "step"]


def test_answers_and_edits_reach_the_right_call(ledger: Path) -> None:
    run = make_calls(ledger)
    each = {"x1": respond({"of": "x1", "said": "by hand"}), "x2": edit(run, "x2", amount=50), "x3": APPROVE}
    say(run, each=each)
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["call x2 50", "call x3 3"]
    assert [(one["of"], one["said"]) for one in state(run)["results"]] == [
        ("x1", "by hand"), ("x2", "done"), ("x3", "done"),
    ]  # fmt: skip


@pytest.mark.parametrize("order", [["x2", "x1", "x3"], ["x2", "x2", "x1"], ["x3", "x2", "x1"]])
def test_no_order_of_calls_lets_the_refused_one_run_under_the_grant_of_another(order: list[str], ledger: Path) -> None:
    run = make_calls(ledger, order=order)
    say(run, each=MIXED)
    advance_to_rest(run)
    assert not [line for line in lines(ledger) if "x2" in line]
    assert sorted(lines(ledger)) == sorted(f"call {name} {name[1]}" for name in set(order) - {"x2"})


def test_an_action_that_ran_does_not_run_again_under_the_grant_of_another(ledger: Path) -> None:
    run = make_calls(ledger, order=["x1", "x1", "x3"])
    say(run, each=MIXED)
    advance_to_rest(run)
    assert lines(ledger) == ["call x1 1"]
    assert trail(run)[-1] == ("reopen", "call_tool")
    assert open_gate(run).step == "review"


def test_what_names_no_action_of_the_gate_is_not_performed(ledger: Path) -> None:
    run = make_calls(ledger, order=["other"])
    decide(run)
    advance_to_rest(run)
    assert lines(ledger) == []
    assert trail(run)[-1] == ("reopen", "call_tool")


def test_whoever_names_another_action_by_hand_has_the_gate_ask_again(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    first = Checkpoint.objects.filter(run=run, step="pick").order_by("seq")[0].seq
    mover = make_user("Bob Lindqvist", run.team)
    rewind.edit(run, at=first, patch=[{"op": "replace", "path": "/calling", "value": "x3"}], by=mover)
    advance_to_rest(run)
    assert trail(run)[-1] == ("reopen", "call_tool")


def test_after_a_rewind_what_was_done_is_taken_and_not_done_again(ledger: Path) -> None:
    run = make_calls(ledger)
    decide(run)
    advance_to_rest(run)
    assert lines(ledger) == ["call x1 1", "call x2 2", "call x3 3"]
    rewind.rewind(run, to=seq_of(run, "think"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    say(run, each={"x1": APPROVE, "x2": APPROVE, "x3": reject("Once was enough.")})
    advance_to_rest(run)
    assert run.status == "completed"
    assert lines(ledger) == ["call x1 1", "call x2 2", "call x3 3", "undo x3"]


def test_what_was_done_and_is_refused_afterwards_is_undone_and_not_taken_over(ledger: Path) -> None:
    run = make_calls(ledger)
    decide(run)
    advance_to_rest(run)
    rewind.rewind(run, to=seq_of(run, "think"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    say(run, each={"x1": reject("No more."), "x2": APPROVE, "x3": APPROVE})
    assert advance_to_rest(run).status == "completed"
    undone = [line for line in lines(ledger) if line.startswith("undo")]
    assert "undo x1" in undone
    standing = Effect.objects.filter(run=run, undoes__isnull=True, status="done").values_list("action", flat=True)
    assert sorted(standing) == ["x2", "x3"]


def test_a_question_about_one_call_leaves_the_others_their_permissions(ledger: Path) -> None:
    run = make_calls(ledger, mode="fails x2")
    say(run, each={"x1": reject("Not this."), "x2": APPROVE, "x3": APPROVE})
    advance_to_rest(run)
    gate = open_gate(run)
    assert gate.kind == "recovery"
    assert [action.id for action in gate.asked.actions] == ["x2"]
    answer(run, "retry")
    assert advance_to_rest(run).status == "completed"
    assert lines(ledger) == ["failed x2", "call x2 2", "call x3 3"]


def test_a_fork_from_after_the_gate_asks_about_every_call_anew(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    fork = forks.fork(run, at=seq_of(run, "review", "gate"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(fork)
    answer(fork, "take")  # what the origin has done
    advance_to_rest(fork)
    gate = open_gate(fork)
    assert gate.kind == "review"
    assert [action.settled for action in gate.asked.actions] == [None, None, None]
    assert lines(ledger) == ["call x1 1", "call x3 3"]


def test_the_inbox_names_the_very_calls_that_a_forks_origin_has_done(ledger: Path) -> None:
    """The row said nothing of agents that perform whatever they like by one step, while the gate asked for a tick."""
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    other = [{"op": "replace", "path": "/mode", "value": "another"}]
    fork = forks.fork(run, at=seq_of(run, "think"), by=make_user("Bob Lindqvist", run.team), patch=other)
    advance_to_rest(fork)
    gate = open_gate(fork)
    expected = {(each.effect, each.action, each.at) for each in GateImpacts(gate, gate.asked, []).approve().repeats}
    assert {action for _, action, _ in expected} == {"x1", "x3"}
    with sent() as statements:
        told = impact_sources.beside([gate])[gate.pk]
    assert len(statements) <= 3, "\n".join(statements)
    assert {(each.effect, each.action, each.at) for each in told} == expected


def test_a_gate_where_something_was_refused_asks_again_after_a_rewind(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    rewind.rewind(run, to=seq_of(run, "think"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    assert [action.settled for action in open_gate(run).asked.actions] == [None, None, None]


def test_a_result_that_was_taken_over_uses_up_the_permission_for_its_action(ledger: Path) -> None:
    run = make_calls(ledger)
    say(run, each=MIXED)
    advance_to_rest(run)
    again = [{"op": "replace", "path": "/order", "value": ["x1", "x1"]}]
    rewind.edit(run, at=seq_of(run, "think"), patch=again, by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    assert [line for line in lines(ledger) if line.startswith("call x1")] == ["call x1 1"]
    assert trail(run)[-1] == ("reopen", "call_tool")
