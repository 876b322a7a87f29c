"""Writes events, always in the caller's transaction, so that a change and its event are committed together."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count
from typing import Any, Protocol

from django.db import transaction
from psycopg.types.numeric import Int4, Int8

from checkpoints import request_ids
from checkpoints.actors import Actor
from checkpoints.postgresql.sql import Statement, make_storable, run_sql
from checkpoints.values.canonical_json import encode_canonical

from . import event_proof, wakeup

FINDABLE = 100_000  # characters of a text that are indexed for search
_INTO = "INSERT INTO checkpoints_event (kind, run_id, team_id, subject, version, actor, actor_name, data, text_digest)"
_TYPES = ("text", "bigint", "bigint", "text", "int", "text", "text", "bytea", "bytea")
_FEW = 2  # events that are sent as plain values: arrays of so few take longer than the insert
_EVENTS = f"""{_INTO}
SELECT * FROM unnest({", ".join(f"${n}::{kind}[]" for n, kind in enumerate(_TYPES, 1))}) RETURNING id
"""  # noqa: S608 - constants
_TEXT = """
INSERT INTO checkpoints_eventtext (event_id, salt, text, terms) VALUES ($1, $2, $3, to_tsvector('simple', $4))
"""


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
    append_events(
        [Entry(kind=kind, subject=subject, by=by, run=run, team_id=team_id, version=version, data=data, text=text)]
    )


def append_events(entries: Sequence[Entry], *, extras: Sequence[Statement] = ()) -> None:
    """Append events in this order, and wake the tailers once after commit. `extras`: see run_sql."""
    salts = [secrets.token_bytes(16) for _ in entries]
    words = [None if entry.text is None else entry.text.encode(errors="replace") for entry in entries]
    rows = [_row(*row) for row in zip(entries, salts, words, strict=True)]
    # No savepoint: if the event cannot be written, the change that it records must not be written either.
    with transaction.atomic(savepoint=False):
        if 1 <= len(rows) <= _FEW:
            written = run_sql(_plain(len(rows)), list(chain.from_iterable(rows)), extras=extras)
        else:
            columns = [list(column) for column in zip(*rows, strict=True)]
            written = run_sql(_EVENTS, columns, extras=extras) if rows or extras else []
        for (event,), salt, text in zip(written, salts, words, strict=True):
            if text is not None:
                found_by = make_storable(text.decode(errors="replace"))[:FINDABLE]
                run_sql(_TEXT, [event, salt, text, found_by])
    wakeup.ring_after_commit()


@cache
def _plain(events: int) -> str:
    """Return the statement that inserts so many events as plain values."""
    places = count(1)
    rows = (", ".join(f"${next(places)}::{kind}" for kind in _TYPES) for _ in range(events))
    return f"{_INTO} VALUES {', '.join(f'({row})' for row in rows)} RETURNING id"


def _row(entry: Entry, salt: bytes, words: bytes | None) -> tuple[Any, ...]:
    """Return the columns of an event, as _EVENTS has them."""
    run, data = entry.run, with_request(entry.data or {})
    team = run.team_id if run and entry.team_id is None else entry.team_id
    return (
        entry.kind, Int8(run.pk) if run else None, None if team is None else Int8(team), entry.subject,
        Int4(entry.version), entry.by.id, entry.by.name,
        encode_canonical(event_proof.proven(entry.kind, entry.subject, entry.version, data)),
        None if words is None else hashlib.sha256(salt + words).digest(),
    )  # fmt: skip


def with_request(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event's data with the id of the current request, if there is one."""
    return {**data, "request_id": request_ids.current()} if request_ids.current() else data
