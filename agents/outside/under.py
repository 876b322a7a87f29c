"""Under which policy a program asks: the one that it names, or the only one that its token is for."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import Group

from approvals.models import Policy
from approvals.models.policy import DEFAULT
from checkpoints.plans import StepSpec

from ..errors import FieldError, WorkInvalid, WorkNotAllowed
from ..models import Token


def policy_of(token: Token | None, said: str, team: Group) -> str:
    """The policy of a gate that is posted without a plan. Raises WorkNotAllowed, and WorkInvalid for an unknown one."""
    only = token.policy if token else ""
    if said and only and said != only:
        raise _not_for(only)
    if said and not is_one(said, team):
        raise WorkInvalid([FieldError(pointer="/policy", message=_lacks(said, team))])
    return said or only


def check_plan(token: Token | None, steps: Sequence[StepSpec]) -> None:
    """Raises WorkInvalid where a gate of the plan names another policy than the token's only one."""
    only = token.policy if token else ""
    faults = [
        FieldError(pointer=f"/steps/{number}/policy", message=f"this token asks only under the policy {only}: name it")
        for number, step in enumerate(steps)
        if step.kind == "gate" and not _same(step.policy, only)
    ]
    if faults:
        raise WorkInvalid(faults)


def check_gate(token: Token | None, gate: StepSpec, team: Group) -> None:
    """The same of a gate whose plan somebody else may have registered, for any team.

    Raises WorkNotAllowed, and WorkInvalid for a policy that the team does not have: its default may ask for less.
    """
    if token and not _same(gate.policy, token.policy):
        raise _not_for(token.policy)
    if gate.policy and not is_one(gate.policy, team):
        told = f"in its plan, {_lacks(gate.policy, team)}. Have it made in the administration, and ask again then"
        raise WorkInvalid([FieldError(pointer="/step", message=told)])


def is_one(name: str, team: Group) -> bool:
    """Whether the team has a policy of that name; its default is made where it is first asked for."""
    return name == DEFAULT or Policy.objects.filter(team=team, name=name).exists()


def _lacks(name: str, team: Group) -> str:
    named = ", ".join(Policy.objects.filter(team=team).order_by("name").values_list("name", flat=True).distinct())
    return f"{team.name} has no policy {name}; it has {named or DEFAULT}"


def _same(named: str, only: str) -> bool:
    return not only or (named or DEFAULT) == only


def _not_for(only: str) -> WorkNotAllowed:
    return WorkNotAllowed(
        f"This token asks only under the policy {only}. Name that, in the gate or in the plan, or take another token."
    )
