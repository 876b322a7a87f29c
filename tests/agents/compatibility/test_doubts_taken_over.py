"""What is in doubt is sent again only under a permission that holds: for this version, on this path."""

from __future__ import annotations

from approvals.consequences.gate import GateImpacts
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit, fates, rewind
from tests.factories.driven_runs import advance, advance_to_rest, answer, decide, make_run, open_gate, trail

from .conftest import Deploy
from .shop import SENT

ANSWERS = ["happened", "not_happened", "again", "stop"]


def in_doubt(deploy_shop: Deploy) -> Run:
    """A run of version 1 whose purchase was sent once, and nobody knows what became of it."""
    deploy_shop("one")
    run = advance_to_rest(make_run("shop", what="tea", cut=True))
    decide(run)
    advance(run)
    assert (SENT, fates(run)) == (["buy tea"], [("buy", "unknown")])
    return run


def asked(run: Run) -> list[str]:
    question = open_gate(run).standing().card.question
    return [each["id"] for each in question["choices"]] if question else []


def test_while_nothing_changes_its_key_is_sent_again(deploy_shop: Deploy) -> None:
    run = in_doubt(deploy_shop)
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea"] * 2, [("buy", "done")])


def test_what_was_allowed_to_one_version_the_next_does_not_send(deploy_shop: Deploy) -> None:
    """It was sent again by the new version's code, under the approval of what the old one would have done."""
    run = in_doubt(deploy_shop)
    deploy_shop("two")
    advance_to_rest(run)
    assert (SENT, asked(run)) == (["buy tea"], ANSWERS)
    assert not open_gate(run).asked.allows
    answer(run, "not_happened")
    advance_to_rest(run)
    assert (SENT, open_gate(run).title) == (["buy tea"], "Buy in 2?")
    decide(run)
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea", "buy tea in 2"], [("buy", "failed"), ("buy", "done")])


def test_that_no_answer_lets_it_run_is_foretold(deploy_shop: Deploy) -> None:
    run = in_doubt(deploy_shop)
    deploy_shop("two")
    advance_to_rest(run)
    gate = open_gate(run)
    for choice in ("not_happened", "again"):
        told = GateImpacts(gate, gate.standing().card, []).answering(choice)
        assert told is not None
        assert [(row.step, str(row.verdict), row.why) for row in told.ahead] == [
            ("buy", "may", "permit"), ("review", "will", "permit"),
        ]  # fmt: skip
    answer(run, "again")
    advance_to_rest(run)
    assert trail(run)[-2:] == [("recovery", "buy"), ("reopen", "buy")]
    assert SENT == ["buy tea"]


def test_a_gate_with_nothing_to_ask_lets_nothing_be_sent_that_was_allowed_elsewhere(deploy_shop: Deploy) -> None:
    run = in_doubt(deploy_shop)
    edit(run, 1, skip=True)
    advance_to_rest(run)
    assert (SENT, asked(run)) == (["buy tea"], ANSWERS)
    answer(run, "not_happened")
    advance_to_rest(run)
    assert (SENT, run.status) == (["buy tea"], "waiting")


def test_an_approval_on_a_branch_that_was_left_lets_nothing_be_sent(deploy_shop: Deploy) -> None:
    """What it allowed had been begun; on the new path people were asked anew, and had not said yes to that."""
    run = in_doubt(deploy_shop)
    rewind(run, after(run, "choose"))
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    assert (SENT, asked(run)) == (["buy tea"], ANSWERS)
    answer(run, "not_happened")
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea"] * 2, [("buy", "failed"), ("buy", "done")])


def test_what_the_provider_denies_is_asked_for_anew_where_its_permission_is_gone(deploy_shop: Deploy) -> None:
    deploy_shop("one_denied")
    run = advance_to_rest(make_run("shop", what="tea", cut=True))
    decide(run)
    advance(run)
    rewind(run, after(run, "choose"))
    advance_to_rest(run)
    assert (open_gate(run).title, SENT) == ("Buy?", ["buy tea"])
    decide(run)
    advance_to_rest(run)
    assert fates(run) == [("buy", "failed"), ("buy", "done")]
    assert SENT == ["buy tea"] * 2
