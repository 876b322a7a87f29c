"""A registered tool's risk was lowered by one person, and gates of lower risk took effect at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import Tool
from approvals.policy_changes import tool_changes
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import ann, bob, make_gate, make_policy, make_team

AUTO = {"name": "small", "when": "amount < 50", "require": {"auto": True}}


@pytest.fixture
def team() -> Group:
    """A team that has had a gate."""
    team = make_team()
    make_gate(policy=make_policy(team))
    return team


def changed(tool: Tool, by: User, **said: Any) -> list[str]:
    names = ("team", "name", *tool_changes.SAME)
    return tool_changes.save(Tool(**{name: getattr(tool, name) for name in names} | said), by=by)


def in_force(tool: Tool) -> Tool | None:
    return Tool.objects.registered([tool.name], team=tool.team).get(tool.name)


@pytest.mark.parametrize(
    "said",
    [
        {"risk": "low"},
        {"irreversible": False},
        {"pinned": []},
        {"title": "Look something up"},
        {"schema": {"type": "object"}},
        {"used": False},
    ],
)
def test_a_milder_version_waits_until_somebody_else_saves_the_same(team: Group, said: dict[str, Any]) -> None:
    tool = make_tool(team, risk="high", irreversible=True, undo="", pinned=["/amount"])
    first, second = ann(team), bob(team)
    assert changed(tool, first, **said)
    assert changed(tool, first, **said), "the same person twice is one person"
    assert in_force(tool) == tool
    assert changed(tool, second, **said) == []
    now = in_force(tool)
    assert (now is None) if "used" in said else now is not None and now.version == tool.version + 3


def test_another_milder_version_confirms_nothing(team: Group) -> None:
    tool = make_tool(team, risk="critical")
    assert changed(tool, ann(team), risk="medium")
    assert changed(tool, bob(team), risk="low")
    assert in_force(tool) == tool


def test_a_stricter_version_counts_at_once(team: Group) -> None:
    tool = make_tool(team, risk="low")
    assert changed(tool, ann(team), risk="high") == []
    now = in_force(tool)
    assert now is not None
    assert now.risk == "high"


def test_a_new_tool_waits_where_a_rule_could_approve_it(team: Group) -> None:
    new = Tool(team=team, name="bank.wire", title="Wire", schema={"type": "object"}, risk="high")
    assert changed(new, ann(team)) == []
    make_policy(team, name="small", rules=[AUTO])
    other = Tool(team=team, name="bank.recall", title="Recall", schema={"type": "object"}, risk="high")
    assert changed(other, ann(team)) == ["A rule of small could approve it by itself."]
    assert in_force(other) is None


@pytest.mark.parametrize(
    "mark", [{"writeOnly": True}, {"format": "password"}, {"items": {"$ref": "#/$defs/key"}}], ids=str
)
def test_a_new_tool_that_hides_what_reviewers_saw_waits(team: Group, mark: dict[str, Any]) -> None:
    """One person registered it, and whoever decided saw dots where the account had been."""
    schema = {"type": "object", "properties": {"iban": mark}, "$defs": {"key": {"writeOnly": True}}}
    new = Tool(team=team, name="bank.wire", title="Wire", schema=schema, risk="high")
    why = "Reviewers would no longer see the arguments that it marks as secret."
    assert changed(new, ann(team)) == [why]
    assert in_force(new) is None
    assert changed(new, bob(team)) == []
    assert in_force(new) is not None
    unused = Tool(team=team, name="bank.recall", title="Recall", schema=schema, risk="high", used=False)
    assert changed(unused, ann(team)) == []
    assert changed(unused, ann(team), used=True) == [why]


def test_before_the_first_gate_a_team_sets_its_tools_up_alone() -> None:
    tool = make_tool(make_team(), risk="high")
    assert changed(tool, ann(tool.team), risk="low") == []
