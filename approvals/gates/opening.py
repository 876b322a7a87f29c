"""Opens a gate, for the runner, when a run has to ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Q, QuerySet

from approvals import tools
from approvals.audit import evidence
from approvals.cards import amount, binding, likeness
from approvals.cards.card import Card, completed
from approvals.gates.lists import queue_filters
from approvals.models import Gate, Policy, Proposal, take_owed_sample
from approvals.policy import pacing, required, separation, tally, working_time
from approvals.policy.requirements import RISKS, Requirements
from approvals.policy.rules import missing_policy
from approvals.webhooks import outbox
from checkpoints.actors import Actor
from checkpoints.errors import ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Hold, Run
from checkpoints.postgresql.prepared_rows import OneOf, build_insertion, next_ids, prepared_statement
from checkpoints.postgresql.sql import Statement
from checkpoints.runs.plans import PlanSpec, StepSpec, spec_of
from checkpoints.store import Snapshot, claims, named_files
from checkpoints.store.claims import Claim
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_canonical

from . import automatic

log = structlog.get_logger()

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
    waits: bool = True,
) -> Gate:
    """Stop a run at a gate: write the gate, its first proposal, the hold and the event, and release the run to wait.

    Without `waits` the run is not released: it goes on.

    One transaction, or part of the caller's. The same run and checkpoint return the existing gate; the run is released
    only while that gate is open, so that a decision made meanwhile is not missed: look at `gate.status`. `asked_by`:
    the id of the person who answers for the external program that asks. Raises CardRefused, NoSuchPolicy, ToolRefused,
    ValueRefused, AskedTooOften and Fenced.
    """
    with transaction.atomic():
        plan, recovery = spec_of(run.plan), kind == Gate.Kind.RECOVERY
        there, before = _asked_already(run.pk, snapshot.id, kind, step.name, plan, card)
        if there is not None:
            if there.status == Gate.Status.OPEN and waits:
                claims.release(claim, status="waiting", by=by)
            return there
        asked = completed(card, step=step, plan=plan, state=snapshot.state, recovery=recovery)
        named = Policy.objects.named(policy, team=run.team, strict=not recovery)
        if not recovery and step.policy not in ("", named.name):
            log.warning("policy.missing", why=missing_policy.say_missing_policy(step.policy, run.team.name, named.name))
        asked = tools.draw_card(asked, team=run.team, policy=named, plan=plan, recovery=recovery)
        handed_out = [action.arguments for action in asked.actions]
        for at in named_files.foreign(handed_out, team=run.team_id, lineage=run.lineage, state=snapshot.state):
            raise ValueRefused(f"/actions{at}", named_files.FOREIGN)
        alike = [] if recovery else likeness.attempt_digests(plan.agent, asked.actions)
        earlier = pacing.RejectedBefore(1, None)
        if not recovery:
            pacing.check_cap(named, team=run.team_id, agent=plan.agent)
            earlier = pacing.before(named, run, step.name, alike)
        wrote = separation.authors(run, snapshot.id, step.name, asked)
        new = NewGate(run, snapshot.id, snapshot.digest, step, named, asked, kind, asked_by, alike, earlier, wrote)
        [(gate, first)], rows = drafted([new], by=by, at=claim.clock())
        replaced = {"replaces": before.pk} if before else {}
        event_log.append_events([opened(gate, first, by=by, **replaced)], extras=rows)
        if before:
            gate.replaces.add(before, *before.replaces.all())
            before.say("gate.replaced", by=by, data={"gate": gate.pk})
        outbox.tell(gate, "gate.opened", at=gate.opened_at)
        if waits:
            claims.release(claim, status="waiting", reason=f"asks: {gate.title}", by=by)
        automatic.approve(gate.pk, first)
        return gate


class NewGate(NamedTuple):
    """A gate that is about to open, with its card completed and drawn."""

    run: Run
    checkpoint: UUID
    digest: bytes  # of the checkpoint
    step: StepSpec
    policy: Policy
    card: Card
    kind: str
    asked_by: int | None
    likeness: list[str]
    earlier: pacing.RejectedBefore
    authors: Sequence[int] = ()  # who wrote some of what it asks about, see approvals.policy.separation


def drafted(
    asked: Sequence[NewGate], *, by: Actor, at: datetime
) -> tuple[list[tuple[Gate, Proposal]], list[Statement]]:
    """Return the gates, each with its first proposal, and the statements that write them and their holds.

    The caller writes the event of each, `opened`, and those statements beside it. `at` is the database's time.
    """
    made = []
    for each, (gate_id, proposal_id) in zip(asked, next_ids(len(asked), Gate, Proposal), strict=True):
        needs = _required(each)
        gate = _gate(each, gate_id, at, needs)
        made.append((gate, _proposal(gate, each, proposal_id, needs)))
    gates, proposals = zip(*made, strict=True)
    # A new gate holds nothing yet, so this need not look for an existing hold.
    holds = [
        Hold(run=gate.run, checkpoint=gate.checkpoint, kind=Hold.Kind.GATE, subject=gate.subject, reason=gate.title,
             by=by.id)
        for gate in gates
    ]  # fmt: skip
    levels = [level for gate in gates for level in required.planned(gate.policy, gate, at)]
    rows = [*build_insertion(gates), *build_insertion(proposals), *build_insertion(holds), *build_insertion(levels)]
    return made, rows


def opened(gate: Gate, first: Proposal, *, by: Actor, **more: Any) -> event_log.Entry:
    """Return the event of a gate that opens."""
    data = {"kind": gate.kind, **more, **evidence.opened(gate, first)}
    return gate.entry("gate.opened", by=by, data=data | ({"attempt": gate.attempt} if gate.attempt > 1 else {}))


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


def _asked_already(
    run: int, checkpoint: UUID, kind: str, step: str, plan: PlanSpec, card: Card
) -> tuple[Gate | None, Gate | None]:
    """Find the gate that exists at this checkpoint, locked, and the one that a new gate here replaces.

    That is the run's last one of this step, or of one renamed since, where it was withdrawn; else the one whose
    approval did not hold. None where that was decided otherwise or expired, since this is another question then.
    """
    reopened = (card.reopened or {}).get("gate", 0)
    found = _gates_of(run, checkpoint, kind, [each.name for each in plan.steps if each.name != step], reopened)
    there = next((gate for gate in found if gate.checkpoint == checkpoint), None)
    others = [gate for gate in found if gate.checkpoint != checkpoint]
    withdrawn = next((gate for gate in others if gate.status == Gate.Status.WITHDRAWN), None)
    return there, withdrawn or next((gate for gate in others if gate.pk == reopened), None)


@prepared_statement
def _gates_of(run: Any, checkpoint: Any, kind: Any, known: Any, reopened: Any) -> QuerySet[Gate]:
    asked = Gate.objects.filter(run=run, kind=kind).exclude(OneOf(F("step"), known))
    of_run = Gate.objects.select_for_update(of=("self",)).select_related("policy__team", "run").filter(run=run)
    return of_run.filter(Q(checkpoint=checkpoint) | Q(pk=asked.order_by("-pk").values("pk")[:1]) | Q(pk=reopened))


def heading(text: str) -> str:
    """Shorten a title to one line that a text column takes; the card keeps the whole."""
    line = " ".join(text.replace("\0", "\ufffd").split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"


def _required(asked: NewGate) -> Requirements:
    """Return what the new gate's proposal needs."""
    run, policy = asked.run, asked.policy
    if not policy.rules:
        return required.own(policy)
    by = User.objects.get(pk=asked.asked_by) if asked.asked_by else None
    known = required.gate_facts(run, asked.step.name, asked_by=by, attempt=asked.earlier.attempt)
    needs, card = required.asked(policy, asked.card, known), asked.card
    if not needs.auto:
        return needs
    may = automatic.offered(needs, card, kind=asked.kind, attempt=asked.earlier.attempt, external=run.plan.external)
    plan, step = run.plan, asked.step.name
    proposed = likeness.draw_digest(run.team_id, plan.agent, policy.name, step, card)
    proposed = proposed or digests.of_value(card.to_json()).hex()
    return replace(needs, auto=may, sampled=may and (_takes_sample(asked) or automatic.drawn(proposed, policy)))


def _takes_sample(asked: NewGate) -> bool:
    """Tell whether the gate takes the place of one that was drawn, and that nobody decided."""
    agent, tools = asked.run.plan.agent, likeness.tools_digest(asked.card)
    return take_owed_sample(team=asked.run.team_id, policy=asked.policy.name, agent=agent, tools=tools)


def _request_digest(asked: NewGate) -> str:
    return likeness.request_digest(asked.run.plan.agent, asked.policy.name, asked.step.name, asked.card)


def _gate(asked: NewGate, id: int, at: datetime, needs: Requirements) -> Gate:
    policy, deadline = asked.policy, asked.policy.deadline
    if policy.rules:
        deadline = None if needs.deadline is None else timedelta(seconds=needs.deadline)
    gate = Gate(
        pk=id,
        run=asked.run,
        team=asked.run.team,
        policy=asked.policy,
        checkpoint=asked.checkpoint,
        step=asked.step.name,
        kind=asked.kind,
        title=heading(asked.card.title) or asked.step.title,
        terms=queue_filters.of_card(asked.card, asked.run.started_by_id, asked.asked_by),
        **_sizes(asked),
        risk=raised(asked.card.risk, needs),
        awaits=[] if asked.policy.plain else tally.tally(needs, ()).awaits,
        asked_by_id=asked.asked_by,
        authors=list(asked.authors),
        request_digest=_request_digest(asked),
        resource=heading(asked.card.resource),
        likeness=asked.likeness,
        attempt=asked.earlier.attempt,
        rejected_before_id=asked.earlier.gate,
        card=encode_canonical(asked.card.to_json()),
        deadline=None if deadline is None else working_time.after(policy, at, deadline),
        opened_at=at,
    )
    gate.added_ids, gate.vouched = [], True  # nobody was added to it yet
    return gate


def _sizes(asked: NewGate) -> dict[str, Any]:
    """Return the columns by which the inbox orders gates. An external program's own amount is no size to go by."""
    card, outside = asked.card, asked.run.plan.external
    own = outside and not card.registered_risk
    paid = amount.NONE if own else amount.read(card.amount)
    delay = amount.of_delay(card.cost_of_delay)
    return {
        "amount_currency": paid.currency, "amount_value": paid.value,
        "delay_currency": delay.currency, "delay_value": delay.value,
    }  # fmt: skip


def raised(risk: str, needs: Requirements) -> str:
    """Return the risk that the gate shows: the card's, or the higher one that a rule gives it."""
    return max(risk, needs.risk or risk, key=RISKS.index)


def _proposal(gate: Gate, asked: NewGate, id: int, needs: Requirements) -> Proposal:
    body = encode_canonical(body_of(asked.card, run=asked.run, step=asked.step, checkpoint=asked.digest.hex()))
    kept = required.frozen(asked.policy, needs)
    return Proposal(pk=id, gate=gate, number=1, body=body, digest=digests.of_canonical(body), requirements=kept)
