"""Does one slice of the notifiers' work, and tells whether there is any. A worker does it when it is rung for.

A slice is short, and its bell waits behind those of runs, so that a server that takes mail slowly delays no gate. Where
work is left the slice rings for the next one; where it died, the sweeper does.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from approvals.models import Message
from approvals.models.notifications.message import DUE
from checkpoints.events.commit_order import Horizon
from checkpoints.postgresql.sql import run_sql

from . import delivering, digest, fan_out
from .channel import channels

SLICE = 2.0  # seconds of sending by one channel
ROUNDS = 40  # transactions of a slice that turn events into notices
log = structlog.get_logger()
_bells: list[Callable[[], bool]] = []

# A number that changes whenever somebody did something about it, and whether anything waits. Each part reads along an
# index to the first row: with EXISTS in place of LIMIT, the first would read all events.
_WAITING = f"""
WITH place AS (SELECT xid, event FROM approvals_noticecursor WHERE id = 1)
SELECT coalesce((SELECT event FROM place), 0) + coalesce((SELECT sum(token) FROM approvals_channelstate), 0),
  NOT EXISTS (SELECT FROM place)
  OR (SELECT id FROM checkpoints_event WHERE NOT kind = 'checkpoint.saved' AND xid < {Horizon.template}
      AND (xid, id) > ((SELECT xid FROM place), (SELECT event FROM place)) ORDER BY xid, id LIMIT 1) IS NOT NULL
  OR EXISTS (SELECT FROM approvals_notificationpreference WHERE digest_next <= statement_timestamp())
  OR EXISTS ({DUE})
"""  # noqa: S608 - constants


def register(bell: Callable[[], bool]) -> None:
    """Register a function that has a worker do a slice."""
    if bell not in _bells:
        _bells.append(bell)


def waiting() -> list[tuple[int, int]]:
    """Return [(0, token)] where there is work, [] where there is none; the token changes as work is done."""
    ((token, there),) = run_sql(_WAITING, [_names()])
    return [(0, int(token))] if there else []


def run_slice() -> None:
    """Write notices of new events and due digests, and send for a moment by each channel; ring where work is left."""
    for _ in range(ROUNDS):
        if not fan_out.fan_out():
            break
    digest.write_due()
    for channel, _ in Message.objects.due_channels(_names()):
        try:
            delivering.deliver(channel, seconds=SLICE)
        except Exception:  # one channel's fault keeps no other one from sending
            log.exception("channel.failed", channel=channel)
    if waiting():
        ring()


def _names() -> list[str]:
    return [each.name for each in channels()]


def ring() -> None:
    """Ask a worker for a slice; without any the sweeper does, within a second."""
    for bell in _bells:
        bell()
