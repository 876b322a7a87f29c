"""Asks people to confirm who they are before they rewind, edit or fork a run.

Such an order decides what is asked, so it takes what a decision takes. The policies that count are those of the gates
that the run waits at, and of those that its plan names. The strictest of them decides, and a rule of one that may ask
for a confirmation counts as one that does: what it will be asked about is not known yet.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from agents.errors import OrderNotConfirmed
from approvals.models import Gate, Policy
from approvals.models.policy import DEFAULT
from approvals.policy import required, step_up
from approvals.policy.step_up import ANY, PASSKEY, Confirmed
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of


def needed(run: Run) -> str:
    """Return by what an order has to be confirmed, as a policy's `step_up_method`; "" where by nothing."""
    names = {step.policy or DEFAULT for step in spec_of(run.plan).steps if step.kind == "gate"}
    named = Policy.objects.filter(team=run.team_id, name__in=names).current()
    waited_at = Policy.objects.filter(pk__in=Gate.objects.open().filter(run=run).values("policy"))
    asking = [policy for policy in [*named, *waited_at] if _asks(policy)]
    if not asking:
        return ""
    return str(PASSKEY if any(policy.step_up_method == PASSKEY for policy in asking) else ANY)


def _asks(policy: Policy) -> bool:
    return policy.step_up or any(rule.require.get("step_up") for rule in required.rules_of(policy.rules))


def check(run: Run, by: User, confirmed: Confirmed | None) -> None:
    """Raise OrderNotConfirmed where the order needs a confirmation and this person gave none lately."""
    method = needed(run)
    if method and not step_up.counts(confirmed, by=by, now=timezone.now(), asked=method):
        raise OrderNotConfirmed(method)
