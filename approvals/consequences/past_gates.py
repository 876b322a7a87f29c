"""The gates of a lineage as an impact needs them: read in one statement, and without what most of them do not tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, OuterRef, When
from django.db.models.functions import JSONObject

from approvals.cards.card import Card
from approvals.models import Gate
from approvals.models.outcome import Grant, Outcome
from checkpoints.models import Run
from checkpoints.values import canonical_json


class GivenGrant(NamedTuple):
    """A grant."""

    id: int
    action: str
    effect: str


@dataclass
class PastGate:
    """One gate and its outcome; "" for the outcome of an open one."""

    id: int
    run: int
    plan: int
    step: str
    kind: str
    checkpoint: UUID
    open: bool
    outcome: str
    grants: list[GivenGrant]
    body: bytes = field(repr=False)
    answer: bytes = field(repr=False)
    binds: bytes = field(repr=False)
    final: bytes = field(repr=False, default=b"{}")  # what was decided for each action
    told: bytes = field(repr=False, default=b"")  # the proposal that was decided on action by action

    @property
    def recovery(self) -> bool:
        """Tell whether it asked how to go on after a fault."""
        return self.kind == Gate.Kind.RECOVERY

    @cached_property
    def card(self) -> Card:
        """Return the card as the agent's step returned it."""
        return Card.from_json(canonical_json.decode(self.body))

    @cached_property
    def settled(self) -> Card | None:
        """Return the card as it was decided on, where that was action by action; else None."""
        return Card.from_json(canonical_json.decode(self.told)) if self.told else None

    @cached_property
    def choice(self) -> str:
        """Return the id of the answer, where it asked a question; else ""."""
        answered = canonical_json.decode(self.answer) or {}
        return str(answered.get("choice", ""))

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Return action id -> the final arguments that were decided."""
        found: dict[str, Any] = canonical_json.decode(self.final)
        return found

    @cached_property
    def bound(self) -> dict[str, dict[str, str]]:
        """Return effect -> {field: hex digest} that the approval covers."""
        found: dict[str, dict[str, str]] = canonical_json.decode(self.binds)
        return found


def of_lineage(lineage: int) -> list[PastGate]:
    """List every gate of a run and its forks, oldest first."""
    grants = Grant.objects.filter(outcome=OuterRef("outcome__pk")).order_by("pk")
    given = ArraySubquery(grants.values(one=JSONObject(id="pk", action="action", effect="effect")))
    found = Gate.objects.filter(run__in=Run.objects.of_lineage(lineage)).order_by("pk").annotate(given=given, told=TOLD)
    return [_of(row) for row in found.values(*COLUMNS)]


TOLD = Case(When(outcome__kind=Outcome.Kind.MIXED, then=F("outcome__proposal__body")), default=None)
COLUMNS = (
    "id", "run_id", "run__plan_id", "step", "kind", "status", "checkpoint", "card",
    "outcome__kind", "outcome__answer", "outcome__bound", "outcome__arguments", "given", "told",
)  # fmt: skip


def _of(row: dict[str, Any]) -> PastGate:
    return PastGate(
        id=row["id"],
        run=row["run_id"],
        plan=row["run__plan_id"],
        step=row["step"],
        kind=row["kind"],
        checkpoint=row["checkpoint"],
        open=row["status"] == Gate.Status.OPEN,
        outcome=row["outcome__kind"] or "",
        grants=[GivenGrant(each["id"], each["action"], each["effect"]) for each in row["given"] or []],
        body=bytes(row["card"]),
        answer=bytes(row["outcome__answer"] or b"null"),
        binds=bytes(row["outcome__bound"] or b"{}"),
        final=bytes(row["outcome__arguments"] or b"{}"),
        told=bytes(row["told"] or b""),
    )
