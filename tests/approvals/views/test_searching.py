"""What a row shows finds it, and so does its number: in the inbox, among the runs, and in the jump."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from checkpoints.postgresql.text_search import join_terms, parse_numbers, prefix_query
from tests.factories import ann, decide, eve, make_card, make_gate, make_run, make_team
from tests.harness.signed_in_clients import signed_in

SHOWN = {"title": "Refund £28.00", "for_whom": "Marit Ellery", "resource": "order BK-2041", "amount": "£28.00"}


def found(reader: User, address: str, words: str) -> str:
    return signed_in(reader).get(address, {"q": words, "queue": "all"}).content.decode()


@pytest.mark.parametrize("words", ["BK-2041", "2041", "ellery", "marit bk-2041", "28.00"])
def test_a_gate_and_its_run_are_found_by_what_the_row_shows(words: str) -> None:
    """The order's number stood in the row, and looking for it found nothing."""
    team = make_team()
    gate = make_gate(team=team, card=make_card(**SHOWN))
    other = make_gate(team=team, card=make_card(title="Something else", for_whom="Bo", resource="", amount="€9.10"))
    inbox = found(ann(team), "/", words)
    assert f'id="gate-{gate.pk}"' in inbox
    assert f'id="gate-{other.pk}"' not in inbox
    runs = found(ann(team), "/runs/", words)
    assert f'id="run-{gate.run_id}"' in runs
    assert f'id="run-{other.run_id}"' not in runs
    assert f"/gates/{gate.pk}/" in found(ann(team), "/jump/", words)


@pytest.mark.parametrize("words", ["R-{run}", "run {run}", "{run}", "gate {gate}"])
def test_a_number_finds_its_run_and_its_gate(words: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    asked = words.format(run=gate.run_id, gate=gate.pk)
    assert f'id="gate-{gate.pk}"' in found(ann(team), "/", asked)
    assert f'id="run-{gate.run_id}"' in found(ann(team), "/runs/", asked)
    assert re.search(rf"/(gates/{gate.pk}|runs/{gate.run_id})/", found(ann(team), "/jump/", asked))


@pytest.mark.parametrize("words", ["R-{run}", "r-{run}", "run {run}"])
def test_the_number_of_a_run_finds_no_other_whose_words_begin_so(words: str) -> None:
    """R-7 was read as the words R and 7… too, and found R-18 first."""
    team = make_team()
    gate = make_gate(team=team)
    other = make_gate(team=team, card=make_card(title=f"Run for R {gate.run_id}0"))
    asked = words.format(run=gate.run_id)
    inbox, runs, jump = (found(ann(team), address, asked) for address in ("/", "/runs/", "/jump/"))
    assert f'id="gate-{gate.pk}"' in inbox
    assert f'id="gate-{other.pk}"' not in inbox
    assert f'id="run-{gate.run_id}"' in runs
    assert f'id="run-{other.run_id}"' not in runs
    assert f"/gates/{other.pk}/" not in jump


def test_an_orders_number_may_be_typed_as_it_stands_in_a_mail() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(resource="order 20417"))
    assert f'id="gate-{gate.pk}"' in found(ann(team), "/", "#20417")


def test_the_number_of_a_gate_finds_no_other_whose_words_begin_so() -> None:
    team = make_team()
    gate = make_gate(team=team)
    other = make_gate(team=team, card=make_card(title=f"Gate {gate.pk}0"))
    asked = f"gate {gate.pk}"
    inbox, runs = (found(ann(team), address, asked) for address in ("/", "/runs/"))
    assert f'id="gate-{gate.pk}"' in inbox
    assert f'id="gate-{other.pk}"' not in inbox
    assert f'id="run-{other.run_id}"' not in runs


def test_a_decided_gate_is_found_too_and_a_stranger_finds_nothing() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(**SHOWN))
    decide(gate, ann(team))
    page = signed_in(ann(team)).get("/", {"q": "BK-2041", "queue": "decided"}).content.decode()
    assert f'id="gate-{gate.pk}"' in page
    for address in ("/", "/runs/", "/jump/"):
        for words in ("BK-2041", f"R-{gate.run_id}", f"gate {gate.pk}"):
            assert f"/gates/{gate.pk}/" not in found(eve(), address, words)
            assert f"/runs/{gate.run_id}/" not in found(eve(), address, words)


def test_a_run_is_found_by_a_number_within_its_title() -> None:
    team = make_team()
    run = make_run(team=team, title="Refund of BK-7730")
    assert f'id="run-{run.pk}"' in found(ann(team), "/runs/", "BK-7730")


def test_what_is_typed_is_read_as_words_and_numbers() -> None:
    assert join_terms("Order BK-2041", "a@b.se") == "Order BK 2041 a b se"
    assert prefix_query("BK-2041 | !x") == "'BK':* & ('2041':* | '-2041':*) & 'x':*"
    assert [parse_numbers(each) for each in ("R-12", "run 12", "gate 3", "#7", "12", "12a", "")] == [
        (0, 12), (0, 12), (3, 0), (7, 7), (12, 12), (0, 0), (0, 0),
    ]  # fmt: skip
