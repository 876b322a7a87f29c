"""A run's effects: what was done in the outside world, under which key and grant, and whether the run counts on it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.access import run_or_404
from agents.api.protocol import ApiSchema, Page, Paging, RunId, one_of, or_null, require_scope
from agents.effects.ledger import LedgerRow, off_course, rows_of
from agents.models import Effect, TokenScope
from agents.runs.course import read_course

from .turns import KEY

router = Router(tags=["effects"], auth=require_scope(TokenScope.READ))


class EffectSummary(ApiSchema):
    """One effect, or the undo of one."""

    example: ClassVar = {
        "id": 12, "step": "wire", "status": "done", "unsettled": False, "key": KEY, "grant": 5, "action": "wire",
        "undoes": None, "taken_from": None, "irreversible": False, "attempts": 1, "checkpoints": [4], "error": "",
        "intended_at": "2026-03-02T09:15:04.120931Z", "settled_at": "2026-03-02T09:15:05.004211Z",
    }  # fmt: skip

    id: int
    """The effect's number."""
    step: str
    """The step that performs it."""
    status: Annotated[str, one_of(Effect.Status)]
    """Its status. kept: it is not undone although the run went another way; abandoned: its result is unknown, and a
    person ordered it again."""
    unsettled: bool
    """Whether the run has left it behind, so that it will be undone or kept."""
    key: str
    """The idempotency key under which it was sent, in hex."""
    grant: int | None
    """The grant that it used; null if it needs none."""
    action: str
    """The action of the gate that it performs."""
    undoes: Annotated[int | None, or_null]
    """For an undo, the effect that it undoes; otherwise null."""
    taken_from: Annotated[int | None, or_null]
    """The run whose result it reuses, if nothing was sent; otherwise null."""
    irreversible: bool
    """Whether it cannot be undone."""
    attempts: int
    """How often it was begun under its key."""
    checkpoints: list[int] = Field(validation_alias="landed")
    """The numbers of the checkpoints that hold its result."""
    error: str
    """What went wrong, if anything did."""
    intended_at: datetime
    """When it was begun."""
    settled_at: datetime | None
    """When its result was known; null until then."""

    @staticmethod
    def resolve_unsettled(row: LedgerRow, context: dict[str, Any]) -> bool:
        return row.id in context["left"]


class EffectPage(Page):
    """Some effects, in the order in which they were begun."""

    items: list[EffectSummary]
    """The effects, including undos."""


@router.get("/{int:run_id}/effects", response=EffectPage, summary="List a run's effects")
def list_effects(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """List what the run did in the outside world, in the order in which it was begun; each undo after its effect."""
    run = run_or_404(request, run_id)
    rows = rows_of([run.pk])
    left = off_course(rows, read_course(run.pk))
    return EffectPage.answer_rows([row for row in rows if row.id > asked.place], asked, place="id", left=left)
