"""The digests by which what a grant lets run is found again, see approvals.consequences.done_before."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from approvals.cards.likeness import Likeness, likeness_of
from approvals.consequences.done_before import LATELY
from approvals.models import Grant, Outcome

PORTION = 500


def of_grant(outcome: Outcome, action: str, effect: str) -> Likeness:
    """Return the digests of what a grant of this outcome lets run: an action of its card, or another effect of it."""
    card = outcome.proposal.card
    performed = card.action(action) if action else None
    own = performed if performed and performed.effect in ("", effect) else None  # not another effect of its action
    return likeness_of(outcome.gate.team_id, own, card.resource)


def fill_in() -> int:
    """Give grants that the release before wrote their digests, as far back as they count; return how many were read.

    In portions with transactions of their own. What has none is read again each time.
    """
    lately = Grant.objects.filter(same_arguments="", same_key="", same_resource="")
    lately = lately.filter(outcome__created_at__gt=Now() - LATELY).select_related("outcome__gate", "outcome__proposal")
    read, last = 0, 0
    while True:
        with transaction.atomic():
            found = list(lately.filter(pk__gt=last).order_by("pk")[:PORTION])
            for grant in found:
                alike = of_grant(grant.outcome, grant.action, grant.effect)
                grant.same_arguments, grant.same_key, grant.same_resource = alike
            Grant.objects.bulk_update(found, ["same_arguments", "same_key", "same_resource"])
        if not found:
            return read
        read, last = read + len(found), found[-1].pk
