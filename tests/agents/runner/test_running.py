"""A run from its input to its end, through a gate and two effects."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from agents.errors import ImpactChanged
from agents.moves import rewind
from agents.runner import engine
from agents.session.heartbeat import HEART
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.gates import closing
from approvals.models import Grant
from checkpoints import actors, crash_points
from checkpoints.models import Checkpoint, Event, Note, Run
from tests.factories import ann, make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, decide, effects, make_run, open_gate, state, trail
from tests.harness.sent_statements import sent


def lines(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def test_a_run_stops_at_its_gate_with_nothing_done_and_approved_does_each_effect_once(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    assert (run.status, run.next_step, lines(ledger)) == ("waiting", "review", [])
    card = open_gate(run).standing().card
    assert card.title == "Pay 10.00 to ann"
    assert (card.allows, card.back_to) == (("pay", "mail"), ("propose",))
    assert card.action("pay").arguments == {"to": "ann", "amount": "10.00"}  # type: ignore[union-attr]
    saved = Checkpoint.objects.get(run=run, step="propose")
    assert bytes(Note.objects.get(checkpoint=saved.pk).text) == b"sent back 0 times"

    decide(run)
    assert advance(run).status == "completed"
    assert [line.split()[0] for line in lines(ledger)] == ["pay", "mail"]
    assert [kind for kind, _ in trail(run)] == ["input", "step", "gate", "step", "step", "step"]
    assert state(run)["told"] == "approved"
    assert [(row.step, row.status, row.grant is not None) for row in effects(run)] == [
        ("pay", "done", True),
        ("mail", "done", True),
    ]
    assert {row.key for row in effects(run)} == {line.split()[1] for line in lines(ledger)}
    assert not Grant.objects.filter(outcome__gate__run=run, effect_row__isnull=True).exists()
    kinds = list(Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True))
    assert kinds.count("effect.intended") == kinds.count("effect.done") == 2
    assert (kinds[0], "run.completed" in kinds) == ("run.started", True)


def test_an_edited_amount_is_what_runs_and_the_agent_is_told(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run, "edit", arguments={"pay": {"to": "ann", "amount": "7.50"}})
    advance(run)
    assert [line.split()[2] for line in lines(ledger)] == ["7.50", "7.50"]
    after = state(run)
    assert after["told"] == "edited"
    assert after["decision"]["changes"] == [
        {"pointer": "/proposal/amount", "kind": "changed", "before": "10.00", "after": "7.50"}
    ]


def test_a_run_sent_back_twice_hears_both_words_and_keeps_the_branches(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    for words in ("less", "less still"):
        decide(run, "reject", then="back", back_to="propose", comment=words)
        assert advance(run).status == "waiting"
    after = state(run)
    assert ([each["text"] for each in after["feedback"]], after["proposal"]["amount"]) == (
        ["less", "less still"],
        "8.00",
    )
    rewound = Checkpoint.objects.filter(run=run, kind="rewind").order_by("seq")[0]
    branch = Checkpoint.objects.filter(run=run, kind="gate").order_by("seq")[0]
    assert rewound.parent == Checkpoint.objects.get(run=run, kind="input").pk != branch.pk
    proposed = Checkpoint.objects.filter(run=run, step="propose", kind="step")
    assert len({bytes(each.input_digest or b"") for each in proposed}) == 3  # the feedback differs
    decide(run)
    advance(run)
    assert [line.split()[2] for line in lines(ledger)] == ["8.00", "8.00"]


def test_a_run_that_is_stopped_or_that_nobody_answers_is_cancelled_and_does_nothing(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run, "reject", then="stop", comment="not at all")
    advance(run)
    assert (run.status, "not at all" in run.reason, state(run)["decision"]["kind"]) == ("cancelled", True, "rejected")
    team = make_team()
    make_policy(team, name="payments", deadline=timedelta(hours=1))
    run = advance(make_run("payer", team=team, ledger=str(ledger)))
    closing.pass_deadline(open_gate(run))
    closing.expire(open_gate(run), by=actors.SYSTEM)
    advance(run)
    assert (run.status, run.reason, lines(ledger)) == ("cancelled", "Nobody decided in time", [])
    assert state(run)["decision"]["kind"] == "expired"
    make_policy(team, name="default", deadline=timedelta(hours=1))
    run = advance(make_run("asker", team=team))
    closing.pass_deadline(open_gate(run))
    closing.expire(open_gate(run), by=actors.SYSTEM)
    assert (advance(run).status, state(run)["late"]) == ("completed", True)  # where the agent has a way to go on
    run = advance(make_run("asker"))
    closing.withdraw(open_gate(run), by=actors.SYSTEM, reason="no longer needed")
    advance(run)
    assert (run.status, run.reason) == ("cancelled", "The gate was withdrawn: no longer needed")


def test_a_gate_that_allows_nothing_takes_the_missing_fact_and_one_with_nothing_to_ask_is_passed() -> None:
    run = advance(make_run("asker"))
    run.wake(by=actors.SYSTEM)
    assert (advance(run).status, run.gates.count()) == ("waiting", 1)  # woken at an open gate
    decide(run, "edit", arguments={"order": "A-17"})
    assert advance(run).status == "completed"
    assert state(run)["found"] == "order A-17"
    run = advance(make_run("asker", order="A-1"))
    assert (run.status, run.gates.count()) == ("completed", 0)


def test_a_step_may_jump_and_end_the_run() -> None:
    run = advance(make_run("hopper"))
    assert (run.status, state(run)) == ("completed", {"count": 3, "trail": [0, 1, 2, 100]})


def test_a_time_slice_lets_go_of_the_run_and_rings_again(settings: object) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0.0  # type: ignore[attr-defined]
    run = advance(make_run("grower", steps=3))
    assert (run.status, run.attempts, state(run)["log"]) == ("queued", 0, [0])
    assert advance_to_rest(run).status == "completed"
    assert state(run)["log"] == [0, 1, 2]
    assert Checkpoint.objects.filter(run=run, attempt=1, kind="step").count() == 3
    run = make_run("hopper")  # one that is not due is left alone
    Run.objects.filter(pk=run.pk).update(wake_at=Now() + timedelta(minutes=5))
    assert engine.advance(run.pk) is False


def test_an_effect_whose_input_changed_after_the_approval_is_not_performed_and_the_gate_shows_the_change(
    ledger: Path,
) -> None:
    """An approval is for one digest: another amount in the state must not ride on it."""
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run)
    tamper(run)
    assert advance(run).status == "waiting"
    assert lines(ledger) == []
    card = open_gate(run).standing().card
    assert card.reopened is not None
    assert any(row["pointer"].endswith("amount") and row["after"] == "99.00" for row in card.reopened["changes"])
    decide(run)
    advance(run)
    assert [line.split()[2] for line in lines(ledger)] == ["99.00", "99.00"]


def tamper(run: Run) -> None:
    """Put another amount into the state between the approval and the effect, as an edit by a page would."""
    from checkpoints import store
    from checkpoints.store import Header, claims

    taken = claims.claim(run.pk, plan_ids=[run.plan_id], worker="editor", lease=5)
    assert taken is not None
    head = store.load(Run.objects.get(pk=run.pk))
    header = Header(kind="gate", step="review", next_step="read")
    after = store.save(head, {}, claim=taken, header=header)
    edited = {"proposal": {"to": "ann", "amount": "99.00"}}
    header = Header(kind="edit", step="review", next_step="read")
    store.save(after, edited, claim=taken, header=header, status="queued")


def test_a_halt_whose_move_is_refused_costs_the_next_step_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start that was halted counted, so that a step which is tried once was never tried, and a person was asked."""
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)
    monkeypatch.setattr(crash_points, "_listeners", [])
    run = make_run("frugal")
    by = ann(run.team)

    def page(name: str, step: str, value: Any) -> None:
        """A person's order, of which something else was shown, while the first step is under way."""
        if (name, step) == ("after_step", "first"):
            with pytest.raises(ImpactChanged):
                rewind.rewind(Run.objects.get(pk=run.pk), to=1, by=by, seen="another")
            for beat in HEART.beats:
                beat.ask(0.0)  # now, rather than when the heart looks next

    crash_points.listen(page)
    advance(run)
    assert (run.status, run.reason, run.next_step) == ("queued", "halted, to be moved", "second")
    assert advance_to_rest(run).status == "completed"
    assert state(run)["b"] == 1


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
