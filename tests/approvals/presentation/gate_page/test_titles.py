"""Whoever reviews reads what people call the steps, and never their names in the agent's code."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from approvals.models import Gate
from tests.factories import ann, decide, make_gate, make_plan, make_run, make_spec, make_team
from tests.factories.runs import STEPS
from tests.harness.signed_in_clients import signed_in

TITLES = {
    "find_order": "Look the order up",
    "propose": "Draft the refund",
    "review": "Check the refund",
    "pay": "Hand the money back",
    "reply": "Write to the customer",
}
NAMES = re.compile(r"\b(find_order|propose|review|pay|cancel_payment)\b")


def titled_gate() -> Gate:
    """An open gate of a run whose steps all have titles that hold no word of their names."""
    team = make_team()
    steps = tuple(replace(step, title=TITLES[step.name]) for step in STEPS)
    return make_gate(run=make_run(team=team, plan=make_plan(make_spec(steps=steps))), team=team)


def read(gate: Gate, address: str) -> str:
    """What a member of the gate's team reads there: the text alone."""
    page = signed_in(ann(gate.team)).get(address).content.decode()
    page = re.sub(r"(?s)<(script|style|svg|template)\b.*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def named(text: str) -> list[str]:
    """The names of steps in a text, each with what stands around it."""
    return [text[max(found.start() - 40, 0) : found.end() + 40] for found in NAMES.finditer(text)]


@pytest.mark.parametrize("address", ["/gates/{gate.pk}/", "/gates/{gate.pk}/preview/"])
def test_an_open_gate_is_told_in_titles(address: str) -> None:
    gate = titled_gate()
    text = read(gate, address.format(gate=gate))
    assert "Hand the money back" in text
    assert named(text) == []


def test_how_a_gate_ended_is_told_in_titles() -> None:
    approved, back = titled_gate(), titled_gate()
    decide(approved, ann(approved.team))
    decide(back, ann(back.team), "reject", then="back", back_to="propose")
    texts = [read(gate, f"/gates/{gate.pk}/") for gate in (approved, back)]
    assert "Next: “Hand the money back” and “Write to the customer”." in texts[0]
    assert "goes back to “Draft the refund”" in texts[1]
    assert [named(text) for text in texts] == [[], []]
