"""The gates of a run's page as facts: their cards' titles, outcomes and decisions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, OuterRef, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import JSONObject

from agents.presentation.timeline.facts import TimelineDecision, TimelineGate
from approvals.models import Decision, Gate, Outcome, Proposal
from approvals.policy.requirements import Requirements
from approvals.presentation.gate_facts import outcomes
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement

from .saved_checkpoints import states_of

# Each decision at a gate, in the order in which they were made; a comment may hold what JSON text cannot.
COMMENT = Func(F("comment"), Value("base64"), function="encode", output_field=TextField())
SAID = (
    Decision.objects.filter(gate=OuterRef("pk"))
    .order_by("pk")
    .values(
        one=JSONObject(
            first="user__first_name",
            last="user__last_name",
            username="user__username",
            verdict="verdict",
            counts="counts",
            comment=COMMENT,
        )
    )
)
# What the current proposal needs by the policy's rules; empty: what the policy asks of all.
NEEDS = Subquery(Proposal.objects.filter(gate=OuterRef("pk"), number=OuterRef("proposal")).values("requirements")[:1])


def gates_of(run: Run, reader: User, window: Sequence[Checkpoint]) -> Iterable[TimelineGate]:
    """Return the open gates and those of the window, oldest first, with the decisions at each."""
    gates = _gates(run.pk, list(states_of(window)))
    others = [gate.pk for gate in gates if gate.team_id != run.team_id]  # its own team's are visible with the run
    visible = set(Gate.objects.visible_to(reader).filter(pk__in=others).values_list("pk", flat=True)) if others else ()
    for gate in gates:
        outcome = getattr(gate, "outcome", None)
        yield TimelineGate(
            id=gate.pk,
            base=gate.checkpoint.hex,
            step=gate.step,
            kind=gate.kind,
            status=gate.status,
            title=gate.title,
            opened_at=gate.opened_at,
            closed_at=gate.closed_at,
            deadline=gate.deadline,
            quorum=Requirements.from_text(gate.needs).slots if gate.needs else gate.policy.quorum,
            outcome=outcome.kind if outcome else "",
            then=outcome.then if outcome else "",
            back_to=outcome.back_to if outcome else "",
            answer=(outcome.answered or {}).get("choice", "") if outcome else "",
            answer_label=gate.asked.label_of(outcome.answered) if outcome and outcome.answered else "",
            actions=actions_of(outcome) if outcome and outcome.kind == Outcome.Kind.MIXED else (),
            decisions=tuple(map(said_of, getattr(gate, "words", ()))),
            visible=gate.team_id == run.team_id or gate.pk in visible,
        )


@prepared_statement
def _gates(run: Any, checkpoints: Any) -> QuerySet[Any]:
    here = OneOf(F("checkpoint"), checkpoints)
    gates = Gate.objects.filter(Q(status=Gate.Status.OPEN) | Q(here), run=run)
    return gates.select_related("policy", "outcome").annotate(words=ArraySubquery(SAID), needs=NEEDS).order_by("pk")


def actions_of(outcome: Outcome) -> tuple[str, ...]:
    """Return the outcome of each action, by number and tool, or id: its title is the agent's words."""
    return tuple(f"{item.word} {item.number} {item.action.tool or item.action.id}" for item in outcomes.judged(outcome))


def said_of(row: Mapping[str, Any]) -> TimelineDecision:
    """Return one reviewer's decision, from a row of SAID."""
    name = f"{row['first']} {row['last']}".strip() or row["username"]
    return TimelineDecision(name, row["verdict"], b64decode(row["comment"]).decode(errors="replace"), row["counts"])
