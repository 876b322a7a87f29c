"""The rules of where a run still waits for an effect, and of what a person left open."""

from __future__ import annotations

import pytest

from approvals.engine_rules import effects

ASKED, OTHER, RAN = ("recovery", "pay"), ("recovery", "reply"), ("step", "pay")


@pytest.mark.parametrize(
    ("since", "awaited"),
    [([], True), ([ASKED, ASKED], True), ([ASKED, RAN], False), ([OTHER], False), (None, False)],
)
def test_a_run_waits_where_it_only_asked_about_the_effect_since(
    since: list[tuple[str, str]] | None, awaited: bool
) -> None:
    assert effects.awaited("pay", since) is awaited


def test_only_what_is_kept_without_being_known_is_left_open() -> None:
    assert effects.left_open("kept", known=False)
    assert not effects.left_open("kept", known=True)
    assert not effects.left_open("unknown", known=False)
