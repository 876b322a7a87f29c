"""The audit's filters: read alike from the page, the exports and the command."""

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
from checkpoints.postgresql.text_search import prefix_query

MOST_TEXTS = 10_000  # texts that one search finds, the newest
_NUMBER = re.compile(r"(?:R-|run:)?(\d{1,18})", re.IGNORECASE)


class NoFilter(ValueError):
    """A filter's value is invalid; the text says which one, and what to write."""


@dataclass(frozen=True, kw_only=True)
class AuditFilters:
    """The filters. Empty means all. A `kind` that ends in a point matches all kinds that begin so. Times are aware."""

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
    def read(cls, values: Mapping[str, str]) -> Self:
        """Parse typed values, by the filters' names. Raises NoFilter for an invalid one."""
        texts = {name: values.get(name, "").strip()[:200] for name in ("kind", "subject", "agent", "actor", "words")}
        return cls(
            **texts,
            run=_number(values.get("run", ""), "run"),
            team=_number(values.get("team", ""), "team"),
            since=_time(values.get("since", ""), "since"),
            until=_time(values.get("until", ""), "until"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the filters that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items() if value
        }

    def apply(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Keep the events that pass all filters but `words`."""
        asked = {
            "kind__startswith" if self.kind.endswith(".") else "kind": self.kind, "subject": self.subject,
            "run_id": self.run, "actor": self.actor, "team_id": self.team, "at__gte": self.since, "at__lt": self.until,
        }  # fmt: skip
        events = events.filter(**{name: value for name, value in asked.items() if value not in (None, "")})
        if self.agent:
            events = events.filter(Exists(Run.objects.filter(pk=OuterRef("run_id"), plan__agent=self.agent)))
        return events

    def matching(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Keep those of a few events that contain `words`, in the event or in its text."""
        query = query_of(self.words)
        if query is None:
            return events
        texts = EventText.objects.filter(event_id=OuterRef("pk"), terms=query)
        return events.alias(terms=EventTerms()).filter(Q(terms=query) | Exists(texts))

    def searched(self, events: QuerySet[Event], *, all_texts: bool = False) -> list[QuerySet[Event]]:
        """Return the matches for `words` among many events, as two querysets, so that each uses its own index.

        Unless `all_texts`, only the newest texts are searched, which is enough for a page.
        """
        query = query_of(self.words)
        if query is None:
            return [events]
        texts = EventText.objects.filter(terms=query).values("pk")
        newest = texts if all_texts else texts.order_by("-pk")[:MOST_TEXTS]
        return [events.alias(terms=EventTerms()).filter(terms=query), events.filter(pk__in=newest)]


def query_of(words: str) -> SearchQuery | None:
    """Build a search for all of these words as beginnings of words; None without a word."""
    found = prefix_query(words.lower())  # the database may be able to lower only ASCII letters
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
