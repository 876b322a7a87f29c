"""Comparison of any two checkpoints of a lineage: common ancestor, the path to each, and how their states differ."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents import comparison
from agents.access import run_or_404
from agents.api.protocol import ApiSchema, RunId, Text, exact_json, require_scope
from agents.comparison import patch_between
from agents.models import TokenScope

router = Router(tags=["checkpoints"], auth=require_scope(TokenScope.READ))
PLACE = r"^(R-)?[0-9]{1,12}([.][0-9]{1,9})?$"


class Pair(ApiSchema):
    """Two checkpoints."""

    example: ClassVar = {"a": "1", "b": "1"}

    a: str = Field(pattern=PLACE)
    """A checkpoint's number in this run, or run.number."""
    b: str = Field(pattern=PLACE)
    """The other one."""


class PathCheckpoint(ApiSchema):
    """One checkpoint on the path from the common ancestor."""

    example: ClassVar = {"run": 7, "seq": 4, "kind": "step", "step": "pay", "took_us": 71840}

    run: int = Field(validation_alias="run_id")
    """The run that saved it."""
    seq: int
    """Its number there."""
    kind: str
    """What made it."""
    step: str
    """The step that was saved."""
    took_us: int
    """How long it took, in microseconds."""


class EffectFate(ApiSchema):
    """One effect on the way."""

    example: ClassVar = {"id": 12, "step": "pay", "key": "dc1460a3", "status": "undone", "fate": "undone"}

    id: int = Field(validation_alias="effect.id")
    """The effect's number."""
    step: str = Field(validation_alias="effect.step")
    """Its step."""
    key: str = Field(validation_alias="effect.key")
    """Its idempotency key, in hex."""
    status: str = Field(validation_alias="effect.status")
    """Its status."""
    fate: Text = Field(validation_alias="mark.word")
    """Its status in words, and whether the run still uses it."""


class Side(ApiSchema):
    """One of the two checkpoints."""

    example: ClassVar = {"run": 7, "seq": 9}

    run: int = Field(validation_alias="run.pk")
    """Its run."""
    seq: int = Field(validation_alias="checkpoint.seq")
    """Its number there."""
    way: list[PathCheckpoint] = Field(validation_alias="steps")
    """The checkpoints from the common one up to it, oldest first."""
    effects: list[EffectFate]
    """The effects among them."""


class Divergence(ApiSchema):
    """Two checkpoints side by side, without their states."""

    example: ClassVar = {"ancestor_run": 7, "ancestor_seq": 2}

    ancestor_run: int
    """The run of the last checkpoint that both have."""
    ancestor_seq: int
    """Its number there."""
    a: Side
    """The first checkpoint."""
    b: Side
    """The second checkpoint."""


class ComparisonAnswer(Divergence):
    """Two checkpoints side by side."""

    example: ClassVar = {"patch": [{"op": "replace", "path": "/order/currency", "value": "USD"}]}

    patch: list[dict[str, Any]]
    """The JSON Patch from the state at A to that at B, as canonical JSON."""


@router.get("/{int:run_id}/comparisons", response=ComparisonAnswer, summary="Compare any two checkpoints of a lineage")
def compare_checkpoints(request: HttpRequest, run_id: RunId, asked: Query[Pair]) -> HttpResponse:
    """Return the common ancestor, the path to each, its effects, and how the two states differ; also across forks."""
    run = run_or_404(request, run_id)
    a, b = (comparison.checkpoint_named(request, run, place) for place in (asked.a, asked.b))
    parting = comparison.parting(a, b)
    found = Divergence.model_validate(
        {
            "ancestor_run": parting.ancestor.run_id,
            "ancestor_seq": parting.ancestor.seq,
            "a": comparison.side("A", a, parting.to_a),
            "b": comparison.side("B", b, parting.to_b),
        }
    )
    return exact_json.answer_json(found, patch=exact_json.of_patch(patch_between(a, b)))
