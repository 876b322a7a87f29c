"""A worker is killed in the middle of a turn: what was approved is done once, and of a command a person is asked."""

from __future__ import annotations

import datetime as dt
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.models.functions import Now

from agents.moves import rewind
from checkpoints.models import Run
from tests.agents.examples.refunds.test_killed import killed
from tests.approvals.cards.verdicts.test_loops import seq_of
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, edit, reject, respond, say
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, answer, decide, effects, open_gate, state
from tests.harness.examples import one_in
from tests.harness.services import Talking

from .assistant_runs import DONE, begun, calling
from .endpoint import KEY, Endpoint, Reply
from .test_verdicts import FOUR, closing

PLACES = ["after_claim", "before_outcome", "after_outcome", "before_step:2", "after_intent", "after_effect"]
PLACES += ["before_save:3", "after_save:3", "before_step:3", "after_intent:2", "after_effect:2", "before_save:5"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture
def folder(desk: Path) -> Path:
    return desk


@pytest.fixture(scope="module")
def hand(shared_endpoint: Endpoint, desk: Path) -> Iterator[Talking]:
    """A process that forks a worker for each run it is told; see tests/harness/forked_worker.py."""
    wishes = {
        "HOLDPOINT_AGENTS": "agents.examples.assistant",
        "OPENAI_BASE_URL": shared_endpoint.url,
        "OPENAI_API_KEY": KEY,
        "HOLDPOINT_ASSISTANT_FOLDER": str(desk),
        "HOLDPOINT_LOG_LEVEL": "ERROR",
    }
    process = Talking(sys.executable, "-m", "tests.harness.forked_worker", env=wishes)
    yield process
    process.close()


def restarted(run: Run) -> Run:
    """The run, taken on once the killed worker's lease has run out."""
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))
    return advance_to_rest(run)


@pytest.mark.parametrize("place", one_in(3, PLACES))
def test_a_worker_killed_anywhere_in_a_turn_does_nothing_twice(
    place: str, endpoint: Endpoint, folder: Path, hand: Talking
) -> None:
    name = place.replace(":", "-")
    write = ("write_file", {"path": f"{name}.md", "content": "new"})
    (folder / f"{name}.md").write_text("old")
    count = ("run_command", {"argv": ["sh", "-c", f"echo x >> {name}.log"]})
    run = begun(endpoint, calling(write, count), DONE)
    decide(run)
    point, _, hit = place.partition(":")
    assert killed(hand, run, f"{point}:kill:{hit or 1}") == -signal.SIGKILL
    restarted(run)
    if run.status == "waiting":  # nobody knows what the command did: its worker died in it
        assert open_gate(run).kind == "recovery"
        answer(run, "happened", {"result": "It ended with exit code 0."})
        advance_to_rest(run)
    assert run.status == "completed"
    ran = folder / f"{name}.log"
    assert (ran.read_text() if ran.exists() else "") == ("" if place == "after_intent:2" else "x\n")
    assert (folder / f"{name}.md").read_text() == "new"
    assert [(row.step, row.status) for row in effects(run)] == [("write_file", "done"), ("run_command", "done")]
    assert not [each for each in folder.iterdir() if each.name.endswith(".part")]
    undone(run, folder / f"{name}.md")


def undone(run: Run, path: Path) -> None:
    """Take the run back to its beginning and stop it: what was there before the worker died is there again."""
    rewind.rewind(run, to=seq_of(run, "begin"), by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    decide(run, "reject", then="stop", comment="No more.")
    advance_to_rest(run)
    assert path.read_text() == "old"


def test_a_worker_killed_while_the_model_speaks_asks_it_again(endpoint: Endpoint, hand: Talking) -> None:
    run = begun(endpoint, calling(("run_command", {"argv": ["true"]})), Reply("The end."))
    decide(run)
    assert killed(hand, run, "after_step:kill:3") == -signal.SIGKILL
    assert restarted(run).status == "completed"
    assert len(endpoint.requests) == 3


def test_four_calls_decided_each_by_itself_survive_a_kill_in_the_middle(
    endpoint: Endpoint, folder: Path, hand: Talking
) -> None:
    run = begun(endpoint, calling(*FOUR), closing)
    write, count, remove, weather = [action.id for action in open_gate(run).asked.actions]
    say(run, each={
        write: APPROVE,
        count: edit(run, count, argv=["wc", "-c", "notes.md"]),
        remove: reject("The notes are needed."),
        weather: respond("Rain, 4 degrees."),
    })  # fmt: skip
    assert killed(hand, run, "after_intent:kill:2") == -signal.SIGKILL  # the file is written, the command about to run
    assert restarted(run).status == "waiting"
    assert open_gate(run).kind == "recovery"
    answer(run, "not_happened")
    assert advance_to_rest(run).status == "completed"
    assert (folder / "notes.md").read_text() == "one\ntwo\n"
    assert [(row.step, row.status) for row in effects(run) if row.status == "done"] == [
        ("write_file", "done"), ("run_command", "done"),
    ]  # fmt: skip
    said = state(run)["answer"]
    assert all(words in said for words in ("8 bytes", "8 notes.md", "The notes are needed.", "Rain, 4 degrees."))
