"""Reads the conversation about a gate: comments at it, and reviewers' words at the run's earlier gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from approvals.gates import remarks
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Event
from checkpoints.postgresql.prepared_rows import prepared
from checkpoints.values import canonical_json

SHOWN = 50  # latest entries of each part
HOW = {
    "approve": _("reviewer, approved"),
    "edit": _("reviewer, approved with an edit"),
    "reject": _("reviewer, rejected"),
    "answer": _("reviewer, answered"),
    "mixed": _("reviewer, decided action by action"),
}


@dataclass(frozen=True, kw_only=True)
class ConversationEntry:
    """One person's words. `text` is None where they have been erased."""

    who: str
    you: bool
    at: datetime
    text: str | None
    how: str = ""  # what they did: "reviewer, rejected"
    gate: int = 0


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Both parts, each oldest first."""

    here: Sequence[ConversationEntry]
    before: Sequence[ConversationEntry]


def conversation(gate: Gate, *, user: User, earlier: bool) -> Conversation:
    """Read it in one statement. `earlier`: with the words at the run's other gates, for readers who may see them."""
    rows = _of_run(gate.run_id) if earlier else _of_gate(gate.run_id, gate.subject)
    here = [each for each in rows if each.subject == gate.subject and each.kind == remarks.KIND]
    before = [each for each in rows if each.subject != gate.subject and each.kind == "gate.decided"]
    return Conversation(
        here=[_said(each, user) for each in here[:SHOWN][::-1]],
        before=[_said(each, user) for each in before[:SHOWN][::-1]],
    )


def _words(**where: Any) -> QuerySet[Event]:
    found = Event.objects.filter(**where, kind__in=(remarks.KIND, "gate.decided"), text_digest__isnull=False)
    return found.select_related("words").order_by("-id")[: 2 * SHOWN]


@prepared
def _of_run(run: Any) -> QuerySet[Event]:
    return _words(run_id=run)


@prepared
def _of_gate(run: Any, subject: Any) -> QuerySet[Event]:
    return _words(run_id=run, subject=subject)


def _said(event: Event, user: User) -> ConversationEntry:
    words = getattr(event, "words", None)
    decided = "" if event.kind == remarks.KIND else str(canonical_json.decode(bytes(event.data)).get("kind", ""))
    return ConversationEntry(
        who=event.actor_name or event.actor,
        you=event.actor == actors.of_user(user).id,
        at=event.at,
        text=bytes(words.text).decode(errors="replace") if words is not None else None,
        how=str(HOW.get(decided, "")),
        gate=int(event.subject.partition(":")[2]),
    )
