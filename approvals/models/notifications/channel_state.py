"""The state of each channel, and its lease: one sender at a time, so that a slow server keeps one worker busy.

A channel that reached nobody rests for a while, longer each time: its messages are not tried, and not counted as tried.

Also here: up to which event people were told: the one row that those who write messages move.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q

from checkpoints.events.commit_order import Cursor, newest_cursor
from checkpoints.postgresql.sql import run_sql

LEASE = timedelta(seconds=150)  # as a message's
COUNTED = 5000
_WEBHOOK = "webhook:"
PAUSES = [5, 15, 60, 300]  # seconds for which a channel rests after so many sessions in a row that reached nobody
_TAKE = """
INSERT INTO approvals_channelstate AS state (channel, token, busy_until, failures, word)
VALUES ($1, 1, statement_timestamp() + $2, 0, '')
ON CONFLICT (channel) DO UPDATE SET token = state.token + 1, busy_until = excluded.busy_until
WHERE greatest(state.busy_until, state.paused_until) > statement_timestamp() IS NOT TRUE
RETURNING token
"""
_RENEW = "UPDATE approvals_channelstate SET busy_until = statement_timestamp() + $3 WHERE channel = $1 AND token = $2"
# $3: whether anything arrived; null where nothing was tried.
_RELEASE = """
UPDATE approvals_channelstate SET busy_until = NULL,
  failures = CASE WHEN $3 THEN 0 WHEN NOT $3 THEN failures + 1 ELSE failures END,
  failing_since = CASE WHEN $3 THEN NULL WHEN NOT $3 THEN coalesce(failing_since, statement_timestamp())
    ELSE failing_since END,
  paused_until = CASE WHEN $3 THEN NULL
    WHEN NOT $3 THEN statement_timestamp() + make_interval(secs => ($5::int[])[least(failures + 1, cardinality($5))])
    ELSE paused_until END,
  word = CASE WHEN $3 THEN '' WHEN NOT $3 THEN $4 ELSE word END
WHERE channel = $1 AND token = $2
"""
_FIGURES = """
SELECT state.channel,
  (SELECT count(*) FROM (
    SELECT FROM unnest(ARRAY[0, 1, 2]) level CROSS JOIN LATERAL (
      SELECT FROM approvals_notice message WHERE message.channel = state.channel AND message.urgency = level
        AND message.status = 'pending' AND message.next_attempt_at <= statement_timestamp() LIMIT $1) due
    LIMIT $1) counted),
  (SELECT count(*) FROM (
    SELECT FROM approvals_notice message WHERE message.channel = state.channel AND message.status = 'failed'
      AND message.finished_at > statement_timestamp() - interval '1 day' LIMIT $1) counted),
  coalesce(extract(epoch FROM statement_timestamp() - state.failing_since), 0)::float8
FROM approvals_channelstate state WHERE state.channel NOT LIKE 'webhook:%' ORDER BY state.channel
"""


def channel_of(webhook: int) -> str:
    """Return the name of the channel by which a webhook's messages are sent: each webhook has its own."""
    return f"{_WEBHOOK}{webhook}"


def number_in(channel: str) -> int | None:
    """Return the number of the webhook that a channel is named for; None for any other channel."""
    return int(channel.removeprefix(_WEBHOOK)) if channel.startswith(_WEBHOOK) else None


class ChannelStateQuerySet(models.QuerySet["ChannelState"]):
    """The lease of a channel, and the figures of all."""

    def take(self, channel: str) -> ChannelState | None:
        """Take a channel that is free and does not rest; None where it is not."""
        rows = run_sql(_TAKE, [channel, LEASE])
        return ChannelState(channel=channel, token=rows[0][0]) if rows else None

    def wake(self, channel: str) -> None:
        """End a channel's rest."""
        self.filter(channel=channel).update(paused_until=None)

    def figures(self) -> list[tuple[str, int, int, float]]:
        """List (channel, messages that are due, those that failed within a day, seconds of failure) of people's."""
        return [
            (channel, due, failed, float(seconds)) for channel, due, failed, seconds in run_sql(_FIGURES, [COUNTED])
        ]


class ChannelState(models.Model):
    """The state of one channel."""

    channel = models.CharField(max_length=30, primary_key=True)
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
        return bool(run_sql(f"{_RENEW} RETURNING 1", [self.channel, self.token, LEASE]))

    def release(self, *, reached: bool | None, word: str = "") -> None:
        """Give the channel back. `reached`: whether anything arrived; None where nothing was tried."""
        run_sql(_RELEASE, [self.channel, self.token, reached, word[:30], PAUSES])


class NoticeCursor(models.Model):
    """The one row that says up to which event messages are written. It moves in the transaction that writes them."""

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
