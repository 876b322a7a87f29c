"""Opens a gate, for the runner, when a run has to ask."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import DateTimeField, ExpressionWrapper
from django.db.models.functions import Now

from approvals.audit import evidence
from approvals.cards import binding
from approvals.cards.card import Card, completed
from approvals.models import Gate, Policy, Proposal
from approvals.policy import pacing
from approvals.tools import drawing
from approvals.webhooks import outbox
from checkpoints.actors import Actor
from checkpoints.models import Hold, Run
from checkpoints.postgresql.text_search import terms
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.store import Snapshot, claims
from checkpoints.store.claims import Claim
from checkpoints.values.canonical_json import canonical

_TITLE = 200


def open_gate(
    *,
    claim: Claim,
    run: Run,
    snapshot: Snapshot,
    step: StepSpec,
    policy: str,
    card: Card,
    kind: str = "review",
    by: Actor,
    asked_by: int | None = None,
) -> Gate:
    """Stop a run at a gate: write the gate, its first proposal, the hold and the event, and release the run to wait.

    One transaction, or part of the caller's. The same run and checkpoint return the existing gate; the run is released
    only while that gate is open, so that a decision made meanwhile is not missed: look at `gate.status`. `asked_by`:
    the id of the person who answers for the external program that asks. Raises CardRefused, NoSuchPolicy, ToolRefused,
    ValueRefused, AskedTooOften and Fenced.
    """
    with transaction.atomic():
        before = Gate.objects.select_for_update().filter(run=run, checkpoint=snapshot.id).first()
        if before is not None:
            if before.status == Gate.Status.OPEN:
                claims.release(claim, status="waiting", by=by)
            return before
        plan, recovery = spec_of(run.plan), kind == Gate.Kind.RECOVERY
        asked = completed(card, step=step, plan=plan, state=snapshot.state, recovery=recovery)
        named = Policy.objects.named(policy, team=run.team, strict=not recovery)
        asked = drawing.drawn(asked, team=run.team, policy=named, plan=plan, recovery=recovery)
        alike = [] if recovery else pacing.likeness(plan.agent, asked)
        earlier = pacing.RejectedBefore(1, None)
        if not recovery:
            pacing.check_cap(named, team=run.team_id, agent=plan.agent)
            earlier = pacing.before(named, run, step.name, alike)
        gate = _gate(run, snapshot, step, named, asked, kind, asked_by, alike, earlier)
        body = body_of(asked, run=run, step=step, checkpoint=snapshot.digest.hex())
        first = Proposal.objects.create(gate=gate, number=1, body=canonical(body), digest=binding.seen(body))
        # A new gate holds nothing yet, so this need not look for an existing hold.
        Hold.objects.create(
            run=run, checkpoint=snapshot.id, kind=Hold.Kind.GATE, subject=gate.subject, reason=gate.title, by=by.id
        )
        before = _replaced(gate, plan)
        opened = {"kind": gate.kind, **({"replaces": before.pk} if before else {}), **evidence.opened(gate, first)}
        opened |= {"attempt": gate.attempt} if gate.attempt > 1 else {}
        gate.say("gate.opened", by=by, data=opened)
        if before:
            gate.replaces.add(before, *before.replaces.all())
            before.say("gate.replaced", by=by, data={"gate": gate.pk})
        outbox.tell(gate, "gate.opened", at=gate.opened_at)
        claims.release(claim, status="waiting", reason=f"asks: {gate.title}", by=by)
        return gate


def body_of(card: Card, *, run: Run, step: StepSpec, checkpoint: str) -> dict[str, Any]:
    """Return the proposal that a card makes at this step; `checkpoint` is the hex digest of the saved state's."""
    target = binding.ProposalTarget(
        run=run.pk,
        agent=run.plan.agent,
        version=run.plan.version,
        plan=bytes(run.plan.digest).hex(),
        step=step.name,
        checkpoint=checkpoint,
    )
    return binding.body(target, card)


def _replaced(gate: Gate, plan: PlanSpec) -> Gate | None:
    """Find the withdrawn gate that this one replaces: the run's last one of this step, or of one renamed since.

    None where that one was decided or expired, since this is another question then.
    """
    asked = Gate.objects.filter(run=gate.run_id, kind=gate.kind, pk__lt=gate.pk).select_related("policy__team", "run")
    known = [step.name for step in plan.steps if step.name != gate.step]
    last = asked.exclude(step__in=known).order_by("-pk").first()
    return last if last is not None and last.status == Gate.Status.WITHDRAWN else None


def heading(text: str) -> str:
    """Shorten a title to one line that a text column takes; the card keeps the whole."""
    line = " ".join(text.replace("\0", "\ufffd").split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"


def _gate(
    run: Run, snapshot: Snapshot, step: StepSpec, policy: Policy, card: Card, kind: str, asked_by: int | None,
    alike: list[str], earlier: pacing.RejectedBefore,
) -> Gate:  # fmt: skip
    gate = Gate.objects.create(
        run=run,
        team=run.team,
        policy=policy,
        checkpoint=snapshot.id,
        step=step.name,
        kind=kind,
        title=heading(card.title) or step.title,
        terms=terms(card.title, card.for_whom, card.resource, card.amount),
        risk=card.risk,
        asked_by_id=asked_by,
        likeness=alike,
        attempt=earlier.attempt,
        rejected_before_id=earlier.gate,
        card=canonical(card.to_json()),
        deadline=None if policy.deadline is None else ExpressionWrapper(Now() + policy.deadline, DateTimeField()),
    )
    # By the database's clock: within one statement the deadline's Now() is that of `opened_at`.
    gate.deadline = None if policy.deadline is None else gate.opened_at + policy.deadline
    return gate
