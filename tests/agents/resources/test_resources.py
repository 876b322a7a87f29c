"""What steps hold open is described in their checkpoints, and reopened before the next step wherever that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, AgentError, effect, on_restore, step
from agents.definition import environment
from agents.definition.plan_builder import plan_of
from agents.models import OpenResource
from agents.moves import fork, rewind
from agents.steps.open_resources import HERE
from checkpoints.models import Run
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import (
    advance,
    advance_to_rest,
    answer,
    decide,
    effects,
    failures,
    make_run,
    open_gate,
    state,
)
from tests.harness.examples import first_alone
from tests.harness.signed_in_clients import signed_in

ZONE = "HOLDPOINT_TEST_ZONE"


@pytest.fixture(autouse=True)
def nothing_open() -> Iterator[None]:
    HERE._runs.clear()
    yield
    HERE._runs.clear()


def happened(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines()


def elsewhere() -> None:
    HERE._runs.clear()


def kept(run: Run) -> list[tuple[str, Any]]:
    """(step, page) of each description of the tab."""
    rows = OpenResource.objects.filter(run=run, name="tab").order_by("pk")
    return [(row.step, row.content["page"]) for row in rows]  # type: ignore[index]


def at_gate(ledger: Path, **input: Any) -> Run:
    run = advance_to_rest(make_run("surfer", ledger=str(ledger), **input))
    assert open_gate(run).step == "review"
    return run


def test_a_run_that_goes_straight_on_keeps_what_it_opened_and_closes_it_at_its_end(ledger: Path) -> None:
    run = at_gate(ledger)
    assert kept(run) == [("open_tab", 1), ("read_on", 2)]
    decide(run)
    assert advance(run).status == "completed"
    assert happened(ledger) == ["opened 1", "read 1", "sent 2", "closed 2"]


PLACES = [
    ("beside_save@read_on", 1, ["reopened 1", "read 1"]),
    ("beside_save@open_tab", 0, ["opened 1", "read 1"]),
    ("after_save@read_on", 2, []),
]


@pytest.mark.parametrize(("place", "saved", "after"), first_alone(PLACES))
def test_after_a_crash_it_is_reopened_as_the_last_checkpoint_left_it(
    place: str, saved: int, after: list[str], ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("surfer", ledger=str(ledger))
    workers.kill(run, place)
    before, both = len(happened(ledger)), [("open_tab", 1), ("read_on", 2)]
    assert kept(run) == both[:saved]
    go_on(run)
    assert (happened(ledger)[before:], kept(run)) == (after, both)
    decide(run)
    assert advance(run).status == "completed"


def test_a_failed_attempt_closes_it_and_the_next_one_gets_it_as_it_was(ledger: Path) -> None:
    run = at_gate(ledger, mode="fails")
    assert happened(ledger) == ["opened 1", "read 1", "closed 2", "reopened 1", "read 1"]
    assert state(run)["read"] == 2


def test_after_a_rewind_and_where_its_step_is_reused_it_is_as_it_was_there(ledger: Path) -> None:
    run = at_gate(ledger)
    rewind.rewind(run, to=2, by=ann(run.team))
    advance_to_rest(run)
    assert happened(ledger)[2:] == ["closed 2", "reopened 1", "read 1"]
    run = at_gate(ledger)
    begun = len(happened(ledger))
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/wish", "value": "more"}], by=ann(run.team))
    advance_to_rest(run)
    assert happened(ledger)[begun:] == ["closed 2", "reopened 1", "read 1"]
    assert kept(run) == [("open_tab", 1), ("read_on", 2), ("open_tab", 1), ("read_on", 2)]


def test_a_fork_and_another_process_get_one_of_their_own(ledger: Path) -> None:
    run = at_gate(ledger)
    made = fork.fork(run, at=2, by=ann(run.team), patch=[{"op": "replace", "path": "/wish", "value": "more"}])
    advance_to_rest(made)
    assert happened(ledger)[2:] == ["reopened 1", "read 1"]
    decide(run)
    elsewhere()
    assert advance(run).status == "completed"
    assert happened(ledger)[4:] == ["reopened 2", "sent 2", "closed 2"]


FAULTS = [(".down", "ConnectionError: the browser is down"), (".empty", "reopen returned nothing")]


@pytest.mark.parametrize(("fault", "told"), FAULTS)
def test_what_cannot_be_reopened_fails_the_step_loudly(fault: str, told: str, ledger: Path) -> None:
    run = make_run("surfer", ledger=str(ledger))
    advance_to_rest(run)
    rewind.rewind(run, to=2, by=ann(run.team))
    down = Path(f"{ledger}{fault}")
    down.touch()
    advance_to_rest(run)
    assert (run.status, failures(run)[-1].error) == ("waiting", f"cannot be restored: tab: {told}")
    assert happened(ledger).count("read 1") == 1
    down.unlink()
    answer(run, "retry")
    advance_to_rest(run)
    assert (open_gate(run).step, happened(ledger)[-2:]) == ("review", ["reopened 1", "read 1"])


def test_an_effect_without_what_it_needs_was_provably_not_done(ledger: Path) -> None:
    run = at_gate(ledger)
    decide(run)
    elsewhere()
    Path(f"{ledger}.down").touch()
    advance(run)
    assert [(row.status, row.error) for row in effects(run)] == [
        ("failed", "cannot be restored: tab: ConnectionError: the browser is down")
    ]
    Path(f"{ledger}.down").unlink()
    answer(run, "retry")
    assert (advance(run).status, happened(ledger).count("sent 2")) == ("completed", 1)


def test_an_environment_variable_that_is_another_elsewhere_fails_the_step(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ZONE, "UTC")
    run = at_gate(ledger)
    rewind.rewind(run, to=2, by=ann(run.team))
    monkeypatch.delenv(ZONE)
    advance_to_rest(run)
    assert failures(run)[-1].error == f"cannot be restored: ${ZONE}: it was 'UTC', and is not set here"
    monkeypatch.setenv(ZONE, "Europe/Oslo")
    answer(run, "retry")
    advance_to_rest(run)
    assert failures(run)[-1].error == f"cannot be restored: ${ZONE}: it was 'UTC', and is 'Europe/Oslo' here"
    monkeypatch.setenv(ZONE, "UTC")
    answer(run, "retry")
    advance_to_rest(run)
    assert open_gate(run).step == "review"


@pytest.mark.parametrize(
    ("mode", "told"), [("secret", "has a secret of the state in it"), ("undeclared", "does not declare 'elsewhere'")]
)
def test_what_must_not_be_kept_fails_the_step(mode: str, told: str, ledger: Path) -> None:
    run = advance_to_rest(make_run("surfer", ledger=str(ledger), mode=mode))
    assert told in failures(run)[0].error
    assert "s3cr3t" not in failures(run)[0].error
    assert not OpenResource.objects.filter(run=run).exists()


def test_an_effect_opens_nothing_and_a_worker_that_lost_the_run_keeps_no_description(ledger: Path) -> None:
    """An effect's result may be adopted, where nothing is opened."""
    run = at_gate(ledger, mode="opens")
    decide(run)
    advance(run)
    assert "send is an effect" in failures(run)[0].error
    elsewhere()
    run = advance(make_run("surfer", ledger=str(ledger), mode="lost"))
    assert (run.seq, kept(run), HERE._runs) == (1, [], {})


@pytest.mark.parametrize("column", ["described", "step"])
def test_an_altered_description_freezes_the_run(column: str, ledger: Path) -> None:
    run = at_gate(ledger)
    OpenResource.objects.filter(run=run).update(**{column: b"{}" if column == "described" else "other"})
    decide(run)
    elsewhere()
    advance(run)
    assert run.frozen
    assert "does not match its digest" in run.reason


def test_the_checkpoints_page_shows_what_is_described(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ZONE, "Europe/Oslo<b>")
    run = at_gate(ledger)
    page = signed_in(ann(run.team)).get(f"/runs/{run.pk}/checkpoints/2/").content.decode()
    assert "Held open" in page
    assert f"${ZONE}" in page
    assert "Europe/Oslo&lt;b&gt;" in page
    other = signed_in(ann(run.team)).get(f"/runs/{run.pk}/checkpoints/1/").content.decode()
    assert "Held open" not in other


def agent(**body: Any) -> type[Agent]:
    plain = type("State", (BaseModel,), {"__annotations__": {"done": bool}, "done": False})
    return type("Made", (Agent,), {"name": "made", "State": plain, **body})


@step(holds=["tab"])
def holds_a_tab(self: Any) -> None:
    """Hold a tab."""


@step(holds=["$API_TOKEN"])
def holds_a_secret(self: Any) -> None:
    """Depend on a secret."""


@effect(irreversible=True, guarded=False)
def holds_nothing(self: Any) -> None:
    """Hold nothing."""


@on_restore("tab")
def reopen(self: Any, described: Any) -> Any:
    """Open it again."""


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"go": holds_a_tab}, 'made.go holds tab, which nothing reopens; write a method with @on_restore("tab").'),
    ({"go": holds_a_secret}, "made.go holds $API_TOKEN, whose value is kept and shown; name no secret."),
    (
        {"go": holds_nothing, "reopen": reopen},
        "made.reopen reopens tab, which no step holds; name it in a step's `holds`.",
    ),
]


def test_what_could_not_be_restored_is_refused_before_anything_runs() -> None:
    for body, told in REFUSED:
        made = agent(**body)
        with pytest.raises(AgentError) as refused:
            environment.check(made, plan_of(made))
        assert str(refused.value) == told


def test_the_method_that_reopens_is_part_of_the_steps_code_and_nothing_changes_where_nothing_is_held() -> None:
    @on_restore("tab")
    def otherwise(self: Any, described: Any) -> Any:
        """Open it in another way."""

    codes = {plan_of(agent(go=holds_a_tab, reopen=made)).steps[0].code_hash for made in (reopen, otherwise)}
    assert len(codes) == 2
    assert b"holds" not in plan_of(agent(go=holds_nothing)).body
    assert b'"holds":["tab"]' in plan_of(agent(go=holds_a_tab, reopen=reopen)).body
