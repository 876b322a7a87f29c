"""Claims of a gate, their release and takeover, and handing a gate over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.models import Group, User
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import require_scope
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import ApiSchema, GateId, Order
from agents.models import TokenScope
from approvals.assignments import claims, reassigning
from approvals.assignments.errors import NotAsked
from approvals.gates.page.desk import GateDesk
from approvals.models import Gate
from approvals.policy import separation
from approvals.presentation.text import untrusted
from approvals.views.access import gate_or_404, reader_of
from checkpoints import actors
from checkpoints.postgresql.sql import make_storable

router = Router(tags=["gates"], auth=require_scope(TokenScope.DECIDE))


class ClaimAnswer(ApiSchema):
    """Somebody's claim of a gate."""

    example: ClassVar = {"by": "Mira Sandoval", "since": "2026-03-02T09:20:00Z", "looking": True, "you": False}

    by: str
    """Who is on it."""
    since: datetime
    """Since when."""
    looking: bool
    """Whether they have its page in sight now."""
    you: bool
    """Whether it is your own."""


class LevelAnswer(ApiSchema):
    """The next level of a gate's escalation."""

    example: ClassVar = {"team": "Directors", "at": "2026-03-02T16:00:00Z"}

    team: str
    """The team that decides, too, from then on."""
    at: datetime
    """When, if nobody has decided by then."""


class AwayAnswer(ApiSchema):
    """A reviewer who is away."""

    example: ClassVar = {"who": "Ann Okafor", "until": "2026-03-09T08:00:00Z", "delegate": "Bo Lind"}

    who: str
    """Who is away."""
    until: datetime
    """Until when."""
    delegate: str | None
    """Who decides for them; null: nobody."""


class DeskAnswer(ApiSchema):
    """The people on a gate, and those who are asked."""

    example: ClassVar = {"claim": None, "asked": None, "added": [], "next": None, "away": [], "for_whom": []}

    claim: ClaimAnswer | None
    """Who has claimed it; null: nobody."""
    asked: str | None
    """The person or team that was asked to act; null: none."""
    added: list[str]
    """Teams added to the reviewers of this gate."""
    next: LevelAnswer | None
    """The next level of its escalation; null: none."""
    away: list[AwayAnswer]
    """Reviewers who are away now."""
    for_whom: list[str]
    """People who are away, for whom you may decide."""

    @classmethod
    def from_gate(cls, gate: Gate, reader: User) -> DeskAnswer:
        """Return the desk of a gate that was read for its page."""
        desk: GateDesk = gate.desk or GateDesk()
        claim, level, asked, apart = desk.claim, desk.next, desk.asked, separation.apart_from(gate)
        return cls(
            claim=ClaimAnswer(by=_name(claim["by"]), since=claim["since"], looking=claim["looking"],
                              you=claim["by"].pk == reader.pk) if claim else None,
            asked=_name(asked["who"]) if asked else None,
            added=[name for _team, name in desk.added],
            next=LevelAnswer(team=level["team"], at=level["at"]) if level else None,
            away=[
                AwayAnswer(who=_name(away["who"]), until=away["until"],
                           delegate=_name(away["delegate"]) if away["delegate"] else None)
                for away in desk.away
            ],
            for_whom=[_name(lender) for lender in desk.lenders if apart.isdisjoint((reader.pk, lender.pk))],
        )  # fmt: skip


class Desk(ApiSchema):
    """A gate's desk, after an order."""

    example: ClassVar = {"id": 42}

    id: int
    """The gate's number."""
    desk: DeskAnswer
    """The people on it, and those who are asked."""


class Reassign(Order):
    """Hand a gate over to a person or a team. Name one of the two."""

    example: ClassVar = {"person": "bo", "team": "", "reason": "Bo knows the customer."}

    person: str = Field("", max_length=150)
    """The user name of somebody who may decide."""
    team: str = Field("", max_length=150)
    """The name of a team that decides here; of another one, if you may add reviewers: then its people may decide this
    gate, too."""
    reason: str = Field(max_length=4_000)
    """Why; people read it."""


@router.post("/{int:gate_id}/claims", response={201: Desk}, summary="Claim a gate")
def claim_gate(request: HttpRequest, gate_id: GateId, key: Key) -> HttpResponse:
    """Say that you are on the gate, so that nobody decides over you unasked. It lapses by itself."""
    return _ordered(request, gate_id, key, claims.claim)


@router.post("/{int:gate_id}/releases", response={201: Desk}, summary="Release a gate")
def release_gate(request: HttpRequest, gate_id: GateId, key: Key) -> HttpResponse:
    """End your own claim."""
    return _ordered(request, gate_id, key, claims.release)


@router.post("/{int:gate_id}/takeovers", response={201: Desk}, summary="Take a gate over")
def take_gate_over(request: HttpRequest, gate_id: GateId, key: Key) -> HttpResponse:
    """Take somebody's claim over. They are told."""
    return _ordered(request, gate_id, key, claims.take_over)


@router.post("/{int:gate_id}/reassignments", response={201: Desk}, summary="Hand a gate over")
def reassign_gate(request: HttpRequest, gate_id: GateId, order: Reassign, key: Key) -> HttpResponse:
    """Ask a person or a team to act on the gate. Everybody who may decide still may."""

    def hand_over(gate: Gate, *, by: User) -> None:
        reassigning.check(gate, by=by)
        reassigning.reassign(gate, to=_named(order), reason=order.reason, by=by)

    return _ordered(request, gate_id, key, hand_over)


def _named(order: Reassign) -> User | Group:
    found: Any = None
    if bool(order.person) != bool(order.team):
        found = (
            User.objects.filter(username=make_storable(order.person)).first()
            if order.person
            else Group.objects.filter(name=make_storable(order.team)).first()
        )
    if found is None:
        raise NotAsked("Name one person or one team that may decide.")
    return found  # type: ignore[no-any-return]


def _ordered(request: HttpRequest, gate_id: int, key: str, order: Callable[..., None]) -> HttpResponse:
    gate, reader = gate_or_404(request, gate_id), reader_of(request)

    def do() -> HttpResponse:
        order(gate, by=reader)
        now = gate_or_404(request, gate_id)
        return answer_json(Desk(id=now.pk, desk=DeskAnswer.from_gate(now, reader)), http_status=201)

    return do_once(request, key, do)


def _name(person: User | str) -> str:
    return untrusted.person(person) if isinstance(person, str) else actors.of_user(person).name
