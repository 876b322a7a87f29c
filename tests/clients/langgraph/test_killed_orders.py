"""A program that is killed while it copies or deletes a thread: the same order again does the rest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agents.models import ThreadWrite
from agents.threads.local import InProcess
from checkpoints.audit import verify_runs
from checkpoints.models import Chunk, Run
from tests.clients.langgraph.graphs import Asked, config
from tests.clients.langgraph.savers import Made, savers
from tests.factories import unique
from tests.harness.examples import first_alone
from tests.harness.services import run as run_command
from tests.harness.waiting import PATIENCE

PROGRAM = """
import sys, django
django.setup()
from agents.threads.local import InProcess
from holdpoint.langgraph import HoldpointSaver
_, agent, team, order, *given = sys.argv
getattr(HoldpointSaver(InProcess(agent=agent, team=team)), order)(*given)
"""


@pytest.fixture
def make() -> Iterator[Made]:
    with savers("in process") as made:
        yield made


def nested(make: Made) -> object:
    """A graph whose subgraph asks, so that its thread has two namespaces."""

    def ask(state: Asked) -> dict[str, str]:
        return {"answer": interrupt(state["question"])}

    inner = StateGraph(Asked).add_node(ask).add_edge(START, "ask").compile()
    return StateGraph(Asked).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=make())


def killed(make: Made, at: str, *order: str) -> None:
    kept = make()._backend
    assert isinstance(kept, InProcess)
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_CRASH": at}
    command = [sys.executable, "-c", PROGRAM, kept._agent, kept._owner.team.name, *order]
    done = run_command(*command, within=4 * PATIENCE, env=env)
    assert done.returncode == -9, done.stdout + done.stderr


def asked(make: Made) -> str:
    thread = unique("chat")
    nested(make).invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))  # type: ignore[attr-defined]
    assert Run.objects.filter(thread=thread).count() == 2
    return thread


def verified(thread: str) -> None:
    for run in Run.objects.filter(thread=thread):
        assert verify_runs.verify_run(run) == []


@pytest.mark.parametrize("hit", first_alone([1, 2]))
def test_a_deletion_that_was_killed_is_finished_by_the_next(make: Made, hit: int) -> None:
    thread = asked(make)
    killed(make, f"prune_removed:kill:{hit}", "delete_thread", thread)
    verified(thread)
    saver = make()
    assert saver.get_tuple(config(thread)) is not None, "the graph's own goes last"
    saver.delete_thread(thread)
    assert list(saver.list(config(thread))) == []
    assert not ThreadWrite.objects.filter(run__thread=thread).exists()
    verified(thread)


def test_a_deletion_that_was_killed_leaves_no_content_without_a_checkpoint(make: Made) -> None:
    thread = unique("chat")
    large = "A value that has a chunk of its own. " * 5000
    nested(make).invoke({"question": large, "done": [], "answer": ""}, config(thread))  # type: ignore[attr-defined]
    lineages = list(Run.objects.filter(thread=thread).values_list("lineage", flat=True))
    assert Chunk.objects.filter(lineage__in=lineages).exists()
    killed(make, "prune_chunks:kill:1", "delete_thread", thread)
    verified(thread)
    make().delete_thread(thread)
    assert not Chunk.objects.filter(lineage__in=lineages).exists()


@pytest.mark.parametrize("hit", first_alone([1, 2]))
def test_a_copy_that_was_killed_has_left_nothing_and_is_made_by_the_next(make: Made, hit: int) -> None:
    thread, to = asked(make), unique("copy")
    killed(make, f"thread_claimed:kill:{hit}", "copy_thread", thread, to)
    saver = make()
    assert list(saver.list(config(to))) == []
    saver.copy_thread(thread, to)
    told = nested(make).invoke(Command(resume="yes"), config(to))  # type: ignore[attr-defined]
    assert told["answer"] == "yes"
    verified(to)
