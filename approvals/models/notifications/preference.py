"""A person's notification settings. Without a row the defaults of approvals.notifications.wanted_when hold.

Also here: addresses of people and teams for messages: Slack, Teams, browsers. E-mail addresses are the accounts' own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import timedelta

from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Now

from ..account import Profile

WEEKDAYS = [0, 1, 2, 3, 4]  # Monday is 0


def weekdays() -> list[int]:
    """Return Monday to Friday."""
    return list(WEEKDAYS)


class NotificationPreferenceQuerySet(models.QuerySet["NotificationPreference"]):
    """Queries of settings."""

    def digest_due(self) -> NotificationPreferenceQuerySet:
        """Select those whose digest is to be written now."""
        return self.filter(digest_next__lte=Now())


class NotificationPreferenceManager(models.Manager.from_queryset(NotificationPreferenceQuerySet)):  # type: ignore[misc]
    """Reads a person's zone, which is in their profile, along with their settings."""

    def get_queryset(self) -> NotificationPreferenceQuerySet:
        profile = Profile.objects.filter(pk=OuterRef("pk"))
        found: NotificationPreferenceQuerySet = super().get_queryset().annotate(zone=Subquery(profile.values("zone")))
        return found


class NotificationPreference(models.Model):
    """One person's settings. Times of day are in their zone."""

    user = models.OneToOneField(User, primary_key=True, on_delete=models.CASCADE, related_name="+")
    # {kind: {channel: least risk, or "never"}}; what is missing has its default.
    choices = models.JSONField(default=dict, db_default={})
    quiet_from = models.TimeField(null=True)  # with `quiet_until`: nothing is sent between them
    quiet_until = models.TimeField(null=True)
    quiet_days = ArrayField(models.SmallIntegerField(), default=list, db_default=[])  # quiet all day; Monday is 0
    critical_passes = models.BooleanField(default=True, db_default=True)  # critical risk is told in quiet hours too
    remind_before = models.DurationField(null=True)  # before a deadline; null: as the policy says; 0: never
    digest_at = ArrayField(models.TimeField(), default=list, db_default=[])  # empty: no digest
    digest_days = ArrayField(models.SmallIntegerField(), default=weekdays, db_default=WEEKDAYS)
    digest_next = models.DateTimeField(null=True)

    objects = NotificationPreferenceManager()
    zone: str | None = None  # the profile's

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
                name="quiet_hours_begin_and_end",
            ),
            models.CheckConstraint(
                condition=Q(remind_before__isnull=True) | Q(remind_before__gte=timedelta()), name="a_reminder_is_before"
            ),
        ]
        indexes = [models.Index(fields=["digest_next"], name="digest_due", condition=Q(digest_next__isnull=False))]

    def __str__(self) -> str:
        return f"notification settings of user {self.user_id}"


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
