"""What would be done once more is said as a colleague would, and titles that are no English are quoted."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.consequences import sentences, verbs
from approvals.impact.result import Repeat


def repeat(*titles: str, **more: Any) -> Repeat:
    return Repeat(effect=3, step="reply", titles=titles, run=7, checkpoint=8, **more)


def told(*titles: str, **more: Any) -> str:
    return sentences.told(repeat(*titles, **more), at="at 16:18", here=7)


def test_a_mail_that_went_out_is_said_to_go_out_again() -> None:
    assert told("Send an e-mail") == ("An e-mail was already sent at 16:18 (checkpoint 8). Approving sends it again.")
    assert told("Pay the refund") == "The refund was already paid at 16:18 (checkpoint 8). Approving pays it again."


def test_what_may_come_is_no_more_than_said_to_may() -> None:
    assert told("Send an e-mail", certain=False).endswith("Approving may send it again.")
    assert told("Send an e-mail", done=False) == (
        "Nobody knows whether an e-mail was already sent at 16:18 (checkpoint 8). Approving could send it twice."
    )


def test_another_run_that_did_it_is_named() -> None:
    there = sentences.told(repeat("Send an e-mail"), at="at 16:18", here=9)
    assert there.startswith("An e-mail was already sent at 16:18 (R-7, checkpoint 8).")


def test_the_first_title_that_can_be_taken_apart_is_used_and_another_is_quoted() -> None:
    assert told("Reply to the customer", "Send an e-mail").startswith("An e-mail was already sent")
    assert told("Reply to the customer") == (
        "“Reply to the customer” was already done at 16:18 (checkpoint 8). Approving does it again."
    )
    assert told("Überweisung ausführen").startswith("“Überweisung ausführen” was already done")


@pytest.mark.parametrize(
    ("title", "third"),
    [
        ("Pay a refund", "pays a refund"), ("Send an e-mail", "sends an e-mail"),
        ("Reply to the customer", "replies to the customer"), ("Publish the page", "publishes the page"),
        ("Überweisung", "“Überweisung”"), ("Refund", "refunds"),
    ],
)  # fmt: skip
def test_a_title_says_what_a_yes_does(title: str, third: str) -> None:
    assert verbs.third(title) == third


def test_a_price_is_changed_to_an_amount_and_a_refund_is_paid() -> None:
    """It said "Changes a price €13.09"."""
    assert verbs.with_amounts("changes a price", ["€13.09"]) == "changes a price to €13.09"
    assert verbs.with_amounts("change the price", ["€13.09"]) == "change the price to €13.09"
    assert verbs.with_amounts("pays a refund", ["€5.25"]) == "pays a refund €5.25"
    assert verbs.with_amounts("changes a price", []) == "changes a price"
