"""Seals what a graph goes on from, so that nobody decides about its calls by an edit of the state.

Whoever may edit a run need not be one who decides at its gates. An edit of a channel is LangGraph's `update_state`,
after which the graph asks anew. The answers, the verdicts that wait for others, and LangGraph's own position, which has
the calls that are due, are made by the agent's steps alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac
from holdpoint.langgraph.interrupts import GraphQuestion

from agents.errors import StepFailed
from checkpoints.values.canonical_json import encode_canonical

from .validity import SINCE

SEAL = "seal"
ASKED = {"id", "interrupt", "form", "name", "tool", "asked", "allowed", "graph", "call"}  # of a question, and the order
BROKEN = (
    "The field {} was changed by hand, which would decide in the place of those whom the gate asks. Rewind the run to "
    "a checkpoint before that. To change what the graph does, edit one of its channels: then it asks again."
)


def sealed(position: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the position with the seal on it and on the answers."""
    bare = {name: value for name, value in position.items() if name != SEAL}
    return {**bare, SEAL: _seal([bare, answers], settings.SECRET_KEY)}


def check(position: Mapping[str, Any], answers: Mapping[str, Any]) -> None:
    """Raise StepFailed if the position or the answers are not as a step left them."""
    bare = {name: value for name, value in position.items() if name != SEAL}
    if not _holds(position.get(SEAL), [bare, answers]):
        raise StepFailed(BROKEN.format("`langgraph` or `answers`"))


def kept(questions: Sequence[GraphQuestion], since: str) -> list[GraphQuestion]:
    """Return the questions with a seal on each verdict, and since when it holds."""
    return [_seal_verdict(question, since) if question.decided else question for question in questions]


def _seal_verdict(question: GraphQuestion, since: str) -> GraphQuestion:
    bare = question.model_copy(update={"decided": {**(question.decided or {}), SINCE: since}})
    seal = _seal(_verdict(bare), settings.SECRET_KEY)
    return bare.model_copy(update={"decided": {**(bare.decided or {}), SEAL: seal}})


def check_questions(questions: Sequence[GraphQuestion], asked: Sequence[GraphQuestion]) -> None:
    """Raise StepFailed if they are not what the graph asks, in its order, with the verdicts that were given."""
    now, was = ([question.model_dump(include=ASKED) for question in several] for several in (questions, asked))
    given = [(question.decided.get(SEAL), _verdict(question)) for question in questions if question.decided]
    if encode_canonical(now) != encode_canonical(was) or not all(_holds(seal, verdict) for seal, verdict in given):
        raise StepFailed(BROKEN.format("`questions`"))


def _verdict(question: GraphQuestion) -> Any:
    decided = {name: value for name, value in (question.decided or {}).items() if name != SEAL}
    return [question.id, question.arguments, decided]


def _holds(seal: Any, value: Any) -> bool:
    known = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return isinstance(seal, str) and any(constant_time_compare(seal, _seal(value, secret)) for secret in known)


def _seal(value: Any, secret: str) -> str:
    return salted_hmac("holdpoint.langgraph", encode_canonical(value), secret=secret, algorithm="sha256").hexdigest()
