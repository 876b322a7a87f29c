"""Graphs run on the saver as on LangGraph's own, with both backends."""

from __future__ import annotations

import asyncio
import html
import itertools
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from holdpoint.langgraph import HoldpointSaver, SaverError, ThreadEnded, ThreadMoved, Unsaveable
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from agents.errors import RewindRefused
from agents.models import GraphThread
from agents.moves import rewind
from agents.moves.fork import fork
from checkpoints import actors
from checkpoints.models import Run
from checkpoints.store import load, load_checkpoint
from tests.clients.langgraph.graphs import asker, config, counter, talker
from tests.clients.langgraph.savers import BACKENDS, Made, checkpoint, run_of, savers
from tests.factories import ann, unique
from tests.harness.signed_in_clients import signed_in

VERSIONS = itertools.count(1)
# Counted in the package: its report says FULL even where it found nothing to test.
TESTS = {
    "put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5, "delete_for_runs": 7,
    "copy_thread": 8, "prune": 8,
}  # fmt: skip


def test_a_conversation_goes_on_in_another_program(both: Made) -> None:
    thread = unique("chat")
    talker(both()).invoke({"messages": [HumanMessage("hello", id="h1")]}, config(thread))
    told = talker(both()).invoke({"messages": [HumanMessage("again", id="h2")]}, config(thread))
    assert [each.content for each in told["messages"]] == ["hello", "answer 1", "again", "answer 2"]
    run = run_of(thread)
    state = load(run).state
    assert state["messages"][0] == {"$type": "message", "type": "human", "content": "hello", "id": "h1"}
    assert state["count"] == 2
    assert state["langgraph"]["metadata"]["source"] == "loop"


async def test_the_async_interface_does_the_same(both: Made) -> None:
    thread = unique("chat")
    graph = talker(both())
    for words in ("one", "two"):
        await graph.ainvoke({"messages": [HumanMessage(words)]}, config(thread))
    states = [each async for each in graph.aget_state_history(config(thread))]
    assert [len(each.values.get("messages", [])) for each in states] == [4, 3, 2, 2, 1, 0]
    told = await asyncio.gather(
        *(graph.ainvoke({"messages": [HumanMessage("x")]}, config(unique("chat"))) for _ in range(4))
    )
    assert all(len(each["messages"]) == 2 for each in told)


def test_an_interrupt_is_answered_in_another_program_and_nothing_runs_twice(both: Made) -> None:
    thread, log = unique("chat"), list[str]()
    told = asker(both(), log).invoke({"question": "Pay?", "done": [], "answer": ""}, config(thread))
    assert told["__interrupt__"][0].value == {"question": "Pay?"}
    run = run_of(thread)
    assert (run.status, run.reason) == ("waiting", "The graph waits for an answer to its interrupt.")
    state = asker(both(), log).get_state(config(thread))
    assert state.interrupts[0].value == {"question": "Pay?"}
    told = asker(both(), log).invoke(Command(resume="yes"), config(thread))
    assert told["answer"] == "yes"
    assert told["done"] == ["worked", "ended with yes"]
    assert sorted(log) == ["ask", "ask", "end", "work"]


def test_the_history_is_the_one_that_langgraph_keeps_in_memory(both: Made) -> None:
    def history(saver: Any) -> list[Any]:
        graph = asker(saver, [])
        graph.invoke({"question": "Pay?", "done": [], "answer": ""}, config("t"))
        graph.invoke(Command(resume="yes"), config("t"))
        return [
            (each.values, each.next, each.metadata, [(task.name, task.result, task.path) for task in each.tasks],
             each.parent_config is None)
            for each in graph.get_state_history(config("t"))
        ]  # fmt: skip

    assert history(both()) == history(InMemorySaver())


def test_a_fork_from_an_earlier_checkpoint_is_a_branch_of_the_run(both: Made) -> None:
    thread = unique("chat")
    graph = talker(both())
    graph.invoke({"messages": [HumanMessage("one", id="h1")]}, config(thread))
    graph.invoke({"messages": [HumanMessage("two", id="h2")]}, config(thread))
    early = next(each for each in graph.get_state_history(config(thread)) if len(each.values["messages"]) == 2)
    told = graph.invoke({"messages": [HumanMessage("other", id="h3")]}, early.config)
    assert [each.content for each in told["messages"]] == ["one", "answer 1", "other", "answer 2"]
    newest = graph.get_state(config(thread))
    assert [each.content for each in newest.values["messages"]] == ["one", "answer 1", "other", "answer 2"]
    changed = graph.update_state(early.config, {"count": 40})
    assert graph.get_state(changed).values["count"] == 40
    run = run_of(thread)
    parents = list(run.checkpoints.values_list("parent", flat=True))
    assert len(parents) > len(set(parents))


def test_a_second_invocation_of_a_thread_is_refused_and_not_woven_in(both: Made) -> None:
    thread = unique("chat")
    first, second = both(), both()
    talker(first).invoke({"messages": [HumanMessage("one")]}, config(thread))
    mine, theirs = first.get_tuple(config(thread)), second.get_tuple(config(thread))
    assert mine is not None and theirs is not None  # noqa: PT018
    talker(second).invoke({"messages": [HumanMessage("two")]}, config(thread))
    before = load(run_of(thread)).id
    with pytest.raises(ThreadMoved, match="was written by somebody else"):
        first.put(
            mine.config, {**mine.checkpoint, "id": str(uuid6())}, {"source": "loop", "step": 9, "parents": {}}, {}
        )
    assert load(run_of(thread)).id == before
    told = talker(first).invoke({"messages": [HumanMessage("three")]}, config(thread))
    assert [each.content for each in told["messages"]][-4:] == ["two", "answer 2", "three", "answer 3"]


def test_two_invocations_in_one_program_do_not_mix_either(both: Made) -> None:
    thread, saver = unique("chat"), both()
    talker(saver).invoke({"messages": [HumanMessage("one")]}, config(thread))
    mine = saver.get_tuple(config(thread))
    assert mine is not None
    talker(saver).invoke({"messages": [HumanMessage("two")]}, config(thread))
    with pytest.raises(ThreadMoved, match="two invocations of one thread"):
        saver.put(mine.config, {**mine.checkpoint, "id": str(uuid6())}, {}, {})


def test_two_programs_that_begin_one_thread_do_not_mix(both: Made) -> None:
    thread = unique("chat")
    first, second = both(), both()
    assert first.get_tuple(config(thread)) is None
    assert second.get_tuple(config(thread)) is None
    talker(first).invoke({"messages": [HumanMessage("one")]}, config(thread))
    with pytest.raises(ThreadMoved):
        second.put(config(thread, checkpoint_ns=""), checkpoint(), {}, {})


def test_a_put_whose_answer_was_lost_is_done_once(both: Made) -> None:
    thread = unique("chat")
    once, lost = checkpoint({"a": [1]}), both()
    lost.get_tuple(config(thread))
    known = lost._memory.known_thread(thread, "")
    seen = known.seen
    saved = lost.put(config(thread, checkpoint_ns=""), once, {"step": 1}, {"a": 1})
    known.is_newest(None, seen)
    known.states.clear()
    assert lost.put(config(thread, checkpoint_ns=""), once, {"step": 1}, {"a": 1}) == saved
    assert run_of(thread).seq == 2


def test_a_person_rewinds_the_run_and_the_graph_goes_on_from_there(both: Made) -> None:
    thread, saver = unique("chat"), both()
    graph = talker(saver)
    for words in ("one", "two"):
        graph.invoke({"messages": [HumanMessage(words)]}, config(thread))
    run = run_of(thread)
    person = ann(run.team)
    seq = next(each.seq for each in run.checkpoints.order_by("seq") if _count(each) == 1)
    rewind.rewind(run, to=seq, by=person)
    told = graph.invoke({"messages": [HumanMessage("three")]}, config(thread))
    assert [each.content for each in told["messages"]] == ["one", "answer 1", "three", "answer 2"]


def _count(row: Any) -> int:
    return int(load_checkpoint(row.id).state.get("count") or 0)


def test_a_thread_whose_versions_another_saver_gave_goes_on(both: Made) -> None:
    """LangGraph could not compare them: they are texts, and the saver's own were numbers."""
    theirs, saver, thread = InMemorySaver(), both(), config(unique("chat"))
    talker(theirs).invoke({"messages": [HumanMessage("one", id="h1")]}, thread)
    place: Any = config(thread["configurable"]["thread_id"], checkpoint_ns="")
    for found in reversed(list(theirs.list(thread))):
        place = saver.put(place, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
    again: Any = {"messages": [HumanMessage("two", id="h2")]}
    assert talker(saver).invoke(again, thread)["count"] == talker(theirs).invoke(again, thread)["count"]


class Order(BaseModel):
    number: int


class Refund(Order):
    pass


class Ordering(TypedDict):
    order: Order


def _next(state: Ordering) -> Ordering:
    return {"order": Order(number=state["order"].number + 1)}


def test_under_langgraphs_strict_setting_the_classes_of_a_graphs_schema_are_allowed(
    both: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LangGraph names them to its checkpointer when the graph is compiled; without the setting it names none."""
    builder = StateGraph(Ordering).add_node("next", _next).add_edge(START, "next")
    thread, first = config(unique("chat")), Order(number=1)
    with pytest.raises(Unsaveable, match=r"allow=\[Order\]"):
        builder.compile(checkpointer=both()).invoke({"order": first}, thread)
    monkeypatch.setattr("langgraph._internal._serde.STRICT_MSGPACK_ENABLED", True)
    assert builder.compile(checkpointer=both()).invoke({"order": first}, thread) == {"order": Order(number=2)}
    assert builder.compile(checkpointer=both()).get_state(thread).values == {"order": Order(number=2)}
    with pytest.raises(Unsaveable, match="Refund"):
        builder.compile(checkpointer=both()).invoke({"order": Refund(number=3)}, thread)


def test_a_person_edits_the_state_and_the_graph_reads_the_edit(both: Made) -> None:
    thread, saver = unique("chat"), both()
    graph = talker(saver)
    graph.invoke({"messages": [HumanMessage("one", id="h1")]}, config(thread))
    run = run_of(thread)
    before = saver.get_tuple(config(thread))
    rewind.edit(run, at=run.seq, patch=[{"op": "replace", "path": "/count", "value": 41}], by=ann(run.team))
    after = saver.get_tuple(config(thread))
    assert before is not None and after is not None  # noqa: PT018
    assert after.checkpoint["channel_values"]["count"] == 41
    raised: Any = after.checkpoint["channel_versions"]["count"]
    assert raised > max(map(int, before.checkpoint["channel_versions"].values()))
    assert after.checkpoint["channel_versions"]["messages"] == before.checkpoint["channel_versions"]["messages"]
    told = graph.invoke({"messages": [HumanMessage("two")]}, config(thread))
    assert told["count"] == 42


def test_an_answer_by_id_is_not_taken_for_what_a_person_has_edited_since(both: Made) -> None:
    thread, saver = unique("chat"), both()
    graph = asker(saver, [])
    [asked] = graph.invoke({"question": "Pay 5?", "done": [], "answer": ""}, config(thread))["__interrupt__"]
    run = run_of(thread)
    rewind.edit(run, at=run.seq, patch=[{"op": "replace", "path": "/question", "value": "Pay 900?"}], by=ann(run.team))
    told = graph.invoke(Command(resume={asked.id: "yes"}), config(thread))
    assert told["answer"] == ""
    assert [each.value for each in told["__interrupt__"]] == [{"question": "Pay 900?"}]
    told = graph.invoke(Command(resume={told["__interrupt__"][0].id: "no"}), config(thread))
    assert told["answer"] == "no"


def test_a_run_that_a_person_cancelled_takes_no_more_checkpoints(both: Made) -> None:
    thread, saver = unique("chat"), both()
    talker(saver).invoke({"messages": [HumanMessage("one")]}, config(thread))
    run = run_of(thread)
    run.cancel(by=actors.of_user(ann(run.team)), reason="Enough.")
    with pytest.raises(ThreadEnded, match=r"cancelled: Enough\. Rewind it"):
        talker(saver).invoke({"messages": [HumanMessage("two")]}, config(thread))


def test_a_person_who_forks_the_run_is_told_how_threads_are_forked(both: Made) -> None:
    thread = unique("chat")
    talker(both()).invoke({"messages": [HumanMessage("one")]}, config(thread))
    run = run_of(thread)
    person = ann(run.team)
    page = signed_in(person).get(f"/runs/{run.pk}/checkpoints/{run.seq}/fork/")
    assert "copy the thread, or invoke the graph" in html.unescape(page.content.decode())
    with pytest.raises(RewindRefused, match="copy the thread, or invoke the graph"):
        fork(run, at=run.seq, by=person)
    assert Run.objects.filter(lineage=run.lineage).count() == 1


def test_delta_channels_are_rebuilt_in_the_order_of_their_tasks(both: Made) -> None:
    thread = unique("chat")
    saver = both()
    here, there = counter(saver), counter(InMemorySaver())
    for graph in (here, there):
        graph.invoke({"items": ["first"], "upto": 30}, config(thread, recursion_limit=100) | {"recursion_limit": 100})
    mine, theirs = here.get_state(config(thread)), there.get_state(config(thread))
    assert mine.values == theirs.values
    assert [each.values for each in here.get_state_history(config(thread))] == [
        each.values for each in there.get_state_history(config(thread))
    ]
    newest = saver.get_tuple(config(thread))
    assert newest is not None
    own = saver.get_delta_channel_history(config=newest.config, channels=["items", "upto"])
    base = super(type(saver), saver).get_delta_channel_history(config=newest.config, channels=["items", "upto"])
    assert own == base


def test_what_cannot_be_restored_is_refused_before_anything_is_saved(both: Made) -> None:
    thread, saver = unique("chat"), both()
    with pytest.raises(Unsaveable, match=r"The channel .__start__.: A builtins\.object cannot be saved"):
        talker(saver).invoke({"messages": [], "count": object()}, config(thread), durability="sync")
    assert not GraphThread.objects.filter(run__thread=thread, run__seq__gt=1).exists()


def test_a_long_list_before_a_checkpoint_ends(both: Made) -> None:
    """It is longer than a page of the backend."""
    saver, made = both(), config(unique("chat"), checkpoint_ns="")
    for number in range(70):
        made = put(saver, made, number)
    found = itertools.islice(saver.list(config(made["configurable"]["thread_id"]), before=made), 100)
    assert [each.checkpoint["channel_values"]["a"] for each in found] == list(range(68, -1, -1))


def test_what_comes_before_a_checkpoint_of_the_same_moment_is_listed_as_by_other_savers(both: Made) -> None:
    """Ids that differ in their last 64 bits alone listed nothing before each other."""
    thread, first = config(unique("chat"), checkpoint_ns=""), uuid6().int
    ids = [str(UUID(int=(first >> 32 << 32) + number)) for number in range(4)]
    for saver in (here := both(), there := InMemorySaver()):
        made = thread
        for number, id in enumerate(ids):
            made = put(saver, made, number, id=id)
    for id in ids:
        before = config("", checkpoint_id=id)
        listed = [[each.config["configurable"]["checkpoint_id"] for each in saver.list(thread, before=before)]
                  for saver in (here, there)]  # fmt: skip
        assert listed == [ids[: ids.index(id)][::-1]] * 2


@pytest.mark.parametrize(
    ("id", "all_are"),
    [
        ("00000000-0000-6000-8000-000000000000", False),
        ("ffffffff-ffff-6fff-bfff-ffffffffffff", True),
        ("00000000-0000-7000-8000-000000000000", False),
        ("ffffffff-ffff-7fff-bfff-ffffffffffff", True),
    ],
)
def test_any_id_may_be_listed_before(both: Made, id: str, all_are: bool) -> None:
    """The first moment of one version of ids and the last of another are none of the other's: a bare ValueError."""
    saver, thread = both(), config(unique("chat"), checkpoint_ns="")
    put(saver, thread, 1)
    assert len(list(saver.list(thread, before=config("", checkpoint_id=id)))) == all_are


def put(saver: Any, after: Any, value: Any, *, id: str = "") -> Any:
    """Put a checkpoint with one channel, whose value is new."""
    version = next(VERSIONS)
    return saver.put(after, checkpoint({"a": value}, id=id, version=version), {"step": version}, {})


def test_a_state_that_is_too_large_is_refused_in_the_savers_terms(both: Made) -> None:
    thread = unique("chat")
    with pytest.raises(Unsaveable, match=r"16,777,216|17,825,792"):
        put(both(), config(thread, checkpoint_ns=""), "x" * 20_000_000)
    assert both().get_tuple(config(thread)) is None


@pytest.mark.parametrize("name", ["x" * 201, "", "a\0b", "a\ud800b"])
def test_a_name_that_no_thread_can_have_is_refused_in_the_savers_terms(both: Made, name: str) -> None:
    saver = both()
    with pytest.raises(SaverError):
        saver.get_tuple(config(name))
    with pytest.raises(SaverError):
        put(saver, config(name, checkpoint_ns=""), 1)


def test_a_state_may_be_read_while_the_graph_runs(both: Made) -> None:
    thread, saver = unique("chat"), both()
    graph, over = counter(saver), threading.Event()

    def look() -> int:
        looks = 0
        while not over.is_set():
            graph.get_state(config(thread))
            looks += 1
        return looks

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        told = graph.invoke({"items": ["first"], "upto": 30}, config(thread) | {"recursion_limit": 100})
        over.set()
        assert looking.result() > 1
    assert len(told["items"]) == 31


@pytest.mark.parametrize("backend", BACKENDS)
async def test_every_capability_passes_every_test(web: str, backend: str) -> None:
    with savers(backend, web) as make:

        @checkpointer_test(name=f"HoldpointSaver {backend}")
        async def made() -> AsyncGenerator[HoldpointSaver, None]:
            yield make()

        report = await validate(made)
    report.print_report()  # pytest -s shows it
    found = report.to_dict()
    failures = {name: each["failures"] for name, each in found["results"].items() if each["failures"]}
    assert failures == {}
    assert {name: each["tests_passed"] for name, each in found["results"].items()} == TESTS
    assert sum(TESTS.values()) == 81
    assert report.passed_all()
    assert all(each.detected for each in report.results.values())
    assert found["conformance_level"] == "FULL"
