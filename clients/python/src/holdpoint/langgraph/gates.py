"""The gate of a graph that waits: an action for each thing that it asks, and people's decision as its answers. Pure.

A question has the same gate in every process: its key is made of the thread, the checkpoint and the ids of the
interrupts that were asked about together. Those that were answered stay among them as long as the graph is at that
checkpoint, so that a program that dies after some of the nodes went on finds the others' answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import StateSnapshot

from ..answers import Gate, Outcome
from ..awaiting import Way
from ..endings import refused
from ..errors import CannotAsk
from ..exact_calls import approved, digest
from ..exchange import Op
from ..posting import Posting, post, question_each
from ..sending import Api, plain
from . import questions
from .answers import EXPIRED, answer_to, takes_refusal, takes_silence
from .questions import ANSWER, APPROVE, EDIT, REJECT, RESPOND, GraphQuestion

INTERRUPT, RESUME = "__interrupt__", "__resume__"


@dataclass(frozen=True)
class Asked:
    """The questions of a graph at one gate. `waiting`: the ids of the interrupts that have no answer yet."""

    questions: Sequence[GraphQuestion]
    waiting: frozenset[str]
    posting: Posting

    def again(self, gate: int, why: str) -> Asked:
        """Return the same as another gate, since the graph did not take the answers of this one."""
        summary = "\n\n".join(filter(None, [f"The last answer was not taken: {why}.", self.posting.body["summary"]]))
        body = {**self.posting.body, "summary": summary}
        return replace(self, posting=replace(self.posting, body=body, key=f"{self.posting.key}-{gate}"))


def asked(state: StateSnapshot, saved: CheckpointTuple | None, shown: Mapping[str, Any]) -> Asked | None:
    """Return what the graph asks, as its newest checkpoint says; None if it asks nothing.

    `shown`: arguments of `question_each`; its `key` is a part of the gate's. Raises CannotAsk.
    """
    waiting = frozenset(each.id for each in state.interrupts)
    if not waiting or saved is None:
        return None
    node = {task.id: task.name for task in state.tasks}
    writes = saved.pending_writes or []
    resumed = {task for task, channel, _ in writes if channel == RESUME}
    raised = {each.id: (each, task) for task, channel, value in writes if channel == INTERRUPT for each in value}
    if any(task in resumed for each, task in raised.values() if each.id in waiting):
        raised = {id: each for id, each in raised.items() if id in waiting}  # a node asks once more
    found: list[GraphQuestion] = []
    for each, task in (raised[id] for id in sorted(raised)):
        pending = questions.Pending(each.id, each.value, each.response_schema, node.get(task, ""))
        found += questions.of(pending, {})
    place = saved.config["configurable"]
    key = digest(place["thread_id"], place["checkpoint_id"], sorted(raised), shown.get("key", ""))
    shown = {"thread": str(place["thread_id"]), **shown, "key": f"langgraph-{key}"}
    return Asked(found, waiting, _posting(found, shown))


def _posting(asked: Sequence[GraphQuestion], shown: Mapping[str, Any]) -> Posting:
    only = asked[0] if len(asked) == 1 else None
    calls = all(each.form != ANSWER for each in asked)
    nodes = list(dict.fromkeys(f"“{each.node}”" for each in asked if each.node))
    again = f"With the answer, what runs again from its start: {', '.join(nodes)}." if nodes else ""
    several = f"{len(asked)} calls to review" if calls else f"{len(asked)} questions of the graph"
    words = [shown.get("summary", ""), only.description if only else "", again]
    described = [] if only else [(at, each) for at, each in enumerate(asked) if each.description]
    made = question_each(
        [],
        **{
            "title": only.title if only else several,
            "state": {"said": {f"a{at}": each.description for at, each in described}} if described else {},
            "quotes": [
                {"label": each.title, "role": "what the graph says of it", "pointer": f"/said/a{at}"}
                for at, each in described
            ],
            **shown,
            "summary": "\n\n".join(filter(None, words)),
        },
    )  # fmt: skip
    return replace(made, body=made.body | {"actions": [_action(each) for each in asked]})


def _action(question: GraphQuestion) -> dict[str, Any]:
    if not isinstance(question.arguments, Mapping):
        raise CannotAsk(f"The graph asks about {question.name} with arguments that are no object. Pass a dict.")
    try:
        arguments = plain(question.arguments)
    except ValueError as error:
        raise CannotAsk(f"The arguments of {question.name or question.title} cannot be shown: {error}.") from error
    editable = bool(arguments or question.takes)
    verdicts = [each for each in question.allowed if each != EDIT or editable]
    if question.form == ANSWER:
        verdicts.append(REJECT)  # raises Rejected in the program
    return {
        "id": action_of(question), "title": question.title, "tool": question.tool, "arguments": arguments,
        "schema": question.takes, "missing": question.missing, "verdicts": verdicts,
    }  # fmt: skip


def action_of(question: GraphQuestion) -> str:
    """Return the id of a question's action: the interrupt's, with the call's number where it asks about several."""
    return "interrupt_" + question.id.replace(".", "_")


def decided(api: Api, posting: Posting) -> Op[tuple[Outcome, Gate]]:
    """Ask, wait for people, and return the outcome with the gate. Raises StillOpen."""
    turn = yield from post(api, posting, ask_only=True)
    return (yield from Way(api, turn.gate or 0, timeout=posting.timeout, each=True).settled())


def answers(asked: Asked, outcome: Outcome, gate: Gate) -> dict[str, Any]:
    """Return the graph's answers by interrupt.

    Raises Withdrawn; Rejected and Expired for what the graph takes no rejection of; Altered.
    """
    found = [_decided(each, outcome, gate) for each in asked.questions]
    return {
        id: answer_to([each for each in found if each.interrupt == id])
        for id in dict.fromkeys(each.interrupt for each in found)
        if id in asked.waiting
    }


def _decided(question: GraphQuestion, outcome: Outcome, gate: Gate) -> GraphQuestion:
    """Return the question with people's verdict on it, and with the arguments as they approved them."""
    action, ending = action_of(question), outcome.outcome
    said = ending.actions.get(action) if ending else None
    refusal = refused(gate, [action], {"gate": gate.id, "run": gate.run, "url": gate.url})
    verdict = said.verdict if said else REJECT
    if ending is not None and ending.kind == EXPIRED and takes_silence(question):
        verdict = EXPIRED
    elif ending is not None and ending.kind in (EXPIRED, "withdrawn") and refusal is not None:
        raise refusal
    elif verdict == REJECT or (ending is not None and ending.kind == "rejected"):
        verdict = REJECT
        if not takes_refusal(question) and refusal is not None:
            raise refusal
    told: dict[str, Any] = {"verdict": verdict}
    if verdict in (APPROVE, EDIT):
        edits, given = outcome.edits.get(action, []), (ending.arguments if ending else {}).get(action) or {}
        arguments = approved(gate, action, given, asked=plain(question.asked), edits=edits)
        told["verdict"] = EDIT if edits else APPROVE
        return question.model_copy(update={"decided": told, "arguments": arguments})
    if verdict == RESPOND:
        told["response"] = said.response if said else ""
    elif verdict == REJECT:
        told["reason"] = (said.reason if said else "") or (ending.feedback if ending else "")
    return question.model_copy(update={"decided": told})
