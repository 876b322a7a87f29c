"""What the page says a decision at a gate beside the run would do, against what it does."""

from __future__ import annotations

from pathlib import Path

from approvals.consequences.gate import GateImpacts
from approvals.impact import Impact
from approvals.presentation.drawing.impact_lines import lines_of
from checkpoints.models import Run
from tests.factories.driven_runs import advance

from .launches import decide, gate, launch


def impacts(run: Run, step: str) -> GateImpacts:
    asked = gate(run, step)
    standing = asked.standing()
    return GateImpacts(asked, standing.card, standing.state_patch)


def verdicts(found: Impact) -> dict[str, str]:
    return {row.step: row.verdict.value for row in found.rows if not row.kept}


def test_an_approval_goes_on_from_where_the_run_is_and_up_to_the_other_gate(ledger: Path) -> None:
    run = launch(ledger)
    found = impacts(run, "legal").approve()
    assert verdicts(found) == {"publish": "will", "offer": "may", "charge": "may", "pricing": "may"}
    assert not found.ends
    decide(run, "legal")
    assert advance(run).next_step == "offer"


def test_what_another_open_gate_decides_is_said_to_depend_on_its_decision(ledger: Path) -> None:
    """It was said to be decided by earlier steps."""
    found = impacts(launch(ledger), "legal").approve()
    said = {line.title: (line.names, line.said) for line in lines_of(found, later=False, at_gate=True)}
    assert said["May run"] == (("Offer", "Charge"), "depends on the decision at “Pricing”")


def test_an_approval_of_what_the_next_step_does_not_wait_for_promises_nothing(ledger: Path) -> None:
    run = launch(ledger)
    found = impacts(run, "pricing").approve()
    assert set(verdicts(found).values()) == {"may"}


def test_the_last_approval_says_all_that_runs(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    found = impacts(run, "pricing").with_patch([{"op": "replace", "path": "/price", "value": 12}])
    assert verdicts(found) == {"offer": "will", "charge": "will"}
    assert found.ends


def test_a_rejection_tells_of_the_effect_that_was_done_meanwhile(ledger: Path) -> None:
    run = launch(ledger)
    decide(run, "legal")
    run = advance(run)
    found = impacts(run, "pricing").back("draft")
    assert verdicts(found)["draft"] == "will"
    assert any(row.step == "publish" and row.why == "left" for row in found.rows)
    stopped = impacts(run, "pricing").stop()
    assert stopped.ends
    assert not [row for row in stopped.rows if row.why == "left"]
