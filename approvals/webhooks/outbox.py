"""Writes webhooks' messages, in the transaction of the gate's change, and wakes workers after it.

A message holds numbers and the names of agents and teams, and nothing that is asked, decided or said: a wrong address
must not get what was meant for a reviewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from approvals.models import AgentQuestion, ChannelState, Gate, Message, Webhook
from approvals.models.notifications.channel_state import channel_of
from checkpoints.actors import Actor
from checkpoints.layout.rows import new_id
from checkpoints.models import Checkpoint
from checkpoints.postgresql.prepared_rows import insert_rows, prepared_statement
from checkpoints.values.canonical_json import encode_canonical

TEST = "webhook.test"
Bell = Callable[[int], bool]
_bells: list[Bell] = []


def register(bell: Bell) -> None:
    """Register a function that wakes a worker: it gets a webhook's number, and returns whether a message went out.

    Without any, the sweeper finds what is due.
    """
    if bell not in _bells:
        _bells.append(bell)


def ring(webhooks: Iterable[int]) -> None:
    """Wake a worker for each of these; where one call fails, the rest are left to the sweeper."""
    for number in webhooks:
        if not all(bell(number) for bell in _bells):
            return


def tell(gate: Gate, kind: str, *, at: datetime, ended: str = "") -> None:
    """Write a message of `kind`, the gate's event, for each webhook that listens. In the caller's transaction.

    `ended`: the kind of the outcome. A webhook gets one message of each kind for a gate.
    """
    if gate.hooked:
        _tell(gate, kind, _listening(gate.team_id, gate.run.plan.agent), at=at, ended=ended)


def tell_question(gate: Gate, question: AgentQuestion, *, kind: str) -> None:
    """Write a message of a question to the gate's agent for each webhook that listens; each question is told once."""
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


def test(webhook: Webhook, *, by: Actor) -> Message | None:
    """Send a test message; None where the webhook is not enabled."""
    with transaction.atomic():
        if not Webhook.objects.enabled().filter(pk=webhook.pk).exists():
            return None
        webhook.say("webhook.tested", by=by)
        ChannelState.objects.wake(channel_of(webhook.pk))
        [made] = _write([webhook], TEST, {"webhook": webhook.pk}, at=datetime.now(UTC), gate=None)
    return made


def _write(
    hooks: Sequence[Webhook], kind: str, data: Mapping[str, Any], *, at: datetime, gate: Gate | None
) -> list[Message]:
    body = encode_canonical({"type": kind, "timestamp": at.astimezone(UTC).isoformat(), "data": dict(data)})
    messages = [
        Message(webhook=hook, channel=channel_of(hook.pk), kind=kind, body=body, gate=gate, name=f"msg_{new_id().hex}")
        for hook in hooks
    ]
    insert_rows(messages)
    transaction.on_commit(partial(ring, [hook.pk for hook in hooks]))
    return messages
