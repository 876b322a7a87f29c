"""Reads what the channels need to know of people and teams."""

from __future__ import annotations

from collections.abc import Collection

from approvals.models import ChannelAddress, NotificationPreference
from approvals.notifications.channel import Address


def zones_of(people: Collection[int]) -> dict[int, str]:
    """Return the time zones that these people chose, by their ids."""
    return dict(NotificationPreference.objects.filter(pk__in=list(people)).values_list("pk", "zone"))


def of_teams(channel: str, teams: Collection[int]) -> list[Address]:
    """List the addresses of these teams in a channel."""
    if not teams:
        return []
    found = ChannelAddress.objects.usable(channel).filter(team__in=list(teams)).order_by("pk")
    return [
        Address(channel=channel, value=each.value, label=each.label, id=each.pk, team=each.team_id) for each in found
    ]
