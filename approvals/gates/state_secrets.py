"""Secrets of a run's state, wherever it is shown but to whoever decides: see approvals.cards.card.state_veil.

That is what its plan marks, and in an external program's run what people registered as secret of the tools that it has
asked about, at the places of their arguments. The program's plan need not mark these.
"""

from __future__ import annotations

from approvals.cards.action import Action
from approvals.cards.card import with_tools
from approvals.models import Gate
from approvals.schema import redact
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.runs.plans import spec_of

MOST = 200  # of a lineage's gates, the newest


def veil_of(checkpoint: Checkpoint) -> redact.Redaction:
    """Return the redaction of the checkpoint's state. Needs its plan."""
    return of_plan(checkpoint.run_id, checkpoint.plan)


def of_plan(run: int, plan: Plan) -> redact.Redaction:
    """Return the redaction of a state of the run that was saved under this plan."""
    schema = spec_of(plan).state_schema
    return redact.veil_marks(with_tools(schema, _asked(run)) if plan.external else schema)


def _asked(run: int) -> list[Action]:
    """List the actions by registered tools that were asked about on the run's lineage, each place and tool once."""
    runs = Run.objects.of_lineage(Run.objects.values_list("lineage", flat=True).get(pk=run))
    gates = Gate.objects.filter(run__in=runs).select_related("run__plan").order_by("-pk")[:MOST]
    asked = (each for gate in gates for each in gate.asked.actions)
    return list({(each.pointer, each.tool, each.registered): each for each in asked}.values())
