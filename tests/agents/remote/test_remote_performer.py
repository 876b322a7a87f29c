"""What a program said that it does counts once, and for that alone; everything else is handed out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from agents.remote.remote_performer import RemotePerformer
from agents.session.performer import HandOut, Returned
from checkpoints.runs.plans import StepSpec

REVIEW, WRITE = StepSpec("review", kind="gate"), StepSpec("write")


def test_a_card_is_no_output_of_another_step() -> None:
    card = Returned("a card", 0.0, [])
    session = cast(Any, SimpleNamespace(handed_out=None))
    assert RemotePerformer("review", card).step(session, REVIEW) is card
    performer = RemotePerformer("review", card)
    assert performer.step(session, WRITE) is None
    assert session.handed_out == HandOut(WRITE)
    assert performer.step(session, REVIEW) is None, "it counts once"


def test_an_effect_begins_that_the_program_named_and_no_other() -> None:
    session = cast(Any, SimpleNamespace(handed_out=None))
    performer = RemotePerformer(begun="pay")
    assert not performer.begins(session, StepSpec("mail", kind="effect"))
    assert session.handed_out == HandOut(StepSpec("mail", kind="effect"))
    assert not performer.begins(session, StepSpec("pay", kind="effect")), "it counts once"
    assert RemotePerformer(begun="pay").begins(session, StepSpec("pay", kind="effect"))
