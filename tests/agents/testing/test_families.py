"""A trial takes on the runs that its run starts; their gates are answered one by one."""

from __future__ import annotations

from pathlib import Path

from agents.testing import Trial
from tests.agents.children.family import Parent, Payer, Payroll, Worker


def test_children_are_taken_on_with_their_parent() -> None:
    run = Trial(Parent, starts=[Worker], names=["a", "b"])
    assert run.status == "completed", run.reason
    assert run.state["found"] == ["found a", "found b"]
    assert [child.title for child in run.children] == ["Child a", "Child b"]


def test_each_child_asks_by_itself_and_the_parent_goes_on_after_the_last_answer() -> None:
    run = Trial(Parent, starts=[Worker], names=["a", "b"], modes={"a": "ask", "b": "ask"})
    first, second = run.children
    assert (run.status, first.asks, second.asks) == ("waiting", "review", "review")
    second.approve()
    assert run.status == "waiting"
    first.approve()
    assert run.status == "completed"


def test_a_parent_that_is_stopped_ends_its_children() -> None:
    run = Trial(Parent, starts=[Worker], names=["a", "b"], modes={"a": "ask", "b": "ask"})
    run.children[0].stop("no")
    assert (run.status, run.children[1].status) == ("waiting", "cancelled")  # the step failed: a person is asked
    run.answer("stop")
    assert run.status == "failed"


def test_effects_of_children_are_their_own(tmp_path: Path) -> None:
    run = Trial(Payroll, starts=[Payer], ledger=str(tmp_path / "ledger"), names=["a"])
    assert run.effects == []
    assert [each.step for each in run.children[0].effects] == ["pay", "tell"]
