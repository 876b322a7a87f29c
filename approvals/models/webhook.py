"""Webhooks: external addresses that get messages about a team's gates, signed by Standard Webhooks."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.outbound import sending, targets
from checkpoints import actors
from checkpoints.access.permissions import MANAGE_WEBHOOKS, teams_where
from checkpoints.actors import Actor
from checkpoints.events import event_log

from .notifications.channel_state import ChannelState, channel_of

OVERLAP = timedelta(days=1)  # after a rotation, during which messages are signed with the former secret too
MOST = 20  # webhooks of one team: each gate sends a message to every one, with retries
GONE, SECRET_LOST = "gone", "secret_lost"  # results of an attempt


class WebhookRefused(Exception):
    """The webhook cannot be as it is asked for; the sentence says what to change."""


class TooManyWebhooks(WebhookRefused):
    """The team has as many webhooks as a team may have; the sentence says so. Remove one."""


class WebhookQuerySet(models.QuerySet["Webhook"]):
    """Queries of webhooks."""

    def enabled(self) -> Self:
        """Select those that are enabled."""
        return self.filter(status=Webhook.Status.ENABLED)

    def failing(self) -> Self:
        """Select the enabled ones whose last message was not delivered."""
        return self.enabled().filter(failing_since__isnull=False)

    def listening(self, *, team_id: int, agent: str) -> Self:
        """Select those that get messages about gates of this agent in this team."""
        return self.enabled().filter(Q(agent="") | Q(agent=agent), team=team_id)

    def managed_by(self, user: User) -> Self:
        """Select those of the teams in which this person manages webhooks, without removed ones."""
        return self.filter(team__in=teams_where(user, MANAGE_WEBHOOKS)).exclude(status=Webhook.Status.REMOVED)

    def full(self, team: Group) -> str:
        """Say why the team takes no more webhooks, as a sentence; "" where it does."""
        there = self.filter(team=team).exclude(status=Webhook.Status.REMOVED).count()
        if there < MOST:
            return ""
        return f"{team.name} has {there} webhooks, which is the most. Remove one first."

    def make(self, *, team: Group, url: str, agent: str = "", purpose: str = "", by: Actor) -> tuple[Webhook, str]:
        """Make a webhook and its secret, with its event. Raises WebhookRefused."""
        fault = targets.fault(url)
        if fault:
            raise WebhookRefused(fault)
        key, salt, secret = sending.make_secret()
        with transaction.atomic():
            Group.objects.select_for_update(no_key=True).get(pk=team.pk)  # the second of two at once counts the first
            if full := self.full(team):
                raise TooManyWebhooks(full)
            made = self.create(
                team=team, url=url, agent=agent, purpose=purpose, key=key, salt=salt, by=by.id, by_name=by.name
            )
            made.say("webhook.created", by=by, data={"host": made.host, "agent": agent})
        return made, secret


class Webhook(models.Model):
    """One webhook. Its secret is in no column: see approvals.outbound.sending."""

    class Status(models.TextChoices):
        # enabled <-> disabled; enabled | disabled -> removed
        ENABLED = "enabled", "Enabled"
        DISABLED = "disabled", "Disabled"
        REMOVED = "removed", "Removed"

    class Reason(models.TextChoices):
        """The reason why it is disabled."""

        BY_HAND = "by_hand", "Somebody disabled it"
        GONE = "gone", "The receiver answered 410: it accepts no more messages"
        FAILING = "failing", "Nothing could be delivered for days"
        SECRET_LOST = "secret_lost", "The key that its secret was made with is gone: rotate the secret"

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+")
    agent = models.CharField(max_length=100, blank=True, default="")  # empty: all of the team's
    url = models.CharField(max_length=targets.LONGEST)
    purpose = models.CharField(max_length=100, blank=True, default="")  # what it is for, for people
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.ENABLED)
    reason = models.CharField(max_length=12, choices=Reason.choices, default="", blank=True)
    key = models.CharField(max_length=16)  # the name of the secret key from which its secret is made
    salt = models.BinaryField()
    former_key = models.CharField(max_length=16, default="", blank=True)
    former_salt = models.BinaryField(default=b"")
    former_until = models.DateTimeField(null=True, blank=True)  # until then the former secret signs too
    failing_since = models.DateTimeField(null=True, blank=True)  # the first failure since the last delivery
    by = models.CharField(max_length=120)  # an actor; `by_name` is the name that people read
    by_name = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField(db_default=Now())

    objects = WebhookQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["team"], name="webhook_of_team", condition=Q(status="enabled"))]
        permissions = [("manage_webhooks", "May manage webhooks")]

    def __str__(self) -> str:
        return f"webhook {self.pk}, {self.host}"

    @property
    def host(self) -> str:
        """Return the address's host alone, since the rest may be secret."""
        return targets.host_of(self.url)

    @property
    def subject(self) -> str:
        """Return the name by which events refer to it."""
        return f"webhook:{self.pk}"

    def secrets(self) -> list[str]:
        """List the secrets that sign messages now, the newest first; [] where its key is gone."""
        newest = sending.secret_of(self.key, bytes(self.salt))
        if newest is None:
            return []
        overlaps = Webhook.objects.filter(pk=self.pk, former_until__gt=Now()).exists()
        former = sending.secret_of(self.former_key, bytes(self.former_salt)) if overlaps else None
        return [newest] if former is None else [newest, former]

    def rotate(self, *, by: Actor) -> str:
        """Replace the secret and return the new one; for a day messages are signed with the former one too.

        "" where the webhook was removed.
        """
        key, salt, secret = sending.make_secret()
        kept = {"former_key": F("key"), "former_salt": F("salt"), "former_until": Now() + OVERLAP}
        with transaction.atomic():
            if not self._move(Q(), **kept, key=key, salt=salt):
                return ""
            self.say("webhook.rotated", by=by)
        return secret

    def disable(self, reason: Webhook.Reason, *, by: Actor = actors.SYSTEM) -> bool:
        """Stop sending, and keep queued messages. False where it is not enabled."""
        with transaction.atomic():
            if not self._move(Q(status=Webhook.Status.ENABLED), status=Webhook.Status.DISABLED, reason=reason):
                return False
            self.say("webhook.disabled", by=by, data={"reason": str(reason)})
        return True

    def enable(self, *, by: Actor) -> bool:
        """Send again, queued messages too. False where it is not disabled."""
        with transaction.atomic():
            left = Q(status=Webhook.Status.DISABLED)
            if not self._move(left, status=Webhook.Status.ENABLED, reason="", failing_since=None):
                return False
            ChannelState.objects.wake(channel_of(self.pk))
            self.say("webhook.enabled", by=by)
        return True

    def remove(self, *, by: Actor) -> bool:
        """Stop sending for good, and fail queued messages. False where it was removed before."""
        with transaction.atomic():
            self.messages.all().give_up(
                "failed", "removed"
            )  # first: the same order of locks as in recording an attempt
            if not self._move(Q(), status=Webhook.Status.REMOVED, reason=""):
                return False
            self.say("webhook.removed", by=by)
        return True

    def heard(self, result: str, *, delivered: bool) -> None:
        """Record since when sending fails; disable one that wants no more, lost its key, or failed for days."""
        row = Webhook.objects.filter(pk=self.pk)
        if delivered:
            row.filter(failing_since__isnull=False).update(failing_since=None)
            return
        row.filter(failing_since__isnull=True).update(failing_since=Now())
        days = timedelta(days=settings.HOLDPOINT_WEBHOOKS_FAILING_DAYS)
        if result == GONE:
            self.disable(Webhook.Reason.GONE)
        elif result == SECRET_LOST:
            self.disable(Webhook.Reason.SECRET_LOST)
        elif row.filter(failing_since__lt=Now() - days).exists():
            self.disable(Webhook.Reason.FAILING)

    def say(self, kind: str, *, by: Actor, data: dict[str, object] | None = None) -> None:
        """Append an event of this webhook, in the caller's transaction."""
        event_log.record(kind, subject=self.subject, by=by, team_id=self.team_id, data=data)

    def _move(self, only: Q, **columns: object) -> bool:
        """Change the row where it is not removed; this object then has the row's values."""
        known = Webhook.objects.filter(only, pk=self.pk).exclude(status=Webhook.Status.REMOVED)
        moved = known.update(**columns)
        self.refresh_from_db()
        return bool(moved)
