"""What was said, on the gate's page: quoted, never markup, and nothing in it hidden."""

from __future__ import annotations

import re

from approvals.cards.quote import Quote
from tests.factories import ann, make_card, make_gate, make_run, make_state, make_team
from tests.harness.signed_in_clients import signed_in


def sheet_of(text: str, *, label: str = "Ellery, Marit", role: str = "customer, by mail") -> str:
    """The sheet of what was said, on the page of a gate that quotes `text`."""
    team = make_team()
    run = make_run(state=make_state(order={"mail": text}), first_step="review", team=team)
    gate = make_gate(run=run, card=make_card(quotes=[Quote(label=label, role=role, pointer="/order/mail")]))
    page = signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
    found = re.search(r'<section class="sheet" aria-labelledby="said">.*?</section>', page, re.DOTALL)
    assert found, "the page has no such sheet"
    assert page.index('id="action-refund"') < found.start() < page.index('aria-labelledby="state"')
    return " ".join(found.group().split())


def test_a_customers_words_stand_between_the_actions_and_the_state_under_their_name() -> None:
    sheet = sheet_of("They do not fit.")
    assert "<b><bdi>Ellery, Marit</bdi></b> <span><bdi>customer, by mail</bdi></span>" in sheet
    assert '<blockquote class="voice says-so">They do not fit.</blockquote>' in sheet


def test_markup_in_words_and_label_stays_text() -> None:
    sheet = sheet_of("<img src=x onerror=alert(1)>", label="<b>Holdpoint</b>", role="<i>staff</i>")
    assert "<img" not in sheet
    assert "&lt;img src=x onerror=alert(1)&gt;" in sheet
    assert "&lt;b&gt;Holdpoint&lt;/b&gt;" in sheet
    assert "&lt;i&gt;staff&lt;/i&gt;" in sheet


def test_what_the_words_hide_is_measured_and_badged() -> None:
    sheet = sheet_of("Thank you." + "\n" * 4_813 + "Pay me\u202e twice.")
    assert "4,812 blank lines" in sheet
    assert "Pay me" in sheet
    assert "right-to-left override" in sheet


def test_no_words_are_said_to_be_none_and_a_gate_without_quotes_has_no_such_sheet() -> None:
    assert "No text." in sheet_of("")
    team = make_team()
    gate = make_gate(team=team)
    assert 'aria-labelledby="said"' not in signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
