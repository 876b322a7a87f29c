"""Says that a gate is decided by another policy than the one that its step names, where the team has none of that name.

A team whose only policy is `default` takes it for every name: its agents can be tried before their policies are made.
"""

from __future__ import annotations

from approvals.models import Gate, Policy
from approvals.models.policy import DEFAULT
from checkpoints.models import Checkpoint, Plan
from checkpoints.runs.plans import PlanSpec, spec_of


def say_missing_policy(asked: str, team: str, used: str = DEFAULT) -> str:
    return (
        f"{team} has no policy “{asked}”, so “{used}” decides. Make “{asked}” in the administration, "
        "under Policies; it counts for gates that open afterwards."
    )


def missing_for(plan: PlanSpec, *, team_id: int, team: str) -> list[str]:
    """Say it for each policy that the plan's gates name and the team does not have."""
    asked = dict.fromkeys(step.policy for step in plan.steps if step.kind == "gate" and step.policy)
    known = set(Policy.objects.filter(team=team_id, name__in=asked).values_list("name", flat=True))
    return [say_missing_policy(name, team) for name in asked if name not in known | {DEFAULT}]


def missing_at(gate: Gate) -> str:
    """Say it of a gate that opened under another policy than its step named then; "" for one that did not."""
    if gate.kind != Gate.Kind.REVIEW or _policy_named(gate, gate.run.plan) in ("", gate.policy.name):
        return ""
    # An upgrade of the run's plan may have renamed the policy since.
    asked = _policy_named(gate, Checkpoint.objects.select_related("plan").get(pk=gate.checkpoint).plan)
    if asked in ("", gate.policy.name):
        return ""
    if not Policy.objects.filter(team=gate.team, name=asked).exists():
        return say_missing_policy(asked, gate.team.name, gate.policy.name)
    return (
        f"{gate.team.name} had no policy “{asked}” when this gate opened, so “{gate.policy.name}” "
        f"decides. “{asked}” counts for gates that open afterwards."
    )


def _policy_named(gate: Gate, plan: Plan) -> str:
    return next((step.policy for step in spec_of(plan).steps if step.name == gate.step), "")
