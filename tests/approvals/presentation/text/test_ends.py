"""The ends of a value are drawn as they run.

A no-break space behind a recipient had no badge, and "Calls that would run" left it out: what was drawn was not what
ran.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.presentation.text import invisible, spelled_out, untrusted
from approvals.templatetags import holdpoint as tags
from tests.factories import ann, make_action, make_card, make_gate
from tests.harness.signed_in_clients import signed_in

ENDS = [
    ("ACME\u00a0", "U+00A0 no-break space"),
    ("\u00a0ACME", "U+00A0 no-break space"),
    ("ACME ", "U+0020 space"),
    ("  ACME", "U+0020 space, 2 times"),
    ("ACME\t", "U+0009 tab"),
    ("ACME\u2003", "U+2003 em space"),
    ("\u3000ACME", "U+3000 ideographic space"),
    ("ACME\u202f", "U+202F narrow no-break space"),
    ("ACME\n", "line break"),
    ("\r\nACME", "line break"),
    ("ACME \n", "U+0020 space"),
    (" ", "U+0020 space"),
    ("order_12\u00a0", "U+00A0 no-break space"),
]
# Each way in which a page draws a value, but for amounts: those are marked as not exact.
DRAWN: list[Callable[[str], object]] = [
    tags.untrusted_value, tags.untrusted_brief, tags.untrusted_whole, tags.untrusted_exact, tags.pinned,
    tags.pinned_amount, lambda text: tags.words(text, runs=True), lambda text: spelled_out.out([text]),
    lambda text: spelled_out.out({text: 1}), lambda text: tags.state_tree({"to": text}),
    lambda text: untrusted.plain(text, value=True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "badge"), ENDS, ids=repr)
def test_blanks_at_the_ends_of_a_value_are_named_wherever_it_is_drawn(text: str, badge: str) -> None:
    for draw in DRAWN:
        drawn = str(draw(text))
        assert badge in drawn or (badge == "line break" and draw is DRAWN[-1]), (draw, drawn)


@pytest.mark.parametrize("text", ["ACME", "12 000 €", "bonjour !", "a b", "a\nb"])
def test_a_text_without_them_is_drawn_as_before(text: str) -> None:
    assert all("codepoint" not in str(draw(text)) for draw in DRAWN)


def test_words_keep_their_plain_ends_without_a_badge_and_others_with_one() -> None:
    """A summary that ends with a line break deceives nobody."""
    for draw in (untrusted.render, untrusted.line, untrusted.plain):
        assert "U+" not in draw("Pay ACME.\n")
        assert "U+00A0" in draw("Pay ACME.\u00a0")


def test_a_field_with_such_ends_is_shown_once_more_with_badges() -> None:
    assert [tags.hides(text) for text in ("ACME\u00a0", "ACME ", "\tACME", "ACME\n\n")] == [True] * 4
    assert [tags.hides(text) for text in ("ACME", "a\nb\n", "a b")] == [False] * 3


def test_a_page_counts_the_odd_ones_among_what_cannot_be_seen() -> None:
    assert invisible.badge_count("ACME\u00a0")[0] == 1
    assert invisible.badge_count("ACME \n")[0] == 0


def test_a_long_stretch_at_an_end_is_measured_as_elsewhere() -> None:
    assert "30 spaces collapsed" in untrusted.render("x" + " " * 30, value=True)


def test_the_call_that_would_run_has_them() -> None:
    arguments: dict[str, Any] = {"amount": "12.00", "to": "ACME\u00a0", "note": "urgent "}
    gate = make_gate(card=make_card(actions=[make_action(pointer="", arguments=arguments, edits=False)]))
    gate.run.plan.external = True
    gate.run.plan.save(update_fields=["external"])
    page = signed_in(ann(gate.team)).get(f"/gates/{gate.pk}/").content.decode()
    [calls] = [part.partition("</ul>")[0] for part in page.split('<ul class="calls"')[1:]]
    assert "U+00A0 no-break space" in calls
    assert "U+0020 space" in calls
