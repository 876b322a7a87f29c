"""Verifying a run's checkpoints: each row and state against its digest, the chain from the first to the head."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema
from pydantic import Field

from agents.api.protocol import RunId, answer, needs
from agents.models import TokenScope
from agents.queries.access import run_or_404
from checkpoints.audit import verify_runs

router = Router(tags=["checkpoints"], auth=needs(TokenScope.READ))


class Finding(Schema):
    """Something stored that is not what was written."""

    subject: str = Field(description="The row or run with the fault.", examples=["checkpoint 3 (run 7)"])
    reason: str = Field(description="What is wrong with it.", examples=["its columns do not match its digest"])


class Verification(Schema):
    """What a verification of a run's checkpoints found."""

    ok: bool = Field(description="Whether everything is unaltered.", examples=[True])
    findings: list[Finding] = Field(description="The faults; empty if there are none.")


@router.get("/{int:run_id}/verification", response=Verification, summary="Verify a run's checkpoints")
def verify_run(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Read every checkpoint of the run and say whether the chain holds. It costs the whole run: ask when in doubt."""
    found = verify_runs.verify_run(run_or_404(request, run_id))
    return answer(Verification.model_validate({"ok": not found, "findings": found}))
