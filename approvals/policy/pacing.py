"""Limits how often an agent may ask: a number of gates an hour, and a pause after the same was rejected twice.

People who are asked without end stop reading. Requests beyond the cap are not lost: an external program is told when to
come again, and a run of this server's agents waits in the queue until then.

*The same* is the same tool with the same arguments, asked by the same agent in the same team; see
approvals.cards.likeness. What the same step of a run, or of one of its forks, asks after a rejection counts as another
attempt, until something else was decided there, but needs no pause. Nor does a request that a person sent back, since
that person wants it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from approvals.cards.likeness import attempt_digests
from approvals.errors import AskedTooOften, AskedTooSoon
from approvals.models import Decision, Outcome, Policy
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql

HOUR = timedelta(hours=1)
REJECTED, MIXED = Outcome.Kind.REJECTED, Outcome.Kind.MIXED
AGREED = (Outcome.Kind.APPROVED, Outcome.Kind.EDITED, Outcome.Kind.ANSWERED, MIXED)
REMEMBERED = timedelta(days=30)  # for which a rejection is counted
COUNTED = 19  # rejections of the same that are read
PAUSED_AT = 2  # rejections after which the same is asked only after a pause
NEAR = 132  # gates below the cap from which simultaneous requests are counted in turn; one opens a hundred at most
_unpaced: ContextVar[bool] = ContextVar("unpaced", default=False)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_OPENED = """
SELECT gate.opened_at, clock_timestamp() FROM approvals_gate gate
JOIN checkpoints_run run ON run.id = gate.run_id JOIN checkpoints_plan plan ON plan.id = run.plan_id
WHERE gate.team_id = $1 AND plan.agent = $2 AND gate.opened_at > clock_timestamp() - interval '1 hour'
ORDER BY gate.opened_at DESC LIMIT $3
"""
_REJECTED_ALIKE = """
SELECT DISTINCT found FROM approvals_gate gate JOIN approvals_outcome outcome ON outcome.gate_id = gate.id
CROSS JOIN unnest(gate.likeness) AS found
WHERE gate.likeness && $2::text[]::varchar[] AND gate.team_id = $1 AND found = ANY($2::text[])
  AND outcome.kind = ANY($4::text[]) AND outcome.created_at >= statement_timestamp() - $3::interval
"""


@dataclass(frozen=True)
class RejectedBefore:
    """The earlier rejections of the same."""

    attempt: int  # the number of this attempt, from 1
    gate: int | None  # the last gate that was rejected


@contextmanager
def unpaced() -> Iterator[None]:
    """Lift the limits, for a drill, whose gates nobody has to read."""
    token = _unpaced.set(True)
    try:
        yield
    finally:
        _unpaced.reset(token)


def lifted() -> bool:
    """Tell whether the limits are lifted here."""
    return _unpaced.get()


def check_cap(policy: Policy, *, team: int, agent: str, more: int = 1) -> None:
    """Raise AskedTooOften where `more` gates would exceed the policy's number for the agent within an hour.

    Runs in the transaction that opens the gates: near the cap, and for several, simultaneous requests are counted one
    after the other. `more` is at most the policy's number.
    """
    most = policy.hourly
    if most is None or _unpaced.get():
        return
    opened = run_sql(_OPENED, [team, agent, most])
    if (more > 1 or len(opened) > most - NEAR) and connection.in_atomic_block:
        run_sql(_LOCK, [f"gates of {agent} in {team}"])
        opened = run_sql(_OPENED, [team, agent, most])
    if len(opened) > most - more:
        oldest, now = opened[most - more]  # until this one is older than an hour
        raise AskedTooOften(agent, most, policy.name, now=now, until=oldest + HOUR)


def rejected_alike(team: int, likeness: Collection[str]) -> set[str]:
    """Return those of these digests that a gate of the team has which people lately rejected, wholly or in part."""
    values = [team, sorted(likeness), REMEMBERED, [REJECTED.value, MIXED.value]]
    return {found for (found,) in run_sql(_REJECTED_ALIKE, values)}


def before(policy: Policy, run: Run, step: str, likeness: Sequence[str]) -> RejectedBefore:
    """Count how often the same was rejected. Raises AskedTooSoon where the policy's pause is not over."""
    looked_at = _recently_rejected(run.team_id, run.lineage, step, list(likeness))
    found = [(each, _refused(each)) for each in looked_at]
    found = [(each, refused) for each, refused in found if each.kind == REJECTED or refused & set(likeness)]
    if not found:
        return RejectedBefore(1, None)
    alike = [each for each, refused in found if refused & set(likeness)]
    if policy.pause and not _unpaced.get() and len(alike) >= PAUSED_AT:
        last = alike[0]
        until = last.created_at + policy.pause
        sent_back = last.gate.run_id == run.pk and last.then == Decision.Then.BACK
        if not sent_back and until > last.now:
            raise AskedTooSoon(last.gate_id, len(alike), now=last.now, until=until)
    return RejectedBefore(len(found) + 1, next(iter(alike), found[0][0]).gate_id)


@prepared_statement
def _recently_rejected(team: Any, root: Any, step: Any, alike: Any) -> QuerySet[Any]:
    of_step = Q(gate__run__in=Run.objects.of_lineage(root).values("pk"), gate__step=step)
    later = Outcome.objects.filter(of_step, kind__in=AGREED, pk__gt=OuterRef("pk"))  # in a loop, of something else
    same = Q(gate__likeness__overlap=alike, kind__in=(REJECTED, MIXED))
    recent = Outcome.objects.filter(
        (of_step & Q(kind=REJECTED) & ~Exists(later)) | same, gate__team=team, created_at__gte=Now() - REMEMBERED
    )
    known = recent.select_related("gate__run__plan", "proposal").annotate(now=Now())
    return known.order_by("-created_at")[:COUNTED]


def _refused(outcome: Outcome) -> set[str]:
    """Return the likeness of a rejected gate; of a mixed decision, that of its rejected actions."""
    gate = outcome.gate
    if outcome.kind == REJECTED:
        return set(gate.likeness)
    refused = [action for action in gate.asked.actions if outcome.refused(action.id)]
    return set(attempt_digests(gate.run.plan.agent, refused))
