"""Rewinds, edits and forks of a run whose gates are open beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.errors import RewindRefused
from agents.moves import fork, rewind
from checkpoints.models import Checkpoint, Run
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, state, trail

from .launches import decide, done, gate, launch, open_steps


def number(run: Run, kind: str, step: str) -> int:
    """The number of the newest checkpoint of this kind and step."""
    return int(
        Checkpoint.objects.filter(run=run, kind=kind, step=step).order_by("-seq").values_list("seq", flat=True)[0]
    )


def test_a_rewind_to_after_it_was_asked_leaves_a_gate_open(ledger: Path) -> None:
    run = launch(ledger)
    asked = gate(run, "pricing")
    rewind.rewind(run, to=number(run, "asked", "pricing"), by=ann(run.team))
    assert open_steps(run) == ["pricing"]
    run = advance(run)
    assert open_steps(run) == ["pricing", "legal"]
    assert gate(run, "pricing").pk == asked.pk
    decide(run, "pricing", "edit", arguments={"price": 30})
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"]) == ("completed", ["charged 30"])


def test_a_rewind_to_before_it_was_asked_withdraws_it_and_asks_again(ledger: Path) -> None:
    run = launch(ledger)
    asked = gate(run, "pricing")
    rewind.rewind(run, to=1, by=ann(run.team))
    assert open_steps(run) == []
    run = advance(run)
    assert open_steps(run) == ["pricing", "legal"]
    again = gate(run, "pricing")
    assert again.pk != asked.pk
    assert list(again.replaces.values_list("pk", flat=True)) == [asked.pk]


def test_an_answer_holds_after_a_rewind_to_between_the_question_and_the_answer(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    assert trail(run)[-1] == ("step", "publish")
    rewind.rewind(run, to=number(run, "asked", "legal"), by=ann(run.team))
    run = advance(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "offer", ["pricing"])
    decide(run, "pricing")
    assert advance_to_rest(run).status == "completed"
    assert done(ledger).count("publish") - done(ledger).count("unpublish") == 1


def test_a_run_is_not_sent_to_where_a_withdrawn_question_would_never_be_answered(ledger: Path) -> None:
    run = launch(ledger)
    behind = number(run, "step", "translate")
    rewind.rewind(run, to=1, by=ann(run.team))
    run = advance(run)
    with pytest.raises(RewindRefused, match="that is not there"):
        rewind.rewind(run, to=behind, by=ann(run.team))


def test_a_fork_begins_before_a_question_or_after_its_answer(ledger: Path) -> None:
    run = launch(ledger)
    with pytest.raises(RewindRefused, match="that is not there"):
        fork.fork(run, at=number(run, "step", "translate"), by=ann(run.team))
    made = fork.fork(run, at=number(run, "step", "draft"), by=ann(run.team))
    assert open_steps(advance(made)) == ["pricing", "legal"]
    assert open_steps(run) == ["pricing", "legal"]


def test_an_edit_beside_an_open_gate_keeps_it_and_its_answer_is_written_over_the_edit(ledger: Path) -> None:
    run = launch(ledger)
    patch = [{"op": "replace", "path": "/translation", "value": "Ueber Tee"}]
    rewind.edit(run, at=number(run, "step", "translate"), patch=patch, by=ann(run.team))
    assert open_steps(run) == ["pricing", "legal"]
    decide(run, "pricing", "edit", arguments={"price": 40})
    decide(run, "legal")
    run = advance_to_rest(run)
    # The translation changed after people had agreed to publish it: they are asked again.
    assert (run.status, open_steps(run)) == ("waiting", ["legal"])
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"], state(run)["translation"]) == ("completed", ["charged 40"], "Ueber Tee")


def test_a_cancelled_run_withdraws_all_its_gates(ledger: Path) -> None:
    from agents.moves import cancel

    run = launch(ledger)
    assert cancel.cancel(run, by=ann(run.team), reason="enough")
    assert (run.status, open_steps(run)) == ("cancelled", [])
