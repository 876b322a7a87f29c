"""Applies an edit: new arguments for some actions, checked as a change of the state. Reads no tables.

Edits of what the gate does not offer are refused first. The rest goes to the agent's own validator as a whole state,
and its normal form is what others see, what is hashed and what runs.

It also checks which files an edit may bring in, and which a gate may hand out.

A reference is a digest, and digests get around. So an edit may name files that the gate's state or the current proposal
names already, and files uploaded at this very gate; anything else would hand out a file to whoever knows its digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from approvals.cards.action import Action, editable, pinned_faults
from approvals.cards.card import Card, scrubbed, state_veil
from approvals.errors import EditRefused, Invalid, Problem, make_problem
from approvals.models import Decision, Gate, Proposal, Upload
from approvals.schema import validate
from checkpoints.errors import ValueRefused
from checkpoints.models import Plan
from checkpoints.retention import stray_artifacts
from checkpoints.runs.plans import StepSpec, spec_of
from checkpoints.values import artifacts, json_pointer, patch
from checkpoints.values.artifacts import MARK, Reference
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.patch import Op

from . import validators

Verdict = Decision.Verdict
NOTHING = "Nothing is different from what is proposed; choose Approve, or change a value."


@dataclass(frozen=True, kw_only=True)
class CurrentProposal:
    """The proposal that an edit starts from: a card, and a patch that leads to it from the gate's state, `saved`."""

    card: Card
    patch: Sequence[Op]
    saved: dict[str, Any]
    plan: Plan
    step: str

    @classmethod
    def of(cls, gate: Gate, proposal: Proposal) -> Self:
        """Read it from the rows. Raises NotVerified."""
        return cls(
            card=proposal.card, patch=proposal.state_patch, saved=gate.saved.state, plan=gate.run.plan, step=gate.step
        )

    @property
    def spec(self) -> StepSpec:
        return spec_of(self.plan).step(self.step)

    @property
    def state(self) -> dict[str, Any]:
        """Return the state that is proposed."""
        state: dict[str, Any] = patch.apply(list(self.patch), self.saved)
        return state


@dataclass(frozen=True, kw_only=True)
class NextProposal:
    """The proposal that replaces the current one. `patch` leads from the gate's saved state to what it asks for."""

    card: Card
    patch: list[dict[str, Any]]
    answer: Any = None
    changed: tuple[str, ...] = ()  # ids of the actions that differ from the current proposal's
    kind: Verdict = Verdict.EDIT


def edited(current: CurrentProposal, arguments: Mapping[str, Any]) -> NextProposal:
    """Apply new `arguments`, by action id. Raises EditRefused or Invalid with every problem at once."""
    card = current.card
    arguments = {name: _kept(card.action(name), new) for name, new in arguments.items()}
    wanted = _wanted(card, arguments, editable(current.spec))
    state = after = current.state
    for action in sorted(wanted, key=lambda a: len(a.pointer)):
        after = patch.put(after, action.pointer, arguments[action.id])
    valid = normal(current.plan, after, partial(located, card))
    for action in wanted:
        _refuse_dropped(action, arguments[action.id], valid)
        state = patch.put(state, action.pointer, json_pointer.find_value(valid, action.pointer))
    _refuse_beside(card, wanted, state)
    made = drawn(current, state)
    if not made.changed:
        raise Invalid([make_problem(NOTHING)])
    if long := [make_problem(told, action=each.id) for each in made.card.actions for told in pinned_faults(each)]:
        raise Invalid(long)
    return made


def drawn(current: CurrentProposal, state: dict[str, Any]) -> NextProposal:
    """Return the proposal that an edit to `state` makes. Raises Invalid where it does not fit a registered tool."""
    card = current.card
    final = arguments_in(state, card)
    changed = tuple(a.id for a in card.actions if not patch.are_same(a.arguments, final[a.id]))
    made = redrawn(current, state).with_arguments(final)
    unfit = [
        make_problem(message, action=action.id, pointer=place, at=action.pointer + place)
        for action in made.actions
        if action.registered and action.id in changed
        for place, message in validate.faults_of(action.schema, action.arguments)
    ]
    if unfit:
        raise Invalid(unfit)
    return NextProposal(card=made, patch=patch.diff(current.saved, state), changed=changed)


def arguments_in(state: Mapping[str, Any], card: Card) -> dict[str, Any]:
    """Return the arguments of each action as a state has them, by action id."""
    return {a.id: json_pointer.find_value(state, a.pointer) if a.pointer else a.arguments for a in card.actions}


def _kept(action: Action | None, new: Any) -> Any:
    """Return the sent arguments with placeholders replaced by the secrets they stand for. Raises Invalid."""
    if action is None:
        return new
    try:
        return action.redaction.restore(new, action.arguments)
    except ValueRefused as refused:
        raise Invalid([make_problem(refused.reason, action=action.id, pointer=refused.pointer)]) from refused


def _wanted(card: Card, arguments: Mapping[str, Any], offered: Sequence[str]) -> list[Action]:
    """List the actions that the edit changes. Raises EditRefused for everything that may not be edited."""
    refused: list[Problem] = []
    wanted: list[Action] = []
    for action_id, new in arguments.items():
        action = card.action(action_id)
        if action is None:
            refused.append(make_problem("The gate has no such action.", action=action_id))
            continue
        rows = patch.list_changes(action.arguments, new)
        free = offered if action.edits and action.pointer else ()
        reached = [(row, action.pointer + _reach(row, action.arguments)) for row in rows]
        beyond = [row for row, at in reached if not any(json_pointer.covers_place(place, at) for place in free)]
        refused += [_beyond(action, row["pointer"]) for row in beyond]
        wanted += [action] if rows else []
    refused += [
        make_problem("Two actions share this value; edit it in one of them.", action=two.id, at=two.pointer)
        for index, one in enumerate(wanted)
        for two in wanted[index + 1 :]
        if json_pointer.overlaps(one.pointer, two.pointer)
    ]
    if refused:
        raise EditRefused(refused)
    if not wanted:
        raise Invalid([make_problem(NOTHING)])
    return wanted


def _reach(row: Mapping[str, Any], before: Any) -> str:
    """Return the place that a change alters: the whole list where an item was added, removed or moved."""
    outer = row["pointer"].rpartition("/")[0]
    shifts = row["kind"] != "changed" and isinstance(json_pointer.get(before, outer), list)
    return outer if shifts and row["pointer"] else str(row["pointer"])


def _beyond(action: Action, pointer: str) -> Problem:
    return make_problem("This cannot be edited here.", action=action.id, pointer=pointer, at=action.pointer + pointer)


def normal(plan: Plan, state: dict[str, Any], fault: Callable[[str, str], Problem]) -> dict[str, Any]:
    """Return the state in the normal form of the agent's model. Raises Invalid, with faults made by `fault`."""
    try:
        valid, faults = validators.validated(plan, state)
    except validators.NoValidator as unknown:
        raise Invalid([fault(str(unknown), "")]) from unknown
    if faults:
        raise Invalid([fault(each["message"], each["pointer"]) for each in faults])
    return valid


def located(card: Card, message: str, place: str) -> Problem:
    """Attribute a fault of the state to the innermost action whose arguments it is in."""
    owners = [a for a in card.actions if a.pointer and json_pointer.covers_place(a.pointer, place)]
    if not owners:
        return make_problem(message, at=place)
    owner = max(owners, key=lambda action: len(action.pointer))
    return make_problem(message, action=owner.id, pointer=place[len(owner.pointer) :], at=place)


def _refuse_dropped(action: Action, sent: Any, state: dict[str, Any]) -> None:
    """Raise EditRefused where the agent's model drops a name that was sent, which would vanish silently."""
    there = json_pointer.has_value(state, action.pointer)
    places = dropped(sent, json_pointer.find_value(state, action.pointer)) if there else [""]
    refused = [_beyond(action, place) for place in places]
    if refused:
        raise EditRefused(refused)


def _refuse_beside(card: Card, wanted: Sequence[Action], state: dict[str, Any]) -> None:
    """Raise EditRefused where an edit changes another, nested action that takes no edit, is refused or would vanish."""
    refused: list[Problem] = []
    for other in card.actions:
        if not other.pointer or other in wanted:
            continue
        there = json_pointer.has_value(state, other.pointer)
        free = other.edits and other.settled is None
        if there and (free or patch.are_same(json_pointer.find_value(state, other.pointer), other.arguments)):
            continue
        owner = next(each for each in wanted if json_pointer.overlaps(each.pointer, other.pointer))
        within = other.pointer[len(owner.pointer) :] if json_pointer.covers_place(owner.pointer, other.pointer) else ""
        if not other.edits:
            said = f"The action '{other.id}' asks about this too, and takes no edit."
        elif other.settled:
            said = f"The action '{other.id}' asks about this too, and is refused."
        else:
            said = f"The action '{other.id}' asks about this too, and would be left without it."
        refused.append(make_problem(said, action=owner.id, pointer=within, at=other.pointer))
    if refused:
        raise EditRefused(refused)


def dropped(sent: Any, normal: Any, pointer: str = "") -> list[str]:
    """List the pointers in `sent` that its normal form lacks."""
    if isinstance(sent, dict) and isinstance(normal, dict):
        gone = [json_pointer.join(pointer, name) for name in sent if name not in normal]
        kept = [name for name in sent if name in normal]
        return gone + [p for name in kept for p in dropped(sent[name], normal[name], json_pointer.join(pointer, name))]
    if isinstance(sent, list) and isinstance(normal, list) and len(sent) == len(normal):
        return [p for i, item in enumerate(sent) for p in dropped(item, normal[i], json_pointer.join(pointer, str(i)))]
    return []


def redrawn(current: CurrentProposal, state: dict[str, Any]) -> Card:
    """Return the card with texts that describe the edited state.

    Only words are taken from a card drawn anew; its actions, and what they allow, stay as they were asked. Where nobody
    can draw it, the amount is cleared, since it belongs to values that will not run.
    """
    card = current.card
    observed = {each.observes: each.value for each in card.preconditions}
    anew = validators.redrawn(current.plan, current.step, state, observed)
    if anew is None:
        return replace(card, amount="")
    words = scrubbed(anew, state_veil(spec_of(current.plan)).words(state))
    return replace(card, title=words.title, summary=words.summary, amount=words.amount)


FOREIGN = "This file was not uploaded here; choose it in the form."
GONE = "This file is not kept any more; choose it again."


def refuse_foreign(gate: Gate, standing: Proposal, saved: Mapping[str, Any], *wanted: Any) -> None:
    """Raise Invalid where any of these values names a file that is neither there already nor uploaded here."""
    found = [each for value in wanted for _, each in artifacts.references(value)]
    known = [each for value in (saved, standing.content) for _, each in artifacts.references(value)] if found else []
    there = {_content(each) for each in known}
    new = [each for each in found if _content(each) not in there]
    digests = {str(each[MARK]) for each in new} - {str(each[MARK]) for each in known}
    if digests and digests - Upload.objects.of(gate, digests):
        raise Invalid([make_problem(FOREIGN)])
    if artifacts.missing(new):
        raise Invalid([make_problem(GONE)])


def referenced(digest: str, *values: Any) -> Reference | None:
    """Find the first well-formed reference to this content in any of these values."""
    found = (each for value in values for _, each in artifacts.references(value))
    return next((each for each in found if each[MARK] == digest and artifacts.is_reference(each)), None)


def named_in() -> Iterator[Iterable[bytes]]:
    """Yield the digests of uploads that a prune spares, since they may still be written into a state."""
    yield (encode_canonical({MARK: each}) for each in stray_artifacts.column(Upload.objects.needed(), "digest"))


def _content(reference: Reference) -> tuple[str, str]:
    """Return the digest and the size that a reference names."""
    return str(reference[MARK]), repr(reference.get("size"))
