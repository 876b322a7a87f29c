"""What version 1 did is undone, read back and adopted by version 2 in its own words, or a person is asked.

What is in doubt is sent again only under a permission that holds: for this version, on this path.
"""

from __future__ import annotations

import pytest

from agents import Agent
from agents.moves import cancel as cancelling
from agents.moves import fork as forks
from agents.moves import impact
from agents.serving.sweeper import Sweeper
from approvals.consequences.gate import GateImpacts
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Run
from tests.agents.compatibility import SENT, shop
from tests.agents.compatibility.conftest import Deploy
from tests.agents.moves.moved_runs import after, choices, edit, fates, rewind
from tests.factories import ann, make_user
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    make_run,
    open_gate,
    state,
    trail,
)
from tests.harness.examples import first_alone


def bought(deploy: Deploy) -> Run:
    """A run of version 1 that has bought and asks whether all is well."""
    deploy(shop.One)
    run = advance_to_rest(make_run("shop", what="tea"))
    decide(run)
    advance_to_rest(run)
    assert open_gate(run).title == "All well?"
    return run


def taken_over(run: Run, deploy: Deploy, version: type[Agent] = shop.Two) -> Run:
    """The run in version 2."""
    deploy(version)
    Sweeper().upgrade()
    return advance_to_rest(run)


def cancel(run: Run) -> Run:
    assert cancelling.cancel(run, by=ann(run.team), reason="no tea")
    return advance_to_rest(run)


def test_an_undo_gets_what_the_effect_gave_under_the_name_that_it_has_now(deploy: Deploy) -> None:
    """It was called with the field's default, and the effect recorded as undone."""
    run = taken_over(bought(deploy), deploy)
    rewind(run, 1)
    cancel(run)
    assert (run.status, SENT[1:]) == ("cancelled", ["sell 'R-1' in 2"])
    assert fates(run) == [("buy", "undone"), ("undo of buy", "done")]


def test_so_does_one_that_is_under_way_when_the_version_comes(deploy: Deploy) -> None:
    run = bought(deploy)
    rewind(run, 1)
    cancelling.cancel(run, by=ann(run.team), reason="no tea")
    deploy(shop.Two)
    advance_to_rest(run)
    assert (run.status, SENT[1:]) == ("cancelled", ["sell 'R-1' in 2"])


@pytest.mark.parametrize(
    ("version", "why"),
    first_alone(
        [
            (shop.TwoBare, "Its result is one of version 1, and no upcaster leads to 2."),
            (shop.TwoLosing, "sell reads slip, which the state of buy does not have; nothing was called."),
        ]
    ),
)
def test_an_undo_that_would_have_to_guess_is_not_called_and_a_person_is_asked(
    deploy: Deploy, version: type[Agent], why: str
) -> None:
    run = taken_over(bought(deploy), deploy)
    rewind(run, 1)
    advance_to_rest(run)
    assert open_gate(run).title == "Buy in 2?"
    deploy(version)
    cancel(run)
    assert (SENT[1:], choices(open_gate(run))) == ([], ["undo_again", "undone", "keep"])
    assert open_gate(run).standing().card.summary == why
    assert fates(run) == [("buy", "done"), ("undo of buy", "failed")]
    deploy(shop.Two)
    answer(run, "undo_again")
    assert advance_to_rest(run).status == "cancelled"
    assert SENT[1:] == ["sell 'R-1' in 2"]


def test_what_was_done_is_adopted_under_the_names_of_the_new_version(deploy: Deploy) -> None:
    """The old names were written into the new state, and the new ones kept their defaults."""
    run = taken_over(bought(deploy), deploy)
    rewind(run, 1)
    advance_to_rest(run)
    told = impact.of_rewind(run, run.seq)
    assert [(row.step, str(row.verdict)) for row in told.ahead][:1] == [("review", "will")]
    decide(run)
    advance_to_rest(run)
    assert (open_gate(run).title, SENT) == ("All well in 2?", ["buy tea"])
    assert {name: state(run).get(name) for name in ("slip", "papers", "seen", "receipt", "bills")} == {
        "slip": "R-1", "papers": ["tea"], "seen": "R-1", "receipt": None, "bills": None,
    }  # fmt: skip
    assert trail(run)[-3:-1] == [("gate", "review"), ("reused", "buy")]
    assert verify_run(run) == []


@pytest.mark.parametrize("choice", first_alone(["gave", "stop"]))
def test_what_was_done_and_cannot_be_read_any_more_is_asked_for_and_not_done_again(deploy: Deploy, choice: str) -> None:
    run = taken_over(bought(deploy), deploy)
    rewind(run, 1)
    advance_to_rest(run)
    deploy(shop.TwoBare)
    decide(run)
    advance_to_rest(run)
    assert (choices(open_gate(run)), open_gate(run).title) == (["gave", "stop"], "What was the result of “Buy”?")
    answer(run, choice, {"slip": "R-9", "papers": ["tea"]} if choice == "gave" else None)
    advance_to_rest(run)
    if choice == "gave":
        assert (state(run)["slip"], open_gate(run).title) == ("R-9", "All well in 2?")
        assert fates(run) == [("buy", "done")]
    else:
        assert choices(open_gate(run)) == ["undo_again", "undone", "keep"], "what it leaves behind is settled first"
        answer(run, "undone")
        assert advance_to_rest(run).status == "failed"
    assert SENT == ["buy tea"]


def test_a_provider_is_asked_with_the_state_of_the_effect_in_the_words_of_the_new_version(deploy: Deploy) -> None:
    """It was asked with the field's default. What it says is in the words of the version that asked."""
    deploy(shop.OneRead)
    run = advance_to_rest(make_run("shop", what="tea", cut=True, receipt="R-0"))
    decide(run)
    advance(run)
    assert fates(run) == [("buy", "unknown")]
    taken_over(run, deploy, shop.TwoRead)
    assert (state(run)["slip"], SENT) == ("R-0, found", ["buy tea"])
    rewind(run, 1)
    cancel(run)
    assert SENT[1:] == ["sell 'R-0, found' in 2"]


def test_a_fork_into_another_version_takes_over_what_was_done_in_its_own_words(deploy: Deploy) -> None:
    run = bought(deploy)
    deploy(shop.One, shop.Two)
    fork = forks.fork(run, at=after(run, "review"), by=make_user("Bob", run.team), version="2")
    advance_to_rest(fork)
    assert choices(open_gate(fork)) == ["take", "do_again", "stop"]
    answer(fork, "take")
    advance_to_rest(fork)
    assert (state(fork)["slip"], state(fork)["papers"], SENT) == ("R-1", ["tea"], ["buy tea"])
    assert effects(fork)[0].returned == {"slip": "R-1", "papers+": ["tea"]}


def test_a_fork_into_another_version_stays_with_it_where_it_goes_back_over_the_fork(deploy: Deploy) -> None:
    run = bought(deploy)
    deploy(shop.One, shop.Two)
    fork = forks.fork(run, at=after(run, "choose"), by=make_user("Bob", run.team), version="2")
    advance_to_rest(fork)
    decide(fork, "reject", then="back", back_to="choose", comment="again")
    advance_to_rest(fork)
    assert (fork.plan.version, open_gate(fork).title) == ("2", "Buy in 2?")
    assert "slip" in state(fork)
    assert "receipt" not in state(fork)
    assert verify_run(fork) == []


ANSWERS = ["happened", "not_happened", "again", "stop"]


def in_doubt(deploy: Deploy) -> Run:
    """A run of version 1 whose purchase was sent once, and nobody knows what became of it."""
    deploy(shop.One)
    run = advance_to_rest(make_run("shop", what="tea", cut=True))
    decide(run)
    advance(run)
    assert (SENT, fates(run)) == (["buy tea"], [("buy", "unknown")])
    return run


def test_while_nothing_changes_its_key_is_sent_again(deploy: Deploy) -> None:
    run = in_doubt(deploy)
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea"] * 2, [("buy", "done")])


@pytest.mark.parametrize(("choice", "fate"), first_alone([("not_happened", "failed"), ("again", "abandoned")]))
def test_what_was_allowed_to_one_version_the_next_does_not_send_whatever_is_answered(
    deploy: Deploy, choice: str, fate: str
) -> None:
    """It was sent again by the new version's code, under the approval of what the old one would have done."""
    run = in_doubt(deploy)
    deploy(shop.Two)
    advance_to_rest(run)
    assert (SENT, choices(open_gate(run))) == (["buy tea"], ANSWERS)
    gate = open_gate(run)
    assert not gate.asked.allows
    told = GateImpacts(gate, gate.standing().card, []).answering(choice)
    assert told is not None
    assert [(row.step, str(row.verdict), row.why) for row in told.ahead] == [
        ("buy", "may", "permit"), ("review", "will", "permit"),
    ]  # fmt: skip
    answer(run, choice)
    advance_to_rest(run)
    assert (SENT, open_gate(run).title) == (["buy tea"], "Buy in 2?")
    assert trail(run)[-2:] == [("recovery", "buy"), ("reopen", "buy")]
    decide(run)
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea", "buy tea in 2"], [("buy", fate), ("buy", "done")])


def test_a_gate_with_nothing_to_ask_lets_nothing_be_sent_that_was_allowed_elsewhere(deploy: Deploy) -> None:
    run = in_doubt(deploy)
    edit(run, 1, skip=True)
    advance_to_rest(run)
    assert (SENT, choices(open_gate(run))) == (["buy tea"], ANSWERS)
    answer(run, "not_happened")
    advance_to_rest(run)
    assert (SENT, run.status) == (["buy tea"], "waiting")


def test_an_approval_on_a_branch_that_was_left_lets_nothing_be_sent(deploy: Deploy) -> None:
    """What it allowed had been begun; on the new path people were asked anew, and had not said yes to that."""
    run = in_doubt(deploy)
    rewind(run, after(run, "choose"))
    advance_to_rest(run)
    decide(run)
    advance_to_rest(run)
    assert (SENT, choices(open_gate(run))) == (["buy tea"], ANSWERS)
    answer(run, "not_happened")
    advance_to_rest(run)
    assert (SENT, fates(run)) == (["buy tea"] * 2, [("buy", "failed"), ("buy", "done")])


def test_what_the_provider_denies_is_asked_for_anew_where_its_permission_is_gone(deploy: Deploy) -> None:
    deploy(shop.OneDenied)
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
