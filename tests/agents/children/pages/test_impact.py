"""What a move would do to the children is said before, and is what happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import ImpactChanged
from agents.moves import impact, rewind
from agents.moves.fork import fork
from agents.serving.sweeper import Sweeper
from approvals.consequences.gate import GateImpacts
from approvals.presentation.drawing.impact_words import lines_of
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.children.families import child, children, make_parent, statuses, to_rest
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann
from tests.factories.driven_runs import advance, decide, make_run, open_gate, trail


@pytest.fixture
def run(ledger: Path) -> Run:
    """A run that asks at the end: one child is done, one did what cannot be undone, and one sleeps."""
    modes = {"look": "", "b": "final"}
    return to_rest(make_run("payroll", ledger=str(ledger), names=["a", "b"], modes=modes))


def fates(found: Any) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """(fate, what is undone, what cannot be) of each child, oldest first."""
    return [(str(each.fate), each.undone, each.cannot) for each in found.children]


def fan_out(run: Run) -> int:
    """The number of the checkpoint before the fan-out."""
    return trail(run).index(("step", "pay_all"))


def without_names() -> list[Any]:
    """A patch that leaves no names."""
    return [{"op": "replace", "path": "/names", "value": []}]


def test_before_the_fan_out_each_may_be_taken_over_or_undone_and_after_it_they_stand(run: Run) -> None:
    stand = [("stands", (), ())] * 2
    assert fates(impact.of_rewind(run, fan_out(run))) == [("may_undone", ("pay",), ("tell",))] * 2
    assert fates(impact.of_rewind(run, fan_out(run) + 1)) == stand
    patch: list[Any] = [{"op": "replace", "path": "/before", "value": "otherwise"}]
    assert fates(impact.of_edit(run, 1, patch)) == stand  # the recorded output is reused
    assert fates(impact.of_fork(run, fan_out(run) + 1)) == fates(impact.of_fork(run, fan_out(run))) == stand
    assert fates(impact.of_fork(run, fan_out(run), without_names())) == [("read", (), ())] * 2
    rewind.edit(run, at=fan_out(run), patch=without_names(), by=ann(run.team))
    to_rest(run)  # no step ahead takes them over
    assert [fate for fate, *_ in fates(impact.of_rewind(run, Run.objects.get(pk=run.pk).seq))] == ["undone"] * 2
    seen = gate_impact(run)
    for found in (seen.approve(), seen.stop()):
        assert fates(found) == [("undone", ("pay",), ("tell",))] * 2
        assert {f"undone:{each.pk}" for each in children(run)} <= found.acts()


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
    asked: dict[str, Any] = {"kind": "rewind", "at": fan_out(run)}
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
    assert "taken over if the same is started again, else undone, which undoes" in said
    assert f"Tell of R-{child(run, 'b').pk}" in said
    asked = {"kind": "fork", "at": fan_out(run), "patch": without_names()}
    told = client.post(f"/api/runs/{run.pk}/impacts", asked, content_type="application/json").json()
    assert [each["fate"] for each in told["children"]] == ["read"] * 2
    form = client.get(f"/runs/{run.pk}/checkpoints/{fan_out(run) + 1}/fork/").content.decode()
    assert "Children kept" in " ".join(form.split())


def test_of_many_children_whose_effects_stay_the_rest_is_counted(ledger: Path) -> None:
    names = list("abcdefgh")
    run = to_rest(make_run("payroll", ledger=str(ledger), names=names, modes=dict.fromkeys(names, "final")))
    stays = list(lines_of(impact.of_rewind(run, fan_out(run)), later=False, at_gate=False))[-1]
    assert stays.title == "Cannot be undone"
    assert stays.names == (*(f"Tell of R-{each.pk}" for each in children(run)[:6]), "2 more")


def test_the_form_that_cancels_says_that_they_are_cancelled_too() -> None:
    run = advance(make_parent(*"abc"))
    page = member(run).get(f"/runs/{run.pk}/").content.decode()
    assert "3 runs that it started are cancelled too." in " ".join(page.split())
    assert statuses(run) == ["queued"] * 3


def test_a_fork_says_whose_results_it_reads_and_which_it_starts_anew(ledger: Path) -> None:
    modes = {"look": "", "b": "sleep"}
    run = to_rest(make_run("payroll", ledger=str(ledger), names=["a", "b"], modes=modes))
    a, b = child(run, "a"), child(run, "b")
    at = trail(run).index(("step", "prepare")) + 1
    assert [(each.run, str(each.fate)) for each in impact.of_fork(run, at).children] == [(a.pk, "read"), (b.pk, "anew")]
    made = fork(run, at=at, by=ann(run.team))
    to_rest(made)
    assert [each.title for each in children(made)] == ["Child b"]

    seen = impact.of_fork(run, at).digest()
    Run.objects.filter(pk=b.pk).update(status="completed")
    with pytest.raises(ImpactChanged):
        fork(run, at=at, by=ann(run.team), seen=seen)


def gate_impact(run: Run) -> GateImpacts:
    """The impacts of the choices at the run's open gate."""
    gate = open_gate(run)
    proposal = gate.standing()
    return GateImpacts(gate, proposal.card, proposal.state_patch)


def test_a_rejection_says_what_it_does_to_the_children(run: Run) -> None:
    seen = gate_impact(run)
    assert fates(seen.back("pay_all")) == [("may_undone", ("pay",), ("tell",))] * 2
    assert fates(seen.back("prepare")) == [("stands", (), ())] * 2  # it writes the same again
    assert fates(seen.stop()) == [("stands", (), ())] * 2
    assert fates(seen.approve()) == [("stands", (), ())] * 2
    page = member(run).get(f"/gates/{open_gate(run).pk}/").content.decode()
    assert "Children kept" in " ".join(page.split())


def test_a_rejection_that_ends_the_run_cancels_children_at_work(ledger: Path) -> None:
    """What they did stays: a run that is stopped at a gate undoes nothing that its path counts on."""
    run = to_rest(make_run("overseer", ledger=str(ledger), names=["a", "b"], modes={"a": "sleep"}))
    a, b = child(run, "a"), child(run, "b")
    assert (a.status, b.status) == ("waiting", "completed")
    seen = gate_impact(run)
    assert fates(seen.stop()) == [("cancelled", (), ("pay",)), ("stands", (), ())]
    assert fates(seen.expire()) == fates(seen.stop())
    assert fates(seen.approve()) == [("stands", (), ())] * 2
    said = " ".join(member(run).get(f"/gates/{open_gate(run).pk}/").content.decode().split())
    assert "Children cancelled" in said
    assert f"Pay of R-{a.pk}" in said
    decide(run, "reject")
    advance(run)
    Sweeper().children()
    assert (run.status, child(run, "a").status) == ("cancelled", "cancelled")


def test_the_stop_of_a_step_that_failed_cancels_what_it_has_begun() -> None:
    run = advance(make_parent("a", "b", "c"))
    child(run, "b").cancel(by=actors.SYSTEM)
    advance(run)
    Run.objects.filter(pk=child(run, "a").pk).update(status="waiting")
    stop = gate_impact(run).answering("stop")
    assert stop is not None
    assert [str(each.fate) for each in stop.children] == ["cancelled", "stands", "cancelled"]
    again = gate_impact(run).answering("retry")
    assert again is not None
    assert fates(again) == [("undone", (), ())] * 2  # they were told to stop, and others are started
