"""Digests: one message at the times that a person chose, with what waits for them then."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.gates.reading import with_reviewers
from approvals.models import Message, NotificationPreference, Proposal

from . import building, wanted_when
from .building import NoticeKind, NoticeMessage, Urgency
from .channel import named

CHANNEL = "email"  # the only one that a list of many gates fits into
LISTED = 30  # gates in one digest
AT_ONCE = 200  # digests written in one transaction


def write_due() -> int:
    """Write a notice for each digest that is due, and plan the next one; return how many were due.

    Those of accounts that are switched off are planned on too: one that stayed due would be work that never ends.
    """
    if named(CHANNEL) is None:
        return 0
    now = timezone.now()
    with transaction.atomic():
        due = NotificationPreference.objects.digest_due().select_related("user")
        locked = due.select_for_update(of=("self",), skip_locked=True)
        found = list(locked.order_by("digest_next")[:AT_ONCE])
        for each in found:
            each.digest_next = wanted_when.next_digest(each, now)
        NotificationPreference.objects.bulk_update(found, ["digest_next"])
        Message.objects.bulk_create(
            Message(kind=NoticeKind.DIGEST, channel=CHANNEL, user_id=each.user_id, urgency=Urgency.LOW)
            for each in found
            if each.user.is_active
        )
    return len(found)


def message(user: User) -> NoticeMessage | None:
    """Build a person's digest of what waits for them now; None where nothing does."""
    order = ReaderReach.of(user).ids(MINE, most=LISTED + 1)
    gates = {gate.pk: gate for gate in with_reviewers(set(order[:LISTED]))}
    current = Proposal.objects.filter(gate__in=gates, number=F("gate__proposal"))
    standing = {each.gate_id: each for each in current}
    there = [gates[pk] for pk in order[:LISTED] if pk in gates and pk in standing]
    if not there:
        return None
    items = [building.of_gate(each, standing[each.pk], NoticeKind.ASKED, urgency=Urgency.LOW) for each in there]
    reason = "You get this at the times that you chose."
    return building.of_many(NoticeKind.DIGEST, items, reason=reason, more=len(order) > LISTED)
