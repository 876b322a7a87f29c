"""Whoever moves a graph's run reads before that which tools have run inside it: nothing undoes those."""

from __future__ import annotations

from agents.moves import impact
from approvals.impact.result import Impact, ToolsInside
from approvals.presentation.drawing.impact_lines import lines_of
from tests.agents.moves.moved_runs import after

from .test_approvals import asking
from .test_forged import at
from .test_once_approved import paid, seq


def line(found: Impact) -> str:
    [told] = [each for each in lines_of(found, later=False, at_gate=False) if each.title == "Tools stay done"]
    return f"{', '.join(told.names)}; {told.said}"


def test_a_rewind_names_the_tools_that_ran_and_where() -> None:
    run = paid()
    ran = next(each.seq for each in run.checkpoints.order_by("seq") if at(run, each.seq)["messages"][-1].get("name"))
    found = impact.of_rewind(run, seq(run, step="prepare"))
    assert found.inside == (ToolsInside(checkpoint=ran, tools=("pay",)),)
    assert line(found) == f"pay; Called inside checkpoint {ran}: nothing undoes that, and it may happen again"
    assert found.to_json()["inside"] == [{"checkpoint": ran, "tools": ["pay"]}]


def test_an_edit_and_a_fork_name_them_too() -> None:
    run = paid()
    at, patch = seq(run, step="hear"), [{"op": "replace", "path": "/heard", "value": 7}]
    for found in (impact.of_edit(run, at, patch), impact.of_fork(run, at, patch)):
        assert [each.tools for each in found.inside] == [("pay",)]


def test_a_rewind_that_leaves_no_tool_behind_names_none() -> None:
    run = asking("one-call")
    assert impact.of_rewind(run, after(run, "go", last=False)).inside == ()
    run = paid()
    assert impact.of_rewind(run, seq(run, step="go", next_step="go")).inside == ()


def test_the_confirmation_is_of_what_was_shown() -> None:
    run = paid()
    before = impact.of_rewind(run, seq(run, step="go", next_step="go"))
    assert before.digest() != impact.of_rewind(run, seq(run, step="hear")).digest()
