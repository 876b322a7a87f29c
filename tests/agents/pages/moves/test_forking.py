"""Forking from a checkpoint on a page of its own, settling at once, and comparing two checkpoints."""

from __future__ import annotations

from agents.models import Effect
from agents.moves import fork as forks
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit, fates
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, said, texts
from tests.factories import ann, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, make_run, state
from tests.harness.signed_in_clients import signed_in


def forms(run: Run, seq: int) -> str:
    return f"/runs/{run.pk}/checkpoints/{seq}/fork/"


def test_a_fork_is_shown_before_it_is_made_and_begins_with_what_was_typed(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    page = page_of(client, forms(run, 1))
    assert "If you fork from checkpoint 1" in said(page)
    form = texts(page) | hidden(page) | {"title": "For two", "state/size": "2"}
    form |= {"seen": hidden(ask(client, run, **(form | {"kind": "fork"})))["seen"]}
    answer = order(client, run, "forks", **form)
    made = Run.objects.get(forked_from__isnull=False, lineage=run.pk)
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{made.pk}/")
    assert (made.title, state(made)["size"]) == ("For two", 2)
    text = said(page_of(client, f"/runs/{made.pk}/"))
    assert f"of R-{run.pk}, checkpoint 1" in text
    assert f"lineage: this run and R-{run.pk}" in text
    assert f"R-{made.pk} fork by Ann Okafor; queued For two" in said(page_of(client, f"/runs/{run.pk}/"))


def test_the_same_form_sent_twice_is_one_fork(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = hidden(page_of(client, forms(run, 1)))
    first, second = (order(client, run, "forks", **form)["Location"] for _ in range(2))
    assert first == second
    another = hidden(page_of(client, forms(run, 1)))
    assert order(client, run, "forks", **another)["Location"] != first


def test_what_does_not_fit_is_said_and_nothing_is_made(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    form = hidden(page_of(client, forms(run, 1))) | {"state/size": "many"}
    answer = order(client, run, "forks", **form)
    assert answer.status_code == 422
    assert "Write a whole number." in said(answer.content.decode())
    wrong = order(client, run, "forks", **(form | {"state/size": "1", "version": "99"}))
    assert wrong.status_code == 409
    assert "There is no agent named booking 99" in said(wrong.content.decode())
    assert not Run.objects.filter(lineage=run.pk, forked_from__isnull=False).exists()


def test_what_a_run_left_behind_is_undone_by_one_button(ledger: str) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    client = member(run)
    text = said(page_of(client, f"/runs/{run.pk}/"))
    assert "Undo 2 effects now" in text
    assert "from an abandoned branch; will be undone" in text
    answer = order(client, run, "settlements")
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert "Settling its effects" in said(page_of(client, f"/runs/{run.pk}/"))
    advance_to_rest(run)
    assert fates(run)[:3] == [("book", "undone"), ("pay", "undone"), ("tell", "kept")]
    undo = Effect.objects.filter(run=run, undoes__step="pay").get()
    text = said(page_of(client, f"/runs/{run.pk}/"))
    assert f"by its undo under the key {undo.key[:8]}, at" in text
    assert "3 effects 2 undone, 1 cannot be undone" in text
    assert "Undo" not in text.partition("Effects each")[2].partition("Inbox")[0].replace("Undone", "")


def test_nothing_to_undo_is_refused(ledger: str) -> None:
    run = booked(ledger)
    answer = order(member(run), run, "settlements")
    assert answer.status_code == 409
    assert "has left no effects behind" in said(answer.content.decode())


def test_an_undone_effect_is_marked_in_the_timeline_and_agrees_with_the_table(ledger: str) -> None:
    run = booked(ledger)
    paid = after(run, "pay")
    edit(run, 1, size=2)
    advance_to_rest(run)
    client = member(run)
    order(client, run, "settlements")
    advance_to_rest(run)
    page = page_of(client, f"/runs/{run.pk}/")
    assert f"{paid} Pay undone" in said(page)
    assert 'data-mark="undone"' in page
    assert page.count('<tr data-status="undone">') == 2


def test_a_version_and_a_key_that_no_page_sends_are_no_fault_of_the_server(ledger: str) -> None:
    """U+0000 in them was asked of PostgreSQL, which takes none: the answer was 500."""
    run = booked(ledger)
    answer = order(member(run), run, "forks", at="1", version="\0", key="\0")
    assert answer.status_code == 409


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
