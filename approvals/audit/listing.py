"""The audit's list: newest first, page by page along an index, however many events there are.

Also here: access to the audit: the teams whose events a person may see, and those whose events they may export.

Members who may view a team's runs see its events, which its runs' pages show anyway. A holder of `view_audit` in a team
sees them without its runs, and may have the seals verified and export events. Staff with the permission to view events
see those of every team, and those that belong to no team.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import DateTimeField, ExpressionWrapper, F, QuerySet, Value
from django.db.models.fields.tuple_lookups import TupleGreaterThan, TupleLessThan

from checkpoints.access.permissions import VIEW_AUDIT, VIEW_EVENT, VIEW_RUN, may_everywhere, teams_where
from checkpoints.audit.filters import AuditFilters
from checkpoints.events.event import EventQuerySet
from checkpoints.models import Event, EventText
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.sql import run_sql, to_microseconds


@dataclass(frozen=True)
class AuditReader:
    """One person's access: events of `teams`, or all where `everything`; `audits` are the teams they may export."""

    user: User
    everything: bool
    teams: frozenset[int]
    audits: frozenset[int]

    @property
    def may_see(self) -> bool:
        return self.everything or bool(self.teams)

    @property
    def may_audit(self) -> bool:
        """Tell whether they may have the seals verified, and export what they see in the teams that they audit."""
        return self.everything or bool(self.audits)

    def events(self) -> list[EventQuerySet]:
        """List the events that they may see, a query for each team, as each can follow an index."""
        result = Event.objects.sealable()
        return [result] if self.everything else [result.filter(team_id=team) for team in sorted(self.teams)]

    def audited(self) -> EventQuerySet:
        """Return the events that they may export."""
        events = Event.objects.sealable()
        return events if self.everything else events.filter(team_id__in=sorted(self.audits))

    def sees(self, event: Event) -> bool:
        return self.everything or event.team_id in self.teams


def reader(user: User) -> AuditReader:
    """Return this person's access to the audit as it is now."""
    if of_all(user):
        return AuditReader(user, True, frozenset(), frozenset())
    audits = frozenset(teams_where(user, VIEW_AUDIT).values_list("pk", flat=True))
    return AuditReader(user, False, frozenset(teams_of(user).values_list("pk", flat=True)), audits)


def of_all(user: User) -> bool:
    """Tell whether they see the events of every team, and those of no team."""
    return may_everywhere(user, VIEW_EVENT)


def teams_of(user: Any) -> QuerySet[Group]:
    """Return the teams whose events they see."""
    return teams_where(user, VIEW_AUDIT) | teams_where(user, VIEW_RUN)


PAGE = 50
LOOKED = 2_000  # newest events that are searched for words before the index of words is used
UNINDEXED = ExpressionWrapper(F("at") + Value(timedelta(0)), output_field=DateTimeField())
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SEALS = """
SELECT w.id, (SELECT s.id FROM checkpoints_seal s WHERE (s.last_xid, s.last_id) >= (w.xid, w.id)
              ORDER BY s.last_xid, s.last_id LIMIT 1)
FROM unnest($1::bigint[], $2::bigint[]) AS w (id, xid)"""


@dataclass(frozen=True, slots=True)
class PageMark:
    """A place in the list: an event's time in microseconds, and its id."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"

    @classmethod
    def from_event(cls, event: Event) -> PageMark:
        return cls(to_microseconds(event.at), event.pk)

    @classmethod
    def read(cls, text: str) -> PageMark | None:
        """Parse a mark from an address; None for anything else."""
        at, _, id = text.partition(".")
        if not (at.isascii() and at.isdigit() and id.isascii() and id.isdigit() and len(at) < 17 and len(id) < 19):
            return None
        return cls(int(at), int(id))

    @property
    def pair(self) -> Sequence[object]:
        return (_EPOCH + timedelta(microseconds=self.at), self.id)


@dataclass(frozen=True)
class EventPage:
    """Some events, newest first, and where the next page begins; their texts by event."""

    events: list[Event]
    next: PageMark | None
    texts: dict[int, str]
    seals: dict[int, int]


def page(reader: AuditReader, filters: AuditFilters, *, before: PageMark | None) -> EventPage:
    """Return a page of the newest events that fit, or of those before a mark."""
    parts = [_before(filters.apply(events), before) for events in reader.events()]
    found = newest(parts, filters, PAGE + 1)
    shown = found[:PAGE]
    more = PageMark.from_event(shown[-1]) if len(found) > PAGE else None
    return EventPage(shown, more, texts_of(shown), seals_of(shown))


def newer(reader: AuditReader, filters: AuditFilters, than: PageMark) -> Capped:
    """Count the events that fit and came since, up to `MOST`."""
    later = TupleGreaterThan((F("at"), F("id")), than.pair)
    found = newest([filters.apply(events).filter(later) for events in reader.events()], filters, MOST + 1)
    return Capped(min(len(found), MOST), len(found) > MOST)


def newest(parts: Iterable[QuerySet[Event]], filters: AuditFilters, count: int) -> list[Event]:
    """List the newest `count` of several sets of events that fit the filters' words; at most that many of each set."""
    found = {event.pk: event for part in parts for event in _newest(part, filters, count)}
    return sorted(found.values(), key=lambda event: (event.at, event.pk), reverse=True)[:count]


def _newest(part: QuerySet[Event], filters: AuditFilters, count: int) -> Iterable[Event]:
    """List the newest of one set: a frequent word is found among the newest, a rare one by the index of words.

    PostgreSQL cannot tell them apart: it would look through a million events for the one that says a rare word.
    """
    in_order = part.order_by("-at", "-id")
    if not filters.words:
        return in_order[:count]
    looked_at = list(in_order.values_list("pk", flat=True)[:LOOKED])
    found = list(filters.matching(Event.objects.filter(pk__in=looked_at)).order_by("-at", "-id")[:count])
    if len(found) == count or len(looked_at) < LOOKED:
        return found
    # No index has this order, so PostgreSQL can only use the index of words.
    by_words = (item.order_by(UNINDEXED.desc(), "-id")[:count] for item in filters.searched(part))
    return [event for word in by_words for event in word]


def _before(part: QuerySet[Event], mark: PageMark | None) -> QuerySet[Event]:
    return part if mark is None else part.filter(TupleLessThan((F("at"), F("id")), mark.pair))


def texts_of(events: Iterable[Event]) -> dict[int, str]:
    """Return what people wrote with these events, where it is not erased."""
    wanted = [event.pk for event in events if event.text_digest is not None]
    found = EventText.objects.filter(pk__in=wanted).values_list("pk", "text") if wanted else ()
    return {pk: bytes(text).decode(errors="replace") for pk, text in found}


def seals_of(events: Sequence[Event]) -> dict[int, int]:
    """Map each of these events that a seal covers to that seal."""
    if not events:
        return {}
    columns = [[event.pk for event in events], [event.xid for event in events]]
    return {event: seal for event, seal in run_sql(_SEALS, columns) if seal is not None}
