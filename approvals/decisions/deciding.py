"""Records one reviewer's decision.

Everything is read and checked, then one guarded UPDATE takes the gate's row where it is still open, in time by the
database's clock, and asks for the proposal that the reviewer saw. That update alone decides a race, and its lock keeps
the other deciders waiting until this transaction ends. A refusal rolls everything back and is then an event of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from approvals.assignments import claims
from approvals.assignments.errors import ClaimedByOther
from approvals.audit import evidence
from approvals.cards import binding
from approvals.consequences import impact_sources
from approvals.errors import (
    DecisionRefused,
    Invalid,
    NotAllowed,
    NotConfirmed,
    NotVerifiable,
    SecondLookNeeded,
    StaleGate,
    make_problem,
)
from approvals.gates.opening import raised
from approvals.gates.projection import PendingVote, judged, look_again, project
from approvals.gates.reading import GateReading, read
from approvals.models import Decision, Gate, GateClaim, Proposal
from approvals.models.assignments import claim
from approvals.policy import required, second_look, step_up
from approvals.policy.bulk import NotTogether
from approvals.policy.step_up import Confirmed
from checkpoints import actors, store
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.postgresql.prepared_rows import insert_rows, prepared_statement
from checkpoints.runs.plans import spec_of
from checkpoints.values.canonical_json import encode_canonical

from . import edit_state
from .decision_impact import impact_of, most_of
from .edit import NextProposal
from .prepared_decision import PreparedDecision, lost_race, prepare
from .submission import Submission, Verdict, added, back_to, check_key


class _RecordedBefore(Exception):
    """A key that was used before: roll back, and return the decision that it made the first time."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


def decide(
    gate: Gate,
    submission: Submission,
    *,
    by: User,
    confirmed: Confirmed | None = None,
    reading: GateReading | None = None,
) -> Decision:
    """Record one reviewer's decision, and close the gate where enough people agree on the proposal.

    `confirmed`: how they confirmed who they are, None where they did not or decide by a token; `reading`: the gate,
    where the caller has just read it for this person and key. The same person's same key gives the same decision again.
    Opens a transaction of its own.

    Raises a DecisionRefused: NotAllowed, TokenMayNotDecide, NotConfirmed, SecondLookNeeded, AlreadyDecided, StaleGate,
    ConsequencesChanged, RejectionStands, RepeatNotConfirmed, GateExpired, GateWithdrawn, AlreadySaid, CannotResume,
    EditRefused or Invalid; the refusal is an event by then.
    """
    unmoved = copy(gate)  # a refusal rolls back what the one that is read becomes
    try:
        with transaction.atomic(durable=True):
            return _record(gate.pk, submission, by, confirmed, reading)
    except _RecordedBefore as before:
        return before.decision
    except DecisionRefused as refusal:
        record_refusal(unmoved, submission, by, refusal)
        if isinstance(refusal, NotAllowed) and unmoved.awaits:
            with suppress(NotVerified):  # the refusal is what they hear of
                look_again(gate.pk)
        raise
    except NotVerified as fault:
        frozen = NotVerifiable()
        record_refusal(unmoved, submission, by, frozen)
        raise frozen from fault


def _record(
    gate_id: int, submission: Submission, by: User, confirmed: Confirmed | None, reading: GateReading | None
) -> Decision:
    check_key(submission)
    request = submission.digest()
    reading = reading or read(gate_id, user_id=by.pk, key=submission.key)
    gate = reading.gate
    evidence.check(reading.proposal)
    if reading.key_used:
        _return_same(gate.decisions.filter(user=by), by, submission, request)
    with store.reading():  # the forecast reads what the checks have read
        prepared = prepare(reading, submission, by=by)
        _refuse_claimed(claims.holder_of(gate), by)
        needs, method = prepared.will_need, gate.policy.step_up_method
        if needs.step_up and not step_up.counts(confirmed, by=by, now=reading.now, asked=method):
            raise NotConfirmed(method)
        card = reading.proposal.card
        look = None if prepared.rejects else second_look.needed(reading.approvals, card, needs, now=reading.now)
        if look and look.unreadable and submission.bulk:
            raise NotTogether(f"{look.words} Open the gate.")
        if look and not submission.second_look:
            raise SecondLookNeeded(look.words, look.count, look.seconds)
        looked_twice = bool(look or (submission.bulk and submission.second_look))  # over the whole list
        # Before the lock, which must not wait for an agent's code. What other runs of the lineage do meanwhile is read
        # again under the lock.
        impact = None if reading.acted or gate.policy.undo_window else most_of(spec_of(gate.run.plan))
        if impact is None or impact.beyond(submission.shown):
            impact = impact_of(prepared) if submission.shown or reading.acted else None
    version = gate.version
    if not gate.move(proposal=reading.proposal.number, by=by.pk):
        _return_same(gate.decisions.filter(user=by), by, submission, request)
        raise lost_race(read(gate_id), submission.seen) or StaleGate([], "")
    # Under the gate's lock now: what others have decided can no longer change.
    votes = _votes(gate.pk, reading.proposal.pk, by.pk, submission.key)
    if gate.version != version + 1:  # something moved the gate since it was read: a claim, it may be
        held = GateClaim.objects.live().select_related("user").filter(gate=gate).first()
        _refuse_claimed(held.user if held else None, by)
    evidence.check_voices(gate, votes)
    _return_same(votes, by, submission, request)
    ballot = PendingVote.of(gate, prepared.needs, [each for each in votes if each.counts], by=by.pk)
    ballot.check(rejects=prepared.rejects, anew=prepared.next is not None)
    if impact is not None:
        impact = impact if impact_sources.stamp_of(gate.run) == impact.stamp else impact_of(prepared)
        impact = impact.leaving(prepared.left_after(ballot))
        impact.check_confirmed(set(submission.confirm), run=gate.run_id)
        impact.check_shown(submission.shown)
    repeats = sorted({each.effect for each in impact.repeats}) if impact else []
    shown = impact.mark if impact and submission.shown and gate.policy.undo_window else ""
    # An edit ends all approvals by itself.
    ended = [each.pk for each in ballot.replaced if prepared.next is None or each.rejects]
    if ended:
        Decision.objects.filter(pk__in=ended).update(counts=False)
    decision = _write(
        prepared, by, request=request, repeats=encode_canonical(repeats), shown=shown, second_look=looked_twice,
        on_behalf_of_id=ballot.behalf,
    )  # fmt: skip
    _follow(prepared, ballot, decision, confirmed)
    return decision


@prepared_statement
def _votes(gate: Any, proposal: Any, user: Any, key: Any) -> QuerySet[Decision]:
    counted, same_key = Q(proposal=proposal, counts=True), Q(user=user, key=key)
    against = Q(verdict__in=Decision.REJECTING, counts=True)  # for whichever proposal
    return Decision.objects.filter(counted | against | same_key, gate=gate).order_by("pk")


def _return_same(decisions: Iterable[Decision], by: User, submission: Submission, request: bytes) -> None:
    """Raise _RecordedBefore where this key already made this decision; Invalid where it made another."""
    before = next((one for one in decisions if one.user_id == by.pk and one.key == submission.key), None)
    if before is None:
        return
    if bytes(before.request) != request:
        raise Invalid([make_problem("This form was sent before with other content; load the page again.")])
    raise _RecordedBefore(before)


def _refuse_claimed(holder: User | None, by: User) -> None:
    """Raise ClaimedByOther where somebody else is on the gate."""
    if holder is not None and holder.pk != by.pk:
        raise ClaimedByOther(actors.of_user(holder).name, holder.pk)


def _follow(prepared: PreparedDecision, ballot: PendingVote, decision: Decision, confirmed: Confirmed | None) -> None:
    """Record the decision as an event, judge the votes with it, and write what follows."""
    gate, submission, needs, proposal = prepared.gate, prepared.submission, prepared.will_need, decision.proposal
    optional = {
        "verdicts": decision.by_action if decision.verdict == Verdict.MIXED else {},
        **(step_up.evidence(confirmed, gate.policy.step_up_method) if needs.step_up else {}),
        "repeats": sorted(decision.confirmed),
        "dropped": sorted(set(submission.dropped)),
        "second_look": decision.second_look,
        "rules": list(needs.rules),
        "bulk": submission.bulk,
        "on_behalf_of": f"user:{decision.on_behalf_of_id}" if decision.on_behalf_of_id else "",
    }
    data = {
        "kind": decision.verdict,
        "proposal": proposal.number,
        "quorum": needs.slots,
        **{name: value for name, value in optional.items() if value},
        **evidence.decided(gate, proposal, decision),
    }
    told = gate.entry("gate.decided", by=actors.of_user(decision.user), data=data, text=submission.comment)
    votes = [*(each for each in ballot.others if each.rejects or not prepared.next), decision]
    verdict = judged(gate, needs, votes, now=ballot.now)
    beside = claim.with_vote(gate.pk, by=decision.user_id)
    project(gate, proposal, needs, votes, verdict, told=[told], beside=beside)


def _supersede(prepared: PreparedDecision, following: NextProposal, by: User) -> Proposal:
    """Replace the current proposal with the next one; votes for the old one lapse."""
    gate = prepared.gate
    body = {**prepared.proposal.content, **following.card.to_json(), "answer": following.answer}
    body.pop("state", None)
    if edit_state.beyond(following.card, following.patch):
        body["state"] = following.patch  # the actions do not show all of it, and the digest has to cover it
    ended = gate.decisions.filter(counts=True).approving()
    users = [f"user:{user}" for user in ended.exclude(user=by).order_by("pk").values_list("user_id", flat=True)]
    lapsed = ended.update(counts=False)
    risk = raised(gate.risk, prepared.will_need)  # a rule may give the edited proposal a higher one
    made = Proposal.objects.create(
        gate=gate, number=gate.supersede(risk=risk), by=by, body=encode_canonical(body), digest=binding.seen(body),
        patch=encode_canonical(following.patch), requirements=required.frozen(gate.policy, prepared.will_need),
    )  # fmt: skip
    data = {"kind": following.kind, "proposal": made.number, "actions": list(following.changed), "lapsed": lapsed}
    data |= {"users": users}  # who is asked again
    data |= evidence.opened(gate, made)
    gate.say("gate.edited", by=actors.of_user(by), data=data)
    return made


def _write(prepared: PreparedDecision, by: User, **columns: Any) -> Decision:
    """Write the decision, and before it the proposal that it makes."""
    submission = prepared.submission
    proposal = _supersede(prepared, prepared.next, by) if prepared.next else prepared.proposal
    card = proposal.card
    decision = Decision(
        gate=prepared.gate, proposal=proposal, user=by, verdict=prepared.verdict, seen=submission.seen,
        verdicts=encode_canonical(prepared.by_action.verdicts if prepared.by_action else _alike(prepared, proposal)),
        then=submission.then if prepared.rejects else "", back_to=back_to(submission, card),
        answer=encode_canonical(proposal.content["answer"] if prepared.verdict == Verdict.ANSWER else None),
        preconditions=encode_canonical(added(submission, card)),
        comment=submission.comment.encode(errors="replace"), key=submission.key, **columns,
    )  # fmt: skip
    insert_rows([decision])
    return decision


def _alike(prepared: PreparedDecision, proposal: Proposal) -> dict[str, str]:
    """Return action id -> verdict for a decision on all actions at once; an approval keeps what others settled."""
    actions = proposal.card.actions
    if prepared.verdict in (Verdict.REJECT, Verdict.ANSWER):
        return {action.id: str(prepared.verdict) for action in actions}
    plain = {action.id: action.settled_as or str(Verdict.APPROVE) for action in actions}
    return plain | dict.fromkeys(prepared.next.changed if prepared.next else (), str(Verdict.EDIT))


def record_refusal(gate: Gate, submission: Submission, by: User, refusal: DecisionRefused) -> None:
    """Record the refusal as an event, in a transaction of its own, since the attempt's is rolled back by now."""
    known = submission.verdict if submission.verdict in Verdict.values else ""
    data = {"kind": refusal.code, "verdict": known, **refusal.facts()}
    with transaction.atomic(durable=True):
        event_log.record(
            "decision.refused", subject=gate.subject, by=actors.of_user(by), run=gate.run, team_id=gate.team_id,
            version=gate.version, data=data,
        )  # fmt: skip
