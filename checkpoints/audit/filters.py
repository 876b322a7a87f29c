"""Which events somebody asks for: one form for the page, the exports and the command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self

from django.contrib.postgres.search import SearchQuery
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from checkpoints.events.event import EventTerms
from checkpoints.models import Event, EventText, Run
from checkpoints.postgresql.text_search import beginnings

MOST_TEXTS = 10_000  # texts that one search finds, the newest
_NUMBER = re.compile(r"(?:R-|run:)?(\d{1,18})", re.IGNORECASE)


class NoFilter(ValueError):
    """What was typed into a filter is none; the text says which, and what it takes."""


@dataclass(frozen=True, kw_only=True)
class AuditFilters:
    """Empty means all. `kind` may end in a point for all kinds that begin so. Times have their zone."""

    kind: str = ""
    subject: str = ""
    run: int | None = None
    agent: str = ""
    actor: str = ""
    team: int | None = None
    since: datetime | None = None
    until: datetime | None = None  # not included
    words: str = ""

    @classmethod
    def read(cls, said: Mapping[str, str]) -> Self:
        """Read what was typed, by the filters' names. Raises NoFilter for what is no such filter."""
        texts = {name: said.get(name, "").strip()[:200] for name in ("kind", "subject", "agent", "actor", "words")}
        return cls(
            **texts,
            run=_number(said.get("run", ""), "run"),
            team=_number(said.get("team", ""), "team"),
            since=_time(said.get("since", ""), "since"),
            until=_time(said.get("until", ""), "until"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the filters that are set."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in said.items() if value
        }

    def apply(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Return those of the events that pass all filters but the one by words."""
        asked = {
            "kind__startswith" if self.kind.endswith(".") else "kind": self.kind, "subject": self.subject,
            "run_id": self.run, "actor": self.actor, "team_id": self.team, "at__gte": self.since, "at__lt": self.until,
        }  # fmt: skip
        events = events.filter(**{name: value for name, value in asked.items() if value not in (None, "")})
        if self.agent:
            events = events.filter(Exists(Run.objects.filter(pk=OuterRef("run_id"), plan__agent=self.agent)))
        return events

    def matching(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Return those of a few events that contain these words, in the event or in its text."""
        query = query_of(self.words)
        if query is None:
            return events
        said = EventText.objects.filter(event_id=OuterRef("pk"), terms=query)
        return events.alias(terms=EventTerms()).filter(Q(terms=query) | Exists(said))

    def searched(self, events: QuerySet[Event], *, all_texts: bool = False) -> list[QuerySet[Event]]:
        """Return the matches among many events, as two sets, so that each is found by its own index.

        A page needs the newest texts alone.
        """
        query = query_of(self.words)
        if query is None:
            return [events]
        texts = EventText.objects.filter(terms=query).values("pk")
        said = texts if all_texts else texts.order_by("-pk")[:MOST_TEXTS]
        return [events.alias(terms=EventTerms()).filter(terms=query), events.filter(pk__in=said)]


def query_of(words: str) -> SearchQuery | None:
    """Build a search for all of these words, each of which may go on; None where there is no word."""
    found = beginnings(words.lower())  # the database may know the small letters of ASCII alone
    return SearchQuery(found, config="simple", search_type="raw") if found else None


def _number(text: str, name: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise NoFilter(f"{text[:40]!r} is no {name}; write its number, such as {'R-7' if name == 'run' else '7'}.")
    return int(match[1])


def _time(text: str, name: str) -> datetime | None:
    text = text.strip()
    if not text:
        return None
    try:
        at = parse_datetime(text) or parse_datetime(f"{text}T00:00")
    except ValueError:
        at = None
    if at is None:
        raise NoFilter(f"{text[:40]!r} is no time ({name}); write one such as 2026-11-21T14:00Z.")
    return at if at.tzinfo else timezone.make_aware(at)
