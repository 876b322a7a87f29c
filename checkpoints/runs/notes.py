"""People's notes on checkpoints: each is an event, with its text in a row of its own, which may be erased.

A note decides nothing and holds nothing. It is written under the lock of the run's row, so that the same form sent
twice makes one note, a note is taken back once, and a removed checkpoint gets none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.errors import CheckpointError, ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Event, Run
from checkpoints.values import characters
from checkpoints.values.canonical_json import decode_canonical

from . import holds

KINDS = (NOTED, REMOVED) = ("checkpoint.noted", "checkpoint.note_removed")
LONGEST = 4_000  # characters
MOST = 100  # notes of one checkpoint, including those taken back: its page reads all of them


class NotTheirs(CheckpointError):
    """Somebody else wrote this note; only they can take it back."""


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A note that was not taken back. `text` (untrusted) is None where it was erased; `actor` is its author's id."""

    id: int  # its event's
    actor: str
    who: str
    at: datetime
    text: str | None


def note(run: Run, seq: int, words: str, *, key: str, by: Actor) -> bool:
    """Add a note to a checkpoint; False if this person's form with this `key` was accepted before.

    Raises ValueRefused for an empty or too long text or for too many notes; CheckpointRemoved and NoSuchCheckpoint.
    """
    text = words.replace("\r\n", "\n").strip()
    if not text:
        raise ValueRefused("/text", "Write something first.")
    if len(text) > LONGEST:
        sentence = f"Write at most {LONGEST:,} characters; these are {len(text):,}."
        raise ValueRefused("/text", sentence)
    if not characters.is_key(key):
        raise ValueRefused("/key", characters.KEY_RULE)
    with transaction.atomic():
        subject = subject_of(holds.locked(run, seq))
        before = list(Event.objects.sealable().filter(subject=subject, kind=NOTED).values_list("actor", "data"))
        if any(actor == by.id and decode_canonical(bytes(data)).get("key") == key for actor, data in before):
            return False
        if len(before) >= MOST:
            sentence = f"This checkpoint has had {MOST} notes, which is all that it takes."
            raise ValueRefused("/text", sentence)
        data = {"seq": seq, "key": key}
        event_log.record("checkpoint.noted", subject=subject, run=run, by=by, data=data, text=text)
    return True


def take_back(run: Run, seq: int, id: int, *, by: Actor) -> bool:
    """Take back one's own note; the events still show that it existed. False if there is no such note.

    Raises NotTheirs, CheckpointRemoved and NoSuchCheckpoint.
    """
    with transaction.atomic():
        checkpoint = holds.locked(run, seq)
        found = next((line for line in standing(of_checkpoint(checkpoint)) if line.id == id), None)
        if found is None:
            return False
        if found.actor != by.id:
            raise NotTheirs(NotTheirs.__doc__)
        data = {"seq": seq, "note": id}
        event_log.record("checkpoint.note_removed", subject=subject_of(checkpoint), run=run, by=by, data=data)
    return True


def of_checkpoint(checkpoint: UUID) -> list[Event]:
    """Return the events of a checkpoint's notes, with their texts. One statement."""
    found = Event.objects.sealable().filter(subject=subject_of(checkpoint), kind__in=KINDS)
    return list(found.select_related("words"))


def standing(events: Iterable[Event]) -> list[NoteLine]:
    """Return the notes in a checkpoint's events that were not taken back, oldest first."""
    lines = sorted((event for event in events if event.kind in KINDS), key=lambda event: event.pk)
    gone = {decode_canonical(bytes(event.data)).get("note") for event in lines if event.kind == REMOVED}
    return [_noted(event) for event in lines if event.kind == NOTED and event.pk not in gone]


def subject_of(checkpoint: UUID) -> str:
    """Name the subject of the events of a checkpoint's notes."""
    return f"checkpoint:{checkpoint}"


def _noted(event: Event) -> NoteLine:
    words = getattr(event, "words", None)
    text = bytes(words.text).decode(errors="replace") if words is not None else None
    return NoteLine(event.pk, event.actor, event.actor_name or event.actor, event.at, text)
