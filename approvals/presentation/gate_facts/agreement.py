"""The agreement at a gate: the approvals needed, those given, and the decisions that no longer count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.models import Decision, Gate, Policy
from approvals.policy import enough_reviewers
from checkpoints import actors
from checkpoints.postgresql.prepared_rows import prepared

from . import outcomes, preconditions


@dataclass(frozen=True, kw_only=True)
class VoteLine:
    """One person's decision, as a line."""

    name: str
    on_behalf_of: str = ""  # the person who was away, whose authority it uses
    verdict: str = ""
    by_action: Mapping[str, str] = field(default_factory=dict)  # their verdict on each action, by id
    words: str = ""
    at: datetime | None = None
    comment: str = ""
    you: bool = False
    lapsed: bool = False
    state: str = "open"
    proposal: int = 0
    note: str = ""
    only_if: Sequence[preconditions.ShownPrecondition] = ()  # preconditions that they added


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The agreement on the current proposal."""

    quorum: int
    agreed: int
    voices: Sequence[VoteLine] = ()
    mine: Decision | None = None  # the reader's own decision on the current proposal
    who: str = ""  # the people who may decide, in words
    lacking: str = ""  # why the people who may decide now are too few

    @property
    def slots(self) -> list[bool]:
        return [number < self.agreed for number in range(self.quorum)]

    @property
    def needed(self) -> str:
        return ngettext("%(count)s approval needed", "%(count)s approvals needed", self.quorum) % {"count": self.quorum}

    @property
    def names(self) -> list[str]:
        return [voice.name for voice in self.voices if voice.state == "approved"]


def agreement(gate: Gate, *, user: User, deciders: Set[int] | None = None) -> Agreement:
    """Read the gate's decisions and policy, and the people who may decide now unless `deciders` gives them."""
    decisions = _decisions(gate.pk)
    policy = gate.policy
    voices = [voice(decision, user=user, current=gate.proposal) for decision in decisions]
    counting = [d for d in decisions if d.counts and d.proposal.number == gate.proposal]
    agreed = sum(decision.verdict != Decision.Verdict.REJECT for decision in counting)
    empty = policy.quorum - agreed if gate.status == Gate.Status.OPEN else 0
    who, lacking = reviewers(policy), ""
    if empty > 0:
        deciders = enough_reviewers.people(policy.reviewers)[0] if deciders is None else deciders
        lacking = enough_reviewers.lacking(gate, deciders)
    mine = next((decision for decision in counting if decision.user_id == user.pk), None)
    return Agreement(quorum=policy.quorum, agreed=agreed, voices=voices, mine=mine, who=who, lacking=lacking)


@prepared
def _decisions(gate: Any) -> QuerySet[Decision]:
    found = Decision.objects.filter(gate=gate).select_related("user", "on_behalf_of", "proposal")
    return found.order_by("created_at")


def voice(decision: Decision, *, user: User, current: int) -> VoteLine:
    lapsed = not decision.counts or decision.proposal.number != current
    state = "rejected" if decision.verdict == Decision.Verdict.REJECT else "approved"
    return VoteLine(
        name=actors.of_user(decision.user).name,
        on_behalf_of=actors.of_user(decision.on_behalf_of).name if decision.on_behalf_of else "",
        verdict=decision.verdict,
        by_action=decision.by_action,
        words=_words(decision),
        at=decision.created_at,
        comment=bytes(decision.comment).decode(),
        you=decision.user_id == user.pk,
        lapsed=lapsed,
        state="expired" if lapsed else state,
        proposal=decision.proposal.number,
        note=_lapse(decision, current) if lapsed else "",
        only_if=preconditions.added(decision.proposal.card, decision.added) if decision.added else (),
    )


def _lapse(decision: Decision, current: int) -> str:
    earlier = decision.proposal.number != current
    return _("For an earlier version; not counted") if earlier else _("Not counted any more; may approve again")


def _words(decision: Decision) -> str:
    """Describe a decision in a word; for several actions, count each verdict."""
    if decision.verdict == Decision.Verdict.ANSWER:
        answer = decision.proposal.card.label_of(decision.proposal.content["answer"])
        return _("Answered “%(answer)s”") % {"answer": answer}
    if decision.verdict != Decision.Verdict.MIXED:
        return str(decision.get_verdict_display())
    return outcomes.counted(list(decision.by_action.values())).capitalize()


def reviewers(policy: Policy) -> str:
    """Write `anyone who may decide in Finance; not the person who started it; password required`."""
    teams = _(" or ").join(group.name for group in policy.reviewers)
    said = [_("anyone who may decide in %(teams)s") % {"teams": teams}]
    if policy.separation:
        said.append(_("not the person who started it or owns its token"))
    if policy.step_up:
        said.append(_("password required"))
    if not policy.tokens_decide:
        said.append(_("not by an API token"))
    return "; ".join(said)
