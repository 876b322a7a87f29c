"""Policies and gates, opened the way the runner opens them."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from agents.models import Effect
from approvals.audit import evidence
from approvals.cards.action import Action
from approvals.cards.card import Card, Question
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.gates.lists.queues import MINE, ReaderReach
from approvals.gates.opening import open_gate
from approvals.models import AddedTeam, Decision, Gate, Outcome, Policy, versions
from checkpoints import actors, store
from checkpoints.events.event_proof import ROWS
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import spec_of
from checkpoints.store import claims
from checkpoints.values.canonical_json import encode_canonical

from .people import make_team
from .runs import make_run

REJECTION = {"comment": "Not like this.", "then": "stop"}


def make_policy(
    team: Group | None = None,
    *,
    name: str = "refunds",
    groups: tuple[Group, ...] = (),
    people: tuple[User, ...] = (),
    stages: list[Any] | None = None,
    rules: list[Any] | None = None,
    **settings: Any,
) -> Policy:
    """Make a policy of a team; whoever is in `groups` or `people` decides, else the team.

    `stages` and `rules` as approvals.policy.requirements has them.
    """
    texts = {"stages": stages, "rules": rules}
    settings |= {field: encode_canonical(value).decode() for field, value in texts.items() if value}
    policy = Policy(team=team or make_team(), name=name, **settings)
    asked = versions._spread(policy, groups, people)
    policy.save(force_insert=True)
    policy.groups.add(*asked[0])
    policy.people.add(*asked[1])
    return policy


def change_gate(gate: Gate, **columns: Any) -> None:
    """Give a gate's row these columns, as if it had been so, with the event that tells of it."""
    Gate.objects.filter(pk=gate.pk).update(**columns)
    row = Gate.objects.select_related("run", "policy", "team").get(pk=gate.pk)
    row.vouched = True
    data = evidence.opened(row, row.standing())
    outcome = Outcome.objects.filter(gate=row).first()
    if outcome:
        told = evidence.ended(row, outcome, list(outcome.decisions.all()), list(outcome.grants.all()))
        data[ROWS] |= told[ROWS]
    for decision in row.decisions.all():
        data[ROWS] |= evidence.decided(row, row.standing(), decision)[ROWS]
    row.say("gate.rescheduled", by=actors.SYSTEM, data=data)


def add_team(gate: Gate, team: Group) -> None:
    """Add a team to the gate's reviewers, as an escalation does, with the event that tells of it."""
    AddedTeam.objects.create(gate=gate, team=team, by=actors.SYSTEM.id)
    change_gate(gate)


def change_effects(rows: QuerySet[Effect], **columns: Any) -> None:
    """Give effects' rows these columns, as if it had been so, with the events that tell of it."""
    found = list(rows.values_list("pk", flat=True))
    Effect.objects.filter(pk__in=found).update(**columns)
    for row in Effect.objects.filter(pk__in=found).select_related("run"):
        row.intended(by=actors.SYSTEM)


def make_action(**fields: Any) -> Action:
    return replace(
        Action(
            id="refund", title="Refund", tool="payments.refund", effect="pay", pointer="/proposal", pinned=["/amount"]
        ),
        **fields,
    )


def make_card(**fields: Any) -> Card:
    given = {"title": "Refund €120.00 to Marit", "summary": "She is right.", "amount": "€120.00", "risk": "medium"}
    return Card(**{**given, "for_whom": "Marit Ellery", "actions": [make_action()], **fields})


def make_question(*, allows: tuple[str, ...] = ("pay",)) -> Card:
    question: Question = {
        "text": "Did the payment happen?",
        "choices": [
            {"id": "happened", "label": "It happened", "needs_value": True, "schema": {"type": "object"}},
            {"id": "not_happened", "label": "It did not", "needs_value": False, "schema": {}},
            {"id": "again", "label": "Do it again", "needs_value": False, "schema": {}},
            {"id": "stop", "label": "Stop the run", "needs_value": False, "schema": {}},
        ],
    }
    return Card(title="Did the payment happen?", question=question, allows=allows)


def make_gate(
    *,
    run: Run | None = None,
    team: Group | None = None,
    policy: Policy | None = None,
    card: Card | None = None,
    kind: str = "review",
    started_by: User | None = None,
) -> Gate:
    """Open a gate of a run that waits. Its policy is the team's default unless one is given."""
    team = team or (policy.team if policy else None) or (run.team if run else None)
    first = "pay" if kind == "recovery" else "review"
    run = run or make_run(team=team, started_by=started_by, first_step=first)
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="factory", lease=30)
    assert claim is not None, f"{run} is not there to be claimed"
    gate = open_gate(
        claim=claim,
        run=run,
        snapshot=store.load(run),
        step=spec_of(run.plan).step(claim.next_step),
        policy=policy.name if policy else "",
        card=card or (make_question() if kind == "recovery" else make_card()),
        kind=kind,
        by=actors.of_agent(run.plan.agent),
    )
    return _whole(gate.pk)[0]


@prepared_statement
def _whole(pk: Any) -> QuerySet[Gate]:
    return Gate.objects.select_related("run__plan", "policy", "team").filter(pk=pk)


def decide(gate: Gate, by: User, verdict: str = "approve", **said: Any) -> Decision:
    """Decide on the current proposal, under a key of its own; `said` is passed on to the submission.

    A rejection stops the run and says why, and whatever was done before may be done once more, unless `said` says
    something else.
    """
    fresh = Gate.objects.get(pk=gate.pk)
    defaults: dict[str, Any] = {
        "seen": bytes(fresh.standing().digest), "key": secrets.token_hex(8), "confirm": repeatable(fresh.run),
    }  # fmt: skip
    defaults |= REJECTION if verdict == "reject" else {}
    return deciding.decide(fresh, Submission(verdict=verdict, **{**defaults, **said}), by=by)


def repeatable(run: Run) -> list[int]:
    kin = Run.objects.of_lineage(run.lineage)
    return list(Effect.objects.filter(run__in=kin).values_list("pk", flat=True))


def edit_amount(gate: Gate, amount: str) -> dict[str, Any]:
    action = Gate.objects.get(pk=gate.pk).standing().card.action("refund")
    assert action is not None
    return {"refund": {**action.arguments, "amount": amount}}


def waiting(person: User) -> list[int]:
    return ReaderReach.of(person).ids(MINE, most=1000)
