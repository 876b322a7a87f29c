"""An approval is for one execution: whoever moves a run does not decide again by it what its gate was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.moves import fork as forks
from checkpoints.models import Checkpoint, Run
from tests.agents.moves.moved_runs import edit, rewind
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, state
from tests.harness.examples import first_alone

from .test_approvals import asking, heard, ids
from .test_interrupts import LATER, begun, titles


def paid() -> Run:
    """A run whose only call was approved, and has run."""
    run = asking("one-call")
    decide(run)
    run = advance_to_rest(run)
    assert run.status == "completed", run.reason
    return run


def seq(run: Run, **found: Any) -> int:
    """The number of the run's last checkpoint like this."""
    return int(Checkpoint.objects.filter(run=run, **found).order_by("-seq").values_list("seq", flat=True)[0])


def asks_anew(run: Run) -> None:
    run = advance_to_rest(run)
    assert run.status == "waiting", run.reason
    assert "paid" not in str(state(run)["messages"]), "it ran under an approval that was given once"
    assert titles(run) == ["Pay"]
    decide(run)
    assert heard(run) == "tool: paid 5 to Ada"


@pytest.mark.parametrize(
    "place",
    [
        {"step": "go", "next_step": "prepare"},
        {"step": "prepare", "next_step": "ask"},
        {"step": "ask", "next_step": "hear"},
        {"step": "hear", "next_step": "go"},
    ],
    ids=lambda place: str(place["next_step"]),
)
def test_a_rewind_to_around_the_question_asks_anew(place: dict[str, str]) -> None:
    run = paid()
    asks_anew(rewind(run, seq(run, **place)))


@pytest.mark.parametrize("next_step", first_alone(["ask", "prepare", "hear", "go"]))
def test_an_edit_of_what_nobody_decides_by_asks_anew(next_step: str) -> None:
    run = paid()
    at = seq(run, next_step=next_step, step={"prepare": "go", "ask": "prepare", "hear": "ask", "go": "hear"}[next_step])
    asks_anew(edit(run, at, heard=7))


def test_a_fork_asks_anew() -> None:
    run = paid()
    patch = [{"op": "replace", "path": "/heard", "value": 7}]  # else what is recorded is used, and nothing runs
    asks_anew(forks.fork(run, at=seq(run, step="hear"), by=ann(run.team), patch=patch))


def test_a_rejection_is_not_made_an_approval_by_an_edit_of_the_decision() -> None:
    run = asking("one-call")
    decide(run, "reject", then="back", comment="No.")
    run = advance_to_rest(run)
    asks_anew(edit(run, seq(run, kind="rewind", next_step="prepare"), decision={"kind": "approved"}))


def test_a_verdict_that_waited_for_others_is_asked_for_again_after_a_rewind() -> None:
    run = asking("batched")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: LATER})
    run = advance_to_rest(run)
    assert ids(run) == [write]
    run = advance_to_rest(rewind(run, seq(run, step="prepare", next_step="ask")))
    assert ids(run) == [pay, write]


def test_an_edit_does_not_go_past_a_breakpoint(tmp_path: Path) -> None:
    run = begun("stopping", folder=str(tmp_path))
    run = advance_to_rest(edit(run, seq(run, step="go"), end="elsewhere"))
    assert run.status == "waiting", run.reason
    assert titles(run) == ["Go on before works"]
    assert not (tmp_path / "did.txt").exists()
    decide(run)
    run = advance_to_rest(run)
    assert (run.status, state(run)["end"]) == ("completed", "elsewhere")


def test_an_approved_call_that_is_due_does_not_run_a_second_time() -> None:
    run = paid()
    at = Checkpoint.objects.filter(run=run, step="go", seq__gt=seq(run, step="hear")).order_by("seq")[0].seq
    run = advance_to_rest(rewind(run, at))
    assert run.status == "waiting", run.reason
    assert "paid" not in str(state(run)["messages"])
    assert "was approved for one execution" in str(open_gate(run).asked.to_json())
