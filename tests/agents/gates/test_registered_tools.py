"""An agent of this server asks under tools that people registered: drawn by them, or held until it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group

from approvals import tools
from tests.agents.moves.moved_runs import before, rewind
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import make_policy, make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, make_run, open_gate

PAYMENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "Paid to"},
        "amount": {"type": "string", "format": "decimal", "title": "Paid", "pattern": "^[0-9]{1,2}([.][0-9]+)?$"},
    },
    "required": ["to", "amount"],
}


def registered(team: Group, **said: Any) -> None:
    make_tool(team, **{"name": "pay", "title": "Pay somebody", "schema": tools.closed(PAYMENT), "pinned": ["/to"],
                       "undo": "cancel", **said})  # fmt: skip


@pytest.fixture
def team() -> Group:
    team = make_team()
    make_policy(team, name="payments", registered_only=True)
    return team


def test_it_is_held_until_its_tool_is_registered_and_asks_then(team: Group) -> None:
    run = advance_to_rest(make_run("payer", team=team))
    gate = open_gate(run)
    assert gate.kind == "recovery"
    said = gate.standing().card.summary
    assert f"pay is no tool that {team.name} has registered" in said
    assert "its policy payments takes registered tools only" in said
    assert "Have it registered in the administration, and try again." in said
    registered(team)
    answer(run, "retry")
    gate = open_gate(advance_to_rest(run))
    [action] = gate.standing().card.actions
    assert (gate.kind, gate.risk, action.title) == ("review", "high", "Pay somebody")
    assert list(action.pinned) == ["/to"], "the pins are those that people registered"


@pytest.mark.parametrize("changed", [False, True])
def test_an_earlier_agreement_stands_while_the_tool_is_the_same(team: Group, tmp_path: Path, changed: bool) -> None:
    registered(team)
    run = advance_to_rest(make_run("payer", team=team, ledger=str(tmp_path / "ledger")))
    decide(run)
    assert advance_to_rest(run).status == "completed"
    if changed:
        registered(team, title="Send somebody money")
    rewind(run, before(run, "propose"))
    assert advance_to_rest(run).status == ("waiting" if changed else "completed")
    if changed:
        assert open_gate(run).standing().card.actions[0].title == "Send somebody money"
