"""A person's notification settings. Without a row the defaults of approvals.notifications.wanted_when hold."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
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
