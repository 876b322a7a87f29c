"""Reads a posted decision form: the choice, and the edits against the version that was on the screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from approvals.cards.action import EDIT, SETTLES
from approvals.cards.card import Card, Question
from approvals.cards.precondition import Precondition
from approvals.cards.verdicts import ActionVerdict, wordless
from approvals.decisions import edit_state, per_action
from approvals.errors import Problem, make_problem
from approvals.models import Proposal
from approvals.schema.redact import OPEN, Redaction

from . import actions, conflicts, typed_edits, verdict_choice, whole_state
from .actions import TypedDecision
from .conflicts import OpenConflict
from .verdict_choice import CONTRADICTED, UNCHANGED, UNFILLED, UNSENT, ChosenVerdict

ANSWER = "answer."  # before an answer's id, where answers are choices beside the verdicts
INSTEAD = "instead"  # the field by which other buttons of the page say what to do with an edit
RESTORE = "restore"
EACH = "each"  # the choice where each action is decided by itself
BACK = "back."  # before the step that the run is sent back to
SHOWN = "shown."  # before a choice: the mark of the impact that the page showed for it
CONFIRM = "confirm."  # before the ids of effects that may be repeated, and a choice
UNSHOWN = "0"  # the mark of no impact: a choice shown without one may do nothing
FIELD = "only_if."  # before the id, in the name of a check box
OFFERED = "offered."  # before the id, in the name of the hidden field beside it, as an unticked box posts nothing


@dataclass(frozen=True, kw_only=True)
class PostedDecision:
    """A posted decision. `decision` is ready for `Submission` where `problems` is empty."""

    chosen: str  # approve, edit, reject, answer, each, or nothing
    then: str = ""
    back_to: str = ""
    answer: str = ""
    comment: str = ""
    typed: TypedDecision = field(default_factory=TypedDecision)  # with its problems
    override: Mapping[str, str] = field(default_factory=dict)
    only_if: Collection[str] | None = None  # ids of the preconditions that are ticked; None: as the agent suggests
    each: Mapping[str, ChosenVerdict] = field(default_factory=dict)  # by action id, where each is decided by itself
    confirm: Mapping[str, Sequence[int]] = field(default_factory=dict)  # choice -> ids of effects ticked to repeat
    decision: Mapping[str, Any] = field(default_factory=dict)
    conflicts: Mapping[str, OpenConflict] = field(default_factory=dict)  # by input

    @property
    def rejects_each(self) -> bool:
        """Tell whether every action is rejected by itself, so that the page asks what happens to the run."""
        return self.chosen == EACH and "then" in self.decision

    @property
    def choice(self) -> str:
        """Return the page's name for this choice."""
        if self.decision.get("verdict") == "reject" or self.rejects_each:
            return BACK + self.decision["back_to"] if self.decision["then"] == "back" else "stop"
        if self.chosen == "answer":
            return ANSWER + self.answer
        return "override" if self.chosen == "reject" else self.chosen


NOTHING = PostedDecision(chosen="")


def read_over(form: Mapping[str, str], proposal: Proposal) -> PostedDecision:
    """Read a posted form against the proposal that it was rendered from. Raises NotVerified."""
    return read(form, proposal.card, whole_state.state_of(proposal), whole_state.veil_of(proposal.gate))


def read(
    form: Mapping[str, str], card: Card, state: Mapping[str, Any] | None = None, veil: Redaction = OPEN
) -> PostedDecision:
    """Read a posted form against the card that it was rendered from.

    `state` is the one that this version asks for, where the whole of it could be edited; `veil` hides its
    secrets.
    """
    open_ones = conflicts.found_in(form)
    form = as_edit(conflicts.settled(form, open_ones), card)
    sent = opposing(_read(form, card, state, veil), open_ones, card)
    choice = BACK + card.on_reject if sent.choice == BACK else sent.choice
    beside: dict[str, Any] = {"shown": form.get(SHOWN + choice) or UNSHOWN, "second_look": "second_look" in form}
    beside["confirm"] = list(sent.confirm.get(choice, ()))
    if "preconditions" in sent.decision:
        beside["dropped"] = dropped(card, sent.only_if or ())
    return replace(sent, decision={**sent.decision, **beside})


def opposing(sent: PostedDecision, open_ones: Mapping[str, OpenConflict], card: Card) -> PostedDecision:
    """Return it with its conflicts, which are problems of what approves while they are undecided."""
    if not open_ones:
        return sent
    left = conflicts.undecided(open_ones, card) if sent.chosen in ("approve", "edit", EACH) else []
    said = [each for each in sent.typed.errors if each["message"] != str(UNCHANGED)] if left else sent.typed.errors
    return replace(sent, conflicts=open_ones, typed=replace(sent.typed, errors=[*left, *said]))


def confirmed_in(form: Mapping[str, str]) -> dict[str, list[int]]:
    """Return choice -> ids of the effects whose boxes are ticked in a form; junk is ignored."""
    found: dict[str, list[int]] = {}
    for name in form:
        numbers, _, choice = name.removeprefix(CONFIRM).partition(".")
        if name.startswith(CONFIRM):
            known = [int(each) for each in numbers.split(",") if each.isascii() and each.isdigit() and len(each) < 19]
            found[choice] = found.get(choice, []) + known
    return found


def _read(form: Mapping[str, str], card: Card, state: Mapping[str, Any] | None, veil: Redaction) -> PostedDecision:
    chosen, then = form.get("verdict", ""), form.get("then", "")
    answer = form.get("answer", "")
    if chosen.startswith(ANSWER):
        chosen, answer = "answer", chosen.removeprefix(ANSWER)
    back = chosen == "reject" and then == "back"
    comment = reason_in(form) if chosen == "reject" and then != "override" else form.get("comment", "")
    base = PostedDecision(
        chosen=chosen,
        then=then,
        back_to=form.get("back_to", "") if back else "",
        answer=answer,
        comment=comment.replace("\r\n", "\n"),
        only_if=ticked_in(form, card),
        each=verdict_choice.chosen_in(form, card),
        confirm=confirmed_in(form),
        override={
            action.id: form[f"override.{action.id}"] for action in card.actions if f"override.{action.id}" in form
        },
    )
    if card.question is not None and not (chosen == "reject" and card.rejects):
        return answered(base, form, card, card.question)
    if chosen == "reject" and then == "override":
        return overridden(base, card)
    if chosen == EACH:
        return mixed(base, form, card)
    return edited(base, form, card, whole_state.read(form, state, veil))


def as_edit(form: Mapping[str, str], card: Card) -> Mapping[str, str]:
    """Turn an approval of changed fields into an edit, where its sender asked for that.

    They ask by a button, or by the choice beside each action whose fields they changed.
    """
    if form.get("verdict") not in ("approve", EACH) or card.question is not None:
        return form
    wanted = form.get(INSTEAD) == EDIT
    if not verdict_choice.has_ballots(card):
        return {**form, "verdict": EDIT} if wanted else form
    if form["verdict"] == "approve" and contradicted(card, verdict_choice.chosen_in(form, card)):
        return form  # a contradiction: nobody's rejection is turned into an approval
    if not wanted and (form["verdict"] == EACH or all(form.get(f"verdict.{each.id}") != EDIT for each in card.actions)):
        return form
    said = {name: form.get(f"verdict.{name}", "") for name in typed_edits.changed_in(form, card)}
    if form["verdict"] == "approve" and said and (wanted or set(said.values()) == {EDIT}):
        every = {f"verdict.{a.id}": a.settled_as or "approve" for a in card.actions}
        return {**form, "verdict": EACH, **every, **{f"verdict.{name}": EDIT for name in said}}
    also = [name for name, verdict in said.items() if verdict in ("", "approve")] if wanted else []
    return {**form, **{f"verdict.{name}": EDIT for name in also}}


def reason_in(form: Mapping[str, str]) -> str:
    """Return the reason of a rejection; without script it may be in the comment."""
    return form.get("feedback", "") if form.get("feedback", "").strip() else form.get("comment", "")


def edited(base: PostedDecision, form: Mapping[str, str], card: Card, whole: TypedDecision) -> PostedDecision:
    """Read an approval, an edit or a rejection, with the fields."""
    arguments, kept, problems = typed_edits.read(form, card)
    problems += whole.errors
    if whole.posted and arguments:  # one of the two edits would undo the other
        problems.append(edit_state.fault(edit_state.BOTH))
    chosen = base.chosen
    problems = problems if chosen in ("approve", "edit") else []
    if chosen not in ("approve", "edit", "reject"):
        problems.append(make_problem("Choose Approve, Edit or Reject.", pointer="/verdict"))
    elif chosen == "approve" and (opposed := contradicted(card, base.each)):
        problems += opposed
    elif chosen == "approve" and (arguments or whole.posted or problems):
        problems.append(make_problem(UNSENT, pointer="/verdict"))
    elif chosen == "edit" and not (arguments or whole.posted or problems):
        lacking = any(action.missing for action in card.actions)
        problems.append(make_problem(UNFILLED if lacking else UNCHANGED, pointer="/verdict"))
    typed = replace(whole, posted={**kept, **whole.posted}, arguments=arguments, errors=problems)
    decision: dict[str, Any] = {"verdict": chosen, "comment": base.comment}
    if chosen in ("approve", "edit"):
        decision["preconditions"] = base.only_if
    if chosen == "edit":
        decision |= {"arguments": arguments, "state": whole.state}
    if chosen == "reject":
        reasons = [(action, one.reason) for action in card.actions if (one := base.each.get(action.id))]
        decision |= {"comment": per_action.with_reasons(base.comment, card, reasons)}
        decision |= {"then": base.then, "back_to": base.back_to}
    return replace(base, typed=typed, decision=decision)


def contradicted(card: Card, each: Mapping[str, ChosenVerdict]) -> list[Problem]:
    """List a problem for each action whose own choice contradicts an approval of everything."""
    said = [(action, each[action.id].verdict) for action in card.actions if action.id in each]
    return [
        make_problem(CONTRADICTED, action=action.id, part="verdict")
        for action, verdict in said
        if verdict in SETTLES and action.settled_as != verdict
    ]


def mixed(base: PostedDecision, form: Mapping[str, str], card: Card) -> PostedDecision:
    """Read a verdict on each action. Fields of a refused action are kept but not sent."""
    arguments, kept, unread = typed_edits.read(form, card)
    said: dict[str, Any] = {}
    problems: list[Problem] = []
    for action in card.actions:
        chosen = base.each.get(action.id, ChosenVerdict())
        wrong = [one for one in unread if one["action"] == action.id]
        changed = action.id in arguments or bool(wrong)
        said[action.id], faults = verdict_choice.said_of(action, chosen, arguments.get(action.id), changed=changed)
        problems += [*faults, *(wrong if chosen.verdict == "edit" else [])]
    decision: dict[str, Any] = {"verdicts": said, "comment": base.comment}
    all_rejected = all(one.verdict == "reject" for one in base.each.values()) and len(base.each) == len(card.actions)
    for action in card.actions:  # reported together with the other faults, not only after these are corrected
        if said[action.id]:
            problems += wordless(action, ActionVerdict(**said[action.id]), all_rejected=all_rejected)
    if all_rejected:
        decision |= {"then": base.then, "back_to": form.get("back_to", "")}
        decision["comment"] = reason_in(form)
        decision["back_to"] = decision["back_to"] if decision["then"] == "back" else ""
    else:
        decision["preconditions"] = base.only_if
    typed = TypedDecision(posted=kept, arguments=arguments, errors=problems)
    return replace(base, typed=typed, decision=decision)


def edits_said(sent: PostedDecision) -> dict[str, ChosenVerdict]:
    """Return the verdict on each action; one with changed fields and no other verdict counts as edited."""
    said = {name: sent.each.get(name, ChosenVerdict()) for name in sent.typed.arguments}
    edited = {name: replace(one, verdict="edit") for name, one in said.items() if one.verdict in ("", "approve")}
    return {**sent.each, **edited}


def overridden(base: PostedDecision, card: Card) -> PostedDecision:
    """Read values that replace an action's arguments: an edit, reached from the reject menu."""
    arguments, problems = typed_edits.put_in_place(base.override, card)
    if not arguments and not problems:
        problems.append(
            make_problem("This is the value that is there already: write another one.", pointer="/override")
        )
    decision = {
        "verdict": "edit", "comment": base.comment, "arguments": arguments, "preconditions": base.only_if,
    }  # fmt: skip
    return replace(base, typed=TypedDecision(errors=problems), decision=decision)


def answered(base: PostedDecision, form: Mapping[str, str], card: Card, question: Question) -> PostedDecision:
    """Read an answer to a gate's question."""
    chosen = next((choice for choice in question["choices"] if choice["id"] == base.answer), None)
    problems: list[Problem] = []
    value = None
    if chosen is None:
        problems.append(make_problem("Choose one of the answers.", pointer="/choice"))
    elif chosen.get("needs_value"):
        read = actions.answer_form(card, chosen, form)
        problems += [make_problem(said, pointer="/value" + place) for place, said in read.errors.items()]
        value = read.value
    kept = {name: text for name, text in form.items() if name.startswith("value.")} | {"answer": base.answer}
    answer = {"choice": base.answer, "value": value}
    decision = {"verdict": "answer", "comment": base.comment, "answer": answer, "preconditions": base.only_if}
    return replace(base, typed=TypedDecision(posted=kept, errors=problems), decision=decision)


@dataclass(frozen=True, kw_only=True)
class ShownPrecondition:
    """One precondition, with its box."""

    precondition: Precondition
    ticked: bool
    effects: Sequence[str]  # the effects before which it is checked
    counts: bool  # at a closed gate: it was added, or required


def ticked_in(form: Mapping[str, str], card: Card) -> list[str]:
    """List the ids whose boxes are ticked in a posted form, even unknown ones.

    A preselected one counts as unticked only where its box was in the form.
    """
    ticked = [name.removeprefix(FIELD) for name in form if name.startswith(FIELD)]
    unasked = [each.id for each in card.preconditions if each.preselected and OFFERED + each.id not in form]
    return [*ticked, *(each for each in unasked if each not in ticked)]


def dropped(card: Card, ticked: Collection[str]) -> list[str]:
    """List the ids of the preselected ones that somebody unticked."""
    offered = [each for each in card.preconditions if each.preselected and not each.required]
    return [each.id for each in offered if each.id not in ticked]
