"""Whether an effect may be performed now: an unconsumed grant of the last gate that could allow it, still for this."""

from __future__ import annotations

from dataclasses import dataclass

from approvals import binding
from approvals.models import Grant
from checkpoints.plans import StepSpec

from . import gates
from .allowances import last_outcome
from .errors import NotGranted
from .slices import Slice


@dataclass(frozen=True)
class Permit:
    """The grant that the effect's intent consumes; none for an effect that needs no permission."""

    grant: Grant | None


def permit(slice: Slice, spec: StepSpec) -> Permit:
    """The right to perform `spec` on the state at the head. Raises NotGranted with the reason."""
    if not spec.guarded:
        return Permit(None)
    outcome = last_outcome(slice, spec)
    if outcome is None:
        raise NotGranted(f"No gate has allowed {spec.name} on this path.")
    grant = outcome.grants.filter(effect=spec.name, effect_row__isnull=True).order_by("pk").first()
    if grant is None or outcome.to_run is None:
        raise NotGranted(f"The gate {outcome.gate.step} gave no permission for {spec.name}, or it was used.")
    if binding.recompute(outcome.approved(), **gates.world(slice, spec.name)) != bytes(outcome.to_run):
        raise NotGranted(f"What {spec.name} would do now is not what was approved at the gate {outcome.gate.step}.")
    return Permit(grant)
