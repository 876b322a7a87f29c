"""A pass of the sweeper looks at some of the parents; those whose children are stuck do not hide the others."""

from __future__ import annotations

import pytest

from agents.models import ChildLink
from agents.moves import child_orders
from agents.serving.child_sweep import ChildSweep
from checkpoints.models import Run
from tests.factories.driven_runs import advance

from .families import child, make_parent


@pytest.fixture
def parents(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Three runs of which a pass takes one."""
    monkeypatch.setattr("agents.serving.child_sweep.AT_ONCE", 1)
    return [advance(make_parent(*"abcd")) for _ in range(3)]


def test_orders_that_stay_open_do_not_hide_those_of_later_runs(
    parents: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lowest numbers kept their places in each pass for as long as nobody knew what came of an effect."""
    for run in parents:
        ChildLink.objects.filter(run=child(run, "a")).update(ordered="cancel")
    reached: list[int] = []

    def carry_out(parent: int) -> int:
        reached.append(parent)
        return 1

    monkeypatch.setattr(child_orders, "carry_out", carry_out)
    sweep = ChildSweep(ordered=parents[0].pk - 1)
    for _ in parents:
        sweep()
    assert reached == [run.pk for run in parents]


def test_held_children_that_cannot_go_yet_do_not_hide_those_of_later_runs(parents: list[Run]) -> None:
    last = parents[-1]
    Run.objects.filter(pk=child(last, "a").pk).update(status="waiting", token=1)
    sweep = ChildSweep(released=parents[0].pk - 1)
    for _ in parents:
        sweep()
    assert child(last, "d").status == "queued"
