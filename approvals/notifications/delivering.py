"""Sends what is due by one channel, for a few seconds: checks that it is still needed, sends it, records what came.

One sender at a time has a channel, by a lease, and uses a few connections at once. It checks a message when it is due:
a gate that was decided meanwhile is told to nobody, and quiet hours put a message off; what was written whole, as for a
webhook, is sent as it is. An attempt is counted as its message is handed to a connection, a few at a time, so that a
death counts none that was not under way. What became of each is recorded within TOGETHER. Between the other side's
answer and that record a death makes a second copy, under the same key; nothing else does, and nothing makes a loss.

It also does one slice of the notifiers' work, and tells whether there is any. A worker does it when it is rung for.

A slice is short, and its bell waits behind those of runs, so that a server that takes mail slowly delays no gate. Where
work is left the slice rings for the next one; where it died, the sweeper does.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from queue import SimpleQueue

import structlog
from django.db import transaction

from approvals.models import ChannelAddress, ChannelState, Message
from approvals.models.notifications.message import DUE, MessageEnd, fields_of
from checkpoints import crash_points
from checkpoints.events.commit_order import Horizon
from checkpoints.postgresql.sql import run_sql

from . import digest, due, fan_out
from .channel import UNREACHED, ChannelSender, MessageChannel, NoticeChannel, Receipt, Result, channels, named
from .due import Outgoing, prepare

LEAST = 1.0  # seconds for which messages are sent that were taken
TOGETHER = 0.05  # seconds for which receipts are gathered, since each record is a commit
FAULT = Receipt(Result.LATER, "fault")
log = structlog.get_logger()


def deliver(name: str, *, seconds: float) -> int:
    """Send what is due by this channel, for about so long; return how many were dealt with.

    0 where nothing is due, or somebody else sends by the channel, or it rests after failures.
    """
    channel = named(name)
    state = ChannelState.objects.take(name) if channel else None
    if channel is None or state is None:
        return 0
    done, slice_ = 0, Slice(channel, time.monotonic() + seconds)
    most = channel.at_once * channel.connections
    try:
        with (
            _sessions(channel) as sessions,
            ThreadPoolExecutor(channel.connections, thread_name_prefix="messages") as threads,
        ):
            while taken := Message.objects.take(name, most):
                crash_points.point("messages_taken")
                _send(_prepared(channel, taken), sessions, threads, slice_)
                done += len(taken)
                last = len(taken) < most and taken[0].taken == 1  # one that killed others is taken alone
                if last or slice_.over or time.monotonic() > slice_.until or not state.renew():
                    break
    finally:
        state.release(reached=slice_.reached, word=slice_.word)
    return done


def _prepared(channel: MessageChannel, taken: Sequence[Message]) -> list[Outgoing]:
    """Return what is to be sent now of messages that were taken, and end or put off the others."""
    lost = [each for each in taken if due.spent(max(each.tries, each.taken - 1), channel.pauses)]
    ends = [MessageEnd(each, Message.Status.FAILED, "lost", result="lost") for each in lost]
    going = [each for each in taken if each not in lost]
    outgoing = [Outgoing(each, bytes(each.body)) for each in going if each.body is not None]
    if isinstance(channel, NoticeChannel) and going:
        prepared = prepare(channel, going)
        outgoing += prepared.outgoing
        faults = Message.objects.hand_over(prepared.faults)
        ends += [*prepared.ends, *(_end(channel, each, FAULT) for each in faults)]
    Message.objects.end(ends)
    return outgoing


@dataclass
class Slice:
    """The result of a slice of sending, which ends at `until`: whether it reached the other side at all."""

    channel: MessageChannel
    until: float  # time.monotonic()
    reached: bool | None = None  # None where nothing was tried
    word: str = ""
    closed: bool = False  # nothing more may be sent by the channel

    @property
    def over(self) -> bool:
        return self.closed or self.reached is False

    def heard(self, receipt: Receipt) -> None:
        """Note a receipt: one that the other side gave itself shows that it is there."""
        if receipt.word not in UNREACHED:
            self.reached = True
        elif not self.reached:
            self.reached, self.word = False, receipt.word


def _send(outgoing: Sequence[Outgoing], sessions: SimpleQueue[ChannelSender], threads: Executor, result: Slice) -> None:
    """Send messages by several sessions at once, and record the receipts as they come, several in one statement.

    What is not handed over before the slice ends is given back: others' turn comes first.
    """
    # At least for a moment, however long it took to come here, or a busy machine would never send.
    until = max(result.until, time.monotonic() + LEAST)
    waiting, under_way = deque(outgoing), dict[Future[tuple[Receipt, float]], Outgoing]()
    try:
        while waiting or under_way:
            if waiting and (result.over or time.monotonic() > until):
                idle = [message for out in waiting for message in out.notices]
                Message.objects.end([MessageEnd(each, Message.Status.PENDING, each.word) for each in idle])
                waiting.clear()
            room = min(result.channel.connections - len(under_way), len(waiting))
            if room:
                handed = [waiting.popleft() for _ in range(room)]
                held = Message.objects.hand_over([message for out in handed for message in out.notices])
                crash_points.point("messages_handed_over")
                under_way |= {threads.submit(_try, out, sessions): out for out in handed if out.notice in held}
            finished, _ = wait(under_way, timeout=TOGETHER)
            if finished:
                crash_points.point("messages_sent")
                _record([(under_way.pop(each), *each.result()) for each in finished], result)
    except BaseException:
        for each in under_way:  # what nobody records is sent again, so it is not sent now
            each.cancel()
        raise


def _try(out: Outgoing, sessions: SimpleQueue[ChannelSender]) -> tuple[Receipt, float]:
    """Send one message by a session that is free; return its receipt and the seconds that it took."""
    sender = sessions.get()
    began = time.monotonic()
    try:
        receipt = sender.send(out.message, out.to, key=out.key, earlier=out.earlier)
    except Exception:
        log.exception("message.not_sent", **fields_of(out.notice))
        receipt = FAULT
    finally:
        sessions.put(sender)
    return receipt, time.monotonic() - began


@contextmanager
def _sessions(channel: MessageChannel) -> Iterator[SimpleQueue[ChannelSender]]:
    """Open the sessions of a channel for a slice; each is used by one thread at a time."""
    with ExitStack() as opened:
        free: SimpleQueue[ChannelSender] = SimpleQueue()
        for _ in range(channel.connections):
            free.put(opened.enter_context(channel.session()))
        yield free


def _record(receipts: Sequence[tuple[Outgoing, Receipt, float]], result: Slice) -> None:
    """Record receipts: what was sent, what is tried again and when, what is given up, and which addresses are gone."""
    ends: list[MessageEnd] = []
    gone: dict[int, str] = {}
    for out, receipt, seconds in receipts:
        result.heard(receipt)
        # A list cannot be changed when one of its gates ends.
        lasting = replace(receipt, reference="") if out.others else receipt
        ends.extend(_end(result.channel, each, lasting, seconds) for each in out.notices)
        if receipt.result is Result.GONE and out.to is not None and out.to.id is not None:
            gone[out.to.id] = receipt.word
        log.info("message.sent", result=receipt.result.value, word=receipt.word, **fields_of(out.notice))
    with transaction.atomic():
        Message.objects.end(ends)
        for address, word in gone.items():
            ChannelAddress.objects.filter(pk=address).lose(word)
        result.closed |= not result.channel.ended([receipt for _, receipt, _ in receipts])


def _end(channel: MessageChannel, message: Message, receipt: Receipt, seconds: float | None = None) -> MessageEnd:
    """Say what becomes of a message after an attempt; its `tries` are those before it."""
    pause = 0.0
    if receipt.result is Result.SENT:
        status = Message.Status.SENT
    else:
        spread = random.uniform(-1, 1)  # noqa: S311 - no secret
        later = due.pause(message.tries + 1, channel.pauses, spread=spread, asked=receipt.retry_after)
        again = receipt.result is Result.LATER and later is not None
        status, pause = (Message.Status.PENDING, later or 0.0) if again else (Message.Status.FAILED, 0.0)
    return MessageEnd(
        message, status, receipt.word, reference=receipt.reference, pause=pause,
        result=receipt.word or receipt.result.value, answer=receipt.answer, seconds=seconds,
    )  # fmt: skip


SLICE = 2.0  # seconds of sending by one channel
ROUNDS = 40  # transactions of a slice that turn events into notices
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
            deliver(channel, seconds=SLICE)
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
