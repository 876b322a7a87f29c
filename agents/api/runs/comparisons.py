"""Comparison of any two checkpoints of a lineage: common ancestor, the path to each, and how their states differ."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import RunId, Text, exact_json, needs
from agents.models import TokenScope
from agents.queries import comparison
from agents.queries.access import run_or_404
from agents.queries.checkpoint import patch_between

router = Router(tags=["checkpoints"], auth=needs(TokenScope.READ))
PLACE = r"^(R-)?[0-9]{1,12}([.][0-9]{1,9})?$"


class Pair(Schema):
    """Two checkpoints."""

    a: str = Field(description="A checkpoint's number in this run, or run.number.", pattern=PLACE, examples=["1"])
    b: str = Field(description="The other one.", pattern=PLACE, examples=["1"])


class PathCheckpoint(Schema):
    """One checkpoint on the path from the common ancestor."""

    run: int = Field(validation_alias="run_id", description="The run that saved it.", examples=[7])
    seq: int = Field(description="Its number there.", examples=[4])
    kind: str = Field(description="What made it.", examples=["step"])
    step: str = Field(description="The step that was saved.", examples=["pay"])
    took_us: int = Field(description="How long it took, in microseconds.", examples=[71840])


class EffectFate(Schema):
    """One effect on the way."""

    id: int = Field(validation_alias="effect.id", description="The effect's number.", examples=[12])
    step: str = Field(validation_alias="effect.step", description="Its step.", examples=["pay"])
    key: str = Field(validation_alias="effect.key", description="Its idempotency key, in hex.", examples=["dc1460a3"])
    status: str = Field(validation_alias="effect.status", description="Its status.", examples=["undone"])
    fate: Text = Field(
        validation_alias="mark.word",
        description="Its status in words, and whether the run still uses it.",
        examples=["undone"],
    )


class Side(Schema):
    """One of the two checkpoints."""

    run: int = Field(validation_alias="run.pk", description="Its run.", examples=[7])
    seq: int = Field(validation_alias="checkpoint.seq", description="Its number there.", examples=[9])
    way: list[PathCheckpoint] = Field(
        validation_alias="steps", description="The checkpoints from the common one up to it, oldest first."
    )
    effects: list[EffectFate] = Field(description="The effects among them.")


class Divergence(Schema):
    """Two checkpoints side by side, without their states."""

    ancestor_run: int = Field(description="The run of the last checkpoint that both have.", examples=[7])
    ancestor_seq: int = Field(description="Its number there.", examples=[2])
    a: Side = Field(description="The first checkpoint.")
    b: Side = Field(description="The second checkpoint.")


class ComparisonAnswer(Divergence):
    """Two checkpoints side by side."""

    patch: list[dict[str, Any]] = Field(
        description="The JSON Patch from the state at A to that at B, as canonical JSON.",
        examples=[[{"op": "replace", "path": "/order/currency", "value": "USD"}]],
    )


@router.get("/{int:run_id}/comparisons", response=ComparisonAnswer, summary="Compare any two checkpoints of a lineage")
def compare_checkpoints(request: HttpRequest, run_id: RunId, asked: Query[Pair]) -> HttpResponse:
    """Return the common ancestor, the path to each, its effects, and how the two states differ; also across forks."""
    run = run_or_404(request, run_id)
    a, b = (comparison.named(request, run, place) for place in (asked.a, asked.b))
    parting = comparison.parting(a, b)
    found = Divergence.model_validate(
        {
            "ancestor_run": parting.ancestor.run_id,
            "ancestor_seq": parting.ancestor.seq,
            "a": comparison.side("A", a, parting.to_a),
            "b": comparison.side("B", b, parting.to_b),
        }
    )
    return exact_json.answer(found, patch=exact_json.of_patch(patch_between(a, b)))
