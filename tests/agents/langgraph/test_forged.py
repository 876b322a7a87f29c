"""Whoever may edit a run's state does not decide by it about the graph's calls."""

from __future__ import annotations

import base64
from typing import Any

from checkpoints import store
from checkpoints.models import Checkpoint, Run
from tests.agents.moves.moved_runs import after, edit
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, say
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state

from .test_approvals import asking, heard, ids
from .test_interrupts import LATER


def at(run: Run, seq: int) -> Any:
    """The state of one of the run's checkpoints."""
    return store.load_checkpoint(Checkpoint.objects.get(run=run, seq=seq).pk).state


def refused(run: Run, field: str) -> None:
    run = advance_to_rest(run)
    assert f"The field `{field}`" in str(open_gate(run).asked.to_json()) or f"The field `{field}`" in run.reason
    assert "paid" not in str(state(run)["messages"])


def test_a_rejection_is_not_made_an_approval_by_an_edit_of_the_answers() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", comment="No.")
    run, heard_at = advance_to_rest(run), after(run, "hear")
    forged = {name: {"decisions": [{"type": "approve"}]} for name in at(run, heard_at)["answers"]}
    refused(edit(run, heard_at, answers=forged), "langgraph")


def test_an_approved_call_is_not_changed_where_it_waits_to_run() -> None:
    run = asking("one-call")
    decide(run)
    run = advance_to_rest(run)
    seq, found = next(
        (each.seq, at(run, each.seq)["langgraph"])
        for each in run.checkpoints.filter(step="go", next_step="go").order_by("seq")
        if at(run, each.seq)["langgraph"]["root"]["values"].get("__pregel_tasks")
    )
    [due] = found["root"]["values"]["__pregel_tasks"]
    called = base64.b64decode(due["base64"])
    due["base64"] = base64.b64encode(called.replace(b"\xa6amount\x05", b"\xa6amount\x63")).decode()
    assert base64.b64decode(due["base64"]) != called
    run = advance_to_rest(edit(run, seq, langgraph=found))
    assert "paid 99" not in str(state(run)["messages"])
    assert run.status == "waiting"


def test_a_question_does_not_show_another_call_than_the_one_that_runs() -> None:
    run = asking("one-call")
    [question] = state(run)["questions"]
    question["asked"] = question["arguments"] = {"to": "Ada", "amount": 1}
    run = advance_to_rest(edit(run, after(run, "prepare"), questions=[question]))
    decide(run)
    refused(run, "questions")


def test_a_verdict_that_waits_for_others_cannot_be_given_by_hand() -> None:
    run = asking("batched")
    pay, write = state(run)["questions"]
    pay["decided"] = {"verdict": "approve"}
    run = advance_to_rest(edit(run, after(run, "prepare"), questions=[pay, write]))
    decide(run)
    refused(run, "questions")


def test_a_verdict_that_waits_for_others_is_kept_as_it_was_given() -> None:
    run = asking("batched")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: LATER})
    run = advance_to_rest(run)
    decide(run)
    assert heard(run) == "tool: paid 5 to Ada || tool: wrote to Ada: It comes."


def test_a_question_is_not_changed_where_it_is_about_to_be_asked() -> None:
    run = asking("one-call")
    found = state(run)["langgraph"]
    found["asks"][0]["value"]["action_requests"][0]["args"] = {"to": "Ada", "amount": 1}
    run = advance_to_rest(edit(run, after(run, "go"), langgraph=found))
    refused(run, "langgraph")
