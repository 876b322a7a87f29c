"""Reads what the channels need to know of people and teams."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import OuterRef, Subquery

from approvals.models import ChannelAddress, Profile
from approvals.notifications.channel import NoticeAddress


def zone_of(person: str) -> Subquery:
    """Return the time zone that a person chose, as a column beside the person's."""
    return Subquery(Profile.objects.filter(pk=OuterRef(person)).values("zone"))


def of_teams(channel: str, teams: Collection[int]) -> list[NoticeAddress]:
    """List the addresses of these teams in a channel."""
    if not teams:
        return []
    found = ChannelAddress.objects.usable(channel).filter(team__in=list(teams)).order_by("pk")
    return [
        NoticeAddress(channel=channel, value=each.value, label=each.label, id=each.pk, team=each.team_id)
        for each in found
    ]
