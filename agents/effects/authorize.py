"""Checks whether an effect may be performed: an unused grant of the last gate that could allow it, for exactly this.

The saved rows are checked first; preconditions are observed last, right before the intent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet

from agents.errors import NotGranted
from agents.gates import opening, preconditions
from agents.models import Effect
from agents.session.allowing_gate import acting, changed_by_hand, last_outcome
from agents.session.run_session import RunSession
from approvals.audit import evidence
from approvals.cards import binding
from approvals.cards.binding import Approved
from approvals.engine_rules import permissions
from approvals.english import quote_titles
from approvals.models import Grant, Outcome
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import StepSpec


@dataclass(frozen=True)
class EffectPermit:
    """The grant that the effect's intent consumes; None for an effect that needs no permission."""

    grant: Grant | None
    action: str = ""  # the id of the action that is performed, where the effect performs several


def permit(session: RunSession, spec: StepSpec) -> EffectPermit:
    """Return the permission to perform `spec` on the state at the head.

    Raises NotGranted with the reason, and one of preconditions.FAILED where a precondition could not be observed: that
    is a failed attempt of the step.
    """
    if not spec.guarded:
        return EffectPermit(None)
    outcome = last_outcome(session, spec)
    if outcome is None:
        raise NotGranted(f"No gate on this path has approved {quote_titles([spec.title])}.")
    grant = _available(session, spec, outcome)
    if grant is None or outcome.to_run is None:
        raise NotGranted(
            f"{_gate(session, outcome)} did not approve {quote_titles([spec.title])}, or its permission was used."
        )
    approved = _binds(session, spec, outcome, grant.end)
    preconditions.check(session, spec, approved)
    return EffectPermit(grant, acting(session, spec))


def holds(session: RunSession, spec: StepSpec, row: Effect) -> None:
    """Check that the grant which `row` consumed still permits the same effect. Raises NotGranted.

    The row may be of an abandoned branch, or of another version: an approval given there holds for that one only.
    """
    if not spec.guarded:
        return
    outcome = last_outcome(session, spec)
    if row.grant is None or outcome is None or outcome != row.grant.outcome:
        raise NotGranted(f"No gate on this path has allowed what was begun as {row.key[:8]}.")
    _binds(session, spec, outcome)


def _binds(session: RunSession, spec: StepSpec, outcome: Outcome, end: str | None = None) -> Approved:
    """Return what was approved if `spec` would do exactly that. `end`: see evidence.check_ended.

    Raises NotGranted, and NotVerified for a forged one.
    """
    changed = changed_by_hand(session, spec, outcome)
    if changed:
        fields = ", ".join(changed)
        raise NotGranted(
            f"Somebody changed {fields} in the state after {_gate(session, outcome)} allowed "
            f"{quote_titles([spec.title])}."
        )
    evidence.check_ended(outcome.gate, outcome, end)
    approved = outcome.approved()
    if binding.recompute(approved, **opening.world(session, spec)) != bytes(outcome.to_run or b""):
        raise NotGranted(
            f"What {quote_titles([spec.title])} would do now is not what was approved at {_gate(session, outcome)}."
        )
    return approved


@prepared_statement
def _grants(outcome: Any, effect: Any) -> QuerySet[Grant]:
    given = Grant.objects.filter(outcome=outcome, effect=effect).select_related("effect_row").order_by("pk")
    return evidence.with_end(given.annotate(gate_run=F("outcome__gate__run")))  # that joins the gate


def _gate(session: RunSession, outcome: Outcome) -> str:
    """Return the gate's title in quotes."""
    return quote_titles([session.plan.title_of(outcome.gate.step)])


def recheck(session: RunSession, spec: StepSpec, row: Effect) -> None:
    """Check the preconditions before an effect that was provably not done is sent again. Raises as `permit`.

    Not for an effect whose end is unknown: its own change of the world would look like somebody else's.
    """
    if row.grant is not None:
        preconditions.check(session, spec, row.grant.outcome.approved())


def _available(session: RunSession, spec: StepSpec, outcome: Outcome) -> Grant | None:
    """Return an unused grant: no intent consumed it, nor did a result adopted on the path after the gate use it up.

    Where the effect performs several actions, only the grant of the one it is about to perform counts: with that of
    another, a refused action could run, or one could run twice.
    """
    found = _grants(outcome.pk, spec.name)
    grants = [each for each in found if not spec.action or each.action == acting(session, spec)]
    unused = [grant for grant in grants if not hasattr(grant, "effect_row")]
    after = session.path.after(outcome.gate.checkpoint) or []
    executed = [place.id for place in permissions.executed_since(after, spec.name)]
    times = len(executed)
    if spec.action:
        times = Effect.objects.landed_for(acting(session, spec), step=spec.name, runs=session.path.runs, at=executed)
    left = permissions.permission_left(given=len(grants), unused=len(unused), executed=times)
    return unused[0] if left else None
