"""Sends what is due by one channel, for a few seconds: checks that it is still needed, sends it, records what came.

One sender at a time has a channel, by a lease, and uses a few connections at once. It checks a notice when it is due:
a gate that was decided meanwhile is told to nobody, and quiet hours put a notice off. What became of each message is
recorded within TOGETHER. Between the other side's answer and that record a death makes a second copy, under the same
key; nothing else does, and nothing makes a loss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from queue import SimpleQueue

import structlog
from django.conf import settings

from approvals.models import ChannelAddress, ChannelState, Notice
from approvals.models.notifications.notice import NoticeEnd, fields_of
from approvals.webhooks import schedule
from checkpoints import crash_points

from .channel import UNREACHED, ChannelSender, NoticeChannel, Receipt, Result, named
from .due import Outgoing, prepare

LEAST = 1.0  # seconds for which messages are sent that were taken
TOGETHER = 0.05  # seconds for which receipts are gathered, since each record is a commit
NOT_TRIED = Receipt(Result.LATER, "not_tried")
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
    done, result, until = 0, SliceResult(), time.monotonic() + seconds
    many = settings.HOLDPOINT_NOTICES_CONNECTIONS
    try:
        with _sessions(channel, many) as sessions, ThreadPoolExecutor(many, thread_name_prefix="notices") as threads:
            while state.renew() and not result.unreachable:
                taken = Notice.objects.take(name, channel.at_once * many)
                if not taken:
                    break
                crash_points.point("notices_taken")
                lost = [each for each in taken if schedule.spent(each.attempts, settings.HOLDPOINT_NOTICES_RETRIES)]
                prepared = prepare(channel, [each for each in taken if each not in lost])
                ends = [NoticeEnd(each, Notice.Status.FAILED, "lost") for each in lost]
                Notice.objects.end([*prepared.ends, *ends, *(_end(each, FAULT) for each in prepared.faults)])
                # At least for a moment, however long it took to come here, or a busy machine would never send.
                _send(prepared.outgoing, sessions, threads, result, max(until, time.monotonic() + LEAST))
                done += len(taken)
                if time.monotonic() > until:
                    break
    finally:
        state.release(reached=result.reached, word=result.word)
    return done


class SliceResult:
    """The result of a slice of sending: whether it reached the other side at all."""

    def __init__(self) -> None:
        self.reached: bool | None = None  # None where nothing was tried
        self.word = ""

    @property
    def unreachable(self) -> bool:
        return self.reached is False

    def heard(self, receipt: Receipt) -> None:
        """Note a receipt: one that the other side gave itself shows that it is there."""
        if receipt.word == NOT_TRIED.word:
            return
        if receipt.word not in UNREACHED:
            self.reached = True
        elif not self.reached:
            self.reached, self.word = False, receipt.word


def _send(
    outgoing: Sequence[Outgoing],
    sessions: SimpleQueue[ChannelSender],
    threads: Executor,
    result: SliceResult,
    until: float,
) -> None:
    """Send messages by several sessions at once, and record the receipts as they come, several in one statement."""

    def one(out: Outgoing) -> Receipt:
        if time.monotonic() > until or result.unreachable:
            return NOT_TRIED  # others' turn comes first
        sender = sessions.get()
        try:
            return sender.send(out.message, out.to, key=out.key, earlier=out.earlier)
        except Exception:
            log.exception("notice.not_sent", **fields_of(out.notice))
            return FAULT
        finally:
            sessions.put(sender)

    asked: dict[Future[Receipt], Outgoing] = {threads.submit(one, each): each for each in outgoing}
    left = set(asked)
    try:
        while left:
            finished, left = wait(left, timeout=TOGETHER)
            if finished:
                crash_points.point("notices_sent")
                _record([(asked[each], each.result()) for each in finished], result)
    except BaseException:
        for each in left:  # what nobody records is sent again, so it is not sent now
            each.cancel()
        raise


@contextmanager
def _sessions(channel: NoticeChannel, many: int) -> Iterator[SimpleQueue[ChannelSender]]:
    """Open so many sessions of a channel for a slice; each is used by one thread at a time."""
    with ExitStack() as opened:
        free: SimpleQueue[ChannelSender] = SimpleQueue()
        for _ in range(many):
            free.put(opened.enter_context(channel.session()))
        yield free


def _record(receipts: Sequence[tuple[Outgoing, Receipt]], result: SliceResult) -> None:
    """Record receipts: what was sent, what is tried again and when, what is given up, and which addresses are gone."""
    ends: list[NoticeEnd] = []
    gone: dict[int, str] = {}
    for out, receipt in receipts:
        result.heard(receipt)
        # A list cannot be changed when one of its gates ends.
        kept = replace(receipt, reference="") if out.others else receipt
        ends.extend(_end(each, kept) for each in out.notices)
        if receipt.result is Result.GONE and out.to.id is not None:
            gone[out.to.id] = receipt.word
        if receipt.word != NOT_TRIED.word:
            log.info("notice.sent", result=receipt.result.value, word=receipt.word, **fields_of(out.notice))
    Notice.objects.end(ends)
    for address, word in gone.items():
        ChannelAddress.objects.filter(pk=address).lose(word)


def _end(notice: Notice, receipt: Receipt) -> NoticeEnd:
    word = receipt.word[:30]
    if receipt.word == NOT_TRIED.word:
        return NoticeEnd(notice, Notice.Status.PENDING, notice.word, tried=False)
    if receipt.result is Result.SENT:
        return NoticeEnd(notice, Notice.Status.SENT, reference=receipt.reference[:200])
    pauses = settings.HOLDPOINT_NOTICES_RETRIES
    pause = schedule.pause(notice.attempts, pauses, spread=0.0, asked=receipt.retry_after)
    if receipt.result is Result.LATER and pause is not None:
        return NoticeEnd(notice, Notice.Status.PENDING, word, pause=pause)
    return NoticeEnd(notice, Notice.Status.FAILED, word)
