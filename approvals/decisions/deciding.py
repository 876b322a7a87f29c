"""Recording one reviewer's decision.

Everything is read and checked, then one guarded UPDATE takes the gate's row where it is still open, in time by the
database's clock, and asks for the proposal that the reviewer saw. That update is the only judge of a race, and its
lock puts the rest of the deciders in a line until this transaction ends. A refusal rolls everything back
and is then an event of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from approvals.audit import evidence
from approvals.cards import binding
from approvals.cards.card import Card
from approvals.cards.verdicts import ActionVerdicts
from approvals.consequences import impact_sources
from approvals.errors import (
    AlreadySaid,
    DecisionRefused,
    Invalid,
    NotConfirmed,
    NotVerifiable,
    SecondLookNeeded,
    StaleGate,
    problem,
)
from approvals.gates import closing
from approvals.gates.reading import read
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.policy import authority, second_look, step_up
from approvals.policy.step_up import PasswordConfirmed
from approvals.policy.vote_tally import Tally, Vote, tally
from checkpoints import actors
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.layout.snapshot import Snapshot
from checkpoints.values.canonical_json import canonical

from . import edit_state, per_action
from .decision_impact import of_word
from .edit import NextProposal
from .lost_race import lost_race
from .next_proposal import put
from .submission import Submission, Verdict, added, back_to, check_key


class _SaidBefore(Exception):
    """The same key again: roll back and return the decision that it made the first time."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def decide(
    gate: Gate, said: Submission, *, by: User, confirmed: PasswordConfirmed | None = None, saved: Snapshot | None = None
) -> Decision:
    """Record one reviewer's decision, and close the gate where enough people agree on the proposal.

    `confirmed` is that they gave their password again, None where they did not or decide by a token; `saved` the gate's
    state, where the caller has just loaded it. The same person's same key gives the same decision again. Opens a
    transaction of its own. Raises a DecisionRefused: NotAllowed, NotConfirmed, SecondLookNeeded, AlreadyDecided,
    StaleGate, ConsequencesChanged, RepeatNotConfirmed, GateExpired, GateWithdrawn, AlreadySaid, CannotResume,
    EditRefused or Invalid; the refusal is an event by then.
    """
    try:
        with transaction.atomic(durable=True):
            return _take(gate.pk, by, said, confirmed, saved)
    except _SaidBefore as before:
        return before.decision
    except DecisionRefused as refusal:
        _record_refusal(gate, by, said, refusal)
        raise
    except NotVerified as fault:
        frozen = NotVerifiable()
        _record_refusal(gate, by, said, frozen)
        raise frozen from fault


def _take(
    gate_id: int, by: User, said: Submission, confirmed: PasswordConfirmed | None, saved: Snapshot | None
) -> Decision:
    check_key(said)
    request = said.digest()
    reading = read(gate_id, user_id=by.pk, key=said.key)
    gate, standing = reading.gate, reading.standing
    evidence.check(standing)
    if saved is not None and saved.id == gate.checkpoint:
        gate.saved = saved
    if reading.said_before:
        _hand_out_same(gate.decisions.filter(user=by), by, said, request)
    said, word, following = put(reading, by=by, said=said)
    if not step_up.suffices(gate.policy, confirmed, by=by, now=reading.now):
        raise NotConfirmed
    streak = None if said.verdict == Verdict.REJECT else second_look.streak(reading.approvals, now=reading.now)
    if streak and not said.second_look:
        raise SecondLookNeeded(streak.count, streak.seconds)
    said = replace(said, second_look=streak is not None)
    # Before the lock, which must not wait for an agent's code. What other runs of the lineage do meanwhile is looked
    # at again under it.
    look = partial(of_word, gate, standing, said, following)
    stamp, impact = (impact_sources.stamp_of(gate.run), look()) if said.shown or reading.acted else ("", None)
    if not gate.move(proposal=standing.number):
        _hand_out_same(gate.decisions.filter(user=by), by, said, request)
        late = read(gate_id)
        raise lost_race(late.gate, said.seen, late.standing, late.now) or StaleGate([], "")
    # Under the gate's lock now: what others have said can no longer change.
    voices = list(gate.decisions.filter(Q(proposal=standing, counts=True) | Q(user=by, key=said.key)).order_by("pk"))
    evidence.check_voices(gate, voices)
    _hand_out_same(voices, by, said, request)
    others = _spoken_once(voices, by, said) if following is None else []
    if impact is not None:
        impact = (impact if impact_sources.stamp_of(gate.run) == stamp else look()).beside(len(others))
        impact.check_confirmed(set(said.confirm), run=gate.run_id)
        impact.check_shown(said.shown)
    repeats = {each.effect for each in impact.repeats} if impact else set()
    if following is not None:
        standing = _supersede(gate, standing, following, by)
    if word is not None:
        said = replace(said, verdict=per_action.named(word) if following else Verdict.APPROVE)
    said = replace(said, confirm=sorted(repeats))
    decision = _write(gate, standing, by, said, request, following, word)
    _close_when_due(gate, standing, [*others, decision], said, confirmed)
    return decision


def _hand_out_same(voices: Iterable[Decision], by: User, said: Submission, request: bytes) -> None:
    """Raise _SaidBefore where this key was used already; Invalid where it was used for something else."""
    before = next((one for one in voices if one.user_id == by.pk and one.key == said.key), None)
    if before is None:
        return
    if bytes(before.request) != request:
        raise Invalid([problem(_("This form was sent before with other content; load the page again."))])
    raise _SaidBefore(before)


def _spoken_once(voices: Sequence[Decision], by: User, said: Submission) -> list[Decision]:
    """List others' votes for the current proposal. Raises AlreadySaid; a rejection takes one's own approval back."""
    mine = [one.pk for one in voices if one.user_id == by.pk]
    if mine and said.verdict != Verdict.REJECT:
        raise AlreadySaid
    if mine:
        Decision.objects.filter(pk__in=mine).update(counts=False)
    return [one for one in voices if one.user_id != by.pk]


def _supersede(gate: Gate, standing: Proposal, following: NextProposal, by: User) -> Proposal:
    """Replace the current proposal with the next one; votes for the old one lapse."""
    body = {**standing.content, **following.card.to_json(), "answer": following.answer}
    body.pop("state", None)
    if edit_state.beyond(following.card, following.patch):
        body["state"] = following.patch  # the actions do not show all of it, and the digest has to cover it
    lapsed = gate.decisions.filter(counts=True).update(counts=False)
    made = Proposal.objects.create(
        gate=gate,
        number=gate.supersede(),
        body=canonical(body),
        digest=binding.seen(body),
        by=by,
        patch=canonical(following.patch),
    )
    data = {"kind": following.kind, "proposal": made.number, "actions": list(following.changed), "lapsed": lapsed}
    data |= evidence.opened(gate, made)
    gate.say("gate.edited", by=actors.of_user(by), data=data)
    return made


def _write(
    gate: Gate,
    standing: Proposal,
    by: User,
    said: Submission,
    request: bytes,
    following: NextProposal | None,
    word: ActionVerdicts | None,
) -> Decision:
    card = standing.card
    rejects = said.verdict == Verdict.REJECT
    decision = Decision.objects.create(
        gate=gate,
        proposal=standing,
        user=by,
        verdict=said.verdict,
        verdicts=canonical(word.verdicts if word else _alike(card, said, following.changed if following else ())),
        then=said.then if rejects else "",
        back_to=back_to(said, card),
        answer=canonical(standing.content["answer"] if said.verdict == Verdict.ANSWER else None),
        preconditions=canonical(added(said, card)),
        repeats=canonical(said.confirm),
        comment=said.comment.encode(errors="replace"),
        seen=said.seen,
        key=said.key,
        request=request,
        second_look=said.second_look,
    )
    return decision


def _alike(card: Card, said: Submission, changed: Sequence[str]) -> dict[str, str]:
    """Return the verdict by action of a decision on all of them: who agrees also agrees to what others have refused."""
    if said.verdict in (Verdict.REJECT, Verdict.ANSWER):
        return {action.id: str(said.verdict) for action in card.actions}
    plain = {action.id: action.settled.verdict if action.settled else str(Verdict.APPROVE) for action in card.actions}
    return plain | dict.fromkeys(changed, str(Verdict.EDIT))


def _close_when_due(
    gate: Gate, standing: Proposal, voices: Sequence[Decision], said: Submission, confirmed: PasswordConfirmed | None
) -> None:
    """Say that the last of these decided, and close the gate where its word was enough."""
    decision = voices[-1]
    by = actors.of_user(decision.user)
    mixed = {"verdicts": decision.by_action} if decision.verdict == Verdict.MIXED else {}
    repeats = {"repeats": said.confirm} if said.confirm else {}
    dropped = {"dropped": sorted(set(said.dropped))} if said.dropped else {}
    again = {"confirmed": confirmed.at.isoformat()} if gate.policy.step_up and confirmed else {}
    data = {
        "kind": decision.verdict,
        **mixed,
        "proposal": standing.number,
        "quorum": gate.policy.quorum,
        **again,
        **repeats,
        **dropped,
        **evidence.decided(gate, standing, decision),
        **({"second_look": True} if decision.second_look else {}),
    }
    told = [gate.entry("gate.decided", by=by, data=data, text=said.comment)]
    if decision.verdict == Verdict.REJECT:
        end = closing.GateEnd(
            kind=Outcome.Kind.REJECTED,
            by=by,
            decisions=[decision],
            then=decision.then,
            back_to=decision.back_to,
            feedback=decision.words,
        )
        closing.close(gate, standing, end, told=told)
        return
    count = _tally(gate, voices)
    if count.lapsed:
        told.append(_lapse(gate, standing, count))
    if count.closes != "agreed":
        event_log.append(told)
        return
    votes = [vote for vote in voices if vote.user_id in count.agreed]
    comments = "\n\n".join(vote.words for vote in votes if vote.words)
    end = closing.GateEnd(
        kind=closing.agreed_kind(standing),
        by=by,
        decisions=votes,
        feedback=comments,
        added=[each for vote in votes for each in vote.added],
    )
    closing.close(gate, standing, end, told=told)


def _tally(gate: Gate, voices: Sequence[Decision]) -> Tally:
    """Tally the votes for the current proposal, by everybody's authority as it is now.

    Whoever agreed before something was done that this would do once more agreed to less than the last of them.
    """
    why_not = authority.reasons([voice.user_id for voice in voices], gate)
    repeats = voices[-1].confirmed
    votes = [
        Vote(
            user=voice.user_id, proposal=gate.proposal, verdict=voice.verdict,
            may=not why_not[voice.user_id] and repeats <= voice.confirmed,
        )
        for voice in voices
    ]  # fmt: skip
    return tally(votes, standing=gate.proposal, quorum=gate.policy.quorum)


def _lapse(gate: Gate, standing: Proposal, count: Tally) -> event_log.Entry:
    """Drop the votes of people who may no longer decide; they can vote again if they may again."""
    standing.decisions.filter(user__in=count.lapsed, counts=True).update(counts=False)
    users = [f"user:{user}" for user in count.lapsed]
    data = {"users": users, "proposal": standing.number, **evidence.opened(gate, standing)}
    return gate.entry("gate.lapsed", by=actors.SYSTEM, data=data)


def _record_refusal(gate: Gate, by: User, said: Submission, refusal: DecisionRefused) -> None:
    """Record the refusal as an event, in a transaction of its own: the attempt's own is rolled back by now."""
    known = said.verdict if said.verdict in Verdict.values else ""
    data = {"kind": refusal.code, "verdict": known, **refusal.facts()}
    with transaction.atomic(durable=True):
        event_log.record(
            "decision.refused",
            subject=gate.subject,
            by=actors.of_user(by),
            run=gate.run,
            team_id=gate.team_id,
            version=gate.version,
            data=data,
        )
