"""Which of two programs that work on one thread is first, and when what they write is kept.

A refused put was noted for the whole thread until the next read of it: the invocation that had won was refused its
question, and a read in between hid the refusal from the one that had lost. A superstep is one commit; writes that no
put follows are kept soon, and none is lost or read too early.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from holdpoint.langgraph import HoldpointSaver, ThreadMoved
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.runtime import RunControl, Runtime
from psycopg.types.numeric import Int4

from agents.models import ThreadWrite
from agents.threads import handed, pending
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from tests.clients.langgraph.graphs import config
from tests.clients.langgraph.savers import Made, checkpoint, verified
from tests.factories import unique
from tests.harness.waiting import PATIENCE, until

METADATA: Any = {"source": "loop", "step": 1, "parents": {}}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writes wait for a put, however long that takes."""
    monkeypatch.setattr(handed, "SOON", 3600.0)


@pytest.fixture
def saver(make: Made) -> HoldpointSaver:
    return make()


class Invocation:
    """What LangGraph calls the saver with in one invocation of a graph with a subgraph, "inner".

    `root`: the graph's checkpoint from which the subgraph was called; "" in the graph itself.
    """

    def __init__(self, saver: HoldpointSaver, thread: str) -> None:
        self.saver, self.thread = saver, thread
        self.runtime = Runtime(control=RunControl())

    def place(self, at: str | None, *, root: str = "") -> Any:
        inside = {"checkpoint_ns": "inner", "checkpoint_map": {"": root}} if root else {"checkpoint_ns": ""}
        named = {"checkpoint_id": at} if at else {}
        return {"configurable": {"thread_id": self.thread, "__pregel_runtime": self.runtime, **inside, **named}}

    def begin(self) -> None:
        self.saver.get_tuple(self.place(None))

    def put(self, after: str | None, *, root: str = "") -> str:
        checkpoint = empty_checkpoint()
        self.saver.put(self.place(after, root=root), checkpoint, METADATA, {})
        return checkpoint["id"]

    def ask(self, at: str, *, root: str = "") -> None:
        self.saver.put_writes(self.place(at, root=root), [(INTERRUPT, "Pay?")], "task")


@pytest.fixture
def two(saver: HoldpointSaver) -> tuple[Invocation, Invocation]:
    thread = unique("chat")
    return Invocation(saver, thread), Invocation(saver, thread)


def asked(saver: HoldpointSaver, thread: str, at: str) -> bool:
    """Whether people are asked at this checkpoint of the graph, as a program that looks reads it."""
    found = saver.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": at}})
    return found is not None and any(channel == INTERRUPT for _, channel, _ in found.pending_writes or [])


def test_the_question_of_the_one_that_overtook_is_asked(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    loser, winner = two
    begun = loser.put(None)
    newest = winner.put(begun)
    with pytest.raises(ThreadMoved):
        loser.put(begun)
    winner.ask(newest)
    assert asked(saver, winner.thread, newest)


def overtaken(two: tuple[Invocation, Invocation]) -> tuple[str, str]:
    """The graph's checkpoint from which both called the subgraph, and the winner's newest one of that."""
    loser, winner = two
    root = loser.put(None)
    begun = loser.put(None, root=root)
    newest = winner.put(begun, root=root)
    with pytest.raises(ThreadMoved):
        loser.put(begun, root=root)
    return root, newest


def test_of_two_that_are_in_a_subgraph_the_one_that_was_overtaken_alone_is_refused_its_question(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    """Both called it from one checkpoint of the graph, and reads by others change nothing."""
    loser, winner = two
    root, newest = overtaken(two)
    assert not asked(saver, loser.thread, root)
    saver.get_tuple({"configurable": {"thread_id": loser.thread}})
    Invocation(saver, loser.thread).begin()
    for _ in range(2):
        with pytest.raises(ThreadMoved, match="has moved on"):
            loser.ask(root)
    with pytest.raises(ThreadMoved, match="has moved on"):
        loser.ask(newest, root=root)
    assert not asked(saver, loser.thread, root)
    winner.ask(newest, root=root)
    winner.ask(root)
    assert asked(saver, winner.thread, root)


def test_an_invocation_that_begins_anew_under_the_same_control_may_ask(
    saver: HoldpointSaver, two: tuple[Invocation, Invocation]
) -> None:
    """A program may hand one control to all that it invokes, so as to end them together."""
    loser, _ = two
    root, _ = overtaken(two)
    loser.begin()
    loser.ask(root)
    assert asked(saver, loser.thread, root)


TOGETHER = """
SELECT w.xmin = c.xmin FROM agents_threadwrite w
JOIN checkpoints_checkpoint c ON c.run_id = w.run_id AND c.parent = w.checkpoint WHERE w.run_id = $1 ORDER BY c.seq
"""
LARGE = "A value that has a chunk of its own. " * 5000


def put(saver: Any, after: Any, **values: Any) -> Any:
    return saver.put(after, checkpoint(values, version=values["count"]), {"step": values["count"]}, {})


def begun(saver: Any) -> tuple[Any, int]:
    """A thread with one checkpoint: its configuration, and its run."""
    thread = unique("chat")
    made = put(saver, config(thread, checkpoint_ns=""), count=0)
    return made, Run.objects.get(thread=thread).pk


def test_a_superstep_is_one_commit_and_a_put_that_is_more_than_a_step_has_its_writes_kept_before(make: Made) -> None:
    saver = make()
    now, run = begun(saver)
    for number in range(1, 130):
        saver.put_writes(now, [("count", number)], f"task {number}")
        now = put(saver, now, count=number)
    saver.put_writes(now, [("text", LARGE)], "task")
    put(saver, now, count=130, text=LARGE)
    assert [each for (each,) in run_sql(TOGETHER, [run])] == [*[True] * 129, False]
    verified(now["configurable"]["thread_id"])


@pytest.mark.parametrize("ends", ["by a read", "by a read of another saver", "by an interrupt", "by closing"])
def test_what_waits_is_kept(make: Made, ends: str) -> None:
    saver = make()
    now, run = begun(saver)
    saver.put_writes(now, [("count", 1)], "task")
    assert not ThreadWrite.objects.filter(run=run).exists()
    if ends == "by closing":
        saver.close()
    elif ends == "by an interrupt":
        saver.put_writes(now, [("__interrupt__", "Pay?")], "other")
    else:
        found: Any = (saver if ends == "by a read" else make()).get_tuple(now)
        assert found.pending_writes == [("task", "count", 1)]
    assert ThreadWrite.objects.filter(run=run, task="task").exists()


def test_writes_that_no_put_follows_are_kept_soon(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed, "SOON", 0.005)
    saver = make()
    now, run = begun(saver)
    saver.put_writes(now, [("count", 1)], "task")
    until(ThreadWrite.objects.filter(run=run).exists)


@pytest.mark.parametrize("meanwhile", ["read", "put", "kept"])
def test_a_task_that_writes_again_keeps_what_it_wrote_first(make: Made, meanwhile: str) -> None:
    saver = make()
    first, _ = begun(saver)
    saver.put_writes(first, [("count", 1)], "task")
    if meanwhile == "read":
        saver.get_tuple(first)
    saver.put_writes(first, [("count", 2), ("text", "more")], "task")
    if meanwhile != "kept":
        put(saver, first, count=1)
    found: Any = make().get_tuple(first)
    assert found.pending_writes == [("task", "count", 1), ("task", "text", "more")]


def test_no_checkpoint_is_there_before_all_the_writes_that_led_to_it(make: Made) -> None:
    """A DeltaChannel is rebuilt from the writes, so LangGraph puts a checkpoint once they are kept."""
    saver = make()
    now, run = begun(saver)
    for number in range(handed.MOST + 3):
        saver.put_writes(now, [("count", number)], f"task {number}")
    put(saver, now, count=1)
    assert ThreadWrite.objects.filter(run=run).count() == handed.MOST + 3


def test_a_put_waits_for_writes_that_are_being_kept(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    saver = make()
    now, _ = begun(saver)
    keep, before = pending.add_task, list[bool]()

    def slowly(made: Any) -> None:
        putting.start()
        putting.join(0.3)
        before.append(not putting.is_alive())
        keep(made)

    putting = threading.Thread(target=put, args=(saver, now), kwargs={"count": 1})
    monkeypatch.setattr(pending, "add_task", slowly)
    saver.put_writes(now, [("count", 1)], "task")
    handed.keep_all()
    putting.join(PATIENCE)
    assert before == [False], "the checkpoint was there first"
    found: Any = make().get_tuple(config(now["configurable"]["thread_id"]))
    assert found.checkpoint["channel_values"] == {"count": 1}


def test_a_put_that_is_refused_leaves_the_writes_that_it_would_have_taken_along(make: Made) -> None:
    first, second = make(), make()
    now, run = begun(first)
    second.get_tuple(config(now["configurable"]["thread_id"]))
    put(second, now, count=1)
    first.put_writes(now, [("count", 2)], "task")
    with pytest.raises(ThreadMoved):
        put(first, now, count=2)
    assert ThreadWrite.objects.filter(run=run, task="task").exists()


@pytest.mark.parametrize("then", ["read", "put"])
def test_connections_that_were_lost_while_they_were_idle_are_opened_anew(make: Made, then: str) -> None:
    saver = make()
    now, run = begun(saver)
    connections = saver._backend.connections  # type: ignore[attr-defined]
    with connections.lent():
        [(one,)] = run_sql("SELECT pg_backend_pid()", [])
        with connections.lent():
            [(other,)] = run_sql("SELECT pg_backend_pid()", [])
    saver.put_writes(now, [("count", 1)], "task")
    for idle in (one, other):
        run_sql("SELECT pg_terminate_backend($1, 5000)", [Int4(idle)])
    if then == "put":
        put(saver, now, count=1)
    found: Any = saver.get_tuple(now)
    assert found.pending_writes == [("task", "count", 1)]
    assert ThreadWrite.objects.filter(run=run).count() == 1
