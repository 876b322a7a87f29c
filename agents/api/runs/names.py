"""Names of checkpoints: a name holds its checkpoint, so that retention never removes it."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import Gone
from agents.api.protocol import ApiSchema, Key, RunId, Seq, actor_of, answer_json, do_once, require_scope
from agents.models import TokenScope
from checkpoints.errors import CheckpointRemoved
from checkpoints.runs import holds

from .moves import Order, run_to_order

router = Router(tags=["checkpoints"], auth=require_scope(TokenScope.ORDER))


class Naming(Order):
    """Name a checkpoint."""

    example: ClassVar = {"name": "Before the migration"}

    name: str = Field("", max_length=holds.LONGEST)
    """The name, in the place of one that it has; empty: after its number."""


class NamedCheckpoint(ApiSchema):
    """A checkpoint's name."""

    example: ClassVar = {"run": 7, "seq": 3, "name": "Before the migration"}

    run: int
    """The run's number."""
    seq: int
    """The checkpoint's number."""
    name: str
    """Its name; empty: it has none."""


@router.post("/{int:run_id}/checkpoints/{int:seq}/names", response={201: NamedCheckpoint}, summary="Name a checkpoint")
def name_checkpoint(request: HttpRequest, run_id: RunId, seq: Seq, order: Naming, key: Key) -> HttpResponse:
    """Give a checkpoint a name, which keeps it from retention until the name is removed."""
    run = run_to_order(request, run_id, seq)

    def name() -> HttpResponse:
        try:
            hold = holds.name(run, seq, order.name, by=actor_of(request))
        except CheckpointRemoved as gone:
            raise Gone(str(gone)) from gone
        return answer_json(NamedCheckpoint(run=run.pk, seq=seq, name=hold.reason), http_status=201)

    return do_once(request, key, name)


@router.post(
    "/{int:run_id}/checkpoints/{int:seq}/names/removals",
    response=NamedCheckpoint,
    summary="Remove a checkpoint's name",
)
def unname_checkpoint(request: HttpRequest, run_id: RunId, seq: Seq, key: Key) -> HttpResponse:
    """Remove the name, and the hold that it was. Nothing happens if the checkpoint has none."""
    run = run_to_order(request, run_id, seq)

    def remove() -> HttpResponse:
        holds.unname(run, seq, by=actor_of(request))
        return answer_json(NamedCheckpoint(run=run.pk, seq=seq, name=""))

    return do_once(request, key, remove)
