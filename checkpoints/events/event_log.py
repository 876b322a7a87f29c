"""Writes events, always in the caller's transaction, so that a change and its event are committed together."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.postgres.search import SearchVector
from django.db import transaction
from django.db.models import Value

from checkpoints import request_ids
from checkpoints.actors import Actor
from checkpoints.postgresql.sql import storable
from checkpoints.values.canonical_json import canonical

from . import event_proof, wakeup
from .event import Event, EventText

FINDABLE = 100_000  # characters of a text that are indexed for search


class OfTeam(Protocol):
    """The columns of a run that its events need."""

    pk: int
    team_id: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One event that is not written yet.

    `data` is kept forever, so it never holds personal text. `text` may be erased later: the event keeps only a
    digest, salted, since a short text could be guessed from a plain one.
    """

    kind: str
    subject: str
    by: Actor
    run: OfTeam | None = None
    team_id: int | None = None
    version: int = 0
    data: Mapping[str, Any] | None = None
    text: str | None = None


def record(
    kind: str,
    *,
    subject: str,
    by: Actor,
    run: OfTeam | None = None,
    team_id: int | None = None,
    version: int = 0,
    data: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> None:
    """Append one event, and wake the tailers after commit; see Entry."""
    append([Entry(kind=kind, subject=subject, by=by, run=run, team_id=team_id, version=version, data=data, text=text)])


def append(entries: Sequence[Entry]) -> None:
    """Append events in this order, and wake the tailers once after commit."""
    texts: list[EventText] = []
    events: list[Event] = []
    for entry in entries:
        run, salt = entry.run, secrets.token_bytes(16)
        words = None if entry.text is None else entry.text.encode(errors="replace")
        event = Event(
            kind=entry.kind,
            subject=entry.subject,
            run_id=run.pk if run else None,
            team_id=run.team_id if run and entry.team_id is None else entry.team_id,
            version=entry.version,
            actor=entry.by.id,
            actor_name=entry.by.name,
            data=canonical(
                event_proof.proven(entry.kind, entry.subject, entry.version, with_request(entry.data or {}))
            ),
            text_digest=None if words is None else hashlib.sha256(salt + words).digest(),
        )
        events.append(event)
        if words is not None:
            found_by = SearchVector(Value(storable(words.decode(errors="replace"))[:FINDABLE]), config="simple")
            texts.append(EventText(event=event, salt=salt, text=words, terms=found_by))
    # No savepoint: if the event cannot be written, the change that it records must not be written either.
    with transaction.atomic(savepoint=False):
        Event.objects.bulk_create(events)
        EventText.objects.bulk_create(texts)
    transaction.on_commit(wakeup.ring)


def with_request(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event's data with the id of the current request, if there is one."""
    return {**data, "request_id": request_ids.current()} if request_ids.current() else data
