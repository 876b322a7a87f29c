"""What the pages show of gates that are open beside their run."""

from __future__ import annotations

from pathlib import Path

from checkpoints.models import Run
from tests.agents.children.pages.test_page import page, text_of
from tests.agents.pages.moves.sent_orders import member
from tests.factories.driven_runs import advance, make_run

from .launches import decide, gate, launch, open_steps


def rows(run: Run) -> str:
    """The text of the run's page."""
    return text_of(page(run))


def test_the_run_says_what_it_waits_for_and_links_each_open_gate(ledger: Path) -> None:
    run = launch(ledger)
    said = rows(run)
    assert "Held at “Pricing” and “Legal”" in said
    assert said.count("asks for a decision, and the run goes on") == 2
    assert "waits for the decision at “May this be published?”" in said
    for step in ("pricing", "legal"):
        assert f"/gates/{gate(run, step).pk}/" in page(run)


def test_an_answered_gate_shows_who_decided_once_it_is_taken_up(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    said = rows(run)
    assert "Held at “Pricing”" in said
    assert said.count("by Ann Okafor") >= 1
    assert said.count("asks for a decision, and the run goes on") == 1


def test_a_run_that_has_only_its_end_left_says_so() -> None:
    run = advance(make_run("survey", topic="tea"))
    said = rows(run)
    assert "End waiting" in said
    assert "waits for the decision at “Agreed?”" in said


def test_the_gate_says_that_the_run_goes_on(ledger: Path) -> None:
    run = launch(ledger)
    response = member(run).get(f"/gates/{gate(run, 'pricing').pk}/")
    said = text_of(response.content.decode())
    assert "Asked at “Pricing”, the run goes on" in said
    assert "Held at" not in said


def test_a_rewind_names_only_the_gates_that_it_withdraws(ledger: Path) -> None:
    from agents.pages.run.offered_moves import closing

    run = launch(ledger)
    first, second = (gate(run, step).pk for step in open_steps(run))
    told = closing(run, 1)
    assert told is not None
    assert str(first) in str(told)
    assert str(second) in str(told)
    told = closing(run, 3)
    assert told is not None
    assert str(first) not in str(told)
    assert closing(run, 5) is None
