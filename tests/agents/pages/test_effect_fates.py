"""What is said of an effect: one table for the ways it can stand, and what is added to the word."""

from __future__ import annotations

from typing import Any

import pytest

from agents.effects.fates import Fate, Remark, fates_of
from agents.pages.run import effects
from agents.pages.run import head as page_head
from tests.agents.pages.test_timeline import NOON, make_effect


def fate_of(status: str, **facts: Any) -> Fate:
    (fate,) = fates_of([make_effect(4, "pay", status, **facts)])
    return fate


@pytest.mark.parametrize(
    ("status", "facts", "word"),
    [
        ("done", {}, "done"),
        ("done", {"undo": "cancel_payment"}, "done, can be undone"),
        ("done", {"irreversible": True}, "done, cannot be undone"),
        ("done", {"undo": "cancel_payment", "unsettled": True}, "from an abandoned branch; will be undone"),
        ("done", {"irreversible": True, "unsettled": True}, "from an abandoned branch; cannot be undone"),
        ("done", {"unsettled": True}, "from an abandoned branch; kept"),
        ("done", {"undo": "x", "unsettled": True, "taken_from": 7}, "from an abandoned branch; kept"),
        ("undone", {"undo": "cancel_payment"}, "undone"),
        ("kept", {"undo": "cancel_payment"}, "kept"),
        ("kept", {"irreversible": True}, "kept, cannot be undone"),
        ("unknown", {}, "unknown: it may have happened"),
        ("intended", {}, "begun, result not recorded yet"),
        ("failed", {}, "failed, confirmed not executed"),
        ("abandoned", {}, "unknown, and ordered again"),
    ],
)
def test_an_effect_has_one_word(status: str, facts: dict[str, Any], word: str) -> None:
    assert fate_of(status, **facts).mark.word == word


def test_an_undo_is_told_with_what_it_undid_and_is_no_effect_of_its_own() -> None:
    paid = make_effect(4, "pay", "undone", id=1, undo="cancel_payment")
    undo = make_effect(6, "pay", "done", id=2, undoes=1, key="cd" * 32, settled_at=NOON)
    (fate,) = fates_of([paid, undo])
    assert list(fate.remarks()) == [Remark("by its undo under the key cdcdcdcd, at", at=NOON)]
    assert page_head.outside([paid, undo]).fact == "1 effect"
    assert page_head.outside([paid, undo]).line == "1 undone"
    assert [row.step for row in effects.table([fate], {}, [])] == ["Pay"]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("failed", "its undo failed, and nothing was undone:"),
        ("unknown", "the result of its undo is unknown"),
        ("intended", "its undo is running"),
        ("abandoned", "the result of its undo is unknown; the undo was ordered again"),
    ],
)
def test_an_undo_that_did_not_come_about_is_told_too(status: str, said: str) -> None:
    paid = make_effect(4, "pay", "done", id=1, undo="cancel_payment", unsettled=True)
    (fate,) = fates_of([paid, make_effect(6, "pay", status, id=2, undoes=1)])
    assert said in [remark.text for remark in fate.remarks()]


def test_a_result_that_was_taken_over_says_where_and_an_older_generation_does_not() -> None:
    first = make_effect(4, "pay", "undone", id=1, execution="pay/a/0", undo="cancel_payment")
    second = make_effect(7, "pay", "done", id=2, execution="pay/a/0", generation=1, undo="cancel_payment")
    old, new = fates_of([first, second], {"pay/a/0": [12, 15]})
    assert [remark.text for remark in old.remarks()] == []
    assert [remark.text for remark in new.remarks()] == [
        "its result was reused at 12, 15",
        "performed again, generation 1",
    ]


def test_a_fork_names_the_run_whose_effect_it_took_over() -> None:
    assert "reused from R-7" in next(fate_of("done", taken_from=7).remarks()).text


def test_an_effect_that_a_person_sent_the_run_back_to_says_so() -> None:
    said = [remark.text for remark in fate_of("done", undo="cancel_payment", unsettled=True, again=True).remarks()]
    assert said == ["will be performed again: a person sent the run back to it"]


def test_the_figures_count_each_effect_once() -> None:
    rows = [
        make_effect(4, "pay", "done", id=1),
        make_effect(4, "pay", "undone", id=2),
        make_effect(6, "pay", "done", id=3, undoes=2),
        make_effect(5, "reply", "done", id=4, irreversible=True),
        make_effect(5, "reply", "kept", id=5, irreversible=True),
        make_effect(5, "pay", "done", id=6, unsettled=True, undo="cancel_payment"),
        make_effect(5, "pay", "failed", id=7),
    ]
    cell = page_head.outside(rows)
    assert (cell.fact, cell.line) == ("5 effects", "1 done, 1 to be settled, 1 undone, 2 cannot be undone")


def test_what_will_be_undone_does_not_stay_when_the_run_ends() -> None:
    rows = [
        make_effect(4, "pay", "done", id=1, unsettled=True, undo="cancel_payment"),
        make_effect(4, "fee", "done", id=2, unsettled=True, irreversible=True),
        make_effect(5, "reply", "done", id=3, irreversible=True),
    ]
    assert effects.undone_first(rows) == ["Pay"]
    assert [line.split()[0] for line in effects.list_staying(rows)] == ["“Fee”", "“Reply”"]
