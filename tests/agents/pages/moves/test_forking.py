"""Forking, settling at once, comparing two checkpoints, and what a gate says becomes of what the run left behind."""

from __future__ import annotations

import re

from agents.models import Effect
from agents.moves import fork as forks
from checkpoints.models import Run
from tests.agents.moves.moved_runs import after, edit, fates
from tests.agents.pages.moves.sent_orders import ask, booked, hidden, member, order, page_of, said, texts
from tests.factories import ann, make_team
from tests.factories.driven_runs import advance_to_rest, make_run, open_gate, state
from tests.harness.signed_in_clients import form_of


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
    assert order(client, run, "forks", **form)["Location"] == answer["Location"], "sent twice it is one fork"
    made = Run.objects.get(forked_from__isnull=False, lineage=run.pk)
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{made.pk}/")
    assert (made.title, state(made)["size"]) == ("For two", 2)
    text = said(page_of(client, f"/runs/{made.pk}/"))
    assert f"of R-{run.pk}, checkpoint 1" in text
    assert f"lineage: this run and R-{run.pk}" in text
    assert f"R-{made.pk} fork by Ann Okafor; queued For two" in said(page_of(client, f"/runs/{run.pk}/"))


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
    assert order(client, run, "forks", at="1", version="\0", key="\0").status_code == 409, "which PostgreSQL takes not"
    assert not Run.objects.filter(lineage=run.pk, forked_from__isnull=False).exists()


def test_what_a_run_left_behind_is_undone_by_one_button_and_marked(ledger: str) -> None:
    run = booked(ledger)
    client, paid = member(run), after(run, "pay")
    answer = order(client, run, "settlements")
    assert (answer.status_code, "has left no effects behind" in said(answer.content.decode())) == (409, True)
    edit(run, 1, size=2)
    advance_to_rest(run)
    text = said(page_of(client, f"/runs/{run.pk}/"))
    assert "Undo 2 effects now" in text
    assert "from an abandoned branch; will be undone" in text
    assert f"{paid} Pay ran" in text
    assert "completed, on an abandoned branch now" in text
    answer = order(client, run, "settlements")
    assert (answer.status_code, answer["Location"]) == (302, f"/runs/{run.pk}/")
    assert "Settling its effects" in said(page_of(client, f"/runs/{run.pk}/"))
    advance_to_rest(run)
    assert fates(run)[:3] == [("book", "undone"), ("pay", "undone"), ("tell", "kept")]
    undo = Effect.objects.filter(run=run, undoes__step="pay").get()
    page = page_of(client, f"/runs/{run.pk}/")
    for words in (f"by its undo under the key {undo.key[:8]}, at", "3 effects 2 undone, 1 cannot be undone",
                  f"{paid} Pay undone"):  # fmt: skip
        assert words in said(page)
    assert 'data-mark="undone"' in page
    assert page.count('<tr data-status="undone">') == 2
    assert "Undo" not in said(page).partition("Effects each")[2].partition("Inbox")[0].replace("Undone", "")


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
    within = said(page_of(member(run), comparison(run, 2, 3)))
    assert "A is on the path to B, and was saved" in within
    assert "Their paths part" not in within
    assert "Checkpoint A" in said(page_of(member(run), f"/runs/{run.pk}/comparisons/?a=2")), "asked for what is missing"


def test_a_fork_is_compared_with_its_origin_by_run_and_number(ledger: str) -> None:
    run = booked(ledger)
    fork = forks.fork(run, at=2, by=ann(run.team), patch=[{"op": "replace", "path": "/offer", "value": 99}])
    for address in (comparison(run, 3, f"{fork.pk}.1"), comparison(fork, f"R-{run.pk}.3", 1)):
        text = said(page_of(member(run), address))
        assert f"Their paths part after checkpoint 2 of R-{run.pk}, “Plan”" in text
        assert f"B: 1 of R-{fork.pk}" in text


def test_what_is_not_there_or_of_another_lineage_or_team_is_not_found(ledger: str) -> None:
    run = booked(ledger)
    client = member(run)
    other = advance_to_rest(make_run("chain", ledger=ledger, team=run.team))
    foreign = advance_to_rest(make_run("chain", ledger=ledger, team=make_team()))
    for place in (99, "x", f"{other.pk}.1", f"{foreign.pk}.1", "1.1.1", "9999999999999.1"):
        answer = client.get(comparison(run, 1, place))
        assert (place, answer.status_code) == (place, 404)
        assert "There is nothing to compare." in said(answer.content.decode())


def test_a_gate_of_a_run_that_left_effects_behind_says_what_becomes_of_them_also_while_an_edit_is_typed(
    ledger: str,
) -> None:
    run = booked(ledger)
    edit(run, 1, size=2)
    advance_to_rest(run)
    gate, client = open_gate(run), member(run)
    html = page_of(client, f"/gates/{gate.pk}/")
    told = rows(html, "approve")
    assert {"Undone: Pay, Book", "May run: Tell; decided by earlier steps"} <= set(told)
    for words in ("Cannot be undone: Tell", "Runs: Book, Pay"):
        assert any(row.startswith(words) for row in told)
    form = form_of(gate) | {"verdict": "edit"}
    name = re.findall(r'name="(args\.[^"]+)"', html)[0]
    for typed, undone in (("10", False), ("junk", True)):  # as it was at first all that was done stands
        answer = client.post(f"/gates/{gate.pk}/impacts/", form | {name: typed})
        assert ("Undone: Pay, Book" in rows(answer.content.decode(), "edit")) == undone
    gate.refresh_from_db()
    assert (gate.status, gate.proposal, Run.objects.get(pk=run.pk).status) == ("open", 1, "waiting")


def rows(html: str, choice: str) -> list[str]:
    """The rows of a choice's impact in a page, each as its title and names."""
    found = re.search(rf'data-for="{choice}"[^>]*><div class="impact"[^>]*>.*?</dl>', html, re.DOTALL)
    assert found is not None
    titles = re.findall(r"<dt>.*?<span>(.*?)</span></dt>\s*<dd>(.*?)</dd>", found[0], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", "", f"{title}: {said}").split()) for title, said in titles]
