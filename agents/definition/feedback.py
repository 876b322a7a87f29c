"""People's words to the agent: feedback, as items of the state's list, and questions at an open gate.

An item is `{"text", "by", "at", "gate"}`, or as much of it as the agent's items take; a list of texts gets the text.
Feedback about one action also has its id and a JSON Pointer into its arguments: `action`, `pointer`. Items without
these fields begin their text with the id.

A question goes to the agent's method `answer`, which returns the answer as a text. Its parameters are fields of the
state that the gate shows, and `question`, a ReviewerQuestion. It only reads: it has no `once`, and no effects.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from agents.errors import AgentError
from approvals.cards.card import Card
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import StepSpec
from checkpoints.values.json_pointer import make_pointer
from checkpoints.values.ops import Append

from . import fields
from .agent import Agent
from .decorators import MARK

ANSWER, QUESTION = "answer", "question"  # the method, and the parameter that gets what was asked


@dataclass(frozen=True, kw_only=True)
class SaidAtGate:
    """Something that was said at the gate before: a comment, a question, or the agent's own answer."""

    text: str
    by: str
    at: datetime
    agent: bool = False


@dataclass(frozen=True, kw_only=True)
class ReviewerQuestion:
    """A question at an open gate.

    `card` is the proposal as it stands, with people's edits, `state` the state that it asks for, as JSON values, and
    `thread` what was said before, the oldest first.
    """

    text: str
    by: str
    card: Card
    state: Mapping[str, Any]
    thread: Sequence[SaidAtGate] = ()


class Words(TypedDict, total=False):
    """One piece of feedback: text, author and time. `gate` is the gate's id, and 0 or missing outside a gate.

    `action` is the id of the action that it is about, missing or "" where it is about no single one.
    """

    text: str
    by: str
    at: datetime
    gate: int
    action: str
    pointer: str


def list_of(agent: type[Agent], where: str, step: StepSpec, declared: str | None) -> str:
    """Return the list into which the feedback about a step goes, `declared` or the usual one; "" for none.

    Raises AgentError where a declared one cannot hold it.
    """
    if step.kind == "step" and not (step.validators or step.catch):
        return ""
    name = "feedback" if declared is None else declared
    there = name in agent.State.model_fields and fields.is_list(agent.State, name)
    if declared and not there:
        raise AgentError(f"{where} puts feedback into {name}, which is not a list field of its State.")
    if there and not takes(agent, name, gate=step.kind == "gate"):
        if declared:
            raise AgentError(f"{where} puts feedback into {name}, whose items take no text, by, at and gate.")
        return ""
    return name if there else ""


def append_words(agent: type[Agent], field: str, feedback: Sequence[Words]) -> dict[str, Append]:
    """Return the write that appends the words to the list `field`; {} where the agent has no such list.

    Raises ValueRefused where the agent's items have another form.
    """
    return {field: Append([item(agent, field, words) for words in feedback])} if field and feedback else {}


def item(agent: type[Agent], field: str, words: Words) -> Any:
    """Return the words as an item of the list `field`, in the fullest form that it takes. Raises ValueRefused."""
    refused: ValueRefused | None = None
    for form in _forms(words):
        try:
            return fields.dumped(agent.State, field, Append([form])).items[0]
        except ValueRefused as error:
            refused = refused or error
    raise refused or ValueRefused(make_pointer(field), "takes no words")


def takes(agent: type[Agent], field: str, *, gate: bool) -> bool:
    """Tell whether the list's items can hold feedback: from a gate, or from elsewhere (`gate=False`)."""
    try:
        item(agent, field, Words(text="words", by="somebody", at=datetime(2000, 1, 1, tzinfo=UTC), gate=int(gate)))
    except ValueRefused:
        return False
    return True


def names_actions(agent: type[Agent], field: str) -> bool:
    """Tell whether the list's items have a field for the action that they are about; then edits are fed back too."""
    if not field or not takes(agent, field, gate=True):
        return False
    words = Words(text="words", by="somebody", at=datetime(2000, 1, 1, tzinfo=UTC), gate=1, action="one", pointer="")
    made = item(agent, field, words)
    return isinstance(made, dict) and made.get("action") == "one"


def _forms(words: Words) -> Iterator[Any]:
    gate, at, action = words.get("gate", 0), words["at"].isoformat(), words.get("action", "")
    whole = {"text": words["text"], "by": words["by"], "at": at}
    if action:
        yield whole | {"gate": gate, "action": action, "pointer": words.get("pointer", "")}
        whole["text"] = f"{action}{words.get('pointer', '')}: {words['text']}"
    yield whole | {"gate": gate}
    if not gate:
        yield whole | {"gate": None}
        yield whole
    yield whole["text"]


def answers(agent: type[Agent]) -> bool:
    """Tell whether the agent answers questions: its method `answer` is no step."""
    method = getattr(agent, ANSWER, None)
    return callable(method) and not hasattr(method, MARK)


def check_answer(agent: type[Agent]) -> None:
    """Check the parameters of the agent's `answer`, and its time limit. Raises AgentError."""
    if not answers(agent):
        return
    where = f"{agent.name}.{ANSWER}"
    for name in list(inspect.signature(getattr(agent, ANSWER)).parameters)[1:]:
        if name != QUESTION and name not in agent.State.model_fields:
            raise AgentError(f"{where} reads {name}, which is not a field of the agent's State.")
    if not agent.answers_within > 0:
        raise AgentError(f"{where} has answers_within={agent.answers_within!r}; write seconds.")
