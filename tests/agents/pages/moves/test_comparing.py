"""Any two checkpoints of a lineage, side by side."""

from __future__ import annotations

from agents.moves import fork as forks
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit
from tests.factories import ann, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, make_run
from tests.harness.signed_in_clients import signed_in

from .sent_orders import booked, member, page_of, said


def comparison(run: Run, a: object, b: object) -> str:
    return f"/runs/{run.pk}/comparisons/?a={a}&b={b}"


def test_two_branches_of_a_run_part_where_it_was_edited(ledger: str) -> None:
    run = booked(ledger)
    last = after(run, "tell")
    edit(run, 1, size=2)
    advance_to_rest(run)
    text = said(page_of(member(run), comparison(run, last, after(run, "plan"))))
    assert f"Their paths part after checkpoint 1 of R-{run.pk}, the input" in text
    assert f"A: {last} of R-{run.pk}" in text
    assert "size 1 2 changed" in text
    assert "3 Review approved" in text
    assert "from an abandoned branch; will be undone" in text
    assert "No effects on this path." in text


def test_a_fork_is_compared_with_its_origin_by_run_and_number(ledger: str) -> None:
    run = booked(ledger)
    fork = forks.fork(run, at=2, by=ann(run.team), patch=[{"op": "replace", "path": "/offer", "value": 99}])
    for address in (comparison(run, 3, f"{fork.pk}.1"), comparison(fork, f"R-{run.pk}.3", 1)):
        text = said(page_of(member(run), address))
        assert f"Their paths part after checkpoint 2 of R-{run.pk}, “Plan”" in text
        assert f"B: 1 of R-{fork.pk}" in text


def test_a_checkpoint_is_compared_with_the_one_that_both_have(ledger: str) -> None:
    run = booked(ledger)
    text = said(page_of(member(run), comparison(run, 2, 3)))
    assert "A is on the path to B, and was saved" in text
    assert "Every step to this checkpoint is on the path to B too." in text
    assert "Their paths part" not in text


def test_what_is_not_there_or_of_another_lineage_or_team_is_not_found(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    other = advance_to_rest(make_run("chain", ledger=ledger, team=run.team))
    foreign = advance_to_rest(make_run("chain", ledger=ledger, team=make_team()))
    for place in (99, "x", f"{other.pk}.1", f"{foreign.pk}.1", "1.1.1", "9999999999999.1"):
        answer = client.get(comparison(run, 1, place))
        assert (place, answer.status_code) == (place, 404)
        assert "There is nothing to compare." in said(answer.content.decode())


def test_the_inspector_offers_it_and_the_form_asks_for_what_is_missing(ledger: str) -> None:
    run = booked(ledger)
    client = signed_in(make_user("Rita Reader", run.team))
    assert 'action="/runs/' in page_of(client, f"/runs/{run.pk}/?at=2")
    assert "Compare with another checkpoint" in said(page_of(client, f"/runs/{run.pk}/?at=2"))
    assert "Checkpoint A" in said(page_of(client, f"/runs/{run.pk}/comparisons/?a=2"))
