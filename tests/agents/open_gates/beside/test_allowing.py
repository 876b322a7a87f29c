"""What two gates that are open side by side allow: what one refuses does not run, whichever is decided first."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from agents.models import Effect
from approvals.consequences.gate import GateImpacts
from approvals.models import Grant
from checkpoints.models import Run
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state, trail

from ..launches import decide, done, gate, open_steps

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


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("refusing", ["finance", "legal"])
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
