"""What a move would do to the children is said before, and is what happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import ImpactChanged
from agents.moves import impact, rewind
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.views.moves.sent_orders import member
from tests.factories import ann
from tests.factories.driven_runs import advance, make_run, trail

from .families import child, make_parent, statuses, to_rest


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that asks at the end: one child is done, one did what cannot be undone, and one sleeps."""
    modes = {"look": "", "b": "final"}
    ledger = str(tmp_path / "ledger")
    return to_rest(make_run("payroll", ledger=ledger, names=["a", "b"], modes=modes))


def fates(found: Any) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """(fate, what is undone, what cannot be) of each child, oldest first."""
    return [(str(each.fate), each.undone, each.cannot) for each in found.children]


def fan_out(run: Run) -> int:
    """The number of the checkpoint before the fan-out."""
    return trail(run).index(("step", "pay_all"))


def without_names() -> list[Any]:
    """A patch that leaves no names."""
    return [{"op": "replace", "path": "/names", "value": []}]


def test_before_the_fan_out_each_may_be_taken_over_or_undone(run: Run) -> None:
    assert fates(impact.of_rewind(run, fan_out(run))) == [
        ("may_undone", ("pay",), ("tell",)),
        ("may_undone", ("pay",), ("tell",)),
    ]


def test_after_the_fan_out_they_stand(run: Run) -> None:
    assert fates(impact.of_rewind(run, fan_out(run) + 1)) == [("stands", (), ())] * 2


def test_where_the_recorded_output_is_reused_they_stand(run: Run) -> None:
    patch: list[Any] = [{"op": "replace", "path": "/before", "value": "otherwise"}]
    assert fates(impact.of_edit(run, 1, patch)) == [("stands", (), ())] * 2


def test_what_no_step_ahead_may_take_over_is_undone(run: Run) -> None:
    rewind.edit(run, at=fan_out(run), patch=without_names(), by=ann(run.team))
    to_rest(run)
    assert [fate for fate, *_ in fates(impact.of_rewind(run, Run.objects.get(pk=run.pk).seq))] == ["undone"] * 2


def test_an_order_is_refused_if_another_child_is_left_behind_by_then() -> None:
    run = advance(make_parent("a", "b"))
    seen = impact.of_rewind(run, 1).digest()
    to_rest(run)
    assert impact.of_rewind(run, 1).digest() == seen  # what they did since is still undone, or taken over
    run = advance(make_parent("a", "b"))
    seen = impact.of_rewind(run, 1).digest()
    child(run, "a").cancel(by=actors.SYSTEM)
    with pytest.raises(ImpactChanged):
        rewind.rewind(run, to=1, by=ann(run.team), seen=seen)


def test_the_preview_and_the_api_say_it(run: Run) -> None:
    client = member(run)
    asked = {"kind": "rewind", "at": fan_out(run)}
    told = client.post(f"/api/runs/{run.pk}/impacts", asked, content_type="application/json").json()
    assert [each["fate"] for each in told["children"]] == ["may_undone"] * 2
    assert told["children"][0] == {
        "run": child(run, "a").pk,
        "fate": "may_undone",
        "undone": ["pay"],
        "cannot": ["tell"],
    }
    page = client.post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "at": fan_out(run) + 1})
    said = " ".join(page.content.decode().split())
    assert "Children taken over if started again alike, else undone" in said
    assert f"Tell of R-{child(run, 'b').pk}" in said


def test_the_form_that_cancels_says_that_they_are_cancelled_too() -> None:
    run = advance(make_parent(*"abc"))
    page = member(run).get(f"/runs/{run.pk}/").content.decode()
    assert "3 runs that it started are cancelled too." in " ".join(page.split())
    assert statuses(run) == ["queued"] * 3
