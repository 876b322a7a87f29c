"""Reads the log of notices for people, in plain words, and clears what is old."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from approvals.models import Gate, Message
from approvals.presentation.text.untrusted import person, plain
from checkpoints.models import Run

from . import channel
from .building import NoticeKind

CLEARED = 1000  # rows a transaction
SHOWN = 25  # notices on one's own page
# Code -> words. Codes like smtp_550 and http_404 are put into words below.
WORDS: dict[str, str] = {
    "decided": "it was decided before",
    "expired": "its deadline passed before",
    "withdrawn": "it was withdrawn before",
    "voted": "they had decided already",
    "not_asked": "they may not decide it any more",
    "not_seen": "they may not see it any more",
    "not_wanted": "they chose otherwise",
    "no_address": "there is no address any more",
    "signed_out": "they were not signed in there any more",
    "no_account": "no account with a password has the address that was typed",
    "nothing": "nothing was waiting",
    "back": "the person is not away any more",
    "removed": "the gate or the address was removed",
    "quiet": "quiet hours",
    "settling": "a decision may still be undone",
    "bad_address": "the address is not valid",
    "refused": "the server does not answer",
    "dns_failed": "the server's name could not be resolved",
    "tls_failed": "no encrypted connection to the server",
    "timeout": "the server took too long",
    "cut": "the connection was cut",
    "sign_in": "the server refused the sign-in",
    "lost": "the program that sent it stopped, and nobody knows whether it arrived",
    "sent": "it was taken",
    "delivered": "it was taken",
    "gone": "the server answered 410: it takes no more messages",
    "later": "it was not taken",
    "fault": "an error in Holdpoint, see the logs",
}


def words(code: str) -> str:
    """Describe a result code for people, as a part of a sentence."""
    kind, _sign, number = code.partition("_")
    if kind in ("smtp", "http") and number.isdigit():
        return f"the server answered {number}"
    return str(WORDS.get(code, code))


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One line of the log."""

    who: str
    channel: str
    kind: str
    status: str
    why: str  # of a failure, a delay, or what was not sent
    at: datetime | None  # sent, or ended otherwise
    opened: datetime | None
    gate: int | None = None
    title: str = ""
    run: Run | None = None  # of the gate, whose program chose the title
    due: datetime | None = None


def of_gate(rows: Iterable[Mapping[str, Any]]) -> list[LogEntry]:
    """Return the log of a gate, as its page read it, oldest first."""
    return [
        LogEntry(
            who=plain(row["label"] or person(User(**row["user"])), limit=80),
            channel=_label(row["channel"]),
            kind=kind_words(row["kind"]),
            status=row["status"],
            why=words(row["word"]),
            at=_moment(row["at"]),
            opened=_moment(row["opened"]),
        )
        for row in rows
    ]


def of_person(user: User) -> list[LogEntry]:
    """Return what a person was told lately, the newest first; of a gate that they may not see any more its kind."""
    now = timezone.now()
    found = list(Message.objects.filter(user=user).order_by("-id")[:SHOWN])
    gates = Gate.objects.visible_to(user).select_related("run__plan").defer("run__plan__body")
    seen = gates.in_bulk({each.gate_id for each in found if each.gate_id})
    return [
        LogEntry(
            who="", channel=_label(each.channel), kind=kind_words(each.kind), status=each.status, why=words(each.word),
            at=each.finished_at, opened=each.opened_at, gate=gate.pk if gate else None,
            title=gate.title if gate else "", run=gate.run if gate else None,
            due=each.next_attempt_at if each.next_attempt_at and each.next_attempt_at > now else None,
        )
        for each in found
        for gate in [seen.get(each.gate_id or 0)]
    ]  # fmt: skip


def clear() -> None:
    """Delete messages older than the settings, with their attempts, CLEARED at a time."""
    people, webhooks = Message.objects.to_people(), Message.objects.to_webhooks()
    for sent, days in (
        (people, settings.HOLDPOINT_NOTICES_KEEP_DAYS),
        (webhooks, settings.HOLDPOINT_WEBHOOKS_KEEP_DAYS),
    ):
        old = sent.outlived(timedelta(days=days)).order_by("created_at").values_list("pk", flat=True)[:CLEARED]
        while numbers := list(old.all()):
            Message.objects.filter(pk__in=numbers).delete()


def _label(name: str) -> str:
    found = channel.registered(name)
    return str(found.label) if found else name


def kind_words(name: str) -> str:
    """Name the kind of a message for people."""
    return str(NoticeKind(name).label) if name in NoticeKind.values else name


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
