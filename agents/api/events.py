"""The events API: the feed of the open pages, to be polled or streamed."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router
from ninja.errors import AuthenticationError
from pydantic import Field, field_validator

from agents.access import Gone, run_or_404
from agents.api.protocol.answers import MOST_ITEMS, answer_json
from agents.api.protocol.auth import require_scope, token_of
from agents.api.protocol.schemas import ApiSchema
from agents.api.protocol.waiting import AGAIN, AWAITS, LONGEST, TOLD
from agents.models import TokenScope
from agents.remote import reach
from approvals.live.access import Access, access_as, access_of
from approvals.live.facts import audience, fact_of
from approvals.live.replay import hears, titles_of
from approvals.models import Gate
from approvals.views.access import reader_of
from checkpoints.access import token_scope
from checkpoints.access.permissions import PersonKind, kind_of
from checkpoints.access.token_scope import TokenBounds
from checkpoints.events import commit_order
from checkpoints.events.commit_order import Cursor
from checkpoints.events.event import NOT_SEALED
from checkpoints.models import Event, Run
from checkpoints.postgresql import xid_offset
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement

router = Router(tags=["events"], auth=require_scope(TokenScope.READ))
SCANNED = 1000  # events that one request looks at: most are gates of other teams, which this reader may not see
NOW = "now"
STREAMS = {"responses": {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}}
SET_BACK = (
    "A backup or a failover set the database back to before this place. The last events that you received may be "
    "lost: begin with after=now, and read again what you keep."
)


class FactOut(ApiSchema):
    """One event and its subject, never content: read that at the subject's address."""

    example: ClassVar = {
        "cursor": "9120.345", "kind": "gate.opened", "subject": "gate:42", "run": "run:7", "version": 1,
        "title": "Refund €120.00",
    }  # fmt: skip

    cursor: str
    """The cursor after this event."""
    kind: str
    """What happened."""
    subject: str
    """What it happened to."""
    run: str
    """The run it belongs to; empty: none."""
    version: int
    """The subject's version after it."""
    title: str
    """The gate's title; empty for other subjects."""


class FactPage(ApiSchema):
    """Some facts, in the same order for every reader."""

    example: ClassVar = {"next": "9120.345", "more": False}

    items: list[FactOut]
    """The facts."""
    next: str
    """Send it as `after` to continue, now or later."""
    more: bool
    """Whether there is more to read at once."""


class EventStart(ApiSchema):
    """The place to continue from."""

    example: ClassVar = {"after": "9120.345", "subject": "gate:42", "limit": 100}

    after: str = ""
    """The `next` of the previous page; `now`: only new events; empty: from the first event on."""
    subject: str = Field("", pattern="^((gate|run):[0-9]{1,18})?$")
    """Only events of this gate, or of this run and everything in it: `gate:42`, `run:7`."""
    limit: int = Field(100, ge=1, le=MOST_ITEMS)
    """The largest number of items."""

    @field_validator("after")
    @classmethod
    def known(cls, after: str) -> str:
        if after not in ("", NOW):
            Cursor.parse(after)
        return after


class EventQuery(EventStart):
    """The place to continue from, and how long to wait."""

    example: ClassVar = {"wait": 25}

    wait: float = Field(0, ge=0, le=LONGEST)
    """How many seconds to wait for something new before an empty answer."""


@router.get("", response=FactPage, summary="List events")
def list_events(request: HttpRequest, asked: Query[EventQuery]) -> HttpResponse:
    """Return the events that you may see, oldest first. A page may be empty while `more` is true."""
    return _answer_facts(request, asked)


@router.get("/stream", response={200: None}, summary="Stream events", openapi_extra=STREAMS)
def stream_events(request: HttpRequest, asked: Query[EventStart]) -> HttpResponse:
    """Stream the same as Server-Sent Events (text/event-stream), for as long as you listen.

    `id` is the cursor: a reader who was cut off sends it as Last-Event-ID. `event` is the kind, `data` one of `items`.
    """
    return _answer_facts(request, asked)


def _answer_facts(request: HttpRequest, asked: EventStart) -> HttpResponse:
    access = access_by(request, teams=not asked.subject)
    if access is None:
        raise AuthenticationError  # the session ended during the request
    groups = [asked.subject.replace(":", ".")] if asked.subject else sorted(access.groups)
    if asked.subject:
        run = _run_of(request, asked.subject)
        if getattr(request, "scope", {}).get(AGAIN) != TOLD:
            reach.listens(run, token_of(request))
    if asked.after == NOW:
        page = FactPage(items=[], next=str(commit_order.newest_cursor()), more=False)
    else:
        since = Cursor.parse(asked.after) if asked.after else Cursor()
        page = heard_after(since, access, asked.limit, subject=asked.subject)
    response = answer_json(page)
    if not (page.items or page.more):
        response[AWAITS] = " ".join(groups)
    return response


def _run_of(request: HttpRequest, subject: str) -> Run:
    """Return the run of the subject, or of its gate. Raises Http404 where the reader may not see it."""
    kind, _, number = subject.partition(":")
    if kind == "gate":
        reader = reader_of(request)
        found = _visible(int(number), reader.pk, kind=kind_of(reader))
        if not found:
            raise Http404("No such gate")
        return found[0].run
    return run_or_404(request, int(number))


@prepared_statement
def _visible(gate: Any, reader: Any, *, kind: PersonKind) -> QuerySet[Gate]:
    """Read a gate with its run, if the reader may see it."""
    return Gate.objects.visible_to(kind.person(reader)).select_related("run").filter(pk=gate)


def access_by(request: HttpRequest, *, teams: bool = True) -> Access | None:
    """Return the reader's access, for a token perhaps without its teams; None where their session has ended."""
    token = token_of(request)
    if token is None:
        return access_of(request.session.session_key)
    return access_as(token.user) if teams else Access(token.user, frozenset(), frozenset())


def heard_after(since: Cursor, access: Access, limit: int, *, subject: str = "") -> FactPage:
    """Return the facts after a cursor that this person may see, as the socket sends them; of a subject, all of it.

    Raises Gone where the database was set back to before the cursor.
    """
    # Read first: everything settled by now is read below, so that a quiet feed goes on from here.
    newest = commit_order.newest_cursor()
    if since > newest and since.xid >= xid_offset.count():
        raise Gone(SET_BACK)
    noun, _, number = subject.partition(":")
    about: Any = {"": sorted(access.teams), "gate": subject, "run": int(number or 0)}[noun]
    heard: list[Event] = []
    at = since
    found = _later(*since, about, noun=noun, within=token_scope.bounds_of(access.user), most=SCANNED + 1)
    for event in found[:SCANNED]:
        at = Cursor.from_event(event)
        heard += [event] if subject or hears(access, event, audience(event)) else []
        if len(heard) == limit:
            break
    more = bool(found) and at != Cursor.from_event(found[-1])
    titles = titles_of(heard)
    items = [FactOut(**fact_of(event, titles)) for event in heard]
    return FactPage(items=items, next=str(at if more else max(at, newest)), more=more)


@prepared_statement
def _later(xid: Any, id: Any, about: Any, *, noun: str, within: TokenBounds, most: int) -> QuerySet[Event]:
    """Read the settled events after a cursor: of one gate or run, or of teams and all gates.

    Whoever asks about a gate or a run was found to see it, by the same bounds.
    """
    found = commit_order.events_after(commit_order.settled_events(), (xid, id))
    if noun == "gate":
        found = found.exclude(kind=NOT_SEALED).filter(subject=about)  # the index by subject is of those alone
    elif noun == "run":
        found = found.filter(run_id=about)
    else:
        found = found.filter(Q(OneOf(F("team_id"), about)) | Q(kind__startswith="gate."))
        found = within.narrow(found, team="team_id")
        if within.agent:
            found = found.filter(run_id__in=within.narrow(Run.objects.all(), agent="plan__agent").values("pk"))
    return found[:most]
