"""Carries out a bulk decision, one gate after the other, each in a transaction of its own.

Two processes at once, a repeated request, or one after a crash do no harm: each gate is decided under the order's key
for it, so that it is decided once, and what was refused stays refused.
"""

from __future__ import annotations

from functools import partial
from time import monotonic

from django.contrib.auth.models import User
from django.db.models.functions import Now

from approvals.consequences.done_before import same_done
from approvals.consequences.errors import DoneAlready
from approvals.decisions import deciding
from approvals.decisions.submission import Submission, Verdict
from approvals.errors import DecisionRefused
from approvals.models import BulkItem, BulkOrder, Gate
from approvals.policy import bulk
from approvals.policy.bulk import NoSuchGate
from approvals.policy.step_up import Confirmed
from checkpoints import crash_points

from .orders import decided, key_of, progress, touch

NOTED = 1.0  # seconds between two notes that somebody still works on it


def carry_out(order: BulkOrder, *, by: User, confirmed: Confirmed | None = None) -> None:
    """Decide the gates of an order that are left."""
    before = progress(order, reader=by)
    gates = [each.gate for each in before.results if each.gate is not None]
    left = [each for each in before.results if each.state == "waiting"]
    noted = monotonic()
    if left:
        touch(order)
    for each in left:
        try:
            _decide(order, each.item, each.gate, like=gates[0] if gates else None, by=by, confirmed=confirmed)
        except DecisionRefused as refusal:
            BulkItem.objects.filter(pk=each.item.pk).update(code=refusal.code, said=str(refusal).encode())
        crash_points.point(crash_points.OF_BULK)
        if monotonic() - noted > NOTED:
            touch(order)
            noted = monotonic()
    if order.finished_at is None:
        touch(order, finished_at=Now())


def _decide(
    order: BulkOrder,
    item: BulkItem,
    gate: Gate | None,
    *,
    like: Gate | None,
    by: User,
    confirmed: Confirmed | None,
) -> None:
    """Decide one gate. Raises DecisionRefused, as an event by then if the person may see the gate."""
    if gate is None or like is None:
        raise NoSuchGate
    sent = submission(order, item)
    try:
        bulk.check(gate, like)
        if sent.verdict == Verdict.APPROVE and same_done(gate, reader=by, apart=partial(decided, order)):
            raise DoneAlready
    except DecisionRefused as refusal:
        deciding.record_refusal(gate, sent, by, refusal)
        raise
    deciding.decide(gate, sent, by=by, confirmed=confirmed)


def submission(order: BulkOrder, item: BulkItem) -> Submission:
    """Return what an order says about one gate."""
    return Submission(
        seen=bytes(item.seen),
        key=key_of(order, item.gate_id),
        verdict=order.verdict,
        comment=order.words,
        then=order.then,
        shown=item.shown,
        second_look=order.verdict == Verdict.APPROVE,
        bulk=order.pk,
    )
