"""Forking from a checkpoint on a page of its own, and settling at once."""

from __future__ import annotations

from agents.models import Effect
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit, fates
from tests.factories.driven_runs import advance_to_rest, state

from .sent_orders import ask, booked, hidden, member, order, page_of, said, texts


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
