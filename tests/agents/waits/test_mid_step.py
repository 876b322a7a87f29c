"""A long step keeps how far it is, and goes on from there after a crash, a retry or under another name."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents import Agent, step, upcast
from agents.models import Memo, StepCheckpoint, Wait
from agents.moves import rewind
from agents.runs import retention
from agents.steps.mid_step import MidStepCheckpoints
from agents.testing import Trial
from checkpoints import store
from checkpoints.errors import NotVerified
from checkpoints.models import Run
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, failures, make_run, state
from tests.harness.examples import first_alone


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """The items that were worked on, a line each."""
    return tmp_path / "ledger"


def worked(ledger: Path) -> list[int]:
    """The items that were worked on, in order."""
    return [int(line) for line in ledger.read_text().splitlines()]


def kept(run: Run) -> list[tuple[str, int]]:
    """(name, items) of each value that is kept of the run."""
    rows = StepCheckpoint.objects.filter(run=run).order_by("name")
    return [(row.name, len(row.content)) for row in rows]  # type: ignore[arg-type]


def test_each_hundredth_call_since_the_last_keeps_its_value_and_a_name_always_does(ledger: Path) -> None:
    run = advance(make_run("counter", ledger=str(ledger), items=250, milestone=120))
    assert state(run)["done"] == list(range(250))
    assert kept(run) == [("", 221), ("milestone", 121)]


def test_each_call_keeps_its_value_only_where_nothing_says_how_often() -> None:
    """With `seconds` alone each call kept its value all the same."""
    own: Any = None
    for every, seconds, due in (
        (None, None, [True, True, True]), (None, 3600.0, [False, False, False]), (3, 3600.0, [False, False, True]),
    ):  # fmt: skip
        checkpoints = MidStepCheckpoints(own, own)
        assert [checkpoints.due(every, seconds) for _ in due] == due


def test_a_step_that_is_tried_again_goes_on_from_the_newest_value(ledger: Path) -> None:
    run = advance_to_rest(make_run("counter", ledger=str(ledger), items=250, fails_at=230))
    assert len(failures(run)) == 1
    assert state(run)["done"] == list(range(250))
    assert worked(ledger) == [*range(231), *range(200, 250)]


@pytest.mark.parametrize("seed", first_alone([1, 2, 3]))
def test_a_step_killed_at_random_points_goes_on_and_each_item_counts_once(
    seed: int, ledger: Path, workers: KillableWorkers
) -> None:
    run = make_run("counter", ledger=str(ledger), items=60, every=1)
    drawn = random.Random(seed)
    for hit in (drawn.randint(1, 12) for _ in range(3)):
        workers.kill(run, drawn.choice(["before_mid_step@count", "after_mid_step@count"]), hit)
        Run.objects.filter(pk=run.pk).update(lease_until="2000-01-01T00:00Z")
    go_on(run)
    assert state(run)["done"] == list(range(60))
    twice = [item for item in range(60) if worked(ledger).count(item) > 1]
    assert len(twice) <= 3  # one for each kill between the work and its value
    assert worked(ledger) == sorted(worked(ledger))


def test_after_send_back_the_step_begins_anew(ledger: Path) -> None:
    run = advance(make_run("counter", ledger=str(ledger), items=150))
    rewind.rewind(run, to=1, by=ann(run.team))
    advance_to_rest(run)
    assert worked(ledger) == [*range(150), *range(150)]


def test_a_worker_that_lost_the_run_keeps_nothing(ledger: Path) -> None:
    run = make_run("counter", ledger=str(ledger), items=1)
    head = store.load(run).id

    def keep(token: int, value: bytes = b"[1]") -> bool:
        return StepCheckpoint.objects.keep(run.pk, token=token, base=head, step="count", name="", value=value)

    assert not keep(run.token)  # nobody has claimed it
    Run.objects.filter(pk=run.pk).update(status="running", token=7)
    assert keep(7)
    assert not keep(6, b"[2]")
    found = StepCheckpoint.objects.newest(run.pk, head, "count")
    assert found is not None
    assert found.content == [1]
    Run.objects.filter(pk=run.pk).update(status="queued", token=0)


def test_a_large_value_is_compressed_and_what_it_names_is_found(ledger: Path) -> None:
    """PostgreSQL compressed it itself, which took twice as long as a whole save of the same value."""
    run = make_run("counter", ledger=str(ledger), items=1)
    head, value = (
        store.load(run).id,
        encode_canonical({"file": {"$artifact": f"{run.pk:064x}"}, "words": ["many words"] * 1000}),
    )
    Run.objects.filter(pk=run.pk).update(status="running", token=7)
    assert StepCheckpoint.objects.keep(run.pk, token=7, base=head, step="count", name="", value=value)
    row = StepCheckpoint.objects.get(run=run)
    assert len(row.value) < len(value) / 10
    assert encode_canonical(row.content) == value
    assert any(f"{run.pk:064x}".encode() in content for source in retention.named_in() for content in source)
    StepCheckpoint.objects.filter(run=run).update(codec=0)
    with pytest.raises(NotVerified, match="does not match its digest"):
        _ = StepCheckpoint.objects.get(run=run).content
    Run.objects.filter(pk=run.pk).update(status="queued", token=0)


@pytest.mark.parametrize("column", ["value", "name"])
def test_an_altered_value_freezes_the_run(column: str, ledger: Path) -> None:
    run = make_run("counter", ledger=str(ledger), items=150, fails_at=140)
    advance(run)
    altered = {"value": b"[]"} if column == "value" else {"name": "other"}
    StepCheckpoint.objects.filter(run=run).update(**altered)
    row = StepCheckpoint.objects.get(run=run)
    with pytest.raises(NotVerified, match="does not match its digest"):
        _ = row.content
    advance(run)
    assert run.frozen
    assert "Integrity fault" in run.reason


@pytest.mark.parametrize(("mode", "told"), [("large", "are the most"), ("odd", "so it cannot be kept")])
def test_a_value_that_cannot_be_kept_fails_the_step(mode: str, told: str, ledger: Path) -> None:
    run = advance_to_rest(make_run("counter", ledger=str(ledger), mode=mode))
    assert told in failures(run)[0].error


class First(Agent):
    """Calls something once, keeps how far it is, and waits for a word and a time."""

    name = "renamed_waiting"
    team = "Support"
    signals = {"word": str}

    class State(BaseModel):
        ledger: str
        said: list[Any] = []
        later: str = ""

    def work(self, ledger: str) -> list[Any]:
        """The body of the step, under either name."""
        done = self.checkpointed(default=0)
        with Path(ledger).open("a") as file:
            file.writelines(f"item {item}\n" for item in range(done, 2))
        if not done:
            self.checkpoint(2)

        def called() -> str:
            with Path(ledger).open("a") as file:
                file.write("called\n")
            return "result"

        kept = self.once("call", called)
        first = self.wait_for_signal("word")
        second = self.wait_for_signal("word")
        return [kept, first, second]

    @step
    def old_step(self, ledger: str) -> dict[str, Any]:
        return {"said": self.work(ledger)}

    @step
    def read(self) -> dict[str, Any]:
        return {"later": self.wait_for_signal("word")}


class Second(First):
    """Does the same under another name."""

    version = "2"
    old_step = None  # type: ignore[assignment]
    read = None  # type: ignore[assignment]

    @upcast("1", steps={"old_step": "new_step", "read": "reread"})
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def new_step(self, ledger: str) -> dict[str, Any]:
        return {"said": self.work(ledger)}

    @step
    def reread(self) -> dict[str, Any]:
        return {"later": self.wait_for_signal("word")}


def test_a_renamed_step_finds_its_waits_and_what_it_kept(tmp_path: Path) -> None:
    """It waited anew, began at its first item, and made its calls again; a later step read what it had read."""
    ledger = tmp_path / "ledger"
    run = Trial(First, ledger=str(ledger))
    run.signal("word", "one")
    assert run.status == "waiting"
    run.upgrade(Second)
    assert (run.version, run.status) == ("2", "waiting")
    assert ledger.read_text().splitlines() == ["item 0", "item 1", "called"]
    for kind in (Wait, Memo, StepCheckpoint):
        assert {each.step for each in kind.objects.filter(run=run.row)} == {"new_step"}
    run.signal("word", "two")
    assert (run.status, run.state["said"]) == ("waiting", ["result", "one", "two"])
    run.signal("word", "three")
    assert (run.status, run.state["later"]) == ("completed", "three")
