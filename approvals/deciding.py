"""How one reviewer's word is taken.

Everything is read and checked, then one guarded UPDATE takes the gate's row where it is still open, in time
by the database's clock, and asks what the reviewer saw. That update is the only judge of a race, and its
lock puts the rest of the deciders in a line until this transaction ends. A refusal rolls everything back
and is then an event of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from checkpoints import actors, ledger, store
from checkpoints.errors import NotVerified
from checkpoints.plans import spec_of
from checkpoints.values import canonical

from . import answering, authority, binding, closing, editing
from .cards import Card, editable
from .errors import (
    AlreadySaid,
    DecisionRefused,
    Invalid,
    NotAllowed,
    NotVerifiable,
    StaleGate,
    problem,
)
from .models import Decision, Gate, Outcome, Proposal
from .policy_rules import Tally, Vote, tally
from .saying import Said, Verdict, back_to, check_form, check_key


@dataclass(frozen=True, kw_only=True)
class _Next:
    """The proposal that a word puts in the place of the one that stands."""

    card: Card
    answer: Any
    patch: list[dict[str, Any]]
    changed: tuple[str, ...] = ()


class _SaidBefore(Exception):
    """The same key again: roll back and hand out what it did the first time."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def decide(gate: Gate, *, by: User, said: Said) -> Decision:
    """Take one word; see Gate.decide."""
    try:
        with transaction.atomic(durable=True):
            return _take(gate.pk, by, said)
    except _SaidBefore as before:
        return before.decision
    except DecisionRefused as refusal:
        _record_refusal(gate, by, said, refusal)
        raise
    except NotVerified as fault:
        frozen = NotVerifiable()
        _record_refusal(gate, by, said, frozen)
        raise frozen from fault


def standing_tally(gate: Gate) -> Tally:
    """Where the gate stands now, by everybody's authority as it is now."""
    return _tally(gate, gate.standing())


def _take(gate_id: int, by: User, said: Said) -> Decision:
    gate = Gate.objects.select_related("run__plan", "policy__team").get(pk=gate_id)
    check_key(said)
    request = said.digest()
    _hand_out_same(gate, by, said, request)
    reason = authority.why_not(by, gate)
    if reason:
        raise NotAllowed(reason)
    standing = gate.standing()
    lost = gate.lost_race(said.seen, standing)
    if lost:
        raise lost
    check_form(said, standing.card)
    following = _next(gate, standing, said)
    if not gate.move(proposal=standing.number):
        _hand_out_same(gate, by, said, request)
        gate.refresh_from_db()
        raise gate.lost_race(said.seen, gate.standing()) or StaleGate([], "")
    _hand_out_same(gate, by, said, request)
    spoken = gate.decisions.filter(user=by, proposal=standing, counts=True)
    if following is None and said.verdict != Verdict.REJECT and spoken.exists():
        raise AlreadySaid
    if following is None:
        spoken.update(counts=False)  # a rejection takes the person's earlier approval back
    if following is not None:
        standing = _supersede(gate, standing, following, by)
    decision = _write(gate, standing, by, said, request, following)
    _close_when_due(gate, standing, decision)
    return decision


def _hand_out_same(gate: Gate, by: User, said: Said, request: bytes) -> None:
    """Raise _SaidBefore where this key was used already; Invalid where it was used for something else."""
    before = gate.decisions.filter(user=by, key=said.key).first()
    if before is None:
        return
    if bytes(before.request) != request:
        raise Invalid([problem("This form was sent before with other content; load the page again.")])
    raise _SaidBefore(before)


def _next(gate: Gate, standing: Proposal, said: Said) -> _Next | None:
    """What this word asks instead of what stands; None where it speaks of what stands."""
    body, card = standing.content, standing.card
    if said.verdict == Verdict.EDIT:
        if card.question is not None:
            raise Invalid([problem("Choose one of the answers.", pointer="/verdict")])
        edit = editing.edited(
            card,
            plan=gate.run.plan,
            step=gate.step,
            saved=store.load_checkpoint(gate.checkpoint).state,
            standing=standing.state_patch,
            arguments=said.arguments,
            offered=editable(spec_of(gate.run.plan).step(gate.step)),
        )
        return _Next(card=edit.card, answer=None, patch=edit.patch, changed=edit.changed)
    if said.verdict == Verdict.ANSWER:
        answer = answering.answered(card, said.answer)
        return None if answer == body["answer"] else _Next(card=card, answer=answer, patch=[])
    if said.verdict == Verdict.APPROVE and card.question is not None and body["answer"] is None:
        raise Invalid([problem("Choose one of the answers.", pointer="/verdict")])
    return None


def _supersede(gate: Gate, standing: Proposal, following: _Next, by: User) -> Proposal:
    """Put the next proposal in the place of the one that stands; what was said about that one lapses."""
    body = {**standing.content, **following.card.to_json(), "answer": following.answer}
    lapsed = gate.decisions.filter(counts=True).update(counts=False)
    made = Proposal.objects.create(
        gate=gate,
        number=gate.supersede(),
        body=canonical(body),
        digest=binding.seen(body),
        by=by,
        patch=canonical(following.patch),
    )
    kind = Verdict.EDIT if following.answer is None else Verdict.ANSWER
    data = {"kind": kind, "proposal": made.number, "actions": list(following.changed), "lapsed": lapsed}
    gate.say("gate.edited", by=actors.of_user(by), data=data)
    return made


def _write(gate: Gate, standing: Proposal, by: User, said: Said, request: bytes, following: _Next | None) -> Decision:
    card = standing.card
    changed = following.changed if following else ()
    plain = Verdict.APPROVE if said.verdict == Verdict.EDIT else said.verdict
    rejects = said.verdict == Verdict.REJECT
    decision = Decision.objects.create(
        gate=gate,
        proposal=standing,
        user=by,
        verdict=said.verdict,
        verdicts=canonical({a.id: Verdict.EDIT.value if a.id in changed else str(plain) for a in card.actions}),
        then=said.then if rejects else "",
        back_to=back_to(said, card),
        answer=canonical(standing.content["answer"] if said.verdict == Verdict.ANSWER else None),
        comment=said.comment.encode(errors="replace"),
        seen=said.seen,
        key=said.key,
        request=request,
    )
    data = {"kind": said.verdict, "proposal": standing.number, "quorum": gate.policy.quorum}
    gate.say("gate.decided", by=actors.of_user(by), data=data, text=said.comment)
    return decision


def _close_when_due(gate: Gate, standing: Proposal, decision: Decision) -> None:
    """Close the gate where this word was enough."""
    by = actors.of_user(decision.user)
    if decision.verdict == Verdict.REJECT:
        end = closing.End(
            kind=Outcome.Kind.REJECTED,
            by=by,
            decisions=[decision],
            then=decision.then,
            back_to=decision.back_to,
            feedback=decision.words,
        )
        closing.close(gate, standing, end)
        return
    count = _tally(gate, standing)
    if count.lapsed:
        _lapse(gate, standing, count)
    if count.closes == "agreed":
        votes = [vote for vote in standing.decisions.filter(counts=True) if vote.user_id in count.agreed]
        comments = "\n\n".join(vote.words for vote in votes if vote.words)
        kind = closing.agreed_kind(standing)
        closing.close(gate, standing, closing.End(kind=kind, by=by, decisions=votes, feedback=comments))


def _tally(gate: Gate, standing: Proposal) -> Tally:
    votes = [
        Vote(
            user=vote.user_id,
            proposal=standing.number,
            verdict=vote.verdict,
            may=not authority.why_not(vote.user, gate),
        )
        for vote in standing.decisions.filter(counts=True).select_related("user").order_by("pk")
    ]
    return tally(votes, standing=standing.number, quorum=gate.policy.quorum)


def _lapse(gate: Gate, standing: Proposal, count: Tally) -> None:
    """Take out the word of people who may no longer decide; they can speak again if they may again."""
    standing.decisions.filter(user__in=count.lapsed, counts=True).update(counts=False)
    users = [f"user:{user}" for user in count.lapsed]
    gate.say("gate.lapsed", by=actors.SYSTEM, data={"users": users, "proposal": standing.number})


def _record_refusal(gate: Gate, by: User, said: Said, refusal: DecisionRefused) -> None:
    """Keep that somebody tried, in a transaction of its own: the attempt's own is rolled back by now."""
    data = {"kind": refusal.code, "verdict": str(said.verdict)[:20], "title": gate.title, **refusal.facts()}
    with transaction.atomic(durable=True):
        ledger.record(
            "decision.refused",
            subject=gate.subject,
            by=actors.of_user(by),
            run=gate.run,
            team_id=gate.team_id,
            version=gate.version,
            data=data,
        )
