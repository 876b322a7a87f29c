"""The policy under which a program asks: the one that it names, or the only one that its token allows."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import Group

from agents.errors import FieldError
from agents.models import Token
from agents.work_errors import WorkInvalid, WorkNotAllowed
from approvals.errors import NoSuchPolicy
from approvals.models import Policy
from approvals.models.policy import DEFAULT
from checkpoints.runs.plans import StepSpec


def policy_of(token: Token | None, said: str) -> str:
    """Return the policy of a gate posted without a plan: the one it names, or the token's. Raises WorkNotAllowed."""
    only = token.policy if token else ""
    if said and only and said != only:
        raise _not_for(only)
    return said or only


def check_plan(token: Token | None, steps: Sequence[StepSpec]) -> None:
    """Raise WorkInvalid where a gate of the plan names another policy than the token's only one."""
    only = token.policy if token else ""
    faults = [
        FieldError(pointer=f"/steps/{number}/policy", message=f"this token asks only under the policy {only}: name it")
        for number, step in enumerate(steps)
        if step.kind == "gate" and not _same(step.policy, only)
    ]
    if faults:
        raise WorkInvalid(faults)


def check_gate(token: Token | None, gate: StepSpec, team: Group) -> None:
    """Check the same for a gate whose plan somebody else may have registered, for any team.

    Raises WorkNotAllowed, and WorkInvalid for a policy that the team does not have: its default may ask for less.
    """
    if token and not _same(gate.policy, token.policy):
        raise _not_for(token.policy)
    try:
        Policy.objects.expect(gate.policy, team=team, exact=True)
    except NoSuchPolicy as error:
        raise WorkInvalid([FieldError(pointer="/step", message=str(error))]) from error


def check_other(token: Token, other: int) -> None:
    """Raise WorkNotAllowed where another token, which had this answer, may ask under another policy than this one."""
    if token.policy and not Token.objects.filter(pk=other, policy=token.policy).exists():
        raise _not_for(token.policy)


def _same(named: str, only: str) -> bool:
    return not only or (named or DEFAULT) == only


def _not_for(only: str) -> WorkNotAllowed:
    return WorkNotAllowed(
        f"This token may ask only under the policy {only}. Name it in the gate or in the plan, or use another token."
    )
