"""An agent names the checkpoint that its step saves, which keeps it; what a step keeps meanwhile is shown."""

from __future__ import annotations

import pytest

from checkpoints.models import Event, Hold, Run
from tests.agents.children.pages.test_page import part
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, failures, make_run
from tests.harness.signed_in_clients import signed_in


def names(run: Run) -> list[tuple[int, str]]:
    """(checkpoint, name) of each name of the run."""
    numbers = dict(run.checkpoints.values_list("id", "seq"))
    rows = Hold.objects.standing().filter(run=run, kind="name").order_by("pk")
    return [(numbers[row.checkpoint], row.reason) for row in rows if row.checkpoint]


def test_the_checkpoints_that_a_step_and_an_effect_name_are_held_under_those_names() -> None:
    run = advance(make_run("namer"))
    assert (run.status, names(run)) == ("completed", [(2, "before the migration"), (4, "after the migration")])
    told = Event.objects.filter(run_id=run.pk, kind="checkpoint.named").order_by("id")
    assert [each.actor for each in told] == ["agent:namer", "agent:namer"]
    page = signed_in(ann(run.team)).get(f"/runs/{run.pk}/checkpoints/2/").content.decode()
    assert "before the migration" in page


def test_a_name_has_no_secret_in_it_and_a_worker_that_lost_the_run_names_nothing() -> None:
    assert "s3cr3t" not in names(advance(make_run("namer", mode="secret")))[0][1]
    run = advance(make_run("namer", mode="lost"))
    assert (run.seq, names(run)) == (1, [])


@pytest.mark.parametrize(
    ("mode", "told"), [("long", "takes a name of 1 to 100 characters"), ("gate", "look is a gate, which saves no")]
)
def test_what_is_no_name_fails_the_step(mode: str, told: str) -> None:
    run = advance_to_rest(make_run("namer", mode=mode))
    assert (run.status, told in failures(run)[0].error) == ("waiting", True)


@pytest.mark.parametrize(("place", "named"), [("beside_save@prepare", False), ("after_save@prepare", True)])
def test_a_checkpoint_and_its_name_are_saved_together(place: str, named: bool, workers: KillableWorkers) -> None:
    run = make_run("namer")
    workers.kill(run, place)
    run.refresh_from_db()
    assert (run.seq == 2, bool(names(run))) == (named, named)
    go_on(run)
    assert names(run) == [(2, "before the migration"), (4, "after the migration")]


def test_a_failed_attempt_names_nothing_and_the_runs_page_shows_what_it_kept_without_its_values() -> None:
    run = advance(make_run("namer", mode="fails"))
    assert (len(failures(run)), names(run)) == (1, [])
    reader = signed_in(ann(run.team))
    page = reader.get(f"/runs/{run.pk}/").content.decode()
    assert "goes on after a crash from a value kept" in page
    assert "half &lt;b&gt;" in page
    assert "Prepare after “half &lt;b&gt;”" in part(page, "position")
    assert "[1,2]" not in page
    assert names(advance_to_rest(run))[0] == (2, "fails")
    assert "goes on after a crash" not in reader.get(f"/runs/{run.pk}/").content.decode()
