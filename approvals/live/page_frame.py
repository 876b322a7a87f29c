"""Reads the frame of a page before the page: where its live feed starts, the reader's reach, and the gates that wait.

All of it in one statement, as of one moment. A view reads its own data after that: a feed that began later would miss
facts that the page does not show yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db.models.functions import JSONArray
from django.http import HttpRequest, HttpResponseBase

from approvals.audit import listing
from approvals.gates import waiting
from approvals.gates.lists import queues
from approvals.gates.lists.queues import ReaderReach
from approvals.middleware import ASKED, PROBED, Respond
from approvals.models import Policy, Unrun
from checkpoints.access import token_scope
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.events.commit_order import Cursor, settled_events
from checkpoints.postgresql.capped_count import MOST, Capped
from checkpoints.postgresql.prepared_rows import BatchStatement, prepared_statement, select_columns


@dataclass(frozen=True, slots=True)
class PageFrame:
    """The frame of a page. `queue`: ids of gates that wait for the reader, most urgent first, MOST + 1 at most."""

    cursor: Cursor
    reach: ReaderReach
    queue: list[int]
    sees_audit: bool
    unrun: list[int]  # approved gates that the reader may see and of which nothing has run, the latest first

    @property
    def waiting(self) -> Capped:
        """Count the gates that wait."""
        return Capped(min(len(self.queue), MOST), len(self.queue) > MOST)


def middleware(get_response: Respond) -> Respond:
    """Read the frame of whole pages of people who may be signed in; a fragment, and a form's answer, start no feed."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        if _starts_a_feed(request):
            of(request)
        return get_response(request)

    return respond


def _starts_a_feed(request: HttpRequest) -> bool:
    if request.path_info in PROBED:
        return False
    fragment = "HX-Request" in request.headers or ASKED in request.headers
    return settings.SESSION_COOKIE_NAME in request.COOKIES and request.accepts("text/html") and not fragment


def of(request: HttpRequest) -> PageFrame | None:
    """Return the reader's frame, read once a request; None for somebody who has not signed in."""
    user = getattr(request, "user", AnonymousUser())
    if not isinstance(user, User):
        return None
    known: PageFrame | None = getattr(request, "frame", None)
    if known is None or known.reach.user != user.pk:
        known = request.frame = read(user)  # type: ignore[attr-defined]
    return known


def reach_of(request: HttpRequest) -> ReaderReach:
    """Return the reader's reach."""
    found = of(request)
    return found.reach if found else ReaderReach(user=0, teams={}, policies=())


def read(user: User) -> PageFrame:
    """Read a person's frame as it is now."""
    found = _frame(user.pk, kind=kind_of(user))
    policies = zip(found["policies"], found["owners"], found["separation"], strict=True)
    return PageFrame(
        cursor=Cursor(*found["xid"], *found["id"]),
        reach=ReaderReach(
            user=user.pk,
            teams=dict(zip(found["teams"], found["names"], strict=True)),
            policies=tuple(policies),
            lent=tuple((pk, team, apart) for pk, team, apart in found["lent"]),
            added=tuple(team for team, lent in found["added"] if not lent),
            lent_added=tuple(team for team, lent in found["added"] if lent),
            only=token_scope.bounds_of(user).team,
        ),
        queue=found["queue"],
        sees_audit=bool(found["audit"]) or listing.of_all(user),
        unrun=found["unrun"],
    )


@prepared_statement
def _frame(user: Any, *, kind: PersonKind) -> BatchStatement:
    reader, newest = kind.person(user), settled_events().reverse()
    teams, policies = queues.seen_by(reader), Policy.objects.decided_by(reader).order_by("pk")
    return select_columns(
        xid=newest.values("xid")[:1],
        id=newest.values("id")[:1],
        teams=teams.values("pk"),
        names=teams.values("name"),
        policies=policies.values("pk"),
        owners=policies.values("team_id"),
        separation=policies.values("separation"),
        lent=Policy.objects.lent_to(reader).values(row=JSONArray("pk", "team_id", "separation")),
        added=queues.added_teams(reader, as_json=True),
        queue=waiting.waiting_for(reader, MOST + 1),
        audit=listing.teams_of(reader).values("pk")[:1],
        unrun=Unrun.objects.visible_to(reader).values("pk")[: MOST + 1],
    )
