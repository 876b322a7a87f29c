"""A gate of a run that left effects behind says what becomes of them for each choice, also while an edit is typed."""

from __future__ import annotations

import re

from django.test import Client

from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.moves.moved_runs import edit
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate
from tests.harness.signed_in_clients import form_of, signed_in


def asked_again(ledger: str) -> tuple[Run, Gate, Client]:
    """A finished booking whose size was changed: it asks for another offer."""
    run = advance_to_rest(make_run("booking", ledger=ledger))
    decide(run)
    advance_to_rest(run)
    edit(run, 1, size=2)
    advance_to_rest(run)
    return run, open_gate(run), signed_in(ann(run.team))


def rows(html: str, choice: str) -> list[str]:
    """The rows of a choice's impact in a page, each as its title and names."""
    found = re.search(rf'data-for="{choice}"[^>]*><div class="impact"[^>]*>.*?</dl>', html, re.DOTALL)
    assert found is not None
    titles = re.findall(r"<dt>.*?<span>(.*?)</span></dt>\s*<dd>(.*?)</dd>", found[0], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", "", f"{title}: {said}").split()) for title, said in titles]


def previewed(client: Client, gate: Gate, form: dict[str, str], choice: str = "edit") -> list[str]:
    """What the edit in the form would do."""
    return rows(client.post(f"/gates/{gate.pk}/impacts/", form).content.decode(), choice)


def test_approving_says_what_is_undone_first_and_what_cannot_be(ledger: str) -> None:
    _, gate, client = asked_again(ledger)
    told = rows(client.get(f"/gates/{gate.pk}/").content.decode(), "approve")
    assert "Undone: Pay, Book" in told
    assert any(row.startswith("Cannot be undone: Tell") for row in told)
    assert any(row.startswith("Runs: Book, Pay") for row in told)
    assert "May run: Tell; decided by earlier steps" in told


def test_what_is_typed_is_foretold_before_it_is_sent(ledger: str) -> None:
    run, gate, client = asked_again(ledger)
    form = form_of(gate) | {"verdict": "edit"}
    name = re.findall(r'name="(args\.[^"]+)"', client.get(f"/gates/{gate.pk}/").content.decode())[0]
    told = previewed(client, gate, form | {name: "10"})
    assert not any(row.startswith("Undone") for row in told), "as it was at first: all that was done stands"
    assert any(row.startswith("Kept") and "Pay" in row for row in told)
    assert "Undone: Pay, Book" in previewed(client, gate, form | {name: "junk"})
    gate.refresh_from_db()
    assert (gate.status, gate.proposal, Run.objects.get(pk=run.pk).status) == ("open", 1, "waiting")


def test_a_value_put_in_the_place_of_another_is_foretold_as_it_is_typed(ledger: str) -> None:
    """It was told as of when the page was loaded, whatever was typed."""
    _, gate, client = asked_again(ledger)
    form = form_of(gate, "reject", then="override")
    told = previewed(client, gate, form | {"override.offer": "10"}, "reject then-override")
    assert not any(row.startswith("Undone") for row in told), "as it was at first: all that was done stands"
    for typed in ("20", "[10", '"ten"'):  # what stands, no JSON, no offer
        told = previewed(client, gate, form | {"override.offer": typed}, "reject then-override")
        assert "Undone: Pay, Book" in told
    assert gate.proposals.count() == 1


def test_a_value_in_its_place_is_no_edit_of_the_fields(ledger: str) -> None:
    _, gate, client = asked_again(ledger)
    form = form_of(gate, "reject", then="override") | {"override.offer": "10"}
    assert "Undone: Pay, Book" in previewed(client, gate, form, "edit")
