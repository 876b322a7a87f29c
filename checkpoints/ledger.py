"""Writing events: always in the caller's transaction, so that a change and its event land together."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from . import rings
from .actors import Actor
from .models import Event, EventText, Run
from .values import canonical


def record(
    kind: str,
    *,
    subject: str,
    by: Actor,
    run: Run | None = None,
    team_id: int | None = None,
    version: int = 0,
    data: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> None:
    """Append one event, and ring after commit.

    `data` is kept for good, so it never holds personal text. `text` may be erased later: the event keeps only a
    digest, salted, since a short text could be guessed from a plain one.
    """
    salt = secrets.token_bytes(16)
    words = None if text is None else text.encode(errors="replace")
    with transaction.atomic():
        event = Event.objects.create(
            kind=kind,
            subject=subject,
            run_id=run.pk if run else None,
            team_id=run.team_id if run and team_id is None else team_id,
            version=version,
            actor=by.id,
            actor_name=by.name,
            data=canonical(dict(data or {})),
            text_digest=None if words is None else text_digest(salt, words),
        )
        if words is not None:
            EventText.objects.create(event=event, salt=salt, text=words)
    transaction.on_commit(rings.ring)


def text_digest(salt: bytes, words: bytes) -> bytes:
    """The digest that an event keeps of its text."""
    return hashlib.sha256(salt + words).digest()
