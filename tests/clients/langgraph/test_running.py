"""`run`: a graph elsewhere is interrupted, people answer at a gate, and it goes on with exactly that."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Annotated, Any, TypedDict

import pytest
from holdpoint import Altered, AsyncHoldpoint, CannotAsk, Expired, Rejected, StillOpen, Withdrawn
from holdpoint.endings import INSTEAD
from holdpoint.langgraph import ThreadMoved, arun, run
from holdpoint.langgraph.interrupts import NOBODY, Pending, answer_to, questions_in
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, field_validator

from agents.examples.harbour.model import ScriptedModel
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.clients.langgraph.graphs import config
from tests.clients.langgraph.savers import Made, savers
from tests.clients.test_altered import Altering, altering
from tests.clients.world import World
from tests.conftest import Starter
from tests.factories import unique
from tests.harness.examples import first_alone
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE

PAGE = (ROOT / "docs/frameworks/langgraph.md").read_text()
WIRE = {"name": "wire", "args": {"to": "ACME", "amount": "120.00"}, "description": "The invoice is due."}
LESS = {"to": "ACME", "amount": "100.00"}
ALL = ["approve", "edit", "reject", "respond"]
BATCHED = {"action_requests": [WIRE], "review_configs": [{"action_name": "wire", "allowed_decisions": ALL}]}
PER_CALL = {"type": "tool_approval", "tool_call_id": "c1", **WIRE}
INBOX = {
    "action_request": {"action": "wire", "args": WIRE["args"]}, "description": "The invoice is due.",
    "config": {"allow_accept": True, "allow_edit": True, "allow_ignore": True, "allow_respond": True},
}  # fmt: skip
EDIT: dict[str, Any] = {"verdict": "edit", "arguments": LESS}
PAID = {"verdict": "respond", "response": "Paid."}
NO = {"verdict": "reject", "reason": "Not this month."}
TOLD = f"Not this month. {INSTEAD}"
EDITED = {"type": "edit", "edited_action": {"name": "wire", "args": LESS}}


class State(TypedDict):
    got: Annotated[list[Any], operator.add]


def asks(saver: Any, *values: Any, **more: Any) -> Any:
    """A graph with a node for each value, all of them at once, that asks it."""

    def node(value: Any) -> Any:
        return lambda _: {"got": [interrupt(value, **more)]}

    graph = StateGraph(State)
    for at, value in enumerate(values):
        graph.add_node(f"ask{at}", node(value)).add_edge(START, f"ask{at}").add_edge(f"ask{at}", END)
    return graph.compile(checkpointer=saver)


class Elsewhere:
    def __init__(self, make: Made) -> None:
        assert make.world is not None
        self.world, self.make, self.thread = make.world, make, unique("ticket")

    def runs(self, graph: Any, *, transport: Any = None, **more: Any) -> Any:
        asked = config(self.thread)
        return self.world.runs(lambda hp: run(graph, {"got": []}, asked, hp=hp, **more), transport=transport)

    def decides(self, *verdicts: Any) -> Gate:
        """A person decides the actions, in their order."""
        gate = self.world.gate()
        ids = [each.id for each in gate.asked.actions]
        then = {"then": "stop"} if all(each is NO for each in verdicts) else {}
        self.world.decides("", verdicts=dict(zip(ids, verdicts, strict=True)), **then)
        return gate


@pytest.fixture
def elsewhere(web: str) -> Iterator[Elsewhere]:
    with savers("over HTTP", web) as make:
        yield Elsewhere(make)


FORMS: list[tuple[Any, dict[str, Any], Any]] = [
    (BATCHED, {"verdict": "approve"}, {"decisions": [{"type": "approve"}]}),
    (BATCHED, EDIT, {"decisions": [EDITED]}),
    (BATCHED, NO, {"decisions": [{"type": "reject", "message": TOLD}]}),
    (BATCHED, PAID, {"decisions": [{"type": "respond", "message": "Paid."}]}),
    (BATCHED, {"verdict": "expired"}, {"decisions": [{"type": "reject", "message": NOBODY}]}),
    (PER_CALL, EDIT, EDITED),
    (INBOX, {"verdict": "approve"}, [{"type": "accept", "args": None}]),
    (INBOX, EDIT, [{"type": "edit", "args": {"action": "wire", "args": LESS}}]),
    (INBOX, NO, [{"type": "ignore", "args": None}]),
    ([INBOX], PAID, [{"type": "response", "args": "Paid."}]),
    ("Which day?", {"verdict": "edit", "arguments": {"answer": "Monday"}}, "Monday"),
    ({"question": "Go on?"}, {"verdict": "edit", "arguments": {"answer": "true"}}, True),
]


@pytest.mark.parametrize(("value", "said", "got"), FORMS)
def test_each_form_is_answered_as_people_decided(value: Any, said: dict[str, Any], got: Any) -> None:
    [question] = questions_in(Pending("i", value, None, "ask"), {})
    question.decided = said
    question.arguments = said.get("arguments", question.arguments)
    assert answer_to([question]) == got


@pytest.mark.parametrize(("value", "said", "got"), first_alone([FORMS[1], FORMS[2], FORMS[7]], 2))
def test_a_graph_gets_what_people_decided(elsewhere: Elsewhere, value: Any, said: Any, got: Any) -> None:
    told = elsewhere.runs(asks(elsewhere.make(), value), title="Answer the graph")
    gate = elsewhere.decides(said)
    assert told.result(PATIENCE) == {"got": [got]}
    assert (gate.asked.title, gate.run.thread) == ("Answer the graph", elsewhere.thread)
    assert Run.objects.get(pk=gate.run_id).status == ("cancelled" if said is NO else "completed")


def test_all_that_is_pending_is_one_gate_with_a_verdict_for_each(elsewhere: Elsewhere) -> None:
    two = {"action_requests": [WIRE, {**WIRE, "name": "mail"}], "review_configs": BATCHED["review_configs"]}
    told = elsewhere.runs(asks(elsewhere.make(), two, PER_CALL))
    gate = elsewhere.world.gate()
    tools = [each.tool for each in gate.asked.actions]
    assert sorted(tools) == ["mail", "wire", "wire"]
    assert {each.label for each in gate.asked.quotes} == {"Wire", "Mail"}
    elsewhere.decides(*[{"verdict": "approve"} if each == "mail" else NO for each in tools])
    no = {"type": "reject", "message": TOLD}
    assert sorted(told.result(PATIENCE)["got"], key=len) == [{"decisions": [no, {"type": "approve"}]}, no]


@tool
def free_berths(length: int, date: str) -> str:
    """List the berths that are free."""
    return "North 1, Quay 7"


@tool
def book_berth(vessel: str, berth: str, date: str) -> str:
    """Book a berth, which costs a fee."""
    return f"{vessel} has {berth} on {date}."


def test_langchains_agent_is_as_it_is_and_its_model_hears_of_an_edit(elsewhere: Elsewhere) -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"book_berth": True})
    model = ScriptedModel(tides=False)
    agent = create_agent(model, tools=[free_berths, book_berth], middleware=[gate], checkpointer=elsewhere.make())
    given = {"messages": [{"role": "user", "content": "A berth for the Aurora, please."}]}
    told = elsewhere.world.runs(lambda hp: run(agent, given, config(elsewhere.thread), hp=hp))
    [action] = elsewhere.world.gate().asked.actions
    elsewhere.decides({"verdict": "edit", "arguments": {**action.arguments, "berth": "Quay 7"}})
    messages = told.result(PATIENCE)["messages"]
    [result] = [each.content for each in messages if getattr(each, "name", "") == "book_berth"]
    assert "has Quay 7 on" in result
    assert "a human reviewer replaced this tool call" in result
    assert messages[-1].type == "ai"


class Refund(BaseModel):
    """An answer with a rule that no schema says."""

    amount: str = "20.00"

    @field_validator("amount")
    @classmethod
    def whole(cls, amount: str) -> str:
        if not amount.endswith(".00"):
            raise ValueError("has cents")
        return amount


def test_an_answer_that_the_graph_does_not_take_is_asked_for_again(elsewhere: Elsewhere) -> None:
    told = elsewhere.runs(asks(elsewhere.make(allow=[Refund]), "How much?", response_schema=Refund))
    first = elsewhere.decides({"verdict": "edit", "arguments": {"amount": "19.99"}})
    second = elsewhere.decides({"verdict": "approve"})
    assert "The last answer was not taken: Value error, has cents." in second.asked.summary
    assert (told.result(PATIENCE)["got"], second.pk > first.pk) == ([Refund()], True)


def test_what_the_graph_takes_no_rejection_of_is_raised_and_asked_anew_under_another_key(elsewhere: Elsewhere) -> None:
    graph = asks(elsewhere.make(), "Which day?")
    told = elsewhere.runs(graph)
    elsewhere.decides(NO)
    with pytest.raises(Rejected, match=r"Ann Okafor said no to .*Not this month\."):
        told.result(PATIENCE)
    with pytest.raises(Rejected):
        elsewhere.runs(graph).result(PATIENCE)
    again = elsewhere.runs(graph, key="once more")
    elsewhere.decides({"verdict": "edit", "arguments": {"answer": "Monday"}})
    assert again.result(PATIENCE)["got"] == ["Monday"]


def test_what_ends_without_a_decision_is_raised_as_itself_and_silence_is_no_rejection(elsewhere: Elsewhere) -> None:
    graph = asks(elsewhere.make(), BATCHED)
    with pytest.raises(StillOpen):
        elsewhere.runs(graph, timeout=0.0).result(PATIENCE)
    with elsewhere.world.client() as hp:
        hp.withdraw(elsewhere.world.gate().pk, "The invoice was void.")
    with pytest.raises(Withdrawn, match=r"The invoice was void\."):
        elsewhere.runs(graph).result(PATIENCE)
    elsewhere.thread = unique("ticket")
    told = elsewhere.runs(asks(elsewhere.make(), "Which day?"))
    gate = elsewhere.world.gate()
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    with pytest.raises(Expired, match="Nobody answered"):
        told.result(PATIENCE)


def test_an_answer_that_differs_from_what_people_approved_does_not_reach_the_graph(elsewhere: Elsewhere) -> None:
    graph = asks(elsewhere.make(), BATCHED)
    told = elsewhere.runs(graph, transport=Altering(altering("/outcome$", '"120.00"', '"920.00"')))
    elsewhere.decides({"verdict": "approve"})
    with pytest.raises(Altered):
        told.result(PATIENCE)
    assert graph.get_state(config(elsewhere.thread)).interrupts
    assert elsewhere.runs(graph).result(PATIENCE)["got"] == [{"decisions": [{"type": "approve"}]}]


def test_the_awaited_one_does_the_same(elsewhere: Elsewhere) -> None:
    async def program(hp: AsyncHoldpoint) -> Any:
        return await arun(asks(InMemorySaver(), PER_CALL), {"got": []}, config(elsewhere.thread), hp=hp)

    told = elsewhere.world.awaits(program)
    elsewhere.decides(EDIT)
    assert told.result(PATIENCE)["got"] == [EDITED]


@pytest.mark.parametrize("awaited", first_alone([False, True]))
def test_of_two_programs_at_one_gate_one_goes_on_past_the_node_that_asked(elsewhere: Elsewhere, awaited: bool) -> None:
    """One approval paid twice: LangGraph began the next node while the save of the one before was under way."""
    both, paid = Barrier(2), []

    def ask(state: State) -> State:
        answer = interrupt("Which day?")
        both.wait(PATIENCE)
        return {"got": [answer]}

    def pay(state: State) -> State:
        paid.append(state["got"])
        return {"got": ["paid"]}

    def start() -> Any:
        nodes = StateGraph(State).add_node(ask).add_node(pay).add_edge(START, "ask").add_edge("ask", "pay")
        graph = nodes.compile(checkpointer=elsewhere.make())
        if awaited:
            return elsewhere.world.awaits(lambda hp: arun(graph, {"got": []}, config(elsewhere.thread), hp=hp))
        return elsewhere.runs(graph)

    first = start()
    elsewhere.world.gate()
    second = start()
    elsewhere.decides({"verdict": "edit", "arguments": {"answer": "Monday"}})
    errors = [each.exception(PATIENCE) for each in (first, second)]
    assert sorted(map(type, errors), key=str) == [type(None), ThreadMoved]
    assert paid == [["Monday"]]


def test_what_cannot_be_asked_about_says_what_to_do(elsewhere: Elsewhere) -> None:
    def ask(state: State) -> State:
        return {"got": []}

    stops = StateGraph(State).add_node(ask).add_edge(START, "ask")
    bare: Any = {**INBOX, "action_request": {"action": "wire", "args": "120.00"}}
    for graph, words in (
        (stops.compile(checkpointer=elsewhere.make(), interrupt_before=["ask"]), "without interrupt_before"),
        (stops.compile(), r"checkpointer=HoldpointSaver\(\)"),
        (asks(elsewhere.make(), bare), "arguments that are no object"),
    ):
        with pytest.raises(CannotAsk, match=words):
            elsewhere.runs(graph).result(PATIENCE)
    with elsewhere.world.client() as hp, pytest.raises(CannotAsk, match="Leave checkpoint_id out"):
        run(asks(elsewhere.make(), "?"), {}, config("a", checkpoint_id="1"), hp=hp)


@pytest.mark.long
def test_the_pages_example_is_killed_while_it_waits_and_goes_on_with_the_edit(
    web: str, start_service: Starter, tmp_path: Path
) -> None:
    world, file = World(web), tmp_path / "refunds.py"
    file.write_text(re.findall(r"```python\n(.*?)```", PAGE[PAGE.index("## Ask people") :], re.DOTALL)[0])
    first = start_service("refunds", [sys.executable, str(file)], world.python_env)
    gate = world.gate()
    first.kill()
    [action] = gate.asked.actions
    world.decides("edit", arguments={action.id: {**action.arguments, "amount": "10.00"}})
    second = start_service("refunds", [sys.executable, str(file)], world.python_env)
    second.says("It is done: order='7' amount='10.00'")
    assert second.log.count("Paying back 10.00 for order 7") == 1
    assert Gate.objects.filter(team=world.team).count() == 1


DIES = """
import operator, os, signal, sys, time
from pathlib import Path
from threading import Barrier
from typing import Annotated, TypedDict
from holdpoint import Holdpoint
from holdpoint.langgraph import HoldpointSaver, run
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

thread, mark = sys.argv[1], Path(sys.argv[2])


class State(TypedDict):
    got: Annotated[list, operator.add]


def one(state):
    answer = interrupt("Which day?")
    print("one ran", flush=True)
    return {"got": [answer]}


def two(state):
    answer = interrupt("Which hour?")
    if not mark.exists():
        mark.touch()
        config = {"configurable": {"thread_id": thread}}
        while not any(each[1] == "got" for each in saver.get_tuple(config).pending_writes):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"got": [answer]}


saver = HoldpointSaver()
graph = StateGraph(State).add_node(one).add_node(two).add_edge(START, "one").add_edge(START, "two")
with Holdpoint(lease=1.0) as hp:
    got = run(graph.compile(checkpointer=saver), {"got": []}, {"configurable": {"thread_id": thread}}, hp=hp)
print("got", sorted(got["got"]), flush=True)
"""


def test_one_that_dies_after_some_of_its_nodes_went_on_asks_nobody_again(
    web: str, start_service: Starter, tmp_path: Path
) -> None:
    world, file, words = World(web), tmp_path / "dies.py", [unique("ticket"), str(tmp_path / "died")]
    file.write_text(DIES)
    first = start_service("dies", [sys.executable, str(file), *words], world.python_env)
    gate = world.gate()
    said = {each.id: "Monday" if each.title == "Which day?" else "Noon" for each in gate.asked.actions}
    world.decides("edit", arguments={id: {"answer": answer} for id, answer in said.items()})
    first.says("one ran")
    assert first.process.wait(PATIENCE) == -9
    second = start_service("dies", [sys.executable, str(file), *words], world.python_env)
    second.says(re.escape("got ['Monday', 'Noon']"))
    assert "one ran" not in second.log
    assert Gate.objects.filter(team=world.team).count() == 1
