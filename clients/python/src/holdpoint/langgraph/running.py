"""`run` and `arun`: a graph's `invoke`, with people who answer its interrupts.

A gate has an action for each thing that the graph asks, and people's decision is its answers. A question has the same
gate in every process: its key is made of the thread, the checkpoint and the ids of the interrupts that were asked about
together. Those that were answered stay among them as long as the graph is at that checkpoint, so that a program that
dies after some of the nodes went on finds the others' answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError
from typing_extensions import Unpack

from ..answers import Gate, Outcome
from ..awaiting import Way
from ..client import AsyncHoldpoint, Holdpoint
from ..endings import gate_refusal
from ..errors import CannotAsk
from ..exact_calls import approved_arguments, digest_values
from ..posting import AskedUnder, CardTexts, Posting, post_gate, question_each
from ..sending import Api, Op, to_json_data
from . import interrupts
from .interrupts import APPROVE, EDIT, EXPIRED, REJECT, RESPOND, GraphQuestion

INTERRUPT, RESUME = "__interrupt__", "__resume__"
Graph = Pregel[Any, Any, Any, Any]


class Asking(CardTexts, AskedUnder, total=False):
    """The texts of the gates, who decides, and further arguments of the graph's `invoke`.

    `thread` is the thread's id unless given. The members are those of `hp.approve`.
    """

    amount: str
    agent: str
    timeout: float | None
    options: Mapping[str, Any]


def run(graph: Graph, input: Any, config: RunnableConfig, *, hp: Holdpoint, **asking: Unpack[Asking]) -> Any:
    """Invoke the graph, and whenever it is interrupted ask people and go on with their answers; return its result.

    Where the thread stands in the middle of its work it goes on from there, without `input`: so a program that died is
    simply started again. `timeout`: seconds to wait for people at a gate; None for ever. A question has one gate;
    another `key` asks once more, as after Rejected or Expired.

    Raises StillOpen after the timeout; Rejected and Expired where the graph takes no rejection, Withdrawn; CannotAsk;
    Altered where the graph would get something else than people approved.
    """
    saver, options, shown = _sorted(graph, config, asking)
    invoke = partial(graph.invoke, config=config, **options)
    state, result = graph.get_state(config), None
    if (begins := not state.next) or _is_under_way(state):
        result = invoke(input if begins else None)
    asked = _questions_asked(graph.get_state(config), saver.get_tuple(config), shown)
    while asked is not None:
        outcome, gate = hp._io.run(_wait_for_people(hp._api, asked.posting))
        try:
            result = invoke(Command(resume=_answers(asked, outcome, gate)))
        except ValidationError as error:
            asked = asked.again(gate.id, interrupts.refusal_of(error))
        else:
            asked = _questions_asked(graph.get_state(config), saver.get_tuple(config), shown)
    return result


async def arun(
    graph: Graph, input: Any, config: RunnableConfig, *, hp: AsyncHoldpoint, **asking: Unpack[Asking]
) -> Any:
    """Do the same, awaited: by the graph's `ainvoke`."""
    saver, options, shown = _sorted(graph, config, asking)
    invoke = partial(graph.ainvoke, config=config, **options)
    state, result = await graph.aget_state(config), None
    if (begins := not state.next) or _is_under_way(state):
        result = await invoke(input if begins else None)
    asked = _questions_asked(await graph.aget_state(config), await saver.aget_tuple(config), shown)
    while asked is not None:
        outcome, gate = await hp._io.run(_wait_for_people(hp._api, asked.posting))
        try:
            result = await invoke(Command(resume=_answers(asked, outcome, gate)))
        except ValidationError as error:
            asked = asked.again(gate.id, interrupts.refusal_of(error))
        else:
            asked = _questions_asked(await graph.aget_state(config), await saver.aget_tuple(config), shown)
    return result


def _sorted(graph: Graph, config: RunnableConfig, asking: Asking) -> tuple[Any, Mapping[str, Any], dict[str, Any]]:
    """Return the graph's checkpointer, the arguments of `invoke`, and those of the gates. Raises CannotAsk."""
    if not graph.checkpointer or graph.checkpointer is True:
        raise CannotAsk("Compile the graph with checkpointer=HoldpointSaver(): it waits in its saved thread.")
    if graph.interrupt_before_nodes or graph.interrupt_after_nodes:
        raise CannotAsk("Compile the graph without interrupt_before and interrupt_after, and call interrupt() instead.")
    if config.get("configurable", {}).get("checkpoint_id"):
        raise CannotAsk("Leave checkpoint_id out: the graph goes on from the newest checkpoint of its thread.")
    # LangGraph would begin the next node while the save is under way that tells it that another program goes on too.
    options: Mapping[str, Any] = {"durability": "sync", **asking.get("options", {})}
    return graph.checkpointer, options, {name: value for name, value in asking.items() if name != "options"}


def _is_under_way(state: StateSnapshot) -> bool:
    """Tell whether a node has neither ended nor asked yet, as after a crash: it comes first, as it may ask too."""
    return any(task.result is None and not task.interrupts for task in state.tasks)


@dataclass(frozen=True)
class _Asked:
    """The questions of a graph at one gate. `waiting`: the ids of the interrupts that have no answer yet."""

    questions: Sequence[GraphQuestion]
    waiting: frozenset[str]
    posting: Posting

    def again(self, gate: int, why: str) -> _Asked:
        """Return the same as another gate, since the graph did not take the answers of this one."""
        summary = "\n\n".join(filter(None, [f"The last answer was not taken: {why}.", self.posting.body["summary"]]))
        body = {**self.posting.body, "summary": summary}
        return replace(self, posting=replace(self.posting, body=body, key=f"{self.posting.key}-{gate}"))


def _questions_asked(state: StateSnapshot, saved: CheckpointTuple | None, shown: Mapping[str, Any]) -> _Asked | None:
    """Return what the graph asks, as its newest checkpoint says; None if it asks nothing.

    `shown`: arguments of `question_each`; its `key` is a part of the gate's. Raises CannotAsk.
    """
    waiting = frozenset(interrupt.id for interrupt in state.interrupts)
    if not waiting or saved is None:
        return None
    node = {task.id: task.name for task in state.tasks}
    writes = saved.pending_writes or []
    resumed = {task for task, channel, _ in writes if channel == RESUME}
    raised = {
        interrupt.id: (interrupt, task)
        for task, channel, value in writes
        if channel == INTERRUPT
        for interrupt in value
    }
    if any(task in resumed for interrupt, task in raised.values() if interrupt.id in waiting):
        raised = {id: pair for id, pair in raised.items() if id in waiting}  # a node asks once more
    found: list[GraphQuestion] = []
    for interrupt, task in (raised[id] for id in sorted(raised)):
        pending = interrupts.Pending(interrupt.id, interrupt.value, interrupt.response_schema, node.get(task, ""))
        found += interrupts.questions_in(pending, {})
    place = saved.config["configurable"]
    key = digest_values(place["thread_id"], place["checkpoint_id"], sorted(raised), shown.get("key", ""))
    shown = {"thread": str(place["thread_id"]), **shown, "key": f"langgraph-{key}"}
    return _Asked(found, waiting, _posting(found, shown))


def _posting(asked: Sequence[GraphQuestion], shown: Mapping[str, Any]) -> Posting:
    only = asked[0] if len(asked) == 1 else None
    calls = all(question.form != interrupts.ANSWER for question in asked)
    nodes = list(dict.fromkeys(f"“{question.node}”" for question in asked if question.node))
    again = f"With the answer, what runs again from its start: {', '.join(nodes)}." if nodes else ""
    several = f"{len(asked)} calls to review" if calls else f"{len(asked)} questions of the graph"
    words = [shown.get("summary", ""), only.description if only else "", again]
    described = [] if only else [(at, question) for at, question in enumerate(asked) if question.description]
    made = question_each(
        [],
        **{
            "title": only.title if only else several,
            "state": {"said": {f"a{at}": question.description for at, question in described}} if described else {},
            "quotes": [
                {"label": question.title, "role": "what the graph says of it", "pointer": f"/said/a{at}"}
                for at, question in described
            ],
            **shown,
            "summary": "\n\n".join(filter(None, words)),
        },
    )  # fmt: skip
    return replace(made, body=made.body | {"actions": [_action(question) for question in asked]})


def _action(question: GraphQuestion) -> dict[str, Any]:
    if not isinstance(question.arguments, Mapping):
        raise CannotAsk(f"The graph asks about {question.name} with arguments that are no object. Pass a dict.")
    try:
        arguments = to_json_data(question.arguments)
    except ValueError as error:
        raise CannotAsk(f"The arguments of {question.name or question.title} cannot be shown: {error}.") from error
    editable = bool(arguments or question.takes)
    verdicts = [verdict for verdict in question.allowed if verdict != EDIT or editable]
    if question.form == interrupts.ANSWER:
        verdicts.append(REJECT)  # raises Rejected in the program
    return {
        "id": _action_id(question), "title": question.title, "tool": question.tool, "arguments": arguments,
        "schema": question.takes, "missing": question.missing, "verdicts": verdicts,
    }  # fmt: skip


def _action_id(question: GraphQuestion) -> str:
    """Return the id of a question's action: the interrupt's, with the call's number where it asks about several."""
    return "interrupt_" + question.id.replace(".", "_")


def _wait_for_people(api: Api, posting: Posting) -> Op[tuple[Outcome, Gate]]:
    """Ask, wait for people, and return the outcome with the gate. Raises StillOpen."""
    turn = yield from post_gate(api, posting, ask_only=True)
    return (yield from Way(api, turn.gate or 0, timeout=posting.timeout, several=True).settled())


def _answers(asked: _Asked, outcome: Outcome, gate: Gate) -> dict[str, Any]:
    """Return the graph's answers by interrupt.

    Raises Withdrawn; Rejected and Expired for what the graph takes no rejection of; Altered.
    """
    found = [_decided(question, outcome, gate) for question in asked.questions]
    return {
        id: interrupts.answer_to([question for question in found if question.interrupt == id])
        for id in dict.fromkeys(question.interrupt for question in found)
        if id in asked.waiting
    }


def _decided(question: GraphQuestion, outcome: Outcome, gate: Gate) -> GraphQuestion:
    """Return the question with people's verdict on it, and with the arguments as they approved them."""
    action, ending = _action_id(question), outcome.outcome
    action_outcome = ending.actions.get(action) if ending else None
    refusal = gate_refusal(gate, [action], {"gate": gate.id, "run": gate.run, "url": gate.url})
    verdict = action_outcome.verdict if action_outcome else REJECT
    if ending is not None and ending.kind == EXPIRED and interrupts.takes_silence(question):
        verdict = EXPIRED
    elif ending is not None and ending.kind in (EXPIRED, "withdrawn") and refusal is not None:
        raise refusal
    elif verdict == REJECT or (ending is not None and ending.kind == "rejected"):
        verdict = REJECT
        if not interrupts.takes_refusal(question) and refusal is not None:
            raise refusal
    decision: dict[str, Any] = {"verdict": verdict}
    if verdict in (APPROVE, EDIT):
        edits, given = outcome.edits.get(action, []), (ending.arguments if ending else {}).get(action) or {}
        arguments = approved_arguments(gate, action, given, asked=to_json_data(question.asked), edits=edits)
        decision["verdict"] = EDIT if edits else APPROVE
        return question.model_copy(update={"decided": decision, "arguments": arguments})
    if verdict == RESPOND:
        decision["response"] = action_outcome.response if action_outcome else ""
    elif verdict == REJECT:
        decision["reason"] = (action_outcome.reason if action_outcome else "") or (ending.feedback if ending else "")
    return question.model_copy(update={"decided": decision})
