"""A posted decision form, read: what was chosen, what was edited against the version that was on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals import forms
from approvals.cards import Card, Question
from approvals.errors import Problem, problem
from checkpoints import values
from checkpoints.errors import ValueRefused
from checkpoints.patch import changes, same

from . import actions, preconditions
from .actions import Typed

ANSWER = "answer."  # before a choice's id, where an answer is one verdict among others
UNSENT = "You changed a field, so this is an edit: choose Edit to send it, or put the field back."
UNCHANGED = "Nothing is changed yet: change a field, or choose Approve."


@dataclass(frozen=True, kw_only=True)
class Posted:
    """What somebody sent. `decision` is ready for Gate.decide where `problems` is empty."""

    chosen: str  # approve, edit, reject, answer, or nothing
    then: str = ""
    back_to: str = ""
    answer: str = ""
    comment: str = ""
    typed: Typed = field(default_factory=Typed)  # with the problems
    override: Mapping[str, str] = field(default_factory=dict)
    only_if: Sequence[str] = ()  # ids of the preconditions that were ticked
    decision: Mapping[str, Any] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        return list(self.typed.errors)


def read(form: Mapping[str, str], card: Card) -> Posted:
    """Read a posted form against the card that it was rendered from."""
    chosen, then = form.get("verdict", ""), form.get("then", "")
    answer = form.get("answer", "")
    if chosen.startswith(ANSWER):
        chosen, answer = "answer", chosen.removeprefix(ANSWER)
    back = chosen == "reject" and then == "back"
    comment = form.get("feedback", "") if back else form.get("comment", "")
    common = {
        "chosen": chosen,
        "then": then,
        "back_to": form.get("back_to", "") if back else "",
        "answer": answer,
        "comment": comment.replace("\r\n", "\n"),
        "only_if": preconditions.ticked_in(form),
        "override": {
            action.id: form[f"override.{action.id}"] for action in card.actions if f"override.{action.id}" in form
        },
    }
    if card.question is not None and not (chosen == "reject" and card.rejects):
        return answered(form, card.question, common)
    if chosen == "reject" and then == "override":
        return overridden(form, card, common)
    return edited(form, card, common)


def edited(form: Mapping[str, str], card: Card, common: dict[str, Any]) -> Posted:
    """Approve, edit or reject, with whatever stands in the fields."""
    arguments: dict[str, Any] = {}
    kept: dict[str, str] = {}
    problems: list[Problem] = []
    for action in card.actions:
        if not actions.editable(action):
            continue
        read = actions.form_of(action, form)
        problems += [problem(said, action=action.id, pointer=place) for place, said in read.errors.items()]
        if read.value is not action.arguments and not same(read.value, action.arguments):
            arguments[action.id] = read.value
        kept |= read.touched | forms.names.drawn(form, actions.prefix(action))
    chosen = common["chosen"]
    problems = problems if chosen in ("approve", "edit") else []
    if chosen not in ("approve", "edit", "reject"):
        problems.append(problem("Choose Approve, Edit or Reject.", pointer="/verdict"))
    elif chosen == "approve" and (arguments or problems):
        problems.append(problem(UNSENT, pointer="/verdict"))
    elif chosen == "edit" and not arguments and not problems:
        problems.append(problem(UNCHANGED, pointer="/verdict"))
    typed = Typed(posted=kept, arguments=arguments, errors=problems)
    decision = {"verdict": chosen, "comment": common["comment"]}
    if chosen in ("approve", "edit"):
        decision["preconditions"] = common["only_if"]
    if chosen == "edit":
        decision["arguments"] = arguments
    if chosen == "reject":
        decision |= {"then": common["then"] or "stop", "back_to": common["back_to"]}
    return Posted(**common, typed=typed, decision=decision)


def overridden(form: Mapping[str, str], card: Card, common: dict[str, Any]) -> Posted:
    """Values put in the place of an action's arguments: an edit, reached from the reject menu."""
    arguments: dict[str, Any] = {}
    problems: list[Problem] = []
    for action_id, text in common["override"].items():
        action = card.action(action_id)
        if action is None or not actions.editable(action):
            continue
        try:
            value = values.parse(text)
        except ValueRefused as refused:
            place = f" at {refused.pointer}" if refused.pointer else ""
            problems.append(problem(f"Write JSON: {refused.reason}{place}.", action=action_id))
            continue
        if not same(value, action.arguments):
            arguments[action_id] = value
    if not arguments and not problems:
        problems.append(problem("This is the value that is there already: write another one.", pointer="/override"))
    decision = {"verdict": "edit", "comment": common["comment"], "arguments": arguments}
    decision["preconditions"] = common["only_if"]
    return Posted(**common, typed=Typed(errors=problems), decision=decision)


def answered(form: Mapping[str, str], question: Question, common: dict[str, Any]) -> Posted:
    """An answer to a gate's question."""
    chosen = next((choice for choice in question["choices"] if choice["id"] == common["answer"]), None)
    problems: list[Problem] = []
    value = None
    if chosen is None:
        problems.append(problem("Choose one of the answers.", pointer="/choice"))
    elif chosen.get("needs_value"):
        read = actions.answer_form(chosen, form)
        problems += [problem(said, pointer="/value" + place) for place, said in read.errors.items()]
        value = read.value
    kept = {name: text for name, text in form.items() if name.startswith("value.")} | {"answer": common["answer"]}
    answer = {"choice": common["answer"], "value": value}
    decision = {"verdict": "answer", "comment": common["comment"], "answer": answer}
    decision["preconditions"] = common["only_if"]
    return Posted(**common, typed=Typed(posted=kept, errors=problems), decision=decision)


def rows(posted: Posted, card: Card) -> list[dict[str, Any]]:
    """The edit as rows, where there is no form left to keep it in."""
    found: list[dict[str, Any]] = []
    for action_id, arguments in posted.typed.arguments.items():
        action = card.action(action_id)
        found += changes(action.arguments, arguments) if action else []
    return found


def carried_over(posted: Posted, card: Card) -> Typed:
    """What was typed, read again against a card that has changed since: nothing typed is lost."""
    arguments = {}
    for action in card.actions:
        if actions.editable(action):
            read = actions.form_of(action, posted.typed.posted)
            if read.value is not action.arguments:
                arguments[action.id] = read.value
    return Typed(posted=posted.typed.posted, arguments=arguments)
