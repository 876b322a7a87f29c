"""Reveals one secret to one person, after an event with its place and never its value.

Nobody may by default, not even a reviewer: it takes a permission of its own in the run's team.

Also here: secrets of a run's state, wherever it is shown but to whoever decides: see approvals.cards.card.state_veil.

That is what its plan marks, and in an external program's run what people registered as secret of the tools that it has
asked about, at the places of their arguments. The program's plan need not mark these.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from approvals.cards.action import Action
from approvals.cards.card import state_veil, with_tools
from approvals.errors import Refused
from approvals.models import Gate, Proposal
from approvals.schema import redact
from approvals.schema.redact import Redaction
from checkpoints import actors, store
from checkpoints.access import permissions
from checkpoints.access.permissions import say_missing_permission
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Plan, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer, patch

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


class NotRevealed(Refused):
    """Nothing was shown."""

    message = "There is no secret at this place."


class RevealNotAllowed(NotRevealed):
    """A person who may not reveal secrets of this team."""

    message = "You need the permission to see secrets of this team's runs."


def may(user: User, team_id: int) -> bool:
    """Tell whether this person may see secrets of the team's runs."""
    return permissions.may_in_team(user, team_id, permissions.REVEAL_SECRET)


def at_gate(gate: Gate, proposal: Proposal) -> dict[str, Any]:
    """Return the state that a proposal of a gate asks for. Raises NotVerified, NoSuchCheckpoint."""
    state: dict[str, Any] = patch.apply(proposal.state_patch, gate.saved.state)
    return state


def of_gate(gate: Gate, pointer: str, *, by: User) -> Any:
    """Return a secret of the state that the gate asks for, once its event is written. Raises NotRevealed."""
    proposal = gate.standing()
    state = at_gate(gate, proposal)
    seq = Checkpoint.objects.values_list("seq", flat=True).get(pk=gate.checkpoint)
    data = {"pointer": pointer, "seq": seq, "proposal": proposal.number}
    veil = state_veil(spec_of(gate.run.plan), proposal.card)
    return _revealed(state, veil, pointer, run=gate.run, subject=gate.subject, data=data, by=by)


def of_state(run: Run, *, by: User) -> None:
    """Record that somebody is given the state at the run's head with all of its secrets. Raises RevealNotAllowed."""
    if not may(by, run.team_id):
        raise RevealNotAllowed(say_missing_permission(by, permissions.REVEAL_SECRET, run.team))
    data = {"pointer": "", "seq": run.seq}
    with transaction.atomic():
        event_log.record("secret.revealed", subject=f"run:{run.pk}", run=run, by=actors.of_user(by), data=data)


def of_checkpoint(run: Run, checkpoint: Checkpoint, pointer: str, *, by: User) -> Any:
    """Return a secret of a checkpoint's state, once its event is written. Raises NotRevealed, NotVerified."""
    state = store.load_checkpoint(checkpoint.id).state
    data = {"pointer": pointer, "seq": checkpoint.seq}
    return _revealed(state, veil_of(checkpoint), pointer, run=run, subject=f"run:{run.pk}", data=data, by=by)


def _revealed(
    state: dict[str, Any], veil: Redaction, pointer: str, *, run: Run, subject: str, data: dict[str, Any], by: User
) -> Any:
    if not may(by, run.team_id):
        raise RevealNotAllowed(say_missing_permission(by, permissions.REVEAL_SECRET, run.team))
    if json_pointer.get(state, pointer) is None or not veil.at(pointer).secret:
        raise NotRevealed
    with transaction.atomic():
        event_log.record("secret.revealed", subject=subject, run=run, by=actors.of_user(by), data=data)
    return json_pointer.find_value(state, pointer)
