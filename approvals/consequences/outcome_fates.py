"""Reads what became of closed gates: what they let run was done, is under way, failed, or is asked again.

Every page and answer that says how a gate ended says this too, by this one function: "approved" alone reads as done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from approvals.models import Gate
from checkpoints.models import Run

from . import performed
from .performed import GivenGrant

ASKED_AGAIN = "asked_again"
# The states of a grant, and of a gate: that of its grants which comes first here.
STATES = (
    "unknown", "abandoned", ASKED_AGAIN, "failed", "intended", "undoing", "waiting", "unreported", "stopped",
    "elsewhere", "never", "undone", "kept", "reused", "done",
)  # fmt: skip
UNSETTLED = ("intended", "unknown", "undoing", "waiting", "unreported", "stopped")  # may still change
OVER = (Run.Status.COMPLETED, Run.Status.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class GrantFate:
    """One thing that was let run, and what became of it."""

    grant: GivenGrant
    state: str  # of STATES


@dataclass(frozen=True, kw_only=True)
class OutcomeFate:
    """The fate of one closed gate's outcome."""

    grants: Sequence[GrantFate] = ()
    again: Gate | None = None  # the newest gate that asks the same again
    reopened: Mapping[str, Any] | None = None  # why it does, see Card.reopened; None where this gate was withdrawn

    @property
    def state(self) -> str:
        """Return one of STATES; "" where nothing was let run."""
        states = {each.state for each in self.grants}
        if self.again and (not states or "failed" in states):
            states.add(ASKED_AGAIN)
        return next((state for state in STATES if state in states), "")

    @property
    def open(self) -> bool:
        """Tell whether it may still change."""
        return any(each.state in UNSETTLED for each in self.grants)


def read_fates(gates: Sequence[Gate], *, results: bool = False) -> dict[int, OutcomeFate]:
    """Return by id what became of the closed gates among these, each with its run and plan.

    `results`: with what the effects returned. One statement, and one more where some are asked again.
    """
    closed = {gate.pk: gate for gate in gates if gate.status != Gate.Status.OPEN}
    given = performed.grants_of(list(closed), results=results)
    later: dict[int, list[Gate]] = defaultdict(list)
    if again := [pk for pk, each in given.items() if each.again]:
        links = Gate.replaces.through.objects.filter(to_gate__in=again).select_related("from_gate")
        for link in links.order_by("from_gate"):
            later[link.to_gate_id].append(link.from_gate)
    return {pk: _fate(closed[pk], each.grants, later[pk]) for pk, each in given.items()}


def _fate(gate: Gate, grants: Sequence[GivenGrant], later: Sequence[Gate]) -> OutcomeFate:
    reasons = [each.asked.reopened for each in later]
    reopened = next((each for each in reversed(reasons) if each and each.get("gate") == gate.pk), None)
    fates = [GrantFate(grant=each, state=_state(each, gate, asked_again=bool(later))) for each in grants]
    return OutcomeFate(grants=fates, again=later[-1] if later else None, reopened=reopened)


def _state(grant: GivenGrant, gate: Gate, *, asked_again: bool) -> str:
    """Return the state of a grant. Pure."""
    begun, run = grant.begun, gate.run
    if begun is not None:
        undoing = begun.status in ("done", "kept") and begun.undo in ("intended", "unknown")
        return "undoing" if undoing else begun.status
    if grant.reused:
        return "reused"
    if asked_again:
        return ASKED_AGAIN
    if grant.passed_by:
        return "elsewhere"
    if run.status in OVER:
        return "never"
    if run.status == Run.Status.FAILED:
        return "stopped"
    return "unreported" if run.plan.external else "waiting"
