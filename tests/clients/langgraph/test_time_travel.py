"""A graph that goes on from an earlier checkpoint does what it does on LangGraph's own savers.

A stateful subgraph that was sent back asked again, was answered "rejected", and went on with the old "approved": its
first put, which has no parent, was refused as that of an overtaken invocation, and LangGraph swallows what is refused
where a node interrupts.
"""

from __future__ import annotations

from typing import Any

import pytest
from holdpoint.langgraph import ThreadEnded, ThreadMoved
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents.moves import rewind
from checkpoints import actors
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.clients.langgraph.graphs import config, counter, talker, treasurer
from tests.clients.langgraph.savers import Made, checkpoint, run_of, savers, verified
from tests.factories import ann, unique

STATEFUL = "treasurer"  # the namespace of the subgraph with a memory


def asked(saver: Any, thread: str) -> Any:
    """Have a graph ask about two invoices; return the place before it asked about the first."""
    graph = treasurer(saver)
    graph.invoke({"invoice": 1, "asked": []}, config(thread))
    graph.invoke(Command(resume="approved"), config(thread))
    graph.invoke(Command(resume="approved"), config(thread))
    return next(
        each.config for each in reversed(list(graph.get_state_history(config(thread)))) if each.next == (STATEFUL,)
    )


@pytest.mark.parametrize("how", ["bare", "by its id", "in another program"])
def test_a_subgraph_with_a_memory_that_is_sent_back_takes_the_new_answer(both: Made, how: str) -> None:
    thread, saver = unique("chat"), both()
    earlier = asked(saver, thread)
    graph = treasurer(saver)
    [question] = graph.invoke(None, earlier)["__interrupt__"]
    assert question.value == "Pay invoice 1?"
    if how == "in another program":
        graph = treasurer(both())
    told = graph.invoke(Command(resume={question.id: "rejected"} if how == "by its id" else "rejected"), config(thread))
    assert told["asked"] == ["1: rejected"]
    [question] = told["__interrupt__"]
    assert question.value == "Pay invoice 2?"


def shape(graph: Any, where: Any) -> Any:
    return [
        (each.values, each.next, each.metadata["source"], [task.interrupts and "asks" for task in each.tasks],
         each.parent_config is None)
        for each in graph.get_state_history(where)
    ]  # fmt: skip


@pytest.mark.parametrize("nth", [0, 1, -1], ids=["the first", "the second", "the newest"])
def test_a_checkpoint_is_copied_after_its_parent(both: Made, nth: int) -> None:
    """A copy of the first has no parent; ThreadMoved was raised though nobody else had written the thread."""

    def copied(saver: Any) -> Any:
        graph, thread = talker(saver), config(unique("chat"))
        graph.invoke({"messages": [], "count": 0}, thread)
        graph.update_state(list(reversed(list(graph.get_state_history(thread))))[nth].config, None, as_node="__copy__")
        graph.invoke(None, thread)
        return shape(graph, thread)

    def unread(saver: Any) -> Any:
        """Of the program that has written the thread, and listed none of it."""
        graph, thread = talker(saver), config(unique("chat"))
        graph.invoke({"messages": [], "count": 0}, thread)
        graph.update_state(thread, None, as_node="__copy__")
        return shape(graph, thread)

    assert copied(both()) == copied(InMemorySaver())
    assert unread(both()) == unread(InMemorySaver())


def test_a_subgraph_that_is_sent_back_has_the_memory_of_then(both: Made) -> None:
    """It began anew: the checkpoint of the graph was looked for among the subgraph's, instead of comparing ids."""

    def memories(saver: Any) -> list[Any]:
        thread = unique("chat")
        asked(saver, thread)
        rows = list(saver.list(config(thread, checkpoint_ns="")))
        return [
            [each.checkpoint["channel_values"].get("asked") for each in saver.list(
                config(thread, checkpoint_ns=STATEFUL), before=row.config, limit=limit)]
            for row in rows for limit in (None, 1)
        ]  # fmt: skip

    found = memories(both())
    assert found == memories(InMemorySaver())
    assert [] in found
    assert len({len(each) for each in found}) > 3


def test_before_a_checkpoint_are_those_with_lesser_ids_in_whatever_order_they_were_saved(both: Made) -> None:
    """The id was looked up among the thread's, and its place in the list counted: two programs' clocks differ."""

    def before_each(saver: Any) -> list[set[int]]:
        place: Any = config(unique("chat"), checkpoint_ns="")
        ids = sorted(str(uuid6()) for _ in range(4))
        for number in (0, 2, 1, 3):
            state = checkpoint({"count": number}, id=ids[number], version=number + 1)
            place = saver.put(place, state, {"source": "fork", "step": number}, state["channel_versions"])
        return [
            {each.checkpoint["channel_values"]["count"] for each in saver.list(
                config(place["configurable"]["thread_id"], checkpoint_ns=""), before=config("", checkpoint_id=id))}
            for id in ids
        ]  # fmt: skip

    assert before_each(both()) == before_each(InMemorySaver()) == [set(), {0}, {0, 1}, {0, 1, 2}]


def test_what_a_person_has_edited_since_is_not_what_the_subgraph_had_then(both: Made) -> None:
    thread, saver = unique("chat"), both()
    asked(saver, thread)
    inner, outer = run_of(thread, STATEFUL), run_of(thread)
    [newest, *_] = saver.list(config(thread, checkpoint_ns=""), limit=1)
    for run in (inner, outer):
        rewind.edit(run, at=run.seq, patch=[{"op": "replace", "path": "/invoice", "value": 7}], by=ann(run.team))

    def before(place: Any) -> Any:
        [found] = saver.list(config(thread, checkpoint_ns=STATEFUL), before=place, limit=1)
        return found.checkpoint["channel_values"]["invoice"]

    assert before(newest.config) == 2
    [edited] = saver.list(config(thread, checkpoint_ns=""), limit=1)
    assert edited.checkpoint["channel_values"]["invoice"] == 7
    assert before(edited.config) == 7


def test_a_thread_begins_anew_where_its_beginning_was_removed() -> None:
    """The new beginning was saved after the head, whose writes a DeltaChannel was then rebuilt from."""
    with savers("in process") as make:
        thread, saver = unique("chat"), make()
        counter(saver).invoke({"items": ["first"], "upto": 25}, config(thread) | {"recursion_limit": 100})
        run = run_of(thread)
        run.cancel(by=actors.SYSTEM, reason="Enough.")
        keep(run, keep_last=2)
        pruned()
        rewind.rewind(run_of(thread), to=run.checkpoints.order_by("-seq")[1].seq, by=ann(run.team))
        assert not run.checkpoints.filter(seq=1).exists()
        [newest] = saver.list(config(thread, checkpoint_ns=""), limit=1)
        anew: Any = {**newest.checkpoint, "id": str(uuid6()), "channel_values": {"upto": 9}}
        saved = make().put(config(thread, checkpoint_ns=""), anew, {"source": "fork", "step": -1}, {"upto": 1})
        [found] = saver.list(config(thread, checkpoint_ns=""), limit=1)
        assert (found.config, found.parent_config) == (saved, None)
        assert found.checkpoint["channel_values"] == {"upto": 9}
        history = saver.get_delta_channel_history(config=saved, channels=["items"])
        assert history == {"items": {"writes": []}}
        verified(thread)


def test_a_program_goes_on_from_a_checkpoint_that_it_asked_for_though_another_wrote_since(both: Made) -> None:
    """ThreadMoved was raised, because what the program knew of the newest checkpoint was old."""
    thread, mine, theirs = unique("chat"), both(), both()
    talker(mine).invoke({"messages": [], "count": 0}, config(thread))
    talker(theirs).invoke({"messages": [], "count": 5}, config(thread))
    *_, early, _ = mine.list(config(thread, checkpoint_ns=""))
    found = mine.get_tuple(early.config)
    assert found is not None
    branch: Any = {**found.checkpoint, "id": str(uuid6())}
    saved = mine.put(found.config, branch, {"source": "update", "step": 1}, {})
    newest = theirs.get_tuple(config(thread))
    assert newest is not None
    assert (newest.config, newest.parent_config) == (saved, found.config)


def test_what_is_refused_to_a_subgraph_that_asks_is_raised(both: Made) -> None:
    """LangGraph swallowed it: the graph asked, and what it would go on from was an older state of its subgraph."""
    thread, saver = unique("chat"), both()
    earlier, run = asked(saver, thread), run_of(thread, STATEFUL)
    run.cancel(by=actors.of_user(ann(run.team)), reason="Enough.")
    graph = treasurer(saver)
    with pytest.raises(ThreadEnded, match=r"cancelled: Enough\."):
        graph.invoke(None, earlier)
    assert graph.get_state(config(thread)).interrupts == ()


def test_two_invocations_that_begin_one_thread_do_not_mix(both: Made) -> None:
    thread, saver = config(unique("chat"), checkpoint_ns=""), both()
    assert saver.get_tuple(thread) is None
    talker(saver).invoke({"messages": [], "count": 0}, thread)
    with pytest.raises(ThreadMoved, match="two invocations of one thread"):
        saver.put(thread, checkpoint(), {"source": "input", "step": -1}, {})
