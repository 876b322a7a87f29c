"""Turns the audit's events into rows: a sentence, the subject, and the exact data behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import Group
from django.urls import reverse

from approvals.audit import event_words
from approvals.audit.erasing import ERASED
from approvals.audit.event_words import Happening
from approvals.audit.listing import AuditReader, EventPage
from approvals.models import Gate
from checkpoints.access.permissions import ERASE_TEXT, teams_where
from checkpoints.audit.reading import row_of
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event, Run
from checkpoints.runs.plans import spec_of
from checkpoints.seals.seal import readable_value


@dataclass(frozen=True)
class Subject:
    """The subject of an event: its name, its title where the reader may see it, and its page if there is one."""

    name: str
    title: str = ""
    address: str = ""
    quoted: bool = False  # an external program wrote the title


@dataclass(frozen=True, kw_only=True)
class EventRow:
    """One event in the list."""

    event: Event
    told: Happening
    subject: Subject
    run: Subject | None
    team: str
    seal: int | None
    data: str
    cursor: str
    erased: bool
    may_erase: bool


def rows(page: EventPage, reader: AuditReader) -> list[EventRow]:
    """List a page of events as rows, reading their subjects in a few statements."""
    events = page.events
    gates = _gates(events, reader)
    runs = _runs(events, reader)
    teams = dict(Group.objects.filter(pk__in={event.team_id for event in events}).values_list("pk", "name"))
    ran = Run.objects.filter(pk__in={event.run_id for event in events if event.run_id}).select_related("plan")
    titles = {run.pk: spec_of(run.plan).titles for run in ran}  # of each run's steps
    erasing = set(teams_where(reader.user, ERASE_TEXT).values_list("pk", flat=True)) if page.texts else set()
    return [
        EventRow(
            event=event,
            told=event_words.of_row(row_of(event), page.texts.get(event.pk, ""), titles.get(event.run_id or 0, {})),
            subject=subject_of(event, gates, runs),
            run=runs.get(event.run_id or 0) if not event.subject.startswith("run:") else None,
            team=teams.get(event.team_id or 0, ""),
            seal=page.seals.get(event.pk),
            data=json.dumps(data, ensure_ascii=False, indent=2) if (data := readable_value(bytes(event.data))) else "",
            cursor=str(Cursor.from_event(event)),
            erased=event.text_digest is not None and event.pk not in page.texts,
            may_erase=event.kind != ERASED and event.pk in page.texts and event.team_id in erasing,
        )
        for event in events
    ]


def subject_of(event: Event, gates: Mapping[int, Subject], runs: Mapping[int, Subject]) -> Subject:
    """Return the subject of an event."""
    kind, number = event.subject.partition(":")[::2]
    id = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    if kind == "gate":
        return gates.get(id, Subject(f"gate {number}"))
    if kind == "run":
        return runs.get(id, Subject(f"R-{number}"))
    return Subject(f"{kind} {number}".strip())


def _gates(events: Iterable[Event], reader: AuditReader) -> dict[int, Subject]:
    wanted = {int(event.subject[5:]) for event in events if event.subject.startswith("gate:")}
    rows = Gate.objects.visible_to(reader.user).filter(pk__in=wanted)
    seen = rows.values_list("pk", "title", "run__plan__external") if wanted else ()
    return {pk: Subject(f"gate {pk}", title, reverse("gate", args=[pk]), quoted) for pk, title, quoted in seen}


def _runs(events: Iterable[Event], reader: AuditReader) -> dict[int, Subject]:
    wanted = {event.run_id for event in events if event.run_id}
    rows = Run.objects.visible_to(reader.user).filter(pk__in=wanted)
    seen = rows.values_list("pk", "title", "plan__external") if wanted else ()
    return {pk: Subject(f"R-{pk}", title, reverse("run", args=[pk]), quoted) for pk, title, quoted in seen}


def kinds() -> list[tuple[str, str]]:
    """List the kinds for the filter: whole families, then single ones."""
    names = sorted({*event_words.WORDS, "gate.decided"})
    families = sorted({name.partition(".")[0] for name in names})
    return [(f"{family}.", f"all of {family}") for family in families] + [(name, name) for name in names]


def address(filters: Mapping[str, Any], **more: object) -> str:
    """Write the query of the list's address with these filters."""
    said = {name: value for name, value in {**filters, **more}.items() if value}
    return f"?{urlencode(said)}" if said else ""
