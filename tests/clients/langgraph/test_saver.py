"""Graphs run on the saver as on LangGraph's own, with both backends, also from an earlier checkpoint.

A stateful subgraph that was sent back asked again, was answered "rejected", and went on with the old "approved": its
first put, which has no parent, was refused, and LangGraph swallows what is refused where a node interrupts.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import AsyncGenerator
from inspect import signature
from typing import Any
from uuid import UUID

import pytest
from holdpoint.langgraph import HoldpointSaver, SaverError, ThreadEnded, ThreadMoved, Unsaveable
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
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
from tests.checkpoints.retention.pruned_runs import keep, pruned
from tests.clients.langgraph.graphs import asker, config, counter, talker, treasurer
from tests.clients.langgraph.savers import BACKENDS, Made, checkpoint, run_of, savers, verified
from tests.factories import ann, unique
from tests.harness.examples import first_alone
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


def test_a_second_invocation_of_a_thread_is_refused_and_not_woven_in(both: Made) -> None:
    thread = unique("chat")
    first, second = both(), both()
    talker(first).invoke({"messages": [HumanMessage("one")]}, config(thread))
    mine: Any = first.get_tuple(config(thread))
    assert second.get_tuple(config(thread)) == mine
    talker(second).invoke({"messages": [HumanMessage("two")]}, config(thread))
    before, other = load(run_of(thread)).id, mine.checkpoint | {"id": str(uuid6())}
    with pytest.raises(ThreadMoved, match="was written by somebody else"):
        first.put(mine.config, other, {"source": "loop", "step": 9, "parents": {}}, {})
    assert load(run_of(thread)).id == before
    told = talker(first).invoke({"messages": [HumanMessage("three")]}, config(thread))
    assert [each.content for each in told["messages"]][-4:] == ["two", "answer 2", "three", "answer 3"]


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
    counted = {load_checkpoint(each.pk).state.get("count"): each.seq for each in run.checkpoints.order_by("-seq")}
    rewind.rewind(run, to=counted[1], by=ann(run.team))
    told = graph.invoke({"messages": [HumanMessage("three")]}, config(thread))
    assert [each.content for each in told["messages"]] == ["one", "answer 1", "three", "answer 2"]


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
    before: Any = saver.get_tuple(config(thread))
    rewind.edit(run, at=run.seq, patch=[{"op": "replace", "path": "/count", "value": 41}], by=ann(run.team))
    after: Any = saver.get_tuple(config(thread))
    assert after.checkpoint["channel_values"]["count"] == 41
    was, now = before.checkpoint["channel_versions"], after.checkpoint["channel_versions"]
    assert now["count"] > max(map(int, was.values()))
    assert now["messages"] == was["messages"]
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


def test_an_awaited_method_takes_what_its_twin_takes() -> None:
    """LangGraph passed no task's path, as no parameter had that name: writes side by side came back in any order."""
    assert "task_path" in signature(HoldpointSaver.aput_writes).parameters
    for name in ("get_tuple", "put", "put_writes", "delete_thread", "copy_thread", "prune"):
        assert list(signature(getattr(HoldpointSaver, f"a{name}")).parameters) == list(
            signature(getattr(BaseCheckpointSaver, name)).parameters
        )


def test_a_long_list_before_a_checkpoint_ends(both: Made) -> None:
    """It is longer than a page of the backend."""
    saver, made = both(), config(unique("chat"), checkpoint_ns="")
    for number in range(70):
        made = put(saver, made, number)
    found = itertools.islice(saver.list(config(made["configurable"]["thread_id"]), before=made), 100)
    assert [each.checkpoint["channel_values"]["a"] for each in found] == list(range(68, -1, -1))


def test_what_comes_before_a_checkpoint_is_listed_by_the_ids_as_by_other_savers(both: Made) -> None:
    """Ids that differ in their last 64 bits alone listed nothing before each other; clocks of programs differ."""
    thread, first = config(unique("chat"), checkpoint_ns=""), uuid6().int
    ids = [str(UUID(int=(first >> 32 << 32) + number)) for number in range(4)]
    for saver in (here := both(), there := InMemorySaver()):
        made = thread
        for number in (0, 2, 1, 3):
            made = put(saver, made, number, id=ids[number])
    for id in ids:
        before = config("", checkpoint_id=id)
        listed = [{each.config["configurable"]["checkpoint_id"] for each in saver.list(thread, before=before)}
                  for saver in (here, there)]  # fmt: skip
        assert listed == [set(ids[: ids.index(id)])] * 2
    # The first moment of one version of ids and the last of another are none of the other's: a bare ValueError.
    for version in ("6", "7"):
        for id, number in ((f"00000000-0000-{version}000-8000-000000000000", 0),
                           (f"ffffffff-ffff-{version}fff-bfff-ffffffffffff", 4)):  # fmt: skip
            assert len(list(here.list(thread, before=config("", checkpoint_id=id)))) == number


def put(saver: Any, after: Any, value: Any, *, id: str = "") -> Any:
    version = next(VERSIONS)
    return saver.put(after, checkpoint({"a": value}, id=id, version=version), {"step": version}, {})


def test_what_no_thread_can_have_is_refused_in_the_savers_terms(both: Made) -> None:
    saver, thread = both(), unique("chat")
    for name in ("x" * 201, "", "a\0b", "a\ud800b"):
        with pytest.raises(SaverError):
            saver.get_tuple(config(name))
        with pytest.raises(SaverError):
            put(saver, config(name, checkpoint_ns=""), 1)
    with pytest.raises(Unsaveable, match=r"16,777,216|17,825,792"):
        put(saver, config(thread, checkpoint_ns=""), "x" * 20_000_000)
    with pytest.raises(Unsaveable, match=r"The channel .__start__.: A builtins\.object cannot be saved"):
        talker(saver).invoke({"messages": [], "count": object()}, config(thread), durability="sync")
    assert both().get_tuple(config(thread)) is None
    assert not GraphThread.objects.filter(run__thread=thread, run__seq__gt=1).exists()


@pytest.mark.parametrize("backend", first_alone(BACKENDS))
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


@pytest.mark.parametrize("how", first_alone(["by its id", "in another program", "bare"], 2))
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


@pytest.mark.long
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
    found: Any = mine.get_tuple(early.config)
    branch: Any = {**found.checkpoint, "id": str(uuid6())}
    saved = mine.put(found.config, branch, {"source": "update", "step": 1}, {})
    newest: Any = theirs.get_tuple(config(thread))
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
