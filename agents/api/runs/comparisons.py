"""Any two checkpoints of a lineage: where they parted, what led to each, and how their states differ."""

from __future__ import annotations

from typing import Any, Self

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field

from agents.api.protocol import exact_json
from agents.api.protocol.addresses import RunId
from agents.api.protocol.auth import needs
from agents.models import TokenScope
from agents.queries import comparison
from agents.queries.access import run_or_404
from agents.queries.checkpoint import veil_of
from checkpoints import store
from checkpoints.models import Checkpoint
from checkpoints.values import patch

router = Router(tags=["checkpoints"], auth=needs(TokenScope.READ))
PLACE = r"^(R-)?[0-9]{1,12}([.][0-9]{1,9})?$"


class Pair(Schema):
    """Which two."""

    a: str = Field(
        title="A", description="A checkpoint's number in this run, or run.number.", pattern=PLACE, examples=["1"]
    )
    b: str = Field(title="B", description="The other one.", pattern=PLACE, examples=["1"])


class Way(Schema):
    """One checkpoint on the way from where they parted."""

    run: int = Field(description="The run that saved it.", examples=[7])
    seq: int = Field(description="Its number there.", examples=[4])
    kind: str = Field(description="What made it.", examples=["step"])
    step: str = Field(description="The step that was saved.", examples=["pay"])
    took_us: int = Field(description="How long it took, in microseconds.", examples=[71840])


class EffectFate(Schema):
    """One effect on the way."""

    id: int = Field(description="The effect's number.", examples=[12])
    step: str = Field(description="Its step.", examples=["pay"])
    key: str = Field(description="Its idempotency key, in hex.", examples=["dc1460a3"])
    status: str = Field(description="Its status.", examples=["undone"])
    fate: str = Field(description="Its status in words, and whether the run still uses it.", examples=["undone"])


class Side(Schema):
    """One of the two checkpoints."""

    run: int = Field(description="Its run.", examples=[7])
    seq: int = Field(description="Its number there.", examples=[9])
    way: list[Way] = Field(description="The checkpoints from the common one up to it, oldest first.")
    effects: list[EffectFate] = Field(description="The effects among them.")

    @classmethod
    def of(cls, found: comparison.ComparedCheckpoint) -> Self:
        way = [
            Way(run=each.run_id, seq=each.seq, kind=each.kind, step=each.step, took_us=each.took_us)
            for each in found.steps
        ]
        effects = [
            EffectFate(
                id=fate.effect.id,
                step=fate.effect.step,
                key=fate.effect.key,
                status=fate.effect.status,
                fate=str(fate.mark.word),
            )
            for fate in found.effects
        ]
        return cls(run=found.run.pk, seq=found.checkpoint.seq, way=way, effects=effects)


class Parting(Schema):
    """Two checkpoints side by side, without their states."""

    ancestor_run: int = Field(description="The run of the last checkpoint that both have.", examples=[7])
    ancestor_seq: int = Field(description="Its number there.", examples=[2])
    a: Side = Field(description="The first checkpoint.")
    b: Side = Field(description="The second checkpoint.")


class ComparisonAnswer(Parting):
    """Two checkpoints side by side."""

    patch: list[dict[str, Any]] = Field(
        description="The JSON Patch from the state at A to that at B, as canonical JSON.",
        examples=[[{"op": "replace", "path": "/order/currency", "value": "USD"}]],
    )


@router.get(
    "/{int:run_id}/comparisons",
    response=ComparisonAnswer,
    operation_id="compare_checkpoints",
    summary="Compare any two checkpoints of a lineage",
)
def compare(request: HttpRequest, run_id: RunId, asked: Query[Pair]) -> HttpResponse:
    """Where two checkpoints parted, what led to each, its effects, and how their states differ; also across forks."""
    run = run_or_404(request, run_id)
    a, b = (comparison.named(request, run, place) for place in (asked.a, asked.b))
    parting = comparison.parting(a, b)
    found = Parting(
        ancestor_run=parting.ancestor.run_id,
        ancestor_seq=parting.ancestor.seq,
        a=Side.of(comparison.side("A", a, parting.to_a)),
        b=Side.of(comparison.side("B", b, parting.to_b)),
    )
    return exact_json.answer(found, patch=exact_json.of_patch(between(a, b)))


def between(a: Checkpoint, b: Checkpoint) -> list[dict[str, Any]]:
    """The patch between two states: only fields whose digests differ are compared. Raises NotVerified."""
    before, after = store.load_checkpoint(a.id), store.load_checkpoint(b.id)
    either = before.fields.keys() | after.fields.keys()
    names = {name for name in either if before.fields.get(name) != after.fields.get(name)}
    found = patch.diff(
        {name: value for name, value in before.state.items() if name in names},
        {name: value for name, value in after.state.items() if name in names},
    )
    return veil_of(b).patch(veil_of(a).patch(found))
