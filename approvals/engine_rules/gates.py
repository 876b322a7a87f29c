"""Rules for gates: allowing effects, approvals that still hold, and where a run goes back to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from checkpoints.runs.plans import PlanSpec
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.checkpoint_kinds import GATE_CLOSED, OUTPUT_LANDED

from .effects import EffectRow, adoptable

MIXED = "mixed"  # decided action by action
AGREED = ("approved", "edited", MIXED, "answered")  # kinds of outcomes that let a run go on


def allowing(plan: PlanSpec, effect: str) -> list[str]:
    """List the gates that can allow an effect."""
    return [step.name for step in plan.steps if effect in step.allows]


def asked_last(plan: PlanSpec, effect: str, path: Iterable[CheckpointHeader]) -> str:
    """Return the gate at which people revise an effect: of those that can allow it, the one that asked last."""
    asking = allowing(plan, effect)
    asked = [place.step for place in path if place.kind in GATE_CLOSED and place.step in asking]
    return asked[-1] if asked else asking[-1]


def reopened(plan: PlanSpec, effect: str, decided: str) -> str:
    """Return the gate to which the run goes back from an effect that needs its permission.

    `decided`: the step of the gate at which people last decided about the effect; "" for none.
    """
    asking = allowing(plan, effect)
    return decided if decided in asking else asking[-1]


def stands(kind: str, allowed: Iterable[EffectRow | None]) -> bool:
    """Tell whether people approved all that was asked, and every effect that they allowed is done and still wanted.

    `allowed`: the effect that used each grant, None where none did. After any refusal the gate asks again, since the
    run was sent back and may answer the refusal in any way.
    """
    agreed = kind in AGREED and kind != MIXED
    return agreed and all(row is not None and adoptable(row) for row in allowed)


def closed_last(path: Sequence[CheckpointHeader], gate: str) -> tuple[CheckpointHeader | None, list[str]]:
    """Return where a gate last closed, None for nowhere, and the steps that were executed since."""
    at = max((at for at, place in enumerate(path) if place.step == gate and place.kind in GATE_CLOSED), default=-1)
    since = [place.step for place in path[at + 1 :] if place.kind in OUTPUT_LANDED]
    return (path[at] if at >= 0 else None), since


def edit_goes_back(plan: PlanSpec, since: Iterable[str], touched: Set[str]) -> bool:
    """Tell whether an edit at a reopened gate takes back the steps since: one of them read an edited field."""
    known = {step.name: step for step in plan.steps}
    return any(touched & set(known[name].reads) for name in since if name in known)
