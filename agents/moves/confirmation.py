"""Asks people to confirm who they are before they rewind, edit or fork a run.

Such an order decides what is asked, so it takes what a decision takes. The policies that count are those of the gates
that the run and the live runs below it wait at, and of those that their plans name, by the rule by which a gate finds
its policy. The strictest of them decides, and a rule of one that may ask for a confirmation counts as one that does:
what it will be asked about is not known yet.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.utils import timezone

from agents.errors import OrderNotConfirmed
from agents.session import child_runs
from approvals.models import Gate, Policy
from approvals.policy import required, step_up
from approvals.policy.step_up import ANY, PASSKEY, Confirmed
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import spec_of


def needed(run: Run, *plans: Plan) -> str:
    """Return by what an order has to be confirmed, as a policy's `step_up_method`; "" where by nothing.

    `plans`: those under which the order goes on, beside the run's own.
    """
    family = child_runs.family_ids(run.pk)
    below = Plan.objects.filter(pk__in=Run.objects.live().filter(pk__in=family).values("plan"))
    steps = [step for plan in [run.plan, *plans, *below] for step in spec_of(plan).steps if step.kind == "gate"]
    named = [Policy.objects.standing_in(name, team=run.team_id) for name in {step.policy for step in steps}]
    waited_at = Policy.objects.filter(pk__in=Gate.objects.open().filter(run__in=family).values("policy"))
    asking = [policy for policy in [*named, *waited_at] if policy is not None and _asks(policy)]
    if not asking:
        return ""
    return str(PASSKEY if any(policy.step_up_method == PASSKEY for policy in asking) else ANY)


def _asks(policy: Policy) -> bool:
    return policy.step_up or any(rule.require.get("step_up") for rule in required.rules_of(policy.rules))


def check(run: Run, by: User, confirmed: Confirmed | None, *plans: Plan) -> None:
    """Raise OrderNotConfirmed where the order needs a confirmation and this person gave none lately."""
    method = needed(run, *plans)
    if method and not step_up.counts(confirmed, by=by, now=timezone.now(), asked=method):
        raise OrderNotConfirmed(method)
