"""Runs that go on beside open gates: in loops, past deadlines, pruned, allowed by two gates, failing."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from pathlib import Path

import pytest

from agents.models import Effect
from approvals.consequences.gate import GateImpacts
from approvals.gates import closing
from approvals.models import Gate, Grant
from checkpoints.models import Run
from tests.agents.open_gates.launches import decide, done, gate, open_steps
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail


def test_a_gate_that_is_open_is_not_asked_again_before_it_is_decided(ledger: Path) -> None:
    run = advance(make_run("repeating", ledger=str(ledger)))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "agree", ["agree"])
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "send", ["agree"])
    assert done(ledger) == ["work 0", "work 1"]
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, done(ledger)) == ("completed", ["work 0", "work 1", "send 1"])
    [sent] = Effect.objects.filter(run=run)
    assert sent.grant is not None
    assert sent.grant.outcome.gate == gate(run, "agree")


def test_an_effect_that_is_tried_again_keeps_its_permission_though_a_gate_was_decided_between(ledger: Path) -> None:
    run = advance(make_run("sending", ledger=str(ledger)))
    decide(run, "release")
    run = advance(run)
    assert (run.status, len(done(ledger))) == ("queued", 1)
    decide(run, "agree", "edit", arguments={"note": "m"})
    run = advance_to_rest(run)
    assert (run.status, state(run)["note"]) == ("completed", "m")
    assert (len(done(ledger)), Gate.objects.filter(run=run).count()) == (2, 2)
    assert ("reopen", "send") not in trail(run)


def test_a_deadline_that_approves_lets_the_effect_run_and_one_that_does_not_ends_the_run(ledger: Path) -> None:
    team = make_team()
    make_policy(team, name="default", deadline=timedelta(hours=1), on_expiry="approve")
    run = advance(make_run("sparse", team=team, topic="tea", ledger=str(ledger)))
    closing.pass_deadline(gate(run, "legal"))
    assert closing.expire(gate(run, "legal")) is not None
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), done(ledger)[-1]) == ("waiting", ["pricing"], "publish")
    make_policy(team, name="default", version=2, deadline=timedelta(hours=1))
    closing.pass_deadline(gate(run, "pricing"))
    assert closing.expire(gate(run, "pricing")) is not None
    run = advance_to_rest(run)
    assert (run.status, run.reason) == ("cancelled", "Nobody decided in time")


def test_a_live_run_that_is_pruned_keeps_the_decision_that_allows_an_effect(ledger: Path) -> None:
    run = advance(make_run("sparse", topic="tea", ledger=str(ledger)))
    assert (run.next_step, open_steps(run)) == ("publish", ["pricing", "legal"]), "few checkpoints, and each gate"
    decide(run, "pricing", "edit", arguments={"price": 12})
    run = advance(run)
    keep(run, keep_last=1)
    pruned()
    decide(run, "legal")
    run = advance_to_rest(run)
    assert (run.status, state(run)["sent"]) == ("completed", ["charged 12"])
    assert done(ledger) == ["draft", "translate", "publish", "charge 12"]


ORDERS = list(permutations(["finance", "legal"]))


PARTLY = {"first": {"verdict": "approve"}, "second": {"verdict": "reject", "reason": "no"}}


def paying(ledger: Path) -> Run:
    """A run with both gates open, each of which allows both payments."""
    run = advance(make_run("paying", ledger=str(ledger)))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "pay", ["finance", "legal"])
    return run


@pytest.mark.parametrize("order", ORDERS)
def test_each_payment_is_made_once_after_both_have_approved(order: tuple[str, str], ledger: Path) -> None:
    run = paying(ledger)
    decide(run, order[0])
    run = advance_to_rest(run)
    assert (run.status, done_payments(ledger)) == ("waiting", [])
    decide(run, order[1])
    run = advance_to_rest(run)
    assert (run.status, done_payments(ledger)) == ("completed", ["pay first 10", "pay second 20"])
    used = Grant.objects.filter(effect_row__run=run).values_list("outcome__gate__step", "action")
    assert sorted(used) == [("legal", "first"), ("legal", "second")]


@pytest.mark.parametrize(("refusing", "order"), [("finance", ORDERS[0]), ("finance", ORDERS[1])])
def test_what_one_gate_refuses_is_not_done_whichever_was_decided_first(
    refusing: str, order: tuple[str, str], ledger: Path
) -> None:
    run = paying(ledger)
    for step in order:
        if step == refusing:
            decide(run, step, "mixed", verdicts=PARTLY)
        else:
            decide(run, step)
        run = advance_to_rest(run)
    assert (run.status, done_payments(ledger)) == ("completed", ["pay first 10"])
    assert [row.action for row in Effect.objects.filter(run=run)] == ["first"]
    assert ("skipped", "pay") in trail(run)


@pytest.mark.parametrize("order", ORDERS)
def test_a_preview_does_not_promise_what_the_other_gate_refused(order: tuple[str, str], ledger: Path) -> None:
    run = paying(ledger)
    decide(run, order[0], "mixed", verdicts={**PARTLY, "first": PARTLY["second"], "second": PARTLY["first"]})
    run = advance_to_rest(run)
    asked = gate(run, order[1])
    found = GateImpacts(asked, asked.standing().card, []).approve()
    said = [row.verdict.value for row in found.rows if row.step == "pay" and not row.kept]
    assert said[0] != "will"
    decide(run, order[1])
    assert advance_to_rest(run).status == "completed"
    assert (done_payments(ledger), state(run)["receipts"]) == (["pay second 20"], ["second"])


def done_payments(ledger: Path) -> list[str]:
    """What was paid."""
    return done(ledger) if ledger.exists() else []


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


def test_a_failure_is_caught_beside_an_open_gate_and_a_rejection_goes_back_to_before_it(ledger: Path) -> None:
    run = advance_to_rest(make_run("catching", ledger=str(ledger), topic="tea"))
    assert (run.status, run.next_step, open_steps(run)) == ("waiting", "", ["agree"])
    assert done(ledger) == ["begin", "work", "by hand"]
    decide(run, "agree", "reject", comment="No.", then="back", back_to="begin")
    run = advance_to_rest(run)
    assert (run.status, open_steps(run), done(ledger).count("work")) == ("waiting", ["agree"], 2)
    decide(run, "agree")
    run = advance_to_rest(run)
    assert (run.status, state(run)["done"]) == ("completed", "tea")
    assert not Gate.objects.filter(run=run, kind=Gate.Kind.RECOVERY).exists()
