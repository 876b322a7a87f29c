"""People's verdicts as the graph's answer to each interrupt, in the form in which it asked. Pure.

The graph's answer is made of the arguments that people approved: an edit names them, and an approval means those that
were asked about, since the interrupted node reads the same state again. A question's `decided` is the verdict on it,
with the `reason` of a rejection and the `response` given instead; "expired" where nobody decided.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langgraph.errors import is_invalid_resume
from pydantic import ValidationError

from ..endings import INSTEAD, not_done
from .questions import BATCHED, BREAKPOINT, EDIT, INBOX, INBOXES, PER_CALL, REJECT, RESPOND, TEXT, GraphQuestion

EXPIRED = "expired"
NOBODY = not_done("Nobody decided in time, so the call did not run. This is not a rejection")


def takes_silence(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that nobody decided in time."""
    return bool({REJECT, RESPOND} & set(question.allowed))


def takes_refusal(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that a call was refused."""
    return REJECT in question.allowed


def refusal_of(error: ValidationError) -> str:
    """Return why the graph did not take an answer. Raises any other error."""
    if not is_invalid_resume(error):
        raise error
    return "; ".join(fault["msg"] for fault in error.errors(include_url=False))


def answer_to(mine: Sequence[GraphQuestion]) -> Any:
    """Return the answer to one interrupt, of which these are all questions."""
    first = mine[0]
    if first.form == BATCHED:
        return {"decisions": [_decision(question) for question in mine]}
    if first.form == PER_CALL:
        return _decision(first)
    if first.form in (INBOX, INBOXES):
        return [_response(question) for question in mine]
    if first.form == BREAKPOINT:
        return True
    return _filled_in(first)


def _decision(question: GraphQuestion) -> dict[str, Any]:
    verdict = _verdict(question)
    name = question.name
    if verdict == EDIT:
        return {"type": "edit", "edited_action": {"name": name, "args": question.arguments}}
    if verdict == RESPOND:
        return {"type": "respond", "message": _response_text(question)}
    if verdict == REJECT:
        return {"type": "reject", "message": reason(question)}
    return {"type": "approve"}


def _response(question: GraphQuestion) -> dict[str, Any]:
    verdict = _verdict(question)
    if verdict == EDIT:
        return {"type": "edit", "args": {"action": question.name, "args": question.arguments}}
    if verdict == RESPOND:
        return {"type": "response", "args": _response_text(question)}
    return {"type": "ignore" if verdict == REJECT else "accept", "args": None}


def _verdict(question: GraphQuestion) -> str:
    """Return the verdict; an expired question is refused, or answered where it takes no refusal."""
    verdict = str((question.decided or {})["verdict"])
    if verdict != EXPIRED:
        return verdict
    return REJECT if takes_refusal(question) else RESPOND


def _response_text(question: GraphQuestion) -> str:
    decided = question.decided or {}
    return NOBODY if decided["verdict"] == EXPIRED else str(decided.get("response", ""))


def reason(question: GraphQuestion) -> str:
    """Return what the model is told of a refusal."""
    decided = question.decided or {}
    if decided["verdict"] == EXPIRED:
        return NOBODY
    return " ".join(filter(None, [str(decided.get("reason", "")).strip(), INSTEAD]))


def _filled_in(question: GraphQuestion) -> Any:
    """Return the answer that was filled in. A text that is no answer to a schema may be JSON, such as `true`."""
    if question.takes.get("required") != ["answer"] or set(question.takes.get("properties", {})) != {"answer"}:
        return question.arguments
    value = question.arguments["answer"]
    if question.takes["properties"]["answer"] != TEXT or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
