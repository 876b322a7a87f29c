"""Milder versions of policies that wait for a second person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from checkpoints.values.canonical_json import decode_canonical

from .policy import SETTINGS, Policy


class PolicyChange(models.Model):
    """A version of a policy that is milder than the one in force: it counts once a second person confirms it."""

    class Status(models.TextChoices):
        # waiting -> confirmed | refused | outdated
        WAITING = "waiting", "Waits for a second person"
        CONFIRMED = "confirmed", "Confirmed"
        REFUSED = "refused", "Refused"
        OUTDATED = "outdated", "Outdated: another version was written meanwhile"

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+")
    name = models.SlugField(max_length=60, db_index=False)
    base = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="changes")  # the version in force then
    settings = models.TextField()  # canonical JSON: setting -> value, durations in seconds
    team_ids = ArrayField(models.IntegerField(), default=list)  # the teams that decide
    person_ids = ArrayField(models.IntegerField(), default=list)
    milder = models.TextField()  # canonical JSON: sentences that say how it is milder
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.WAITING)
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(db_default=Now())
    ended_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    ended_at = models.DateTimeField(null=True)
    # The version that it became.
    made = models.ForeignKey(Policy, null=True, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ended_by__isnull=True)
                | ~models.Q(ended_by=models.F("proposed_by"), status="confirmed"),
                name="policy_change_has_two_people",
            )
        ]
        indexes = [models.Index("team", "name", name="policy_change_waits", condition=models.Q(status="waiting"))]

    def __str__(self) -> str:
        new = self.base.name != self.name
        return f"new policy {self.name}" if new else f"change of {self.name}, version {self.base.version}"

    @property
    def reasons(self) -> list[str]:
        """List in words how it is milder."""
        said: list[str] = decode_canonical(self.milder.encode())
        return said

    @property
    def values(self) -> dict[str, Any]:
        """Return setting -> value, as a policy's row has them; the base's where the release of then knew none."""
        said: dict[str, Any] = decode_canonical(self.settings.encode())
        before = {name: getattr(self.base, name) for name in SETTINGS}
        return before | {name: _value(name, value) for name, value in said.items()}

    def teams(self) -> list[Group]:
        """List the teams that would decide."""
        return list(Group.objects.filter(pk__in=self.team_ids))

    def people(self) -> list[User]:
        """List the people who would be named."""
        return list(User.objects.filter(pk__in=self.person_ids))

    def end(self, status: str, *, by: Any = None) -> bool:
        """End a waiting change: the only writer of `status`. Returns False where it has ended."""
        ended = {"status": status, "ended_by": by, "ended_at": Now()}
        return bool(PolicyChange.objects.filter(pk=self.pk, status=self.Status.WAITING).update(**ended))


def _value(name: str, value: Any) -> Any:
    span = isinstance(Policy._meta.get_field(name), models.DurationField) and value is not None
    return timedelta(seconds=value) if span else value
