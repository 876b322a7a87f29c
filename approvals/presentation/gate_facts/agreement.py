"""The agreement at a gate: the approvals needed, those given, and the decisions that no longer count.

Also a decision that takes effect at the end of its undo window: whose it is, what happens then, and when.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.cards.precondition import Precondition
from approvals.english import join_names
from approvals.gates.projection import PendingVote, judged, window_of
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.policy import enough_reviewers, required, separation, tally
from approvals.policy.requirements import Requirements
from approvals.policy.rules import missing_policy, stage_words
from approvals.policy.rules.stage_words import Names
from approvals.policy.tally import Tally
from checkpoints import actors
from checkpoints.postgresql.prepared_rows import prepared_statement

from . import outcomes

CLOSED_BY = timedelta(seconds=15)  # after the end of the window


@dataclass(frozen=True, kw_only=True)
class VoteLine:
    """One person's decision, as a line."""

    decision: Decision
    name: str
    on_behalf_of: str = ""  # the person who was away, whose authority it uses
    words: str = ""
    comment: str = ""
    you: bool = False
    lapsed: bool = False
    state: str = "open"
    note: str = ""
    only_if: Sequence[Precondition] = ()  # preconditions that they added


class WaitingPlace(NamedTuple):
    """An approval that is still needed."""

    who: str  # in words
    later: bool  # its stage is not reached


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The agreement on the current proposal."""

    quorum: int
    agreed: int
    tally: Tally  # of the votes on the current proposal
    needs: str = ""  # all that the proposal needs, in words
    why: Sequence[str] = ()  # the rules that say so
    asked: str = ""  # whose approval is needed now and later, in words; "" where everybody is asked alike
    turn: str = ""  # why the reader's turn comes later
    unneeded: str = ""  # why the reader's approval would complete nothing now, though they may reject or edit
    would: Tally | None = None  # the count after an approval by the reader, where they may decide
    anew: Tally | None = None  # the same on an edited proposal
    waiting: Sequence[WaitingPlace] = ()  # the places that are not filled, each with who may fill it
    words_after: tuple[str, str] = ("", "")  # who is needed after each of these
    voices: Sequence[VoteLine] = ()
    mine: Decision | None = None  # the reader's own decision on the current proposal
    who: str = ""  # the people who may decide, in words
    lacking: str = ""  # why the people who may decide now are too few
    window: timedelta | None = None  # how long a decision may be undone before it takes effect
    rejected: int = 0  # rejections that count

    @property
    def slots(self) -> list[bool]:
        return [number < self.agreed for number in range(self.quorum)]

    def left(self, *, current: bool) -> int:
        """Return how many more people have to approve after the reader; not `current`: after their edit."""
        after = self.would if current else self.anew
        return after.left if after else max(self.quorum - (self.agreed + 1 if current else 1), 0)

    def number_of(self, *, current: bool) -> str:
        """Say which of the needed approvals the reader's would be: `1 of 2`. An edit is the first again."""
        return f"{self.quorum - self.left(current=current)} of {self.quorum}"

    def then_asked(self, *, current: bool) -> str:
        """Say who is needed after the reader: `Still needed: one of Legal`; "" where everybody is asked alike."""
        return self.words_after[not current]


def agreement(gate: Gate, proposal: Proposal, *, user: User, deciders: Set[int] | None = None) -> Agreement:
    """Read the gate's decisions and policy, and the people who may decide now unless `deciders` gives them."""
    decisions = _decisions(gate.pk)
    policy, needs, is_open = gate.policy, required.of(proposal, gate.policy), gate.status == Gate.Status.OPEN
    voices = [_voice(decision, user=user, current=gate.proposal) for decision in decisions]
    counting = [decision for decision, line in zip(decisions, voices, strict=True) if not line.lapsed]
    nothing = policy.plain and (gate.settles_at or not counting)  # to judge now: all are asked alike
    ballot = PendingVote.of(gate, needs, counting, by=user.pk) if is_open and not nothing else None
    if ballot:
        count = judged(gate, needs, counting, now=ballot.now).count
    else:  # by their number: how the senders stand to a closed gate now is another question
        places = [tally.RolePlace(0, 0, needs.stages[0].roles[0])] * needs.slots
        filled = [*(d.authority for d in counting if d.approves), *[None] * needs.slots][: needs.slots]
        count = Tally(requirements=needs, places=tuple(zip(places, filled, strict=True)))
    may = ballot is not None and not ballot.seat.why_not
    who, lacking, mine = reviewers(gate, needs), "", next((d for d in counting if d.user_id == user.pk), None)
    if count.left > 0 and is_open:
        lacking = enough_reviewers.lacking(gate, needs, deciders)
    instead = [said] if (said := missing_policy.missing_at(gate)) else []
    made = Agreement(
        quorum=needs.slots, agreed=count.agreed, tally=count, voices=voices, mine=mine, who=who, lacking=lacking,
        why=instead, rejected=sum(d.rejects for d in counting), window=window_of(policy, needs),
        waiting=[WaitingPlace(who, place.stage > count.stage) for place, person in count.places if person is None],
        would=ballot.after(needs) if ballot and may else None,
        anew=ballot.after(needs, anew=True) if ballot and may else None,
    )  # fmt: skip
    if policy.plain:
        return made
    names, why = Names.at(gate), stage_words.why(needs, edited=proposal.number > 1)
    made = replace(made, needs=stage_words.requirements(needs, names), why=[*why, *instead])
    return _with_turns(made, ballot, names) if ballot else made


def _with_turns(made: Agreement, ballot: PendingVote, names: Names) -> Agreement:
    """Add who is asked, and why the reader's turn comes later."""
    needs, turn = made.tally.requirements, ballot.seat.why_not or ballot.turn(approves=False)
    made = replace(made, turn=turn, unneeded="" if turn else ballot.turn(approves=True))
    if not needs.staged:
        return made
    places = [place for place, person in made.tally.places if person is None]
    waiting = [WaitingPlace(names.any_of(place.asks), place.stage > made.tally.stage) for place in places]
    would, anew = [stage_words.then_asked(count, names) if count else "" for count in (made.would, made.anew)]
    asked = stage_words.next_asked(made.tally, names)
    return replace(made, asked=asked, waiting=waiting, words_after=(would, anew))


@prepared_statement
def _decisions(gate: Any) -> QuerySet[Decision]:
    found = Decision.objects.filter(gate=gate).select_related("user", "on_behalf_of", "proposal")
    return found.order_by("created_at")


def _voice(decision: Decision, *, user: User, current: int) -> VoteLine:
    earlier = decision.proposal.number != current
    lapsed = not decision.counts or (earlier and not decision.rejects)  # as in approvals.gates.projection.counting
    lapse = "For an earlier version; not counted" if earlier else "Not counted any more; may approve again"
    state, added = "rejected" if decision.rejects else "approved", decision.added
    return VoteLine(
        decision=decision,
        name=actors.of_user(decision.user).name,
        on_behalf_of=actors.of_user(decision.on_behalf_of).name if decision.on_behalf_of else "",
        words=_words(decision),
        comment=bytes(decision.comment).decode(),
        you=decision.user_id == user.pk,
        lapsed=lapsed,
        state="expired" if lapsed else state,
        note=lapse if lapsed else "",
        only_if=[each for each in decision.proposal.card.preconditions if each.id in added] if added else (),
    )


def _words(decision: Decision) -> str:
    """Describe a decision in a word; for several actions, count each verdict."""
    if decision.verdict == Decision.Verdict.ANSWER:
        answer = decision.proposal.card.label_of(decision.proposal.content["answer"])
        return f"Answered “{answer}”"
    if decision.verdict != Decision.Verdict.MIXED:
        return str(decision.get_verdict_display())
    return outcomes.counted(list(decision.by_action.values())).capitalize()


def reviewers(gate: Gate, needs: Requirements) -> str:
    """Write `anyone who may decide in Finance; not the person who started it, nor Ann Okafor; password required`."""
    policy = gate.policy
    if needs.staged:
        said = [stage_words.chain(needs.stages, Names.of(policy))]
    else:
        named = [actors.of_user(each).name for each in policy.named if each.pk in needs.people]
        teams = " or ".join(group.name for group in policy.reviewers if group.pk in needs.teams)
        said = [f"anyone who may decide in {teams}"] if teams else []
        said = [" or ".join([*said, *named])]
    if policy.separation:
        said.append("not the person who started it or owns its token")
        if wrote := separation.authors_of(gate):
            people = actors.names(f"user:{each}" for each in wrote).values()
            said[-1] += f", nor {join_names(sorted(people))}, who wrote part of it"
    if needs.step_up:
        by_passkey = policy.step_up_method == policy.StepUpMethod.PASSKEY
        said.append("passkey required" if by_passkey else "confirmation required")
    if not policy.tokens_decide:
        said.append("not by an API token")
    return "; ".join(said)


@dataclass(frozen=True, kw_only=True)
class HeldDecision:
    """A decision that its people may undo until `at`."""

    kind: str  # of the outcome that it will have
    short: str  # the same in a word
    icon: str
    words: str  # `Approved by you and Bob Lindqvist.`
    at: datetime
    then: str  # what happens at the end: `Pays a refund €5.25, once`
    mine: int  # the number of the reader's decision; 0 where they have none here
    overdue: bool  # the window has passed for so long that something should have closed the gate
    late: bool  # the deadline has passed, so that nobody can decide again after an undo


def held(gate: Gate, agreement: Agreement, *, then: str, now: datetime) -> HeldDecision | None:
    """Describe the decision that waits at this gate; None where none does."""
    if gate.settles_at is None or gate.status != Gate.Status.OPEN:
        return None
    kind = gate.settles_as
    state = "rejected" if kind == "rejected" else "approved"
    counting = sorted((voice for voice in agreement.voices if voice.state == state), key=lambda voice: not voice.you)
    names = join_names("you" if voice.you else voice.name for voice in counting)
    if kind == "rejected":
        last = next((voice for voice in reversed(agreement.voices) if voice.state == state), None)
        then = "The agent tries again" if last and last.decision.back_to else "The gate closes as rejected"
    return HeldDecision(
        kind=kind,
        short=short(gate),
        icon="x" if kind == "rejected" else "check",
        words=f"{Outcome.Kind(kind).label} by {names}.",
        at=gate.settles_at,
        then=then,
        mine=agreement.mine.pk if agreement.mine else 0,
        overdue=gate.settles_at + CLOSED_BY < now,
        late=bool(gate.deadline and gate.deadline <= now),
    )


def short(gate: Gate) -> str:
    """Say in a word what was decided at a gate where that waits for the end of its undo window; else ""."""
    if gate.settles_at is None or gate.status != Gate.Status.OPEN:
        return ""
    return "Decided" if gate.settles_as == Outcome.Kind.MIXED else str(Outcome.Kind(gate.settles_as).label)
