"""A submission: what a reviewer sends, and the checks that need no gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals.cards import precondition
from approvals.cards.card import Card
from approvals.errors import EditRefused, Invalid, Problem, make_problem
from approvals.models import Decision, Policy
from checkpoints.errors import ValueRefused
from checkpoints.values import characters, digests, json_pointer

from .edit_state import BOTH, fault

COMMENT_LIMIT = 20_000  # characters
MOST_NAMED = 100  # preconditions that one decision adds, and that it drops
NO_REASON = "Write why you reject this."
NO_THEN = "Choose what happens after the rejection."
Verdict = Decision.Verdict
Then = Decision.Then


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A reviewer's submission: `verdict` is about all actions at once, `verdicts` about each by itself."""

    seen: bytes  # the digest of the proposal that was on the screen
    key: str = ""
    verdict: str = ""
    # By action id: {"verdict": approve, edit, reject or respond, and its "arguments", "reason" or "response"}
    verdicts: Mapping[str, Mapping[str, Any]] | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of an edit, by action id
    comment: str = ""
    then: str = ""  # of a rejection
    back_to: str = ""
    answer: Mapping[str, Any] | None = None  # {"choice", "value"}
    state: Mapping[str, Any] | None = None  # of an edit of the whole state, where the policy allows it
    preconditions: Sequence[str] = ()  # ids of those that are added to the required ones
    dropped: Sequence[str] = ()  # ids of preselected ones that are not to hold
    shown: str = ""  # the mark of the impact that was shown; empty where none was
    confirm: Sequence[int] = ()  # numbers of effects that were done before and may be done once more
    second_look: bool = False  # they looked once more, after a streak of fast approvals
    bulk: int = 0  # the number of the bulk decision that it is part of

    def __post_init__(self) -> None:
        if self.verdicts is not None and not self.verdict:
            object.__setattr__(self, "verdict", Verdict.MIXED)

    def digest(self) -> bytes:
        """Return the digest of all but the key, the mark and the bulk decision.

        Raises Invalid for what JSON cannot hold.
        """
        content = {name: value for name, value in vars(self).items() if name not in ("key", "seen", "shown", "bulk")}
        try:
            return digests.of_value({**content, "confirm": sorted(set(self.confirm)), "seen": self.seen.hex()})
        except ValueRefused as refused:
            raise Invalid([_unwritable(refused)]) from refused


def check_key(submission: Submission) -> None:
    """Check the key before it is looked up. Raises Invalid."""
    if not characters.is_key(submission.key):
        raise Invalid([make_problem(characters.KEY_RULE, pointer="/key")])


def _unwritable(refused: ValueRefused) -> Problem:
    """Return the fault, with its action where it is in one."""
    where = json_pointer.split_pointer(refused.pointer)
    if where[:1] == ["verdicts"] and len(where) > 2:
        part = "" if where[2] == "arguments" else where[2]
        return make_problem(refused.reason, action=where[1], part=part, pointer=json_pointer.join("", *where[3:]))
    if where[:1] == ["state"]:
        return fault(refused.reason, json_pointer.join("", *where[1:]))
    if where[:1] != ["arguments"] or len(where) < 2:
        return make_problem(refused.reason, pointer=refused.pointer)
    return make_problem(refused.reason, action=where[1], pointer=json_pointer.join("", *where[2:]))


def check_form(submission: Submission, card: Card, policy: Policy) -> None:
    """Refuse what no gate under this policy could take, before anything else is checked. Raises Invalid."""
    faults = []
    if submission.verdict not in Verdict.values:
        faults.append(make_problem("Choose approve, edit, reject or answer.", pointer="/verdict"))
    if submission.verdicts and submission.verdict != Verdict.MIXED:
        faults.append(make_problem("Say one verdict for all actions, or one for each of them.", pointer="/verdict"))
    if submission.verdict == Verdict.MIXED and submission.then == Then.BACK:
        faults.append(make_problem("Only a rejection of all actions sends the run back.", pointer="/then"))
    if len(submission.comment) > COMMENT_LIMIT:
        faults.append(make_problem(f"Write at most {COMMENT_LIMIT:,} characters.", pointer="/comment"))
    if submission.answer is not None and submission.verdict != Verdict.ANSWER:
        faults.append(make_problem("Only an answer takes a choice.", pointer="/answer"))
    if submission.verdict == Verdict.REJECT:
        if policy.reason_required and card.rejects and not submission.comment.strip():
            faults.append(make_problem(NO_REASON, pointer="/comment"))
        faults += _reject_faults(submission, card)
    faults += _precondition_faults(submission, card)
    if faults:
        raise Invalid(faults)
    if submission.arguments and submission.verdict != Verdict.EDIT:
        raise EditRefused(
            [make_problem("Only an edit takes new values.", action=name) for name in submission.arguments]
        )
    if submission.state is not None and submission.verdict != Verdict.EDIT:
        raise EditRefused([fault("Only an edit of all that is asked takes a new state.")])
    if submission.state is not None and submission.arguments:
        raise Invalid([fault(BOTH)])


def _reject_faults(submission: Submission, card: Card) -> list[Problem]:
    if not card.rejects:
        return [make_problem("Choose one of the answers; one of them stops the run.", pointer="/verdict")]
    if submission.then not in Then.values:
        return [make_problem(NO_THEN, pointer="/then")]
    if submission.then == Then.BACK and back_to(submission, card) not in card.back_to:
        return [make_problem("Choose one of the steps that the run can be sent back to.", pointer="/back_to")]
    return []


def _precondition_faults(submission: Submission, card: Card) -> list[Problem]:
    named = {"preconditions": submission.preconditions, "dropped": submission.dropped}
    if submission.verdict == Verdict.REJECT:
        told = "A rejection runs nothing, so it takes no preconditions."
        return [make_problem(told, pointer=f"/{name}") for name, ids in named.items() if ids]
    many = [
        make_problem(f"Name at most {MOST_NAMED}.", pointer=f"/{name}")
        for name, ids in named.items()
        if len(ids) > MOST_NAMED
    ]
    if many:
        return many
    offered = {each.id: each for each in card.preconditions}
    faults = []
    for name, ids in named.items():
        unknown = [n for n, each in enumerate(ids) if each not in list(offered)]
        faults += [make_problem("The gate offers no such precondition.", pointer=f"/{name}/{n}") for n in unknown]
    for n, each in enumerate(submission.dropped):
        if each in submission.preconditions:
            faults.append(make_problem("This is added and dropped; say one of both.", pointer=f"/dropped/{n}"))
        elif each in list(offered) and offered[each].required:
            faults.append(make_problem("The agent requires this; you cannot drop it.", pointer=f"/dropped/{n}"))
    return faults


def added(submission: Submission, card: Card) -> list[str]:
    """List the preconditions that this decision adds, in the card's order: preselected and not dropped ones too."""
    if submission.verdict == Verdict.REJECT:
        return []
    return precondition.agreed_to(card.preconditions, added=submission.preconditions, dropped=submission.dropped)


def back_to(submission: Submission, card: Card) -> str:
    if submission.verdict != Verdict.REJECT or submission.then != Then.BACK:
        return ""
    return submission.back_to or card.on_reject
