"""The number of statements that a run sends: each is a round trip that somebody waits for."""

from __future__ import annotations

from pathlib import Path

from agents.runner import engine
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from tests.factories import ann, make_team
from tests.factories.driven_runs import make_run, open_gate
from tests.harness.sent_statements import sent


def test_a_run_sends_no_more_statements_than_its_work_needs(tmp_path: Path) -> None:
    """A figure that falls may be written down here; one that rises needs a reason."""
    team, found = make_team(), dict[str, int]()
    reviewer = ann(team)
    for number in range(2):  # the first makes the team's policy
        with sent() as statements:
            run = make_run("payer", team=team, ledger=str(tmp_path / str(number)))
        found["start"] = len(statements)
        with sent() as statements:
            engine.advance(run.pk)
        found["claim, a step, a gate"] = len(statements)
        gate = open_gate(run)
        submission = Submission(verdict="approve", seen=bytes(gate.standing().digest), key=str(number))
        with sent() as statements:
            deciding.decide(gate, submission, by=reviewer)
        found["decision"] = len(statements)
        with sent() as statements:
            engine.advance(run.pk)
        found["claim, outcome, a step, two effects"] = len(statements)
    run.refresh_from_db()
    assert run.status == "completed"
    steps = {"claim, a step, a gate": 18, "claim, outcome, a step, two effects": 19}  # beside the bare saves of steps
    assert found == {"start": 5, "decision": 10, **steps}
