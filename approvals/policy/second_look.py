"""Says when an approval needs a second look: a box to be ticked, so that no single key approves.

It does where part of what would run cannot be read on the page, where a policy's rule asks for it, and after a streak
of approvals that came faster than anybody reads.

One person's last approvals, at any gates, are a streak where there are as many as `HOLDPOINT_STREAK`, half of the
pauses between them are shorter than `HOLDPOINT_STREAK_SECONDS`, and the last was within `LATELY`. The next approval
then needs a box to be ticked. The tick restarts the count, so a fast and careful reviewer meets it once in so many
gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from django.conf import settings
from django.db.models import Expression, QuerySet

from approvals.cards.card import Card
from approvals.english import count_of
from approvals.models import Decision

from .requirements import Requirements

LATELY = timedelta(minutes=10)  # after which a streak is over


@dataclass(frozen=True)
class SecondLook:
    """Why an approval needs a second look: after a streak of `count` approvals in so many seconds, or for `words`."""

    words: str
    count: int = 0
    seconds: int = 0
    unreadable: bool = False


BY_RULE = SecondLook("The policy asks for a second look.")
UNREADABLE = SecondLook("Part of what would run cannot be read here.", unreadable=True)


def needed(
    approvals: Sequence[tuple[datetime, bool]], card: Card, needs: Requirements, *, now: datetime
) -> SecondLook | None:
    """Return why an approval of a card needs a second look; None where it needs none. `approvals`: as of `streak`.

    `card`: as it was shown. What somebody edits into it they have read.
    """
    if card.unreadable:
        return UNREADABLE
    return streak(approvals, now=now) or (BY_RULE if needs.second_look else None)


def streak(approvals: Sequence[tuple[datetime, bool]], *, now: datetime) -> SecondLook | None:
    """Return the streak that approvals make, if any; newest first, each with whether it had a second look. Pure."""
    most = settings.HOLDPOINT_STREAK
    moments: list[datetime] = []
    for at, looked_twice in approvals:
        moments.append(at)
        if looked_twice:
            break
    if len(moments) < most or now - moments[0] > LATELY:
        return None
    pauses = [(later - earlier).total_seconds() for later, earlier in pairwise(moments[:most])]
    if pauses and median(pauses) >= settings.HOLDPOINT_STREAK_SECONDS:
        return None
    seconds = round((moments[0] - moments[most - 1]).total_seconds())
    return SecondLook(f"You approved {most} in {count_of(seconds, 'second')}.", most, seconds)


def recent(user_id: int | Expression | None) -> QuerySet[Decision]:
    """Return this person's last approvals, newest first, as many as make a streak."""
    return Decision.objects.filter(user=user_id).approving().order_by("-pk")[: settings.HOLDPOINT_STREAK]
