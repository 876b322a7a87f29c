"""Writes webhooks' messages, in the transaction of the gate's change, and wakes workers after it.

A message holds numbers and the names of agents and teams, and nothing that is asked, decided or said: a wrong address
must not get what was meant for a reviewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from approvals.models import AgentQuestion, Delivery, Gate, Webhook
from checkpoints.actors import Actor
from checkpoints.layout.rows import new_id
from checkpoints.models import Checkpoint
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.values.canonical_json import encode_canonical

from . import ringing

TEST = "webhook.test"
CLEARED = 1000  # rows a transaction


def tell(gate: Gate, kind: str, *, at: datetime, ended: str = "") -> None:
    """Write a delivery of `kind`, the gate's event, for each webhook that listens. In the caller's transaction.

    `ended`: the kind of the outcome. A webhook gets one message of each kind for a gate.
    """
    if gate.hooked:
        _tell(gate, kind, _listening(gate.team_id, gate.run.plan.agent), at=at, ended=ended)


def tell_question(gate: Gate, question: AgentQuestion, *, kind: str) -> None:
    """Write a delivery of a question to the gate's agent for each webhook that listens; each question is told once."""
    hooks = _listening(gate.team_id, gate.run.plan.agent)
    if hooks:
        said = {
            "question": question.pk, "gate": gate.pk, "run": gate.run_id, "agent": gate.run.plan.agent,
            "team": gate.team_id, "step": gate.step,
        }  # fmt: skip
        _write(hooks, kind, said, at=datetime.now(UTC), gate=None)


def tell_all(gates: Sequence[Gate], kind: str) -> None:
    """Tell of gates that opened, all of one agent and team, as `tell` does; the webhooks are read once."""
    hooks = _listening(gates[0].team_id, gates[0].run.plan.agent)
    for gate in gates:
        _tell(gate, kind, hooks, at=gate.opened_at)


@prepared_statement
def _listening(team: Any, agent: Any) -> QuerySet[Webhook]:
    return Webhook.objects.listening(team_id=team, agent=agent)


def _tell(gate: Gate, kind: str, hooks: Sequence[Webhook], *, at: datetime, ended: str = "") -> None:
    if not hooks:
        return
    run = gate.run
    seq = Checkpoint.objects.values_list("seq", flat=True).get(pk=gate.checkpoint)
    said = {
        "gate": gate.pk, "run": gate.run_id, "agent": run.plan.agent, "team": gate.team_id, "step": gate.step,
        "seq": seq, "kind": gate.kind, "status": gate.status, "outcome": ended or None,
    }  # fmt: skip
    _write(hooks, kind, said, at=at, gate=gate)


def test(webhook: Webhook, *, by: Actor) -> Delivery | None:
    """Send a test message; None where the webhook is not enabled."""
    with transaction.atomic():
        if not Webhook.objects.enabled().filter(pk=webhook.pk).exists():
            return None
        webhook.say("webhook.tested", by=by)
        [made] = _write([webhook], TEST, {"webhook": webhook.pk}, at=datetime.now(UTC), gate=None)
    return made


def clear() -> None:
    """Delete deliveries older than the setting, with their attempts, CLEARED at a time."""
    kept = timedelta(days=settings.HOLDPOINT_WEBHOOKS_KEEP_DAYS)
    old = Delivery.objects.outlived(kept).order_by("created_at").values_list("pk", flat=True)[:CLEARED]
    while numbers := list(old.all()):
        Delivery.objects.filter(pk__in=numbers).delete()


def _write(
    hooks: Sequence[Webhook], kind: str, said: Mapping[str, Any], *, at: datetime, gate: Gate | None
) -> list[Delivery]:
    body = encode_canonical({"type": kind, "timestamp": at.astimezone(UTC).isoformat(), "data": dict(said)})
    made = Delivery.objects.bulk_create(
        Delivery(webhook=hook, gate=gate, kind=kind, body=body, message=f"msg_{new_id().hex}") for hook in hooks
    )
    transaction.on_commit(partial(ringing.ring, [each.pk for each in made]))
    return made
