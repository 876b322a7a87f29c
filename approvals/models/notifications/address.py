"""Addresses of people and teams for messages: Slack, Teams, browsers. E-mail addresses are the accounts' own."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class ChannelAddressQuerySet(models.QuerySet["ChannelAddress"]):
    """Queries of addresses."""

    def usable(self, channel: str) -> ChannelAddressQuerySet:
        """Select those of a channel that messages may go to."""
        return self.filter(channel=channel, gone_at__isnull=True)

    def of(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> ChannelAddressQuerySet:
        """Select those of these people, whose accounts are active, and of these teams."""
        return self.filter(Q(user__in=people, user__is_active=True) | Q(team__in=teams))

    def add(
        self, channel: str, value: str, *, label: str, user: User | None = None, team: Group | None = None
    ) -> ChannelAddress:
        """Add an address, or make the one that exists usable again under this label. Either a person's or a team's."""
        mark = hashlib.sha256(value.encode()).hexdigest()
        defaults = {"value": value, "label": label[:100], "gone_at": None, "gone_word": ""}
        return self.update_or_create(channel=channel, user=user, team=team, mark=mark, defaults=defaults)[0]

    def lose(self, word: str) -> int:
        """Mark usable ones as gone, with this code as the reason; return how many."""
        return self.filter(gone_at__isnull=True).update(gone_at=Now(), gone_word=word)


class ChannelAddress(models.Model):
    """One address of one channel. `value` may be secret: pages, logs and events show `label`."""

    channel = models.CharField(max_length=12)  # a channel's name
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")
    value = models.TextField()
    mark = models.CharField(max_length=64)  # SHA-256 of the value, so that each is there once
    label = models.CharField(max_length=100)  # "Firefox on Linux", "#approvals"
    created_at = models.DateTimeField(db_default=Now())
    gone_at = models.DateTimeField(null=True)  # usable -> gone; gone -> usable, added again
    gone_word = models.CharField(max_length=30, default="", db_default="")

    objects = ChannelAddressQuerySet.as_manager()

    class Meta:
        verbose_name = "chat channel"  # in the administration, which shows those of teams alone
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "user", "team", "mark"], name="one_address_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=True) ^ Q(team__isnull=True), name="address_of_a_person_or_a_team"
            ),
        ]
        indexes = [
            models.Index(fields=["user", "channel"], name="address_of_person", condition=Q(user__isnull=False)),
            models.Index(fields=["team", "channel"], name="address_of_team", condition=Q(team__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.channel}: {self.label}"
