"""A decision at the gate as what the graph gets for each interrupt, in the form in which it asked.

An interrupt that asks about several calls gets its answer once all of them are decided; until then the verdicts are
kept with the questions. The graph's answer is made of the arguments that people approved: an edit names them, and an
approval means those that were asked about, since the interrupted node reads the same state again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from approvals.cards.action import APPROVE, EDIT, LATER, REJECT, RESPOND
from approvals.schema import validate
from checkpoints.values.canonical_json import canonical
from checkpoints.values.patch import same

from .channels import GraphQuestion
from .questions import ANSWER, BATCHED, BREAKPOINT, INBOX, INBOXES, PER_CALL, TEXT

EXPIRED = "expired"
NO_OTHER_WAY = "Do not try to reach the same result another way, unless you are asked to."
NO_REFUSAL = "the graph takes no rejection of it; stop the run, or send it back"
NOBODY = (
    "Nobody decided in time, so the call did not run. This is not a rejection: "
    "say that it waits for a decision, and do not try another way."
)


class Heard(NamedTuple):
    """The answers by interrupt, the questions that still wait, and what the model has to be told by a message."""

    answers: dict[str, Any]
    questions: list[GraphQuestion]
    told: list[dict[str, Any]]


def hear(questions: Sequence[GraphQuestion], decision: Mapping[str, Any], words: str) -> Heard:
    """Return what a decision means. `words`: what was said with a rejection of everything."""
    decided = [each if each.decided else _decided(each, decision, words) for each in questions]
    answers: dict[str, Any] = {}
    for interrupt in dict.fromkeys(each.interrupt or each.id for each in decided):
        mine = [each for each in decided if (each.interrupt or each.id) == interrupt]
        if all(each.decided for each in mine):
            answers[interrupt] = _answer(mine)
    told = [note for each in decided if (each.interrupt or each.id) in answers for note in _notes(each)]
    return Heard(answers, [each for each in decided if (each.interrupt or each.id) not in answers], told)


def takes_silence(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that nobody decided in time."""
    return bool({REJECT, RESPOND} & set(question.allowed))


def takes_refusal(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that a call was refused."""
    return REJECT in question.allowed


def _decided(question: GraphQuestion, decision: Mapping[str, Any], words: str) -> GraphQuestion:
    kind, said = decision["kind"], dict(decision.get("verdicts", {}).get(question.id, {}))
    if kind == "rejected" and not takes_refusal(question):
        return question.model_copy(update={"fault": NO_REFUSAL})
    if kind in ("rejected", EXPIRED):
        said = {"verdict": REJECT if kind == "rejected" else EXPIRED, "reason": words, "by": decision.get("by", "")}
    verdict = said.get("verdict", APPROVE)
    if verdict == LATER:
        return question
    if verdict in (APPROVE, EDIT):
        verdict = APPROVE if same(question.arguments, question.asked) else EDIT
        if verdict == EDIT and (faults := validate.faults_of(question.takes, question.arguments)):
            told = "; ".join(f"{place or 'it'}: {fault}" for place, fault in faults)
            return question.model_copy(update={"fault": told})
    return question.model_copy(update={"decided": {**said, "verdict": verdict}, "fault": ""})


def _answer(mine: Sequence[GraphQuestion]) -> Any:
    """Return the answer to one interrupt, of which these are all questions."""
    first = mine[0]
    if first.form == BATCHED:
        return {"decisions": [_decision(each) for each in mine]}
    if first.form == PER_CALL:
        return _decision(first)
    if first.form in (INBOX, INBOXES):
        return [_response(each) for each in mine]
    if first.form == BREAKPOINT:
        return True
    return _filled_in(first)


def _decision(question: GraphQuestion) -> dict[str, Any]:
    said = _verdict(question)
    name = question.name
    if said == EDIT:
        return {"type": "edit", "edited_action": {"name": name, "args": question.arguments}}
    if said == RESPOND:
        return {"type": "respond", "message": _response_text(question)}
    if said == REJECT:
        return {"type": "reject", "message": reason(question)}
    return {"type": "approve"}


def _response(question: GraphQuestion) -> dict[str, Any]:
    said = _verdict(question)
    if said == EDIT:
        return {"type": "edit", "args": {"action": question.name, "args": question.arguments}}
    if said == RESPOND:
        return {"type": "response", "args": _response_text(question)}
    return {"type": "ignore" if said == REJECT else "accept", "args": None}


def _verdict(question: GraphQuestion) -> str:
    """Return the verdict; an expired question is refused, or answered where it takes no refusal."""
    said = str((question.decided or {})["verdict"])
    if said != EXPIRED:
        return said
    return REJECT if takes_refusal(question) else RESPOND


def _response_text(question: GraphQuestion) -> str:
    decided = question.decided or {}
    return NOBODY if decided["verdict"] == EXPIRED else str(decided.get("response", ""))


def reason(question: GraphQuestion) -> str:
    """Return what the model is told of a refusal."""
    decided = question.decided or {}
    if decided["verdict"] == EXPIRED:
        return NOBODY
    return " ".join(filter(None, [str(decided.get("reason", "")).strip(), NO_OTHER_WAY]))


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


def _notes(question: GraphQuestion) -> list[dict[str, Any]]:
    """Return what the model has to know of an edit, or of a refusal that its form has no words for.

    `unless`: a text by which one sees that somebody else has told it, as LangChain's middleware does of an edit.
    """
    verdict, name = (question.decided or {})["verdict"], question.name
    if verdict == EDIT and question.form != ANSWER:
        was, now = canonical(question.asked).decode(), json.dumps(question.arguments, default=str)
        text = (
            f"A reviewer changed your call of {name} before it ran. You asked for {was}; it ran with {now}. "
            "This was intended: do not repeat your original call."
        )
        return [{"text": text, "unless": now}]
    if verdict in (REJECT, EXPIRED) and question.form in (INBOX, INBOXES):
        return [{"text": f"A reviewer refused your call of {name}. {reason(question)}", "unless": ""}]
    return []
