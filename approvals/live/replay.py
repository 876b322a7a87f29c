"""Finds the facts that open pages missed since they were drawn or last connected."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Q

from checkpoints.events import commit_order
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from checkpoints.postgresql import xid_offset
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql

from .access import Access, WatchedPage, accesses
from .facts import Fact, audience, fact_of

REPLAYED = 500
_TITLES = "SELECT id, title FROM approvals_gate WHERE id = ANY($1)"
RESTORED = "database.restored"
_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
PageSince = tuple[WatchedPage, Cursor]  # a page, and the cursor since when it asks
Missed = tuple[Access, Cursor]


def hears(access: Access, event: Event, groups: Iterable[str]) -> bool:
    """Tell whether this person may hear of an event whose audience is these groups.

    A page joins the same groups. Of its own teams it is told here what else only pages of the subject hear.
    """
    return event.team_id in access.teams or not access.joins.isdisjoint(groups)


def read_missed(asked: Collection[PageSince]) -> list[list[Fact] | None]:
    """List for each page the facts that it missed, as `missed`; none for one that may hear nothing.

    Access and events are of one moment: by an access of before, a page would be told what happened after its loss.
    """
    with transaction.atomic(durable=True):
        run_sql(_ONE_MOMENT, [])
        found = accesses([page for page, _ in asked])
        heard = iter(missed([(access, since) for access, (_, since) in zip(found, asked, strict=True) if access]))
        return [next(heard) if access else [] for access in found]


def missed(asked: Collection[Missed]) -> list[list[Fact] | None]:
    """List for each page the facts after its cursor that it may hear; None where they are too many.

    Other teams' gates count towards that limit too, since no event after it is read. None too where the database was
    restored meanwhile, or is not as far as the cursor: what the page shows may never have happened then.

    Pages that missed too much together are asked again in smaller parts. A page alone is always answered.
    """
    pages, count = list(asked), xid_offset.count()
    answers: list[list[Fact] | None] = [None] * len(pages)
    parts = [sorted(range(len(pages)), key=lambda n: pages[n][1])]
    while parts:
        part = parts.pop()
        events = _events_since(pages[part[0]][1], [pages[n][0] for n in part])
        restored = max((Cursor.from_event(event) for event in events if event.kind == RESTORED), default=Cursor())
        rest = [n for n in part if restored <= pages[n][1] and pages[n][1].xid < count]
        if len(events) <= REPLAYED:
            titles = titles_of(events)
            facts = [(Cursor.from_event(event), event, audience(event), fact_of(event, titles)) for event in events]
            for n in rest:
                access, since = pages[n]
                answers[n] = [fact for at, event, groups, fact in facts if at > since and hears(access, event, groups)]
        elif len(part) > 1:
            rest = [n for n in rest if not _too_much(*pages[n], events)]
            half = len(rest) // 2 if len(rest) == len(part) else 0
            parts += filter(None, (rest[:half], rest[half:]))
    return answers


def _events_since(since: Cursor, accesses: Iterable[Access]) -> list[Event]:
    """Read what these people may hear of after the cursor, and one event more than is replayed at most."""
    teams = frozenset[int]().union(*(access.teams for access in accesses))
    wanted = Q(team_id__in=teams) | Q(kind__startswith="gate.") | Q(kind=RESTORED)
    return list(commit_order.events_after(commit_order.settled_events(), since).filter(wanted)[: REPLAYED + 1])


def _too_much(access: Access, since: Cursor, events: Iterable[Event]) -> bool:
    looked_at = (
        each.team_id in access.teams or each.kind.startswith("gate.")
        for each in events
        if Cursor.from_event(each) > since
    )
    return sum(looked_at) > REPLAYED


def titles_of(events: Iterable[Event]) -> dict[str, str]:
    """Return subject -> title for the gates of these events. One query, none where there is no gate."""
    gates = {int(event.subject[5:]) for event in events if event.subject.startswith("gate:")}
    found = run_sql(_TITLES, [type_numbers(list(gates))]) if gates else ()
    return {f"gate:{pk}": title for pk, title in found}
