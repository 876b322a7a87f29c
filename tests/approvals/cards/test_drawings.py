"""Drawings: what an agent says was there before may not tell a secret of the state."""

from __future__ import annotations

from approvals.cards.action import Action
from approvals.cards.card import Card, scrubbed
from approvals.cards.drawing import Drawing


def test_the_text_that_was_there_is_drawn_without_the_states_secrets() -> None:
    """It stood as it was read, beside arguments whose secrets are hidden."""
    drawing = Drawing(kind="diff", at="/content", was="key = hunter22\nmode = fast\n")
    action = Action(id="write", title="Write", tool="write", arguments={"content": "mode = slow\n"}, draws=[drawing])
    shown = scrubbed(Card(title="Write a file", actions=[action]), ["hunter22"])
    assert "hunter22" not in shown.actions[0].draws[0].was
    assert "mode = fast" in shown.actions[0].draws[0].was
