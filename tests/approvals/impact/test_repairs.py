"""Where a refused output may send the run back to, and where it may not."""

from __future__ import annotations

from checkpoints.runs.plans import PlanSpec

from .recorded import Recorded
from .small_plans import edit, effect, plan, said, step


def made(irreversible: bool, tells: str = "part") -> Recorded:
    started = Recorded(steps(irreversible, tells), seed=1, part=1, note="")
    return started.ran("make").ran("tell").ran("check").ran("end")


def steps(irreversible: bool, tells: str) -> PlanSpec:
    return plan(
        step("make", "seed", "part"), effect("tell", tells, "told", irreversible=irreversible),
        step("check", "part world", "whole", validators=("fits",), rings=1), step("end", "whole", "done"),
    )  # fmt: skip


def test_a_repair_may_go_back_over_what_can_be_undone() -> None:
    told = said(edit(made(irreversible=False), "make", world=1))
    assert "may make on check" in told
    assert "may_undone tell on check" in told


def test_it_may_not_go_back_over_what_cannot_be_undone_and_might_be_done_again() -> None:
    """It was said that it might, and that what was told stayed as a thing that nothing takes back."""
    told = said(edit(made(irreversible=True), "make", world=1))
    assert told == ["stands make", "stands tell", "will check", "may end on check"]


def test_it_may_go_back_over_what_is_taken_over_whatever_comes_out() -> None:
    told = said(edit(made(irreversible=True, tells="note"), "make", world=1))
    assert "may make on check" in told


def test_the_steps_that_may_read_something_else() -> None:
    chain = plan(
        step("a", "x", "b"), step("skip", "x", "y"), step("world", "x", "z", reads_world=True), step("c", "b", "d"),
        effect("e", "d"), effect("f", "z"), effect("g", "y w"),
    )  # fmt: skip
    names = [each.name for each in chain.steps]
    assert chain.redone(names) == ["a", "world", "c", "e", "f"]
    assert chain.redone(names, ["w"]) == ["a", "world", "c", "e", "f", "g"]
    assert chain.redone(names[1:]) == ["skip", "world", "f", "g"]
    assert chain.redone([]) == []
