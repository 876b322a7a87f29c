"""A submission: what a reviewer sends, and the checks that need no gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.cards import precondition
from approvals.cards.card import Card
from approvals.errors import EditRefused, Invalid, Problem, problem
from approvals.models import Decision, Policy
from checkpoints.errors import ValueRefused
from checkpoints.values import digests, json_pointer

from .edit_state import BOTH, fault

COMMENT_LIMIT = 20_000  # characters
MOST_NAMED = 100  # preconditions that one decision adds, and that it drops
NO_REASON = gettext_lazy("Write why you reject this.")
NO_THEN = gettext_lazy("Choose what happens after the rejection.")
Verdict = Decision.Verdict
Then = Decision.Then


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What a reviewer sent."""

    verdict: str
    seen: bytes
    key: str
    verdicts: dict[str, Any] = field(default_factory=dict)  # of a mixed decision, what is said of each action
    arguments: dict[str, Any] = field(default_factory=dict)
    comment: str = ""
    then: str = ""  # of a rejection
    back_to: str = ""
    answer: dict[str, Any] | None = None
    state: dict[str, Any] | None = None  # of an edit of the whole state
    preconditions: list[str] = field(default_factory=list)  # ids of those that are added to the required ones
    dropped: list[str] = field(default_factory=list)  # ids of preselected ones that are not to hold
    shown: str = ""  # the mark of what was shown that this does; empty where nothing was
    confirm: list[int] = field(default_factory=list)  # numbers of effects that may be done once more
    second_look: bool = False

    @classmethod
    def of(
        cls,
        *,
        seen: bytes,
        verdict: str = "",
        verdicts: Mapping[str, Mapping[str, Any]] | None = None,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] | None = None,
        preconditions: Sequence[str] = (),
        dropped: Sequence[str] = (),
        shown: str = "",
        confirm: Sequence[int] = (),
        second_look: bool = False,
        **words: str,
    ) -> Self:
        """Put one together from what a caller sends.

        `verdict` is about all actions at once; else `verdicts` says by action id what becomes of each: {"verdict":
        approve, edit, reject or respond, and "arguments", "reason" or "response" as that takes one}. `seen` is the
        digest of the proposal that was on the screen. `arguments` holds an edit's new arguments by action id, or
        `state` the whole state, where the policy allows it; `answer` is {"choice", "value"}. `preconditions` are the
        ids of those that this person adds to the required ones, `dropped` of preselected ones that are not to hold:
        without it they do. `shown` is the mark of the shown consequences, "" where none were; `confirm` are the numbers
        of effects that were done before and may be done once more. `second_look`: they looked once more, after a streak
        of fast approvals. `words` are the comment, then and back_to.
        """
        return cls(
            verdict=verdict or (Verdict.MIXED if verdicts is not None else ""),
            verdicts={name: dict(each) for name, each in (verdicts or {}).items()},
            seen=bytes(seen),
            key=key,
            arguments=dict(arguments or {}),
            state=None if state is None else dict(state),
            answer=None if answer is None else dict(answer),
            preconditions=list(preconditions),
            dropped=list(dropped),
            shown=shown,
            confirm=sorted(set(confirm)),
            second_look=second_look,
            **words,
        )

    def digest(self) -> bytes:
        """Return the digest of all but the key and what was shown. Raises Invalid for what JSON cannot hold."""
        content = {name: value for name, value in vars(self).items() if name not in ("key", "seen", "shown")}
        unsaid = [name for name in ("verdicts", "dropped", "confirm", "second_look") if not content[name]]
        unsaid += ["state"] if self.state is None else []
        content = {name: value for name, value in content.items() if name not in unsaid}
        try:
            return digests.of_value({**content, "seen": self.seen.hex()})
        except ValueRefused as refused:
            raise Invalid([_unwritable(refused)]) from refused


def check_key(said: Submission) -> None:
    """Check the key before it is looked up: PostgreSQL's text takes no U+0000. Raises Invalid."""
    if not 0 < len(said.key) <= 80 or "\0" in said.key or not said.key.isprintable():
        raise Invalid([problem(_("Send a key of 1 to 80 characters."), pointer="/key")])


def _unwritable(refused: ValueRefused) -> Problem:
    """Name the fault by its action where it is in one."""
    where = json_pointer.tokens(refused.pointer)
    if where[:1] == ["verdicts"] and len(where) > 2:
        part = "" if where[2] == "arguments" else where[2]
        return problem(refused.reason, action=where[1], part=part, pointer=json_pointer.join("", *where[3:]))
    if where[:1] == ["state"]:
        return fault(refused.reason, json_pointer.join("", *where[1:]))
    if where[:1] != ["arguments"] or len(where) < 2:
        return problem(refused.reason, pointer=refused.pointer)
    return problem(refused.reason, action=where[1], pointer=json_pointer.join("", *where[2:]))


def check_form(said: Submission, card: Card, policy: Policy) -> None:
    """Refuse what no gate under this policy could take, before anything else is looked at."""
    faults = []
    if said.verdict not in Verdict.values:
        faults.append(problem(_("Choose approve, edit, reject or answer."), pointer="/verdict"))
    if said.verdicts and said.verdict != Verdict.MIXED:
        faults.append(problem(_("Say one verdict for all actions, or one for each of them."), pointer="/verdict"))
    if said.verdict == Verdict.MIXED and said.then == Then.BACK:
        faults.append(problem(_("Only a rejection of all actions sends the run back."), pointer="/then"))
    if len(said.comment) > COMMENT_LIMIT:
        told = _("Write at most %(limit)s characters.") % {"limit": f"{COMMENT_LIMIT:,}"}
        faults.append(problem(told, pointer="/comment"))
    if said.answer is not None and said.verdict != Verdict.ANSWER:
        faults.append(problem(_("Only an answer takes a choice."), pointer="/answer"))
    if said.verdict == Verdict.REJECT:
        if policy.reason_required and card.rejects and not said.comment.strip():
            faults.append(problem(NO_REASON, pointer="/comment"))
        faults += _reject_faults(said, card)
    faults += _precondition_faults(said, card)
    if faults:
        raise Invalid(faults)
    if said.arguments and said.verdict != Verdict.EDIT:
        raise EditRefused([problem(_("Only an edit takes new values."), action=name) for name in said.arguments])
    if said.state is not None and said.verdict != Verdict.EDIT:
        raise EditRefused([fault(_("Only an edit of all that is asked takes a new state."))])
    if said.state is not None and said.arguments:
        raise Invalid([fault(BOTH)])


def _reject_faults(said: Submission, card: Card) -> list[Problem]:
    if not card.rejects:
        return [problem(_("Choose one of the answers; one of them stops the run."), pointer="/verdict")]
    if said.then not in Then.values:
        return [problem(NO_THEN, pointer="/then")]
    if said.then == Then.BACK and back_to(said, card) not in card.back_to:
        return [problem(_("Choose one of the steps that the run can be sent back to."), pointer="/back_to")]
    return []


def _precondition_faults(said: Submission, card: Card) -> list[Problem]:
    named = {"preconditions": said.preconditions, "dropped": said.dropped}
    if said.verdict == Verdict.REJECT:
        told = _("A rejection runs nothing, so it takes no preconditions.")
        return [problem(told, pointer=f"/{name}") for name, ids in named.items() if ids]
    many = [
        problem(_("Name at most %(limit)s.") % {"limit": MOST_NAMED}, pointer=f"/{name}")
        for name, ids in named.items()
        if len(ids) > MOST_NAMED
    ]
    if many:
        return many
    offered = {each.id: each for each in card.preconditions}
    faults = []
    for name, ids in named.items():
        unknown = [n for n, each in enumerate(ids) if each not in list(offered)]
        faults += [problem(_("The gate offers no such precondition."), pointer=f"/{name}/{n}") for n in unknown]
    for n, each in enumerate(said.dropped):
        if each in said.preconditions:
            faults.append(problem(_("This is added and dropped; say one of both."), pointer=f"/dropped/{n}"))
        elif each in list(offered) and offered[each].required:
            faults.append(problem(_("The agent insists on this, so it cannot be dropped."), pointer=f"/dropped/{n}"))
    return faults


def added(said: Submission, card: Card) -> list[str]:
    """List the preconditions that this decision adds, in the card's order: preselected and not dropped ones too."""
    if said.verdict == Verdict.REJECT:
        return []
    return precondition.agreed_to(card.preconditions, added=said.preconditions, dropped=said.dropped)


def back_to(said: Submission, card: Card) -> str:
    if said.verdict != Verdict.REJECT or said.then != Then.BACK:
        return ""
    return said.back_to or card.on_reject
