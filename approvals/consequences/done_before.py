"""Finds what was done before that is like what a gate asks for, by whichever run of its team.

What the gate's own lineage did is no part of it: an approval that would repeat that has to be confirmed, see
approvals.impact.performing. Done with the same arguments or key fields, it is the same; with the same resource alone it
is only about the same thing. An impact reads the gates of its lineage here too, in one statement, with proposals only
where they are needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, OuterRef, QuerySet, When
from django.db.models.functions import JSONObject
from django.utils import timezone

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.cards.likeness import Likeness, likeness_of
from approvals.models import Gate, Grant, Outcome
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import spec_of

from . import performed
from .performed import AlikeAsked, DoneAlike

MOST = 3  # of one gate, the newest first
LATELY = timedelta(days=30)  # within which the same is decided by itself


@dataclass(frozen=True, kw_only=True)
class DoneBefore:
    """One effect that was done, or may have been, and is like what a gate asks for."""

    how: str  # a field of Likeness: what is the same
    done: bool  # False: nobody knows yet
    at: datetime
    gate: int  # under which it was done; 0 where the reader may not see it
    run: int  # of that gate, likewise
    effect: str  # the title of its step; untrusted
    external: bool  # an external program reported it
    action: Action | None = None  # as it was decided on; None where it is no action of its card, or not to be seen

    @property
    def same(self) -> bool:
        """Tell whether it is the same, and not only about the same resource."""
        return self.how != "resource"

    @property
    def lately(self) -> bool:
        """Tell whether it is the same, done so lately that whoever decides has to look at it by itself."""
        return self.same and timezone.now() - self.at < LATELY


def done_before(
    gates: Sequence[Gate],
    *,
    reader: Any,
    cards: Mapping[int, Card] | None = None,
    apart: Callable[[], Collection[int]] = frozenset,
) -> dict[int, list[DoneBefore]]:
    """Return by gate what was done before: the same first, then the newest. Needs each gate's run.

    `cards`: those to go by, by gate; the first proposal's else. `reader`: who is told; None sees nothing of the gates.
    `apart`: returns gates whose effects do not count. One statement, and two more where anything was found.
    """
    asked = [each for gate in gates for each in _asked(gate, (cards or {}).get(gate.pk) or gate.asked)]
    found: dict[int, dict[int, DoneAlike]] = defaultdict(dict)
    alike = performed.done_alike(asked)
    left_out = apart() if alike else ()
    for row in alike:
        if row.gate in left_out:
            continue
        known = found[row.asked].get(row.effect_id)
        if known is None or _rank(row) < _rank(known):
            found[row.asked][row.effect_id] = row
    if not found:
        return {}
    first = {
        gate: sorted(rows.values(), key=lambda row: (row.how == "resource", -row.at.timestamp()))[:MOST]
        for gate, rows in found.items()
    }
    numbers = {row.gate for rows in first.values() for row in rows}
    seen = set(Gate.objects.visible_to(reader).filter(pk__in=numbers).values_list("pk", flat=True)) if reader else set()
    outcomes = Outcome.objects.filter(gate__in=numbers).select_related("proposal", "gate__run__plan")
    by_gate = {outcome.gate_id: outcome for outcome in outcomes}
    return {gate: [_told(row, by_gate[row.gate], seen) for row in rows] for gate, rows in first.items()}


def same_done(gate: Gate, *, reader: Any, apart: Callable[[], Collection[int]]) -> bool:
    """Tell whether the same as the current proposal of a gate asks for was done lately, by what is not `apart`."""
    found = done_before([gate], reader=reader, cards={gate.pk: gate.standing().card}, apart=apart)
    return any(each.lately for each in found.get(gate.pk, ()))


def _asked(gate: Gate, card: Card) -> list[AlikeAsked]:
    lineage = gate.run.lineage or gate.run_id
    alike = [likeness_of(gate.team_id, each, card.resource) for each in card.actions if each.settled is None]
    known = {(how, digest) for each in alike for how, digest in zip(Likeness._fields, each, strict=True) if digest}
    return [AlikeAsked(gate.pk, lineage, how, digest) for how, digest in sorted(known)]


def _rank(row: DoneAlike) -> int:
    return Likeness._fields.index(row.how)


def _told(row: DoneAlike, outcome: Outcome, seen: Collection[int]) -> DoneBefore:
    run: Run = outcome.gate.run
    plan, shown = spec_of(run.plan), row.gate in seen
    action = outcome.proposal.card.action(row.action) if shown and row.action else None
    own = action if action and action.effect in ("", row.effect) else None
    return DoneBefore(
        how=row.how, done=row.done, at=row.at, gate=row.gate if shown else 0, run=run.pk if shown else 0,
        effect=plan.title_of(row.effect), external=plan.external, action=own,
    )  # fmt: skip


@prepared_statement
def of_lineage(lineage: Any) -> QuerySet[Any]:
    """List every gate of a run and its forks, oldest first, each with its run and its outcome.

    `granted`: its grants, as {"id", "action", "effect"}. `decided`: the body of the proposal that was decided on action
    by action; None where it was not.
    """
    grants = Grant.objects.filter(outcome=OuterRef("outcome__pk")).order_by("pk")
    granted = ArraySubquery(grants.values(one=JSONObject(id="pk", action="action", effect="effect")))
    decided = Case(When(outcome__kind=Outcome.Kind.MIXED, then=F("outcome__proposal__body")), default=None)
    found = Gate.objects.filter(run__in=Run.objects.of_lineage(lineage)).select_related("run", "outcome")
    return found.order_by("pk").annotate(granted=granted, decided=decided)
