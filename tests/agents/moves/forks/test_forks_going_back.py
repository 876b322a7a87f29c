"""A fork that is sent back over the point from which it was forked goes on as itself, from the origin's checkpoint."""

from __future__ import annotations

from agents.moves import fork as forks
from approvals.consequences.gate import GateImpacts
from approvals.impact import ImpactVerdict
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Checkpoint, Run
from tests.agents.moves.moved_runs import after, fates, lines
from tests.factories import ann, make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate, state, trail
from tests.harness.signed_in_clients import signed_in


def forked(run: Run, step: str) -> Run:
    """A fork from what `step` led to, by somebody else than who decides it, at its first question."""
    fork = forks.fork(run, at=after(run, step), by=make_user("Bob", run.team))
    return advance_to_rest(fork)


def page_of(run: Run) -> str:
    """The run's page as ann reads it, whose timeline draws every row."""
    response = signed_in(ann(run.team)).get(f"/runs/{run.pk}/")
    assert response.status_code == 200
    return response.content.decode()


def test_a_fork_is_sent_back_to_a_step_that_ran_before_it(ledger: str) -> None:
    """The run failed for it: the checkpoint from which that step had started is one of the run that it came from."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    fork = forked(run, "plan")
    decide(fork, "reject", then="back", back_to="plan", comment="cheaper")
    advance_to_rest(fork)
    assert trail(fork) == [("fork", "fork"), ("gate", "review"), ("rewind", "review"), ("step", "plan")]
    assert open_gate(fork).title == "Book for 9?"
    assert Checkpoint.objects.get(run=fork, kind="rewind").parent == Checkpoint.objects.get(run=run, seq=1).id
    assert (state(run)["offer"], open_gate(run).title) == (10, "Book for 10?")
    assert verify_run(fork) == verify_run(run) == []
    decide(fork)
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger, words=2)[0] == "book 9"
    assert f"to 1 of R-{run.pk}" in page_of(fork)


def test_a_fork_of_a_fork_is_sent_back_to_the_first_run(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    fork = forked(run, "plan")
    again = advance_to_rest(forks.fork(fork, at=1, by=make_user("Bob", run.team)))
    decide(again, "reject", then="back", back_to="plan", comment="cheaper")
    advance_to_rest(again)
    decide(again, "reject", then="back", back_to="plan", comment="cheaper still")
    advance_to_rest(again)
    assert open_gate(again).title == "Book for 8?"
    assert verify_run(again) == []


def test_an_edit_at_a_gate_that_a_fork_opened_again_asks_anew_from_where_it_first_stood(ledger: str) -> None:
    """The run failed for it, as the gate had first stood at a checkpoint of the run that it came from."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork = forked(run, "book")
    answer(fork, "do_again")
    advance_to_rest(fork)
    decide(fork, "edit", arguments={"offer": 7})
    advance_to_rest(fork)
    assert (fork.status, open_gate(fork).title) == ("waiting", "Book for 7?")
    assert verify_run(fork) == []
    page_of(fork)


def test_what_sending_a_fork_back_would_do_is_foretold(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    fork = forked(run, "plan")
    gate = open_gate(fork)
    told = GateImpacts(gate, gate.standing().card, []).back("plan")
    assert [(row.step, row.verdict) for row in told.ahead] == [
        ("plan", ImpactVerdict.WILL),
        ("review", ImpactVerdict.WILL),
    ]
    assert told.asks == "review"
    decide(fork, "reject", then="back", back_to="plan", comment="cheaper")
    assert advance_to_rest(fork).status == "waiting"
    assert trail(fork)[3:] == [("step", "plan")]


def test_what_the_origin_did_stays_the_origins_where_its_fork_goes_back_before_it(ledger: str) -> None:
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    fork = forked(run, "book")
    answer(fork, "do_again")
    advance_to_rest(fork)
    decide(fork, "reject", then="back", back_to="plan", comment="cheaper")
    advance_to_rest(fork)
    decide(fork)
    assert advance_to_rest(fork).status == "completed"
    assert lines(ledger, words=1) == ["book", "pay", "tell", "book", "pay", "tell"]
    assert fates(fork) == fates(run) == [("book", "done"), ("pay", "done"), ("tell", "done")]
    assert verify_run(fork) == []
