"""The table of effects: what the ledger holds, then what is still ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .facts import Done, Planned
from .marks import Mark


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One effect: its step, the number of the checkpoint that records it (0: none yet), its state, its key (hex)."""

    step: str
    mark: Mark
    seq: int = 0
    key: str = ""
    error: str = ""
    data_status: str = "done"


def table(effects: Sequence[Done], landed: Mapping[tuple[str, str], int], ahead: Sequence[Planned]) -> list[EffectRow]:
    """Rows in the order in which they were intended. `landed` maps (base, step) to the checkpoint's number."""
    told = [
        EffectRow(done.step, state(done), landed.get((done.base, done.step), 0), done.key, done.error, done.status)
        for done in effects
    ]
    for step in ahead:
        waits = "waits for the gate" if step.guarded else "not yet"
        told.append(EffectRow(step.name, Mark("", "ahead", "clock", waits), data_status="ahead"))
    return told


def state(done: Done) -> Mark:
    """The word for an effect's state, and whether it can be taken back."""
    if done.status == "done" and done.irreversible:
        return Mark("", "unknown", "oneway", "done, cannot be undone")
    if done.status == "done":
        return Mark("", "done", "check", "done, can be undone" if done.undo else "done")
    return {
        "intended": Mark("", "waiting", "clock", "intended, not recorded yet"),
        "failed": Mark("", "failed", "x", "failed, provably not done"),
        "unknown": Mark("", "unknown", "unknown", "unknown: it may have happened"),
        "abandoned": Mark("", "cancelled", "unknown", "unknown, and done again by order"),
    }.get(done.status, Mark("", "ahead", "unknown", done.status))


def stays(effects: Sequence[Done]) -> list[str]:
    """What a cancelled run leaves behind in the outside world, one sentence for each effect."""
    endings = {
        "done": "is done and stays done",
        "unknown": "may have happened; nobody has said yet",
        "intended": "may be happening now",
        "abandoned": "may have happened, and was done again by order",
    }
    final = ", it cannot be undone"
    return [
        f"{done.step} {endings[done.status]}" + (final if done.irreversible and done.status == "done" else "")
        for done in effects
        if done.status in endings
    ]
