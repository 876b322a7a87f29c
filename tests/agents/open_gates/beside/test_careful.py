"""Preconditions, caught failures and verdicts by action, each beside another gate that is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from approvals.models import Gate
from checkpoints.models import Run
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail
from tests.harness.known_agents import fixtures_of

from ..launches import decide, done, gate, open_steps

own_agents, _ = fixtures_of("tests.agents.open_gates.beside.careful_agents")


@pytest.fixture
def rate(tmp_path: Path) -> Path:
    """What the world says."""
    made = tmp_path / "rate"
    made.write_text("5 %")
    return made


def careful(ledger: Path, rate: Path) -> Run:
    """A run that has prepared, with both gates open, and waits for the one that allows its effects."""
    run = advance(make_run("careful", ledger=str(ledger), rate=str(rate)))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "send", ["release", "agree"])
    return run


def test_what_is_allowed_is_done_while_the_world_stands_still_and_the_other_gate_stays_open(
    ledger: Path, rate: Path
) -> None:
    run = careful(ledger, rate)
    decide(run, "release")
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    assert done(ledger) == ["prepare", "send tea", "bill 10"]
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"


@pytest.mark.parametrize("decided", ["before", "after"])
def test_a_world_that_moved_asks_again_at_its_gate_alone(decided: str, ledger: Path, rate: Path) -> None:
    """The answer to the other question holds, be it given before the world is looked at again or after."""
    run = careful(ledger, rate)
    rate.write_text("9 %")
    if decided == "before":
        decide(run, "agree", "edit", arguments={"note": "by hand"})
    decide(run, "release")
    run = advance_to_rest(run)
    others = [] if decided == "before" else ["agree"]
    assert (run.status, open_steps(run)) == ("waiting", [*others, "release"])
    assert done(ledger) == ["prepare", "send tea"]
    assert gate(run, "release").standing().card.preconditions[0].value == "9 %"
    if decided == "after":
        decide(run, "agree", "edit", arguments={"note": "by hand"})
        run = advance_to_rest(run)
        assert (run.status, open_steps(run)) == ("waiting", ["release"])
    decide(run, "release")
    run = advance_to_rest(run)
    assert (run.status, state(run)["note"]) == ("completed", "by hand")
    assert done(ledger) == ["prepare", "send tea", "bill 10"]


@pytest.mark.parametrize(("refused", "left"), [("send", "bill 10"), ("bill", "send tea")])
def test_an_action_that_was_refused_is_skipped_and_the_other_done_beside_an_open_gate(
    refused: str, left: str, ledger: Path, rate: Path
) -> None:
    run = careful(ledger, rate)
    verdicts = {name: {"verdict": "approve"} for name in ("send", "bill")}
    decide(run, "release", "mixed", verdicts={**verdicts, refused: {"verdict": "reject", "reason": "no"}})
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    assert done(ledger) == ["prepare", left]
    assert ("skipped", refused) in trail(run)
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, done(ledger)) == ("completed", ["prepare", left])


def test_a_failure_is_caught_beside_an_open_gate(ledger: Path) -> None:
    run = advance_to_rest(make_run("catching", ledger=str(ledger), topic="tea"))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    assert done(ledger) == ["begin", "work", "by hand"]
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, state(run)["done"], done(ledger).count("work")) == ("completed", "tea", 1)


def test_a_step_that_catches_waits_for_the_open_gate_that_it_depends_on(ledger: Path) -> None:
    run = advance_to_rest(make_run("catching_held", ledger=str(ledger), topic="tea"))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "by_hand", ["agree"])
    decide(run, "agree", "edit", arguments={"note": "seen"})
    run = advance_to_rest(run)
    assert run.status == "completed"
    assert done(ledger) == ["begin", "work", "by hand seen"]


def test_a_rejection_goes_back_to_before_a_failure_that_was_caught(ledger: Path) -> None:
    run = advance_to_rest(make_run("catching", ledger=str(ledger), topic="tea"))
    decide(run, "agree", "reject", comment="No.", then="back", back_to="begin")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run)) == ("waiting", ["agree"])
    assert done(ledger).count("work") == 2
    decide(run, "agree")
    assert advance_to_rest(run).status == "completed"
    assert not Gate.objects.filter(run=run, kind=Gate.Kind.RECOVERY).exists()
