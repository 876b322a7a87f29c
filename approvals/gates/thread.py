"""Reads what was said at a gate, as events with their words: comments, questions to the agent, and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from approvals.models import Gate
from checkpoints.models import Event
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.values import canonical_json

from . import questions, remarks

DECIDED = "gate.decided"
ASKING = (questions.ASKED, questions.ANSWERED, questions.FAILED)
HERE = (remarks.KIND, *ASKING)
SHOWN = 50  # latest entries of a gate, and of the run's other gates; twice that many are more than its questions


@dataclass(frozen=True, kw_only=True)
class ThreadEvent:
    """One entry. `text` is None where the words have been erased."""

    kind: str
    gate: int
    actor: str
    who: str
    at: datetime
    text: str | None
    data: dict[str, Any]

    @property
    def question(self) -> int:
        """Return the number of the question that it asks or answers; 0 for a comment."""
        return int(self.data.get("question", 0))

    @property
    def by_agent(self) -> bool:
        return self.kind in (questions.ANSWERED, questions.FAILED)

    @property
    def failed(self) -> bool:
        return self.kind == questions.FAILED


def of_gate(gate: Gate) -> list[ThreadEvent]:
    """List what was said at a gate, the oldest first."""
    return [each for each in events_of(_of_gate(gate.run_id, gate.subject)) if each.kind in HERE][::-1]


def questions_of(gate: Gate) -> list[ThreadEvent]:
    """List all questions to the agent at a gate and its answers, the oldest first, however much was said since."""
    return events_of(_words(ASKING, run_id=gate.run_id, subject=gate.subject))[::-1]


def of_run(gate: Gate) -> list[ThreadEvent]:
    """List what was said at a gate and at the run's other gates, the newest first."""
    return events_of(_of_run(gate.run_id))


def events_of(rows: Iterable[Event]) -> list[ThreadEvent]:
    """Read rows as entries, in their order."""
    return [_entry(each) for each in rows]


def _words(kinds: Sequence[str], **where: Any) -> QuerySet[Event]:
    found = Event.objects.filter(**where, kind__in=kinds, text_digest__isnull=False)
    return found.select_related("words").order_by("-id")[: 2 * SHOWN]


@prepared_statement
def _of_run(run: Any) -> QuerySet[Event]:
    return _words((*HERE, DECIDED), run_id=run)


@prepared_statement
def _of_gate(run: Any, subject: Any) -> QuerySet[Event]:
    return _words((*HERE, DECIDED), run_id=run, subject=subject)


def _entry(event: Event) -> ThreadEvent:
    words = getattr(event, "words", None)
    return ThreadEvent(
        kind=event.kind,
        gate=int(event.subject.partition(":")[2]),
        actor=event.actor,
        who=event.actor_name or event.actor,
        at=event.at,
        text=bytes(words.text).decode(errors="replace") if words is not None else None,
        data=canonical_json.decode_canonical(bytes(event.data)),
    )
