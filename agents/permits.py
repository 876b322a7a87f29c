"""Whether an effect may be performed now: an unconsumed grant of the last gate that could allow it, still for this."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from approvals import binding
from approvals.models import Grant, Outcome
from checkpoints.plans import StepSpec

from . import gates
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


def last_outcome(slice: Slice, spec: StepSpec) -> Outcome | None:
    """The newest outcome on the path of a gate that could allow `spec`, or of its own recovery."""
    asked_by = Q(gate__step__in=gates_for(slice, spec), gate__kind="review")
    recovered = Q(gate__step=spec.name, gate__kind="recovery")
    found = Outcome.objects.filter(asked_by | recovered, gate__run_id=slice.run.pk)
    found = found.filter(gate__checkpoint__in=slice.path.settled())
    return found.select_related("gate", "proposal").order_by("-pk").first()


def gates_for(slice: Slice, spec: StepSpec) -> list[str]:
    """The gate steps that allow `spec`."""
    return [step.name for step in slice.plan.steps if spec.name in step.allows]
