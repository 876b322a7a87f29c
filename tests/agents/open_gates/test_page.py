"""What the pages show of gates that are open beside their run, and say a decision there would do."""

from __future__ import annotations

from pathlib import Path

from agents.pages.run.offered_moves import closing
from approvals.consequences.gate import GateImpacts
from approvals.impact import Impact
from approvals.presentation.drawing.impact_words import lines_of
from checkpoints.models import Run
from tests.agents.children.pages.test_page import page, text_of
from tests.agents.open_gates.launches import decide, gate, launch, open_steps
from tests.agents.pages.moves.sent_orders import member
from tests.factories.driven_runs import advance, make_run


def rows(run: Run) -> str:
    """The text of the run's page."""
    return text_of(page(run))


def test_the_run_says_what_it_waits_for_and_links_each_gate_until_it_is_answered(ledger: Path) -> None:
    run = launch(ledger)
    said = rows(run)
    assert "Held at “Pricing” and “Legal”" in said
    assert said.count("asks for a decision, and the run goes on") == 2
    assert "waits for the decision at “May this be published?”" in said
    for step in ("pricing", "legal"):
        assert f"/gates/{gate(run, step).pk}/" in page(run)
    at_gate = text_of(member(run).get(f"/gates/{gate(run, 'pricing').pk}/").content.decode())
    assert "Asked at “Pricing”, the run goes on" in at_gate
    assert "Held at" not in at_gate
    decide(run, "legal")
    said = rows(advance(run))
    assert "Held at “Pricing”" in said
    assert said.count("by Ann Okafor") >= 1
    assert said.count("asks for a decision, and the run goes on") == 1


def test_a_run_that_has_only_its_end_left_says_so() -> None:
    run = advance(make_run("survey", topic="tea"))
    said = rows(run)
    assert "End waiting" in said
    assert "waits for the decision at “Agreed?”" in said


def test_a_rewind_names_only_the_gates_that_it_withdraws(ledger: Path) -> None:
    run = launch(ledger)
    first, second = (str(gate(run, step).pk) for step in open_steps(run))
    both, one = str(closing(run, 1)), str(closing(run, 3))
    assert (first in both, second in both, first in one, second in one) == (True, True, False, True)
    assert closing(run, 5) is None


def impacts(run: Run, step: str) -> GateImpacts:
    asked = gate(run, step)
    standing = asked.standing()
    return GateImpacts(asked, standing.card, standing.state_patch)


def verdicts(found: Impact) -> dict[str, str]:
    return {row.step: row.verdict.value for row in found.rows if not row.kept}


def test_an_approval_goes_on_from_where_the_run_is_and_up_to_the_other_gate(ledger: Path) -> None:
    """What another open gate decides was said to be decided by earlier steps."""
    run = launch(ledger)
    found = impacts(run, "legal").approve()
    assert verdicts(found) == {"publish": "will", "offer": "may", "charge": "may", "pricing": "may"}
    assert not found.ends
    said = {line.title: (line.names, line.said) for line in lines_of(found, later=False, at_gate=True)}
    assert said["May run"] == (("Offer", "Charge"), "depends on the decision at “Pricing”")
    early = impacts(run, "pricing").approve()
    assert set(verdicts(early).values()) == {"may"}, "the next step does not wait for it: it promises nothing"
    decide(run, "legal")
    run = advance(run)
    assert run.next_step == "offer"
    last = impacts(run, "pricing").with_patch([{"op": "replace", "path": "/price", "value": 12}])
    assert (verdicts(last), last.ends) == ({"offer": "will", "charge": "will"}, True)
    back, stopped = impacts(run, "pricing").back("draft"), impacts(run, "pricing").stop()
    assert verdicts(back)["draft"] == "will"
    assert any(row.step == "publish" and row.why == "left" for row in back.rows), "it was done meanwhile"
    assert (stopped.ends, [row for row in stopped.rows if row.why == "left"]) == (True, [])
