"""What pages draw once for all: never as a page draws it that has no more room for marks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from approvals.presentation import inbox
from approvals.presentation.drawing.impact_lines import ImpactLine
from approvals.presentation.drawing.impact_words import WordedImpact
from approvals.presentation.text import size_limit
from tests.factories import make_card, make_gate

HIDDEN = "Pay\u200bout"


def row() -> Callable[[], str]:
    gate, now = make_gate(card=make_card(title=HIDDEN)), timezone.now()
    return lambda: inbox.row(gate, now=now).html


def impact() -> Callable[[], str]:
    return lambda: WordedImpact(heading="", rows=(ImpactLine(effect="run", title="Runs", names=(HIDDEN,)),)).listing


def on_a_page(draw: Callable[[], str], *, full: bool) -> str:
    def view(request: HttpRequest) -> HttpResponse:
        if full:
            assert size_limit.takes(size_limit.PAGE)
        return HttpResponse(draw())

    return bytes(size_limit.middleware(view)(HttpRequest()).content).decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", [row, impact])
def test_a_page_without_room_takes_no_mark_from_another(made: Callable[[], Callable[[], str]]) -> None:
    """A row of the inbox that was first drawn on a full page kept its hidden characters unmarked on every other."""
    draw = made()
    assert "not marked above" in on_a_page(draw, full=True)
    assert "not marked above" not in on_a_page(draw, full=False)
    assert "not marked above" in on_a_page(draw, full=True)
