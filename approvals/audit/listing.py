"""The audit's list: newest first, page by page along an index, however many events there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import F, QuerySet
from django.db.models.fields.tuple_lookups import TupleGreaterThan, TupleLessThan

from checkpoints.audit.filters import Filters
from checkpoints.counting import MOST, Capped
from checkpoints.models import Event, EventText
from checkpoints.rows import microseconds, run_sql

from .readers import Reader

PAGE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEALS = """
SELECT w.id, (SELECT s.id FROM checkpoints_seal s WHERE (s.last_xid, s.last_id) >= (w.xid, w.id)
              ORDER BY s.last_xid, s.last_id LIMIT 1)
FROM unnest($1::bigint[], $2::bigint[]) AS w (id, xid)"""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the list: an event's time in microseconds, and its id."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"

    @classmethod
    def of(cls, event: Event) -> Mark:
        return cls(microseconds(event.at), event.pk)

    @classmethod
    def read(cls, text: str) -> Mark | None:
        """What an address says; None for anything else."""
        at, _, id = text.partition(".")
        if not (at.isascii() and at.isdigit() and id.isascii() and id.isdigit() and len(at) < 17 and len(id) < 19):
            return None
        return cls(int(at), int(id))

    @property
    def pair(self) -> Sequence[object]:
        return (_EPOCH + timedelta(microseconds=self.at), self.id)


@dataclass(frozen=True)
class Page:
    """Some events, newest first, and where the next page begins; their texts by event."""

    events: list[Event]
    next: Mark | None
    texts: dict[int, str]
    seals: dict[int, int]


def page(reader: Reader, filters: Filters, *, before: Mark | None) -> Page:
    """The newest events that fit, or those before a mark."""
    parts = [_before(part, before) for part in _parts(reader, filters)]
    found = newest(parts, PAGE + 1)
    shown = found[:PAGE]
    more = Mark.of(shown[-1]) if len(found) > PAGE else None
    return Page(shown, more, texts_of(shown), seals_of(shown))


def newer(reader: Reader, filters: Filters, than: Mark) -> Capped:
    """How many events that fit came since; as many as people count."""
    since = [part.filter(TupleGreaterThan((F("at"), F("id")), than.pair)) for part in _parts(reader, filters)]
    found = newest(since, MOST + 1)
    return Capped(min(len(found), MOST), len(found) > MOST)


def newest(parts: Iterable[QuerySet[Event]], count: int) -> list[Event]:
    """The newest of several sets of events, of each no more than are wanted."""
    found: dict[int, Event] = {}
    for part in parts:
        found |= {event.pk: event for event in part.order_by("-at", "-id")[:count]}
    return sorted(found.values(), key=lambda event: (event.at, event.pk), reverse=True)[:count]


def _parts(reader: Reader, filters: Filters) -> list[QuerySet[Event]]:
    return [part for events in reader.events() for part in filters.searched(filters.apply(events))]


def _before(part: QuerySet[Event], mark: Mark | None) -> QuerySet[Event]:
    return part if mark is None else part.filter(TupleLessThan((F("at"), F("id")), mark.pair))


def texts_of(events: Iterable[Event]) -> dict[int, str]:
    """What people wrote with these events, where it is not erased."""
    wanted = [event.pk for event in events if event.text_digest is not None]
    found = EventText.objects.filter(pk__in=wanted).values_list("pk", "text") if wanted else ()
    return {pk: bytes(text).decode(errors="replace") for pk, text in found}


def seals_of(events: Sequence[Event]) -> dict[int, int]:
    """The seal that covers each of these events, of those that one does."""
    if not events:
        return {}
    columns = [[event.pk for event in events], [event.xid for event in events]]
    return {event: seal for event, seal in run_sql(_SEALS, columns) if seal is not None}
