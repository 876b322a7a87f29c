"""A run from its input to its end, through a gate and two effects."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.runner import engine
from approvals.gates import closing
from approvals.models import Gate, Grant
from checkpoints import actors
from checkpoints.models import Checkpoint, Event, Note, Run
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, decide, effects, make_run, open_gate, state, trail
from tests.harness.sent_statements import sent


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The external ledger of a test's effects."""
    return tmp_path / "ledger"


def lines(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def test_a_run_stops_at_its_gate_with_nothing_done(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    assert (run.status, run.next_step, lines(ledger)) == ("waiting", "review", [])
    card = open_gate(run).standing().card
    assert card.title == "Pay 10.00 to ann"
    assert card.allows == ("pay", "mail")
    assert card.back_to == ("propose",)
    assert card.action("pay").arguments == {"to": "ann", "amount": "10.00"}  # type: ignore[union-attr]


def test_an_approved_run_does_each_effect_once_and_completes(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
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


def test_a_decided_gate_is_read_together_with_what_proves_its_end(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run, "reject")
    with sent() as told:
        advance(run)
    (proof,) = (each for each in told if "approvals_outcome_decisions" in each)
    assert '"approvals_gate"."status"' in proof


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


def test_a_run_sent_back_starts_the_step_again_with_the_feedback_and_keeps_the_branch(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run, "reject", then="back", back_to="propose", comment="one less")
    advance(run)
    assert run.status == "waiting"
    after = state(run)
    assert (after["feedback"][0]["text"], after["proposal"]["amount"]) == ("one less", "9.00")
    rewound = Checkpoint.objects.get(run=run, kind="rewind")
    branch = Checkpoint.objects.get(run=run, kind="gate")
    assert rewound.parent == Checkpoint.objects.get(run=run, kind="input").pk != branch.pk
    decide(run)
    advance(run)
    assert [line.split()[2] for line in lines(ledger)] == ["9.00", "9.00"]


def test_a_run_sent_back_twice_hears_both(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    for words in ("less", "less still"):
        decide(run, "reject", then="back", back_to="propose", comment=words)
        advance(run)
    assert [each["text"] for each in state(run)["feedback"]] == ["less", "less still"]
    assert state(run)["proposal"]["amount"] == "8.00"


def test_a_stopped_run_is_cancelled_and_does_nothing(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run, "reject", then="stop", comment="not at all")
    advance(run)
    assert (run.status, lines(ledger)) == ("cancelled", [])
    assert "not at all" in run.reason
    assert state(run)["decision"]["kind"] == "rejected"


def test_an_expired_gate_ends_the_run_as_unanswered_not_as_rejected(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="payments", deadline=timedelta(hours=1))
    run = advance(make_run("payer", team=team, ledger=str(ledger)))
    closing.pass_deadline(open_gate(run))
    closing.expire(open_gate(run), by=actors.SYSTEM)
    advance(run)
    assert (run.status, run.reason, lines(ledger)) == ("cancelled", "Nobody decided in time", [])
    assert state(run)["decision"]["kind"] == "expired"


def test_an_expired_gate_goes_on_where_the_agent_has_a_way() -> None:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1))
    run = advance(make_run("asker", team=team))
    closing.pass_deadline(open_gate(run))
    closing.expire(open_gate(run), by=actors.SYSTEM)
    assert advance(run).status == "completed"
    assert state(run)["late"] is True


def test_a_withdrawn_gate_cancels_its_run() -> None:
    run = advance(make_run("asker"))
    closing.withdraw(open_gate(run), by=actors.SYSTEM, reason="no longer needed")
    advance(run)
    assert (run.status, run.reason) == ("cancelled", "The gate was withdrawn: no longer needed")


def test_a_gate_that_allows_nothing_takes_the_missing_fact_and_goes_on() -> None:
    run = advance(make_run("asker"))
    decide(run, "edit", arguments={"order": "A-17"})
    assert advance(run).status == "completed"
    assert state(run)["found"] == "order A-17"


def test_a_gate_with_nothing_to_ask_is_passed() -> None:
    run = advance(make_run("asker", order="A-1"))
    assert (run.status, Gate.objects.filter(run=run).count()) == ("completed", 0)


def test_a_step_may_jump_and_end_the_run() -> None:
    run = advance(make_run("hopper"))
    assert (run.status, state(run)) == ("completed", {"count": 3, "trail": [0, 1, 2, 100]})


def test_the_occurrence_counts_executions_on_the_same_input() -> None:
    run = advance(make_run("payer", amount=Decimal("3"), ledger="/nowhere/at/all"))
    decide(run, "reject", then="back", back_to="propose", comment="again")
    advance(run)
    proposed = Checkpoint.objects.filter(run=run, step="propose", kind="step").order_by("seq")
    assert len({bytes(each.input_digest or b"") for each in proposed}) == 2  # the feedback differs
    hopper = advance(make_run("hopper"))
    counts = Checkpoint.objects.filter(run=hopper, step="land").order_by("seq").values_list("occurrence", flat=True)
    assert list(counts) == [0, 0, 0]


def test_a_note_is_kept_with_its_checkpoint() -> None:
    run = advance(make_run("payer"))
    saved = Checkpoint.objects.get(run=run, step="propose")
    assert bytes(Note.objects.get(checkpoint=saved.pk).text) == b"sent back 0 times"


def test_a_time_slice_lets_go_of_the_run_and_rings_again(settings: object) -> None:
    settings.HOLDPOINT_TIME_SLICE = 0.0  # type: ignore[attr-defined]
    run = advance(make_run("grower", steps=3))
    assert (run.status, run.attempts, state(run)["log"]) == ("queued", 0, [0])
    assert advance_to_rest(run).status == "completed"
    assert state(run)["log"] == [0, 1, 2]
    assert Checkpoint.objects.filter(run=run, attempt=1, kind="step").count() == 3


def test_a_run_that_is_not_due_is_left_alone() -> None:
    run = make_run("hopper")
    Run.objects.filter(pk=run.pk).update(wake_at=Now() + timedelta(minutes=5))
    assert engine.advance(run.pk) is False


def test_a_run_woken_at_an_open_gate_goes_back_to_waiting() -> None:
    run = advance(make_run("asker"))
    run.wake(by=actors.SYSTEM)
    assert advance(run).status == "waiting"
    assert Gate.objects.filter(run=run).count() == 1


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


def test_a_grant_is_consumed_once(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run)
    advance(run)
    assert Grant.objects.filter(outcome__gate__run=run, effect_row__isnull=True).count() == 0


def test_every_step_and_effect_leaves_its_event(ledger: Path) -> None:
    run = advance(make_run("payer", ledger=str(ledger)))
    decide(run)
    advance(run)
    kinds = list(Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True))
    assert kinds.count("effect.intended") == kinds.count("effect.done") == 2
    assert kinds[0] == "run.started"
    assert kinds[-1] == "effect.done" or "run.completed" in kinds
