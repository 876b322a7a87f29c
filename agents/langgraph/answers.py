"""A decision at the gate as what the graph gets for each interrupt, in the form in which it asked.

An interrupt that asks about several calls gets its answer once all of them are decided; until then the verdicts are
kept with the questions. The graph's answer is made of the arguments that people approved: an edit names them, and an
approval means those that were asked about, since the interrupted node reads the same state again.

What the model could not hear otherwise, a reviewer's edit or why the run was sent back, it is told by a message, in the
graph's channel `messages`, as LangGraph's `Command(update=…)` would add it, and only where a message may stand: never
between a call and its result. LangChain's middleware tells of an edit in the tool's result, and then nothing is added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdpoint.langgraph.interrupts import (
    ANSWER,
    EXPIRED,
    INBOX,
    INBOXES,
    GraphQuestion,
    answer_to,
    reason,
    takes_refusal,
)
from holdpoint.langgraph.values import decode_value, encode_value
from langchain_core.messages import AIMessage, HumanMessage

from approvals.cards.action import APPROVE, EDIT, LATER, REJECT
from approvals.schema import validate
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.patch import are_same

from . import position
from .compiled import CompiledGraph

NO_REFUSAL = "the graph takes no rejection of it; stop the run, or send it back"
MESSAGES = "messages"


class Heard(NamedTuple):
    """The answers by interrupt, the questions that still wait, and what the model has to be told by a message.

    `answered`: the questions that the answers are made of, with their verdicts.
    """

    answers: dict[str, Any]
    questions: list[GraphQuestion]
    notes: list[dict[str, Any]]
    answered: list[GraphQuestion]


def hear(questions: Sequence[GraphQuestion], decision: Mapping[str, Any], words: str) -> Heard:
    """Return what a decision means. `words`: what was said with a rejection of everything."""
    decided = [question if question.decided else _decided(question, decision, words) for question in questions]
    answers: dict[str, Any] = {}
    for interrupt in dict.fromkeys(question.interrupt or question.id for question in decided):
        mine = [question for question in decided if (question.interrupt or question.id) == interrupt]
        if all(question.decided for question in mine):
            answers[interrupt] = answer_to(mine)
    answered = [question for question in decided if (question.interrupt or question.id) in answers]
    waiting = [question for question in decided if (question.interrupt or question.id) not in answers]
    return Heard(answers, waiting, [note for question in answered for note in _notes(question)], answered)


def _decided(question: GraphQuestion, decision: Mapping[str, Any], words: str) -> GraphQuestion:
    kind, decided = decision["kind"], dict(decision.get("verdicts", {}).get(question.id, {}))
    if kind == "rejected" and not takes_refusal(question):
        return question.model_copy(update={"fault": NO_REFUSAL})
    if kind in ("rejected", EXPIRED):
        decided = {"verdict": REJECT if kind == "rejected" else EXPIRED, "reason": words, "by": decision.get("by", "")}
    verdict = decided.get("verdict", APPROVE)
    if verdict == LATER:
        return question
    if verdict in (APPROVE, EDIT):
        verdict = APPROVE if are_same(question.arguments, question.asked) else EDIT
        if verdict == EDIT and (faults := validate.faults_of(question.takes, question.arguments)):
            sentence = "; ".join(f"{place or 'it'}: {fault}" for place, fault in faults)
            return question.model_copy(update={"fault": sentence})
    return question.model_copy(update={"decided": {**decided, "verdict": verdict}, "fault": ""})


def _notes(question: GraphQuestion) -> list[dict[str, Any]]:
    """Return what the model has to know of an edit, or of a refusal that its form has no words for.

    `unless`: a text by which one sees that somebody else has told it, as LangChain's middleware does of an edit.
    """
    verdict, name = (question.decided or {})["verdict"], question.name
    if verdict == EDIT and question.form != ANSWER:
        was, now = encode_canonical(question.asked).decode(), json.dumps(question.arguments, default=str)
        text = (
            f"A reviewer changed your call of {name} before it ran. You asked for {was}; it ran with {now}. "
            "This was intended: do not repeat your original call."
        )
        return [{"text": text, "unless": now}]
    if verdict in (REJECT, EXPIRED) and question.form in (INBOX, INBOXES):
        refused = (
            f"A reviewer refused your call of {name}." if verdict == REJECT else f"Your call of {name} got no answer."
        )
        return [{"text": f"{refused} {reason(question)}", "unless": ""}]
    return []


def add_due_messages(
    graph: CompiledGraph, at: dict[str, Any], values: dict[str, Any], words: Sequence[str], *, answering: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Add the messages that are due to `values`; return the position after that, and what is still to be told."""
    due = [*at["told"], *({"text": f"A reviewer sent you back to here: {text}", "unless": ""} for text in words)]
    field = graph.channels.fields.get(MESSAGES, "")
    shown = values.get(field)
    if not due or not isinstance(shown, list) or not shown:
        return at, []
    messages = [decode_value(message, allow=graph.allow) for message in shown]
    if answering or _is_within_calls(messages):
        return at, due
    since = _since_last_turn(messages)
    texts = [note["text"] for note in due if not (note["unless"] and any(note["unless"] in text for text in since))]
    if not texts:
        return at, []
    head = at["root"]["head"]["id"]  # the ids are the same if this is tried again
    made = [HumanMessage(content=text, id=f"{head}-{number}") for number, text in enumerate(texts)]
    added = [encode_value(message, allow=graph.allow) for message in made]
    values[field] = [*shown, *added]
    return position.raised(at, MESSAGES, values[field]), []


def _is_within_calls(messages: Sequence[Any]) -> bool:
    """Tell whether the newest turn of the model has a call without a result."""
    answered = {getattr(message, "tool_call_id", "") for message in messages}
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    return last is not None and any(call["id"] not in answered for call in last.tool_calls)


def _since_last_turn(messages: Sequence[Any]) -> list[str]:
    found: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        found.append(str(message.content))
    return found
