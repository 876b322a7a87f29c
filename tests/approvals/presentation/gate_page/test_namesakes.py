"""A quote that bears the name of a person here is marked, however the name is written.

Names were looked for where a transcript has its speakers: "14:02 Marit Ellery: ok", "From: Marit Ellery", an accent
less or a hidden character more went without a mark. So did a label of two lines, which is drawn on one, capitals of a
name in Cyrillic, an account's user name or address, and a digit for a letter. The search took seconds of a page, and
knew 200 people at most.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest

from approvals.cards.quote import Quote
from approvals.models import Gate
from approvals.presentation.gate_facts import namesakes
from approvals.presentation.gate_facts.namesakes import namesakes_of
from checkpoints.postgresql.sql import run_sql
from tests.factories import make_gate, make_user, unique
from tests.harness.sent_statements import sent


def reread(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan").get(pk=gate.pk)


def namesake(name: str, *, label: str = "Customer", text: str = "") -> str:
    gate = reread(make_gate())
    make_user(name)
    quote = Quote(label=label, role="by mail", pointer="/order/mail")
    return namesakes_of(gate, [(quote, text)]).get(0, "")


@pytest.mark.parametrize(
    "text",
    [
        "Marit Ellery: ok",
        "[14:02] Marit Ellery: ok",
        "14:02 Marit Ellery: ok",
        "On Mon, 2 Mar 2026 at 14:02, Marit Ellery wrote:\n> ok",
        "From: Marit Ellery <marit@example.org>\nok",
        "Marit Ellery \u2014 ok",
        "ok\n\nMarit Ellery",
        "x\rMarit Ellery: ok",
        "x\u2028Ellery, Marit Q.: ok",
        "".join(f"ab{at}: x\n" for at in range(20)) + "Marit Ellery: ok",
        f"Marit Ellery ({'x' * 80}): ok",
        "@marit.ellery: ok",
        "marit_ellery@example.org wrote: ok",
        "MaritEllery: ok",
    ],
)
def test_a_text_in_a_colleagues_name_is_marked_whatever_stands_around_it(text: str) -> None:
    assert namesake("Marit Ellery", text=text) == "Marit Ellery"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Jos\u00e9 N\u00fa\u00f1ez", unicodedata.normalize("NFD", "Jos\u00e9 N\u00fa\u00f1ez")),
        ("Jos\u00e9 N\u00fa\u00f1ez", "Jose Nunez"),
        ("Andre Peres", "Andr\u00e9 P\u00e9r\u00e8s"),
        ("Zo\u00eb Chan", "Zoe\u0308 Chan"),
        ("Marit Ellery", "MaritEllery"),
        ("Marit Ellery", "ElleryMarit"),
        ("Marit Ellery", "Ma\u200brit Ellery"),
        ("Marit Ellery", "Marit\u3164Ellery"),
        ("Marit Ellery", "Ma\u0008rit Ellery"),
        ("Marit Ellery", "\uff2d\u0430rit Ellery"),
        ("Grit", "grit"),
        ("Иван Петров", "Петров, Иван"),
        ("Ольга Лисова", "\u041b\u0438\u0441o\u0432\u0430, Ольга"),
        ("Νίκος Παπάς", "Παπάς (Νίκος)"),
        ("Jörg Groß", "JORG GROSS"),
        ("Shéa O\u2019Neil-Ray", "Shea O'Neil Ray"),
        ("Nami 山田", "山田 Nami"),
        ("Ann Okafor", "Ann\nOkafor"),
        ("Ann Okafor", "Ann\u2028Okafor"),
        ("Ann Okafor", "Ann Okaf0r"),
        ("Will Alvarez", "Wi11 A1varez"),
        ("Ann Okafor", "\u1d00\u0274\u0274 \u1d0f\u1d0b\u1d00\ua730\u1d0f\u0280"),
        ("Иван Петров", "ИВАН ПЕТРОВ"),
        ("Иван Петров", "\u0418B\u0410\u041d ПЕТРОВ"),
        ("Marit Ellery", "\u041carit Ellery"),
        ("Noah Ellery", "\u039doah Ellery"),
        ("Νίκος Παπάς", "ΝΙΚΟΣ ΠΑΠΑΣ"),
    ],
)
def test_a_label_that_reads_as_a_colleagues_name_is_marked(name: str, label: str) -> None:
    assert namesake(name, label=label) == name


def named_beside(label: str, role: str = "", text: str = "") -> str:
    """Return who is named by a quote with `~` for what an account's user name and address have."""
    user, own = make_user("Inge Quill"), unique("own").replace("-", "")
    user.username, user.email = f"m.{own}", f"inge.10@{own}.example"
    user.save()
    label, role, text = (words.replace("~", own) for words in (label, role, text))
    quote = Quote(label=label, role=role, pointer="/order/mail")
    return namesakes_of(reread(make_gate()), [(quote, text)]).get(0, "")


@pytest.mark.parametrize(
    ("label", "role", "text"),
    [
        ("m.~", "", ""),
        ("M.~", "", ""),
        ("Customer", "", "m.~: ok"),
        ("Inge.10@~.example", "", ""),
        ("Customer", "inge.10@~.example", ""),
        ("Customer", "", "From: <INGE.10@~.EXAMPLE>"),
        ("\u0456nge.10@~.example", "", ""),
        ("Inge", "Quill", ""),
    ],
)
def test_so_is_one_who_bears_an_accounts_user_name_or_address(label: str, role: str, text: str) -> None:
    assert named_beside(label, role, text) == "Inge Quill"


@pytest.mark.parametrize("label", ["m.~x", "inge.10", "nge.10@~.example", "inge.10@~.example.org"])
def test_a_part_of_these_is_none(label: str) -> None:
    assert named_beside(label) == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Marit Ellery", "Marit and my neighbour in the old house, Ellery"),
        ("Marit Ellery", "Marit\nEllery"),
        ("Marit Ellery", "Maritime Ellery"),
        ("Will", "I will come: tomorrow"),
    ],
)
def test_words_that_only_occur_are_no_name(name: str, text: str) -> None:
    assert namesake(name, text=text) == ""


def test_every_account_counts_and_one_statement_reads_only_those_whose_names_occur(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page of a gate with quotes read all accounts."""
    gate, read = reread(make_gate()), list[int]()
    name = f"Ann {unique('O').replace('-', '')}"
    quotes = [(Quote(label="Customer", pointer=f"/{at}"), f"Ann said so.\n{name}: ok") for at in range(50)]

    def reading(sql: str, values: Sequence[object]) -> list[tuple[object, ...]]:
        rows = run_sql(sql, values)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(namesakes, "run_sql", reading)
    assert 49 not in namesakes_of(gate, quotes)
    for at in range(201):
        make_user(f"Ann Nobody{at}")
    make_user(name)
    with sent() as statements:
        assert namesakes_of(gate, quotes)[49] == name
    assert len([each for each in statements if "auth_user" in each]) == 1
    others, now = read
    assert now == others + 1
