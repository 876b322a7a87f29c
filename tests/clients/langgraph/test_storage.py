"""What is stored is verified, protected by holds, pruned rightly, imported, and survives kills and races.

A program that is killed while it copies or deletes a thread: the same order again does the rest.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from django.db.models.functions import Now
from holdpoint.langgraph import Tampered, ThreadEnded, ThreadHeld, ThreadMoved, ThreadTaken, import_thread
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from agents.models import ThreadWrite
from agents.threads import saving
from agents.threads.local import InProcess
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Chunk, Gap, Hold, Run
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.clients.langgraph.graphs import Asked, asker, config, counter, talker
from tests.clients.langgraph.savers import Made, checkpoint, run_of, verified
from tests.factories import unique
from tests.harness.altered_rows import altered, owner
from tests.harness.examples import first_alone
from tests.harness.racing_threads import race
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


def test_an_altered_checkpoint_or_pending_write_is_refused_with_what_to_do(both: Made) -> None:
    thread = unique("chat")
    asker(both(), []).invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))
    run = run_of(thread)
    row = Checkpoint.objects.filter(run=run).latest("seq")
    with altered(row, payload=bytes(row.payload)[:-1] + b"!"), pytest.raises(Tampered, match=r"verify"):
        both().get_tuple(config(thread))
    assert both().get_tuple(config(thread)) is not None
    with owner() as made:
        made.execute(
            "UPDATE agents_threadwrite SET task = task || '0' WHERE run_id = %s AND checkpoint = %s", [run.pk, run.head]
        )
    with pytest.raises(Tampered, match="pending write"):
        both().get_tuple(config(thread))


def test_a_hold_stands_in_the_way_and_is_named(both: Made) -> None:
    thread, other, saver = unique("chat"), unique("chat"), both()
    for name in (thread, other):
        talker(saver).invoke({"messages": [HumanMessage("one")]}, config(name))
    run, others = run_of(thread), run_of(other)
    held = run.checkpoints.get(seq=2)
    Hold.objects.make(run=others, checkpoint=others.head, kind="legal", subject="case:8", reason="another", by=SYSTEM)
    hold = Hold.objects.make(
        run=run, checkpoint=held.pk, kind="legal", subject="case:7", reason="a complaint", by=SYSTEM
    )
    for remove in (saver.delete_thread, lambda name: saver.prune([name])):
        with pytest.raises(ThreadHeld, match=rf"Legal hold \(case:7: a complaint\) holds checkpoint {held.pk}"):
            remove(thread)
    assert run.checkpoints.count() == 4
    Hold.objects.free(run=run.pk, subject=hold.subject, by=SYSTEM)
    saver.prune([thread])
    assert len(list(saver.list(config(thread)))) == 1
    verified(thread)
    saver.delete_thread(thread)
    assert saver.get_tuple(config(thread)) is None
    assert not ThreadWrite.objects.filter(run_id=run.pk).exists()
    assert Gap.objects.filter(run=run).count() >= 2
    verified(thread)
    told = talker(saver).invoke({"messages": [HumanMessage("anew")]}, config(thread))
    assert len(told["messages"]) == 2
    verified(thread)
    Hold.objects.free(run=others.pk, subject="case:8", by=SYSTEM)


@pytest.mark.parametrize("order", ["delete_thread", "delete_for_runs", "prune"])
def test_what_a_person_has_ended_stays_ended_whatever_its_program_removes(both: Made, order: str) -> None:
    thread, saver = unique("chat"), both()
    for call in ("first", "second"):
        talker(saver).invoke({"messages": [HumanMessage(call)]}, {**config(thread), "metadata": {"run_id": call}})
    run = run_of(thread)
    run.cancel(by=SYSTEM, reason="Enough.")
    before = len(list(saver.list(config(thread))))
    {"delete_thread": lambda: saver.delete_thread(thread), "delete_for_runs": lambda: saver.delete_for_runs(["second"]),
     "prune": lambda: saver.prune([thread])}[order]()  # fmt: skip
    assert len(list(saver.list(config(thread)))) < before
    run.refresh_from_db()
    assert (run.status, run.reason) == ("cancelled", "Enough.")
    with pytest.raises(ThreadEnded, match=r"cancelled: Enough\."):
        talker(both()).invoke({"messages": [HumanMessage("third")]}, config(thread))
    verified(thread)


def test_a_prune_leaves_the_writes_whose_checkpoint_is_still_to_come(both: Made) -> None:
    thread, saver, id = unique("chat"), both(), str(uuid6())
    talker(saver).invoke({"messages": [HumanMessage("one")]}, config(thread))
    found: Any = saver.get_tuple(config(thread))
    saver.put_writes(config(thread, checkpoint_ns="", checkpoint_id=id), [("count", 7)], "task-1")
    both().prune([thread])
    saver.put(found.config, found.checkpoint | {"id": id}, {"step": 9}, {})
    now: Any = saver.get_tuple(config(thread))
    assert now.pending_writes == [("task-1", "count", 7)]


def test_a_thread_is_copied_to_one_that_was_deleted(both: Made) -> None:
    source, to, log = unique("chat"), unique("chat"), list[str]()
    saver, other = both(), both()
    for thread in (source, to):
        asker(saver, log).invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))
    assert other.get_tuple(config(to)) is not None
    saver.delete_thread(to)
    saver.copy_thread(source, to)
    copied = list(saver.list(config(to)))
    assert [each.checkpoint["id"] for each in copied] == [each.checkpoint["id"] for each in saver.list(config(source))]
    log.clear()
    assert asker(other, log).invoke(Command(resume="yes"), config(to))["answer"] == "yes"
    assert log == ["ask", "end"], "the other task had been done in the thread that was copied"
    verified(to)


def test_pruning_keeps_what_delta_channels_are_rebuilt_from(both: Made) -> None:
    thread, saver = unique("chat"), both()
    graph = counter(saver)
    graph.invoke({"items": ["first"], "upto": 25}, config(thread) | {"recursion_limit": 100})
    before = graph.get_state(config(thread)).values
    count = len(list(saver.list(config(thread))))
    saver.prune([thread])
    left = len(list(saver.list(config(thread))))
    assert 1 < left < count / 2
    assert counter(both()).get_state(config(thread)).values == before
    verified(thread)
    told = graph.invoke({"items": ["more"], "upto": 30}, config(thread) | {"recursion_limit": 100})
    assert told["items"][: len(before["items"]) + 1] == [*before["items"], "more"]


@pytest.mark.parametrize("over", first_alone([True, False]))
def test_a_retention_policy_keeps_what_delta_channels_are_rebuilt_from(make: Made, over: bool) -> None:
    """And a thread that does not verify is left alone."""
    thread, saver = unique("chat"), make()
    graph = counter(saver)
    graph.invoke({"items": ["first"], "upto": 25}, config(thread) | {"recursion_limit": 100})
    before, run = graph.get_state(config(thread)).values, run_of(thread)
    if over:
        run.cancel(by=SYSTEM, reason="Enough.")
    count, row = run.checkpoints.count(), Checkpoint.objects.filter(run=run).latest("seq")
    keep(run, keep_last=1)
    with altered(row, payload=bytes(row.payload)[:-1] + b"!"):
        pruned()
    assert run.checkpoints.count() == count
    pruned()
    assert 1 < run.checkpoints.count() < count / 2
    assert counter(make()).get_state(config(thread)).values == before
    verified(thread)


def test_a_thread_is_imported_with_its_branches_and_its_interrupt(both: Made) -> None:
    source, target, thread = InMemorySaver(), both(), unique("chat")
    graph = asker(source, [])
    graph.invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))
    graph.update_state(next(iter(graph.get_state_history(config(thread)))).config, {"question": "Pay twice?"})
    first = list(graph.get_state_history(config(thread)))[1]
    graph.invoke(None, first.config)
    assert import_thread(source, target, thread) == len(list(source.list(config(thread))))
    told = list(asker(target, []).get_state_history(config(thread)))
    kept = list(graph.get_state_history(config(thread)))
    assert [(each.config, each.values, each.next, each.interrupts) for each in told] == [
        (each.config, each.values, each.next, each.interrupts) for each in kept
    ]
    with pytest.raises(ThreadTaken, match="Delete it first"):
        import_thread(source, target, thread)
    assert asker(target, []).invoke(Command(resume="yes"), config(thread))["answer"] == "yes"
    verified(thread)


@pytest.mark.parametrize("is_begun", [True, False])
def test_of_programs_that_put_at_once_one_is_first(make: Made, is_begun: bool) -> None:
    thread = unique("chat")
    if is_begun:
        talker(make()).invoke({"messages": [HumanMessage("one")]}, config(thread))

    def program() -> Any:
        saver = make()
        found = saver.get_tuple(config(thread))
        assert (found is not None) == is_begun
        place, was = (found.config, found.checkpoint) if found else (config(thread, checkpoint_ns=""), checkpoint())
        return lambda: saver.put(place, {**was, "id": str(uuid6())}, {"step": 9}, {})

    said = race([program() for _ in range(6)])
    assert len([each for each in said if isinstance(each, dict)]) == 1
    assert len([each for each in said if isinstance(each, ThreadMoved)]) == 5
    verified(thread)


def test_a_thread_that_nobody_writes_rests_and_its_program_goes_on(make: Made) -> None:
    thread, saver = unique("chat"), make()
    graph = talker(saver)
    graph.invoke({"messages": [HumanMessage("one")]}, config(thread))
    run = run_of(thread)
    assert run.status == "running"
    mine: Any = saver.get_tuple(config(thread))
    Run.objects.filter(pk=run.pk).update(lease_until=Now())
    assert saving.rest() >= 1
    run.refresh_from_db()
    assert (run.status, run.reason) == ("waiting", saving.RESTS)
    saver.put(mine.config, mine.checkpoint | {"id": str(uuid6())}, {"step": 9}, {})
    assert len(graph.invoke({"messages": [HumanMessage("two")]}, config(thread))["messages"]) == 4


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


def asked(make: Made, question: str = "Pay?") -> str:
    thread = unique("chat")
    nested(make).invoke({"question": question, "done": [], "answer": ""}, config(thread))  # type: ignore[attr-defined]
    assert Run.objects.filter(thread=thread).count() == 2
    return thread


@pytest.mark.parametrize("at", first_alone(["prune_removed:kill:1", "prune_removed:kill:2", "prune_chunks:kill:1"]))
def test_a_deletion_that_was_killed_is_finished_by_the_next(make: Made, at: str) -> None:
    thread, saver = asked(make, "A value that has a chunk of its own. " * 5000), make()
    lineages = list(Run.objects.filter(thread=thread).values_list("lineage", flat=True))
    assert Chunk.objects.filter(lineage__in=lineages).exists()
    killed(make, at, "delete_thread", thread)
    verified(thread)
    if at.startswith("prune_removed"):
        assert saver.get_tuple(config(thread)) is not None, "the graph's own goes last"
    saver.delete_thread(thread)
    assert list(saver.list(config(thread))) == []
    assert not ThreadWrite.objects.filter(run__thread=thread).exists()
    assert not Chunk.objects.filter(lineage__in=lineages).exists()
    verified(thread)


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
