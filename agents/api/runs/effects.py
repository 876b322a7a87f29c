"""A run's effects: what was done in the outside world, under which key and grant, and whether the run counts on it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import Page, Paging, RunId, needs, one_of, or_null
from agents.models import Effect, TokenScope
from agents.presentation.timeline.facts import TimelineEffect
from agents.queries.access import run_or_404
from agents.queries.performed_effects import off_course, rows_of
from agents.queries.run_row import course

from .turns import KEY

router = Router(tags=["effects"], auth=needs(TokenScope.READ))


class EffectSummary(Schema):
    """One effect, or the undo of one."""

    id: int = Field(description="The effect's number.", examples=[12])
    step: str = Field(description="The step that performs it.", examples=["wire"])
    status: Annotated[str, one_of(Effect.Status)] = Field(
        description="Its status. kept: it is not undone although the run went another way; abandoned: its result is "
        "unknown, and a person ordered it again.",
        examples=["done"],
    )
    unsettled: bool = Field(
        description="Whether the run has left it behind, so that it will be undone or kept.", examples=[False]
    )
    key: str = Field(description="The idempotency key under which it was sent, in hex.", examples=[KEY])
    grant: int | None = Field(description="The grant that it used; null if it needs none.", examples=[5])
    action: str = Field(description="The action of the gate that it performs.", examples=["wire"])
    undoes: Annotated[int | None, or_null] = Field(
        description="For an undo, the effect that it undoes; otherwise null.", examples=[None]
    )
    taken_from: Annotated[int | None, or_null] = Field(
        description="The run whose result it reuses, if nothing was sent; otherwise null.", examples=[None]
    )
    irreversible: bool = Field(description="Whether it cannot be undone.", examples=[False])
    attempts: int = Field(description="How often it was begun under its key.", examples=[1])
    checkpoints: list[int] = Field(
        validation_alias="landed", description="The numbers of the checkpoints that hold its result.", examples=[[4]]
    )
    error: str = Field(description="What went wrong, if anything did.", examples=[""])
    intended_at: datetime = Field(description="When it was begun.", examples=["2026-03-02T09:15:04.120931Z"])
    settled_at: datetime | None = Field(
        description="When its result was known; null until then.", examples=["2026-03-02T09:15:05.004211Z"]
    )

    @staticmethod
    def resolve_unsettled(row: TimelineEffect, context: dict[str, Any]) -> bool:
        return row.id in context["left"]


class EffectPage(Page):
    """Some effects, in the order in which they were begun."""

    items: list[EffectSummary] = Field(description="The effects, including undos.")


@router.get("/{int:run_id}/effects", response=EffectPage, summary="List a run's effects")
def list_effects(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """List what the run did in the outside world, in the order in which it was begun; each undo after its effect."""
    run = run_or_404(request, run_id)
    rows = rows_of([run.pk])
    left = off_course(rows, course(run.pk))
    return EffectPage.of([row for row in rows if row.id > asked.place], asked, place="id", left=left)
