"""Events that are sealed, and the past rewritten by somebody with the owner's role, who puts it back."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
from django.db import transaction

from checkpoints.actors import Actor
from checkpoints.audit import database, sealer
from checkpoints.audit.reading import seal_fact
from checkpoints.events import event_log
from checkpoints.models import Event, EventText, Seal
from checkpoints.seals.seal import SealFact
from tests.harness import horizon

TABLES = {"checkpoints_event": "id", "checkpoints_seal": "id", "checkpoints_eventtext": "event_id"}  # and their keys
NEWEST = 10  # seals: a test makes fewer


def say(text: str | None = None, *, team: int | None = None, subject: str = "", **data: object) -> Event:
    subject = subject or f"test:{secrets.token_hex(8)}"
    by = Actor("user:7", "Ann")
    event_log.record("test.said", subject=subject, by=by, version=3, team_id=team, data={"n": 1, **data}, text=text)
    return Event.objects.filter(subject=subject).latest("pk")


def erase(event: Event) -> None:
    """Erase an event's text, with the order."""
    with transaction.atomic():
        EventText.objects.filter(pk=event.pk).delete()
        by = Actor("user:7", "Ann")
        event_log.record(
            "text.erased", subject=f"event:{event.pk}", by=by, data={"event": event.pk, "kind": event.kind, "rows": {}}
        )


def seal_all() -> Seal:
    """Seal everything; the newest seal."""
    horizon.reached()
    while sealer.seal_once() is not None:
        pass
    return Seal.objects.latest("pk")


def three() -> tuple[Event, Event, Event, Seal]:
    """Three events of one transaction and the seal that covers them, with others before and after it."""
    say()
    seal_all()
    with transaction.atomic():
        events = say(), say("a secret"), say()
    seal = seal_all()
    say()
    seal_all()
    return *events, seal


def earlier() -> int:
    """Return a seal from before all that a test made: what other tests left takes longer and longer to verify."""
    newest = list(Seal.objects.order_by("-pk").values_list("pk", flat=True)[:NEWEST])
    return newest[-1] if len(newest) == NEWEST else 0


def found() -> list[str]:
    return [str(problem) for problem in database.verify(after=earlier())]


@contextmanager
def forged(*statements: str) -> Iterator[None]:
    """The past as these statements rewrite it; the rows that they touched are put back afterwards."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        for table in TABLES:
            owner.execute(f"CREATE TEMP TABLE kept_{table} AS TABLE {table}")
        try:
            for statement in statements:
                owner.execute(statement)
            yield
        finally:
            for table, key in TABLES.items():
                altered = f"SELECT {key} FROM (TABLE {table} EXCEPT TABLE kept_{table}) AS altered"
                owner.execute(f"DELETE FROM {table} WHERE {key} IN ({altered})")
                owner.execute(f"INSERT INTO {table} TABLE kept_{table} EXCEPT TABLE {table}")


def remade(seal: Seal, *, key: bytes, **changed: object) -> str:
    """The statement that gives a seal these columns and the digest that goes with them under a key."""
    fact: SealFact = replace(seal_fact(seal), **changed)  # type: ignore[arg-type]
    columns = {"merkle_root": fact.root, "digest": fact.expected(key)}
    said = ", ".join(f"{name} = decode('{value.hex()}', 'hex')" for name, value in columns.items())
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=fact.at)
    return f"UPDATE checkpoints_seal SET {said}, at = '{at.isoformat()}' WHERE id = {seal.pk}"
