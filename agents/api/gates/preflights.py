"""Preflights: checks that a run can go on, from its head or from a gate's checkpoint."""

from __future__ import annotations

from typing import Annotated, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router

from agents.access import Gone, run_or_404
from agents.api.protocol import ApiSchema, GateId, RunId, answer_json, one_of, require_scope
from agents.models import TokenScope
from approvals.gates import preflight_facts
from approvals.preflight import ORDER
from approvals.views.access import gate_or_404, why_gone
from checkpoints.errors import NoSuchCheckpoint

runs = Router(tags=["runs"], auth=require_scope(TokenScope.READ))
gates = Router(tags=["gates"], auth=require_scope(TokenScope.SEE))
Colour = Annotated[str, one_of(ORDER)]


class FindingAnswer(ApiSchema):
    """The result of one check."""

    example: ClassVar = {
        "check": "version", "colour": "green", "words": "Version 1 of refunds is deployed, with the run's own steps.",
    }  # fmt: skip

    check: str
    """What was checked."""
    colour: Colour
    """Green: in order. Amber: it can resume, with a warning. Red: it cannot resume."""
    words: str
    """What was found, and what to do about it. It may quote an agent's code: data, never markup."""


class PreflightAnswer(ApiSchema):
    """The result of a preflight."""

    example: ClassVar = {"colour": "green", "title": "Ready: 6 checks passed"}

    colour: Colour
    """The worst level of the findings. While it is red, decisions are refused."""
    title: str
    """The level in words."""
    findings: list[FindingAnswer]
    """Every check, in order."""


@runs.get("/{int:run_id}/preflight", response=PreflightAnswer, summary="Check a run")
def get_run_preflight(request: HttpRequest, run_id: RunId) -> HttpResponse:
    """Tell whether the run can go on from its head: its checkpoint, its version, its state, its environment."""
    return answer_json(PreflightAnswer.from_orm(preflight_facts.of_run(run_or_404(request, run_id))))


@gates.get("/{int:gate_id}/preflight", response=PreflightAnswer, summary="Check a gate")
def get_gate_preflight(request: HttpRequest, gate_id: GateId) -> HttpResponse:
    """Tell whether the run can go on from what the gate shows, whatever is decided."""
    gate = gate_or_404(request, gate_id)
    try:
        return answer_json(PreflightAnswer.from_orm(preflight_facts.of_gate(gate)))
    except NoSuchCheckpoint:  # where the gate is closed, retention may have removed the state
        raise Gone(why_gone(gate)) from None
