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
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec, spec_of


def policy_of(token: Token | None, policy_name: str) -> str:
    """Return the policy of a gate posted without a plan: the one it names, or the token's. Raises WorkNotAllowed."""
    only = token.policy if token else ""
    if policy_name and only and policy_name != only:
        raise _not_for(only)
    return policy_name or only


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


def check_run(token: Token | None, run: Run) -> None:
    """Raise WorkNotAllowed where a gate of the run, which another token may have posted, is asked under another one."""
    gates = [step for step in spec_of(run.plan).steps if step.kind == "gate"]
    if token and not all(_same(gate.policy, token.policy) for gate in gates):
        raise _not_for(token.policy)


def _same(named: str, only: str) -> bool:
    return not only or (named or DEFAULT) == only


def _not_for(only: str) -> WorkNotAllowed:
    return WorkNotAllowed(
        f"This token may ask only under the policy {only}. Name it in the gate or in the plan, or use another token."
    )
