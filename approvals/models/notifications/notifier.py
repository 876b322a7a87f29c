"""The state of those who write and send notices: how far events are read, and how each channel fares."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from checkpoints.events.commit_order import Cursor, newest_cursor
from checkpoints.postgresql.sql import run_sql

LEASE = timedelta(minutes=2)
COUNTED = 5000
_FIGURES = """
SELECT state.channel,
  (SELECT count(*) FROM (
    SELECT FROM unnest(ARRAY[0, 1, 2]) level CROSS JOIN LATERAL (
      SELECT FROM approvals_notice notice WHERE notice.channel = state.channel AND notice.urgency = level
        AND notice.status = 'pending' AND notice.next_attempt_at <= statement_timestamp() LIMIT $1) due
    LIMIT $1) counted),
  (SELECT count(*) FROM (
    SELECT FROM approvals_notice notice WHERE notice.channel = state.channel AND notice.status = 'failed'
      AND notice.finished_at > statement_timestamp() - interval '1 day' LIMIT $1) counted),
  coalesce(extract(epoch FROM statement_timestamp() - state.failing_since), 0)::float8
FROM approvals_channelstate state ORDER BY state.channel
"""
PAUSES = (5, 15, 60, 300)  # seconds for which a channel rests after so many sessions in a row that reached nobody


class NoticeCursor(models.Model):
    """The one row that says up to which event notices are written. It moves in the transaction that writes them."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    xid = models.BigIntegerField()
    event = models.BigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_notice_cursor")]

    def __str__(self) -> str:
        return f"{self.xid}.{self.event}"

    @classmethod
    def current(cls) -> Cursor:
        """Return the cursor. The first call of an installation starts at the newest event: nobody hears of the past."""
        row = cls.objects.first()
        if row is None:
            start = newest_cursor()
            row = cls.objects.get_or_create(id=1, defaults={"xid": start.xid, "event": start.id})[0]
        return Cursor(row.xid, row.event)

    @classmethod
    def move(cls, before: Cursor, after: Cursor) -> bool:
        """Move it, in the caller's transaction; False where somebody else has moved it."""
        known = cls.objects.filter(id=1, xid=before.xid, event=before.id)
        return bool(known.update(xid=after.xid, event=after.id))


class ChannelStateQuerySet(models.QuerySet["ChannelState"]):
    """The lease of a channel: one sender at a time, so that a slow server keeps one worker busy and no more."""

    def take(self, channel: str) -> ChannelState | None:
        """Take a channel that is free and does not rest; None where it is not."""
        self.get_or_create(channel=channel)
        free = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())
        rested = Q(paused_until__isnull=True) | Q(paused_until__lt=Now())
        taken = self.filter(free, rested, channel=channel)
        if not taken.update(token=F("token") + 1, busy_until=Now() + LEASE):
            return None
        return self.get(channel=channel)

    def figures(self) -> list[tuple[str, int, int, float]]:
        """List (channel, messages that are due, those that failed within a day, seconds of failure) of each channel."""
        return [
            (channel, due, failed, float(seconds)) for channel, due, failed, seconds in run_sql(_FIGURES, [COUNTED])
        ]


class ChannelState(models.Model):
    """The state of one channel."""

    channel = models.CharField(max_length=12, primary_key=True)
    token = models.IntegerField(default=0)
    busy_until = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0)  # sessions in a row that reached nobody
    failing_since = models.DateTimeField(null=True)
    word = models.CharField(max_length=30, default="")  # why

    objects = ChannelStateQuerySet.as_manager()

    class Meta:
        verbose_name = "channel"

    def __str__(self) -> str:
        return f"channel {self.channel}"

    def renew(self) -> bool:
        """Keep the lease; False where it was lost."""
        return bool(self._mine().update(busy_until=Now() + LEASE))

    def release(self, *, reached: bool | None, word: str = "") -> None:
        """Give the channel back. `reached`: whether anything arrived; None where nothing was tried."""
        columns: dict[str, object] = {"busy_until": None}
        if reached:
            columns |= {"failures": 0, "failing_since": None, "paused_until": None, "word": ""}
        elif reached is not None:
            pause = PAUSES[min(self.failures, len(PAUSES) - 1)]
            columns |= {"failures": F("failures") + 1, "paused_until": Now() + timedelta(seconds=pause), "word": word}
            ChannelState.objects.filter(pk=self.pk, failing_since__isnull=True).update(failing_since=Now())
        self._mine().update(**columns)

    def _mine(self) -> models.QuerySet[ChannelState]:
        return ChannelState.objects.filter(pk=self.pk, token=self.token)
