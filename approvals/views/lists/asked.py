"""Reads which gates an address of the inbox asks for: a queue, filters, an order, or a saved view of them.

An address without any of these opens the view that the reader chose for it, if they chose one. The gates of the list
that was looked at last are the ones that follow after a decision, so its query is kept in a cookie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.contrib.auth.models import Group, User
from django.db.models import F, Q
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property

from approvals.gates.lists.queue_filters import SORTS, QueueFilters
from approvals.gates.lists.queues import ALL, BY_ME, CLAIMED, CLOSED, DECIDED, GROUPS, MINE, SNOOZED, ReaderReach
from approvals.models import BulkOrder, Gate, SavedView
from approvals.views.access import number_in
from checkpoints.postgresql.prepared_rows import BatchStatement, OneOf, prepared_statement, select_columns
from checkpoints.postgresql.sql import make_storable
from checkpoints.postgresql.text_search import words_of

# Queue -> (name, icon, words for an empty one).
QUEUES: dict[str, tuple[str, str, str]] = {
    MINE: ("Mine", "inbox", "You are all caught up"),
    GROUPS: ("My groups", "people", "Nothing waits for your groups"),
    ALL: ("All visible to me", "list", "No gate is open just now"),
    CLAIMED: ("Claimed by me", "person", "You are on no gate"),
    SNOOZED: ("Snoozed", "clock", "You have put nothing off"),
    BY_ME: ("Decided by me", "check", "You have not decided anything yet"),
    DECIDED: ("Decided", "audit", "Nothing has been decided yet"),
}
ORDERS = {
    "": "Most urgent",
    "oldest": "Oldest",
    "amount": "Largest amount",
    "risk": "Highest risk",
    "delay": "Costliest to wait",
}
SEARCHED = 200  # characters
NAMED = ("queue", "risk", "agent", "q", "sort")  # what an address says, and a saved view keeps
PEOPLE = 50  # whose names begin like one word
COOKIE, READER = "holdpoint_list", "reader"


@dataclass(frozen=True, kw_only=True)
class InboxFilters:
    """The queue, filters and order of an address; junk is ignored."""

    queue: str
    wanted: QueueFilters = field(default_factory=QueueFilters)
    view: SavedView | None = None

    @classmethod
    def of(cls, said: Mapping[str, str], *, view: SavedView | None = None) -> InboxFilters:
        """Read an address's query; what it says itself goes before what the saved view says."""
        before = dict(parse_qsl(view.query)) if view else {}
        asked = {name: make_storable(said[name] if name in said else before.get(name, "")).strip() for name in NAMED}
        queue = asked["queue"] if asked["queue"] in QUEUES else MINE
        return cls(
            queue=queue,
            wanted=QueueFilters(
                risk=asked["risk"] if asked["risk"] in Gate.Risk.values else "",
                agent=asked["agent"][:100],
                words=asked["q"][:SEARCHED],
                after=number_in(said.get("after", "")) or 0,
                sort=asked["sort"] if asked["sort"] in SORTS and queue not in (BY_ME, *CLOSED) else "",
                people=_people(asked["q"][:SEARCHED]),
            ),
            view=view,
        )

    @property
    def closed(self) -> bool:
        """Tell whether the queue shows how gates ended."""
        return self.queue in (BY_ME, DECIDED)

    @property
    def filtered(self) -> bool:
        return bool(self.wanted.risk or self.wanted.agent or self.wanted.words)

    @cached_property
    def said(self) -> dict[str, str]:
        """Return what was asked, by the names of an address; the queue always."""
        wanted = self.wanted
        every = {
            "queue": self.queue,
            "risk": wanted.risk,
            "agent": wanted.agent,
            "q": wanted.words,
            "sort": wanted.sort,
        }
        return {name: value for name, value in every.items() if value}

    def query(self, *, after: int = 0) -> str:
        """Write these filters as an address's query; `after`: for the page that follows that gate."""
        more = {"view": str(self.view.pk)} if self.view else {}
        return urlencode({**self.said, **more, **({"after": after} if after else {})})


@dataclass(frozen=True, kw_only=True)
class OwnLists:
    """The reader's own lists beside the queues."""

    views: list[SavedView]  # those that they see, their own first
    stopped: int | None  # their last bulk decision that has not come to its end

    @classmethod
    def of(cls, reach: ReaderReach) -> OwnLists:
        """Read it, in one statement."""
        found = _own(reach.user, list(reach.teams))
        views = [_view(row) for row in found["views"]]
        views.sort(key=lambda view: (view.user_id != reach.user, view.name.casefold(), view.pk))
        return cls(views=views, stopped=next(iter(found["stopped"]), None))


@prepared_statement
def _own(user: Any, teams: Any) -> BatchStatement:
    seen = SavedView.objects.filter(Q(user=user) | OneOf(F("team"), teams))
    names = {name: name for name in ("id", "name", "query", "opens", "user_id", "team_id")}
    who = {name: f"user__{name}" for name in ("username", "first_name", "last_name")}
    under_way = BulkOrder.objects.filter(user=user, finished_at=None).order_by("-pk")
    return select_columns(
        views=seen.values(one=JSONObject(**names, **who, team="team__name")),
        stopped=under_way.values("pk")[:1],
    )


def _view(row: dict[str, Any]) -> SavedView:
    user = User(pk=row["user_id"], **{name: row.pop(name) for name in ("username", "first_name", "last_name")})
    team = row.pop("team")
    view = SavedView(**row)
    view.user, view.team = user, Group(pk=row["team_id"], name=team) if team else None
    return view


def asked_for(request: HttpRequest, reach: ReaderReach, *, opens: bool = False) -> tuple[InboxFilters, OwnLists]:
    """Read the address, and what the reader keeps. `opens`: an address that says nothing opens the view they chose."""
    own = OwnLists.of(reach)
    number = number_in(request.GET.get("view", ""))
    found = next((view for view in own.views if view.pk == number), None)
    if opens and not any(name in request.GET for name in (*NAMED, "view")):
        found = next((view for view in own.views if view.opens and view.user_id == reach.user), None)
    return InboxFilters.of(request.GET.dict(), view=found), own


def remember(request: HttpRequest, response: HttpResponse, asked: InboxFilters) -> None:
    """Keep what the reader looks at, so that the next gate after a decision is the next of this list."""
    said = {name: value for name, value in asked.said.items() if name != "queue" or value != MINE}
    if said and not asked.closed:
        query = urlencode({**said, READER: request.user.pk})
        response.set_cookie(COOKIE, query, samesite="Lax", httponly=True, secure=request.is_secure())
    elif COOKIE in request.COOKIES:
        response.delete_cookie(COOKIE, samesite="Lax")


def kept(request: HttpRequest) -> dict[str, str]:
    """Return what the list that the reader looked at last asks for; {} where somebody else did, in this browser."""
    said = dict(parse_qsl(request.COOKIES.get(COOKIE, "")))
    return said if said.pop(READER, "") == str(request.user.pk) else {}


def followed(request: HttpRequest) -> QueueFilters:
    """Return the filters and the order of the list that the reader looked at last, within their own gates."""
    said = kept(request)
    return replace(InboxFilters.of(said).wanted, after=0) if said else QueueFilters()


def _people(text: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return for each word the people who have a name that begins like it; one statement, none without words."""
    words = [word for word in words_of(text) if not word.isdecimal()]
    if not words:
        return ()
    either = Q()
    for word in words:
        either |= Q(first_name__istartswith=word) | Q(last_name__istartswith=word) | Q(username__istartswith=word)
    found = User.objects.filter(either).order_by("pk").values_list("pk", "first_name", "last_name", "username")
    named: list[tuple[str, tuple[int, ...]]] = []
    rows: Sequence[tuple[int, str, str, str]] = list(found[: PEOPLE * len(words)])
    for word in words:
        alike = tuple(pk for pk, *names in rows if any(name.lower().startswith(word.lower()) for name in names))
        named.append((word, alike[:PEOPLE]))
    return tuple(named)
