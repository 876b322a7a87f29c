"""What was approved is byte for byte what runs, whatever middleware makes of it afterwards."""

from __future__ import annotations

import pytest

from checkpoints.models import Run
from tests.approvals.cards.verdicts.verdict_forms import edit, respond, say
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state
from tests.harness.known_agents import fixtures_of

from .test_approvals import asking, heard, ids

own_agents, workers = fixtures_of("tests.agents.langgraph.meddling")
RAISED = ["raised-at-the-tool", "raised-per-call", "raised-awaited", "raised-in-the-message", "raised-and-swallowed"]


def stopped(run: Run) -> str:
    """Why the run does not go on."""
    run = advance_to_rest(run)
    assert run.status == "waiting", state(run)
    assert "paid" not in str(state(run)["messages"])
    return str(open_gate(run).asked.to_json())


@pytest.mark.parametrize("agent", [*RAISED, "raised-in-a-subagent"])
def test_a_call_that_was_changed_after_its_approval_does_not_run(agent: str) -> None:
    """An edit redirected a call past the target's own policy (langchain #40166)."""
    run = asking(agent)
    decide(run)
    told = stopped(run)
    assert "The call of pay" in told
    assert "was changed after it was approved: amount was 5 and was to be 99. It did not run." in told


@pytest.mark.parametrize("agent", [each for each in RAISED if each != "raised-in-the-message"])
def test_an_edited_call_that_was_changed_afterwards_does_not_run(agent: str) -> None:
    run = asking(agent)
    [pay] = ids(run)
    say(run, each={pay: edit(run, pay, amount=3)})
    assert "amount was 3 and was to be 99" in stopped(run)


def test_a_call_that_was_rejected_does_not_run() -> None:
    """Rejected tools ran anyway (langchain #37093)."""
    run = asking("runs-what-was-refused")
    decide(run, "reject", then="back", comment="No.")
    assert "was rejected at the gate, and was about to run all the same" in stopped(run)


def test_a_call_that_a_person_answered_does_not_run() -> None:
    run = asking("runs-what-was-refused")
    [pay] = ids(run)
    say(run, each={pay: respond("Paid by hand.")})
    assert "was answered at the gate in place of the tool, and was about to run" in stopped(run)


def test_an_id_that_a_model_uses_again_is_another_call() -> None:
    run = asking("counts-from-zero")
    decide(run)
    run = advance_to_rest(run)
    assert [each.arguments["amount"] for each in open_gate(run).asked.actions] == [6]
    decide(run)
    assert heard(run) == "paid 5 to Ada || paid 6 to Ada || wrote to Ada: It comes."
