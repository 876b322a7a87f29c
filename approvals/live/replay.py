"""Finds the facts that open pages missed since they were drawn or last connected."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Q

from checkpoints.events import commit_order
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from checkpoints.postgresql import xid_offset
from checkpoints.postgresql.batch_query import typed
from checkpoints.postgresql.sql import run_sql

from .access import Access
from .facts import Fact, audience, fact_of

REPLAYED = 500
_TITLES = "SELECT id, title FROM approvals_gate WHERE id = ANY($1)"
RESTORED = "database.restored"
Missed = tuple[Access, Cursor]  # a page's access, and the cursor since when it asks


def hears(access: Access, event: Event, groups: Iterable[str]) -> bool:
    """Tell whether this person may hear of an event whose audience is these groups."""
    return event.team_id in access.teams or not access.groups.isdisjoint(groups)


def missed(asked: Collection[Missed]) -> list[list[Fact] | None]:
    """List for each page the facts after its cursor that it may hear; None where they are too many.

    Other teams' gates count towards that limit too, since no event after it is read. None too where the database was
    restored meanwhile, or is not as far as the cursor: what the page shows may never have happened then.
    """
    oldest = min(since for _, since in asked)
    teams = frozenset[int]().union(*(access.teams for access, _ in asked))
    wanted = Q(team_id__in=teams) | Q(kind__startswith="gate.") | Q(kind=RESTORED)
    found = commit_order.beyond(commit_order.settled(), oldest).filter(wanted)
    events = list(found[: REPLAYED + 1])
    if len(events) > REPLAYED:
        return _apart(list(asked), events)
    titles = titles_of(events)
    told = [(Cursor.of(event), event, audience(event), fact_of(event, titles)) for event in events]
    count = xid_offset.count()
    restored = max((at for at, event, _, _ in told if event.kind == RESTORED), default=Cursor())
    return [
        None
        if since < restored or since.xid >= count
        else [fact for at, event, groups, fact in told if at > since and hears(access, event, groups)]
        for access, since in asked
    ]


def _apart(asked: list[Missed], events: list[Event]) -> list[list[Fact] | None]:
    """Answer None to pages that missed too many of `events`; ask again for the others, in halves where that is all."""
    answers: dict[int, list[Fact] | None] = {n: None for n, each in enumerate(asked) if _too_much(*each, events)}
    rest = sorted((n for n in range(len(asked)) if n not in answers), key=lambda n: asked[n][1])
    half = 0 if answers else len(rest) // 2
    for part in (rest[:half], rest[half:]):
        if part:
            answers.update(zip(part, missed([asked[n] for n in part]), strict=True))
    return [answers[n] for n in range(len(asked))]


def _too_much(access: Access, since: Cursor, events: Iterable[Event]) -> bool:
    looked_at = (
        each.team_id in access.teams or each.kind.startswith("gate.") for each in events if Cursor.of(each) > since
    )
    return sum(looked_at) > REPLAYED


def titles_of(events: Iterable[Event]) -> dict[str, str]:
    """Return subject -> title for the gates of these events. One query, none where there is no gate."""
    gates = {int(event.subject[5:]) for event in events if event.subject.startswith("gate:")}
    found = run_sql(_TITLES, [typed(list(gates))]) if gates else ()
    return {f"gate:{pk}": title for pk, title in found}
