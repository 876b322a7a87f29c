"""A run's checkpoints: the list, one with its state, the difference between two, and their verification."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.access import checkpoint_or_404, run_or_404
from agents.api.protocol import (
    ApiSchema,
    Hex,
    Page,
    Paging,
    RunId,
    Seq,
    Text,
    answer_json,
    exact_json,
    one_of,
    require_scope,
)
from agents.comparison import patch_between
from agents.models import OpenResource, TokenScope
from approvals.gates.state_secrets import veil_of
from checkpoints import store
from checkpoints.audit import verify_runs
from checkpoints.models import Checkpoint
from checkpoints.values.canonical_json import encode_canonical

router = Router(tags=["checkpoints"], auth=require_scope(TokenScope.READ))
PATCH_MEDIA_TYPE = "application/json-patch+json"
PATCH = {
    "title": "JSON Patch",
    "description": "Operations of RFC 6902: add, remove and replace.",
    "type": "array",
    "items": {
        "type": "object",
        "required": ["op", "path"],
        "properties": {
            "op": {"enum": ["add", "remove", "replace"], "description": "What to do."},
            "path": {"type": "string", "description": "The place, as a JSON Pointer."},
            "value": {"description": "The new value, as canonical JSON."},
        },
    },
    "examples": [[{"op": "replace", "path": "/proposal/amount", "value": "80.00"}]],
}
DIGEST = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"


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


@router.get(
    "/{int:run_id}/checkpoints/{int:seq}", response=CheckpointWithState, summary="Read a checkpoint and its state"
)
def get_checkpoint(request: HttpRequest, run_id: RunId, seq: Seq) -> HttpResponse:
    """Return one checkpoint with its whole state, verified against its digest."""
    row = checkpoint_or_404(run_or_404(request, run_id), seq)
    state, veil = store.load_checkpoint(row.id).state, veil_of(row)
    masked = encode_canonical(list(veil.places(state)))
    shown = exact_json.of_state(veil.masked(state, named=True))
    held = encode_canonical({resource.name: resource.content for resource in OpenResource.objects.described_at(row)})
    named = encode_canonical(getattr(row, "named", ""))
    return answer_json(CheckpointSummary.from_orm(row), masked=masked, name=named, held=held, state=shown)


@router.get(
    "/{int:run_id}/checkpoints/{int:seq}/diff",
    response={200: None},
    summary="Compare two checkpoints",
    openapi_extra={"responses": {200: {"content": {PATCH_MEDIA_TYPE: {"schema": PATCH}}}}},
)
def diff_checkpoints(request: HttpRequest, run_id: RunId, seq: Seq, asked: Query[Comparison]) -> HttpResponse:
    """Return the JSON Patch that turns the state of checkpoint `seq` into that of checkpoint `to`."""
    run = run_or_404(request, run_id)
    found = patch_between(*(checkpoint_or_404(run, number) for number in (seq, asked.to)))
    return HttpResponse(exact_json.of_patch(found), content_type=PATCH_MEDIA_TYPE)


@router.get("/{int:run_id}/verification", response=VerificationAnswer, summary="Verify a run's checkpoints")
def verify_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Read every checkpoint of the run and tell whether the chain holds. It reads the whole run: ask when in doubt."""
    found = verify_runs.verify_run(run_or_404(request, run_id))
    return answer_json(VerificationAnswer.model_validate({"ok": not found, "findings": found}))
