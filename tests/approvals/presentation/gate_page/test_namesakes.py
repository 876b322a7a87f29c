"""Quotes on a page: under their name, and marked where it is that of a person here, however it is written."""

from __future__ import annotations

import re
import unicodedata

from approvals.cards.quote import Quote
from approvals.models import Gate
from approvals.presentation.gate_facts.namesakes import namesakes_of
from tests.factories import ann, make_card, make_gate, make_run, make_state, make_team, make_user, unique
from tests.harness.signed_in_clients import signed_in


def reread(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan").get(pk=gate.pk)


def borne(quotes: list[tuple[str, str, str]]) -> list[str]:
    """Whose name each (label, role, text) bears, at one gate."""
    found = [(Quote(label=label, role=role, pointer="/order/mail"), text) for label, role, text in quotes]
    named = namesakes_of(reread(make_gate()), found)
    return [named.get(at, "") for at in range(len(quotes))]


TEXTS = [
    "[14:02] Marit Ellery: ok", "On Mon, 2 Mar 2026 at 14:02, Marit Ellery wrote:\n> ok",
    "From: Marit Ellery <marit@example.org>\nok", "Marit Ellery \u2014 ok", "ok\n\nMarit Ellery",
    "x\u2028Ellery, Marit Q.: ok", "".join(f"ab{at}: x\n" for at in range(20)) + "Marit Ellery: ok",
    f"Marit Ellery ({'x' * 80}): ok", "marit_ellery@example.org wrote: ok", "MaritEllery: ok",
]  # fmt: skip
LABELS = [
    ("Jos\u00e9 N\u00fa\u00f1ez", unicodedata.normalize("NFD", "Jos\u00e9 N\u00fa\u00f1ez")),
    ("Jos\u00e9 N\u00fa\u00f1ez", "Jose Nunez"), ("Andre Peres", "Andr\u00e9 P\u00e9r\u00e8s"),
    ("Marit Ellery", "ElleryMarit"), ("Marit Ellery", "Ma\u200brit Ellery"),
    ("Marit Ellery", "\uff2d\u0430rit Ellery"), ("Grit", "grit"),
    ("Ольга Лисова", "\u041b\u0438\u0441o\u0432\u0430, Ольга"), ("Jörg Groß", "JORG GROSS"),
    ("Shéa O\u2019Neil-Ray", "Shea O'Neil Ray"), ("Nami 山田", "山田 Nami"), ("Ann Okafor", "Ann\nOkafor"),
    ("Will Alvarez", "Wi11 A1varez"), ("Ann Okafor", "\u1d00\u0274\u0274 \u1d0f\u1d0b\u1d00\ua730\u1d0f\u0280"),
    ("Иван Петров", "\u0418B\u0410\u041d ПЕТРОВ"), ("Νίκος Παπάς", "ΝΙΚΟΣ ΠΑΠΑΣ"),
]  # fmt: skip
NO_NAMES = [
    "Marit and my neighbour in the old house, Ellery",
    "Marit\nEllery",
    "Maritime Ellery",
    "I will come: tomorrow",
]


def test_a_text_or_a_label_that_reads_as_a_colleagues_name_is_marked_and_words_that_only_occur_are_not() -> None:
    for name in {"Marit Ellery", "Will", *(name for name, _ in LABELS)}:
        make_user(name)
    assert borne([("Customer", "by mail", text) for text in TEXTS]) == ["Marit Ellery"] * len(TEXTS)
    assert borne([(label, "by mail", "") for _, label in LABELS]) == [name for name, _ in LABELS]
    assert borne([("Customer", "by mail", text) for text in NO_NAMES]) == [""] * len(NO_NAMES)


def test_so_is_one_who_bears_an_accounts_user_name_or_address() -> None:
    """A part of these is none."""
    user, own = make_user("Inge Quill"), unique("own").replace("-", "")
    user.username, user.email = f"m.{own}", f"inge.10@{own}.example"
    user.save()
    bearing = [
        (f"M.{own}", "", ""), ("Customer", "", f"m.{own}: ok"), (f"Inge.10@{own}.example", "", ""),
        ("Customer", f"inge.10@{own}.example", ""), ("Customer", "", f"From: <INGE.10@{own.upper()}.EXAMPLE>"),
        (f"\u0456nge.10@{own}.example", "", ""), ("Inge", "Quill", ""),
    ]  # fmt: skip
    assert borne(bearing) == ["Inge Quill"] * len(bearing)
    parts = [f"m.{own}x", "inge.10", f"nge.10@{own}.example", f"inge.10@{own}.example.org"]
    assert borne([(label, "", "") for label in parts]) == [""] * len(parts)


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

    assert "No text." in sheet_of("")
    team = make_team()
    gate = make_gate(team=team)
    assert 'aria-labelledby="said"' not in signed_in(ann(team)).get(f"/gates/{gate.pk}/").content.decode()
