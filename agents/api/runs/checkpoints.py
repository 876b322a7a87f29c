"""A run's checkpoints: the list, one with its state, their verification, two compared, and their names."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents import comparison
from agents.access import Gone, checkpoint_or_404, run_or_404
from agents.api.protocol.answers import Page, Paging, answer_json, encode_patch, encode_state
from agents.api.protocol.auth import actor_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import ApiSchema, Hex, Order, RunId, Seq, Text, one_of
from agents.api.runs.moves import run_to_order
from agents.comparison import patch_between
from agents.models import OpenResource, TokenScope
from approvals.gates.reveal_secret import veil_of
from checkpoints import store
from checkpoints.audit import verify_runs
from checkpoints.errors import CheckpointRemoved
from checkpoints.models import Checkpoint
from checkpoints.runs import holds
from checkpoints.values.canonical_json import encode_canonical

router = Router(tags=["checkpoints"], auth=require_scope(TokenScope.READ))
PATCH_MEDIA_TYPE = "application/json-patch+json"
CHECKPOINT = "/{int:run_id}/checkpoints/{int:seq}"
PATCH = {
    "title": "JSON Patch", "description": "Operations of RFC 6902: add, remove and replace.", "type": "array",
    "items": {
        "type": "object", "required": ["op", "path"],
        "properties": {
            "op": {"enum": ["add", "remove", "replace"], "description": "What to do."},
            "path": {"type": "string", "description": "The place, as a JSON Pointer."},
            "value": {"description": "The new value, as canonical JSON."},
        },
    },
    "examples": [[{"op": "replace", "path": "/proposal/amount", "value": "80.00"}]],
}  # fmt: skip
PATCHES = {"responses": {200: {"content": {PATCH_MEDIA_TYPE: {"schema": PATCH}}}}}
DIGEST = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
PLACE = r"^(R-)?[0-9]{1,12}([.][0-9]{1,9})?$"
NAMES = CHECKPOINT + "/names"


class CheckpointSummary(ApiSchema):
    """A checkpoint's position and how it came to be."""

    example: ClassVar = {
        "id": "0190b2c4-6f3e-7c1a-9d2b-5e8f7a6c4d10", "seq": 3, "parent": None, "kind": "step", "step": "propose",
        "next_step": "review", "occurrence": 0, "attempt": 1, "at": "2026-03-02T09:15:05.004112Z", "took_us": 48211,
        "digest": DIGEST, "parent_digest": None, "state_digest": DIGEST, "input_digest": DIGEST, "code_hash": DIGEST,
    }  # fmt: skip

    id: Text
    """The checkpoint's UUID."""
    seq: int
    """Its number in the run, from 1, across all branches."""
    parent: Text | None
    """The UUID of the one that it follows; null for the first."""
    kind: Annotated[str, one_of(Checkpoint.Kind)]
    """What made it."""
    step: str
    """The step that was saved; empty for the input."""
    next_step: str
    """The next step; empty: the run is done."""
    occurrence: int
    """How often the step had run on this input before."""
    attempt: int
    """The attempt that succeeded, from 1."""
    at: datetime
    """When it was saved."""
    took_us: int
    """How long the step took, in microseconds."""
    digest: Hex
    """SHA-256 over header, parent and state, in hex."""
    parent_digest: Hex | None
    """The parent's digest; null for the first."""
    state_digest: Hex
    """SHA-256 over the state, in hex."""
    input_digest: Hex | None
    """SHA-256 over the fields that the step read; null if none."""
    code_hash: Hex | None
    """SHA-256 over the step's source; null if no step ran."""


class CheckpointWithState(CheckpointSummary):
    """A checkpoint and its whole state."""

    example: ClassVar = {
        "state": {"order": {"number": "A-1"}, "proposal": {"amount": "120.00", "currency": "EUR"}},
        "masked": ["/order/token"], "name": "Before paying", "held": {"browser": {"page": "/orders"}},
    }  # fmt: skip

    state: dict[str, Any]
    """The state as canonical JSON, byte for byte: integers have any size, and 1 and 1.0 are two values. Use a parser
    that keeps both. A placeholder with its pointer replaces each secret."""
    masked: list[str]
    """JSON Pointers to the secrets of the state."""
    name: str
    """Its name, which keeps it from retention; empty: none."""
    held: dict[str, Any]
    """What its step held open, by name, as it is described."""


class CheckpointPage(Page):
    """Some checkpoints, newest first."""

    items: list[CheckpointSummary]
    """The checkpoints, without their states."""


class Comparison(ApiSchema):
    """The checkpoint to compare with."""

    example: ClassVar = {"to": 4}

    to: int = Field(ge=1)
    """The number of the checkpoint to compare with."""


class AlteredRow(ApiSchema):
    """A stored row that is not what was written."""

    example: ClassVar = {"subject": "checkpoint 3 (run 7)", "reason": "its columns do not match its digest"}

    subject: str
    """The row or run with the fault."""
    reason: str
    """What is wrong with it."""


class VerificationAnswer(ApiSchema):
    """The result of verifying a run's checkpoints."""

    example: ClassVar = {"ok": True}

    ok: bool
    """Whether everything is unaltered."""
    findings: list[AlteredRow]
    """The faults; empty if there are none."""


@router.get("/{int:run_id}/checkpoints", response=CheckpointPage, summary="List a run's checkpoints")
def list_checkpoints(request: HttpRequest, run_id: RunId, asked: Query[Paging]) -> HttpResponse:
    """Return the run's checkpoints on all branches, newest first; `parent` says which follows which."""
    run = run_or_404(request, run_id)
    found = store.history(run, before_seq=asked.place if asked.cursor else None, limit=asked.limit + 1)
    return CheckpointPage.answer_rows(found, asked, place="seq")


@router.get(CHECKPOINT, response=CheckpointWithState, summary="Read a checkpoint and its state")
def get_checkpoint(request: HttpRequest, run_id: RunId, seq: Seq) -> HttpResponse:
    """Return one checkpoint with its whole state, verified against its digest."""
    row = checkpoint_or_404(run_or_404(request, run_id), seq)
    state, veil = store.load_checkpoint(row.id).state, veil_of(row)
    masked = encode_canonical(list(veil.places(state)))
    shown = encode_state(veil.masked(state, named=True))
    held = encode_canonical({resource.name: resource.content for resource in OpenResource.objects.described_at(row)})
    named = encode_canonical(getattr(row, "named", ""))
    return answer_json(CheckpointSummary.from_orm(row), masked=masked, name=named, held=held, state=shown)


@router.get(CHECKPOINT + "/diff", response={200: None}, summary="Compare two checkpoints", openapi_extra=PATCHES)
def diff_checkpoints(request: HttpRequest, run_id: RunId, seq: Seq, asked: Query[Comparison]) -> HttpResponse:
    """Return the JSON Patch that turns the state of checkpoint `seq` into that of checkpoint `to`."""
    run = run_or_404(request, run_id)
    found = patch_between(*(checkpoint_or_404(run, number) for number in (seq, asked.to)))
    return HttpResponse(encode_patch(found), content_type=PATCH_MEDIA_TYPE)


@router.get("/{int:run_id}/verification", response=VerificationAnswer, summary="Verify a run's checkpoints")
def verify_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Read every checkpoint of the run and tell whether the chain holds. It reads the whole run: ask when in doubt."""
    found = verify_runs.verify_run(run_or_404(request, run_id))
    return answer_json(VerificationAnswer.model_validate({"ok": not found, "findings": found}))


comparisons = Router(tags=["checkpoints"], auth=require_scope(TokenScope.READ))


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


@comparisons.get(
    "/{int:run_id}/comparisons", response=ComparisonAnswer, summary="Compare any two checkpoints of a lineage"
)
def compare_checkpoints(request: HttpRequest, run_id: RunId, asked: Query[Pair]) -> HttpResponse:
    """Return the common ancestor, the path to each, its effects, and how the two states differ; also across forks."""
    run = run_or_404(request, run_id)
    a, b = (comparison.checkpoint_named(request, run, place) for place in (asked.a, asked.b))
    parting = comparison.parting(a, b)
    sides = {"a": comparison.side("A", a, parting.to_a), "b": comparison.side("B", b, parting.to_b)}
    ancestor = {"ancestor_run": parting.ancestor.run_id, "ancestor_seq": parting.ancestor.seq}
    found = Divergence.model_validate(ancestor | sides)
    return answer_json(found, patch=encode_patch(patch_between(a, b)))


names = Router(tags=["checkpoints"], auth=require_scope(TokenScope.ORDER))


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


@names.post(NAMES, response={201: NamedCheckpoint}, summary="Name a checkpoint")
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


@names.post(NAMES + "/removals", response=NamedCheckpoint, summary="Remove a checkpoint's name")
def unname_checkpoint(request: HttpRequest, run_id: RunId, seq: Seq, key: Key) -> HttpResponse:
    """Remove the name, and the hold that it was. Nothing happens if the checkpoint has none."""
    run = run_to_order(request, run_id, seq)

    def remove() -> HttpResponse:
        holds.unname(run, seq, by=actor_of(request))
        return answer_json(NamedCheckpoint(run=run.pk, seq=seq, name=""))

    return do_once(request, key, remove)
