"""The table of effects: what the ledger holds, then what is still ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.presentation.timeline.effect_fates import Fate, fates
from agents.presentation.timeline.facts import Done, Planned
from agents.presentation.timeline.gate_words import Called
from agents.presentation.timeline.marks import Mark
from agents.presentation.timeline.remarks import Remark
from approvals.english import quoted
from checkpoints.runs.plans import in_words


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One effect: its title, the number of the checkpoint that records it (0: none yet), its fate, its key (hex)."""

    step: str
    mark: Mark
    seq: int = 0
    key: str = ""
    data_status: str = "done"
    remarks: tuple[Remark, ...] = ()


def table(
    told: Sequence[Fate], landed: Mapping[tuple[str, str], int], ahead: Sequence[Planned], called: Called = in_words
) -> list[EffectRow]:
    """List rows in the order in which they were intended. `landed` maps (base, step) to the checkpoint's number."""
    rows = [_row(fate, landed.get((fate.effect.base, fate.effect.step), 0), called) for fate in told]
    for step in ahead:
        waits = "waits for the gate" if step.guarded else "not yet"
        rows.append(EffectRow(called(step.name), Mark("", "ahead", "clock", waits), data_status="ahead"))
    return rows


def _row(fate: Fate, seq: int, called: Called) -> EffectRow:
    done = fate.effect
    return EffectRow(called(done.step), fate.mark, seq, done.key, done.status, tuple(fate.remarks()))


def stays(effects: Sequence[Done], called: Called = in_words) -> list[str]:
    """Say what a run that ends now leaves behind in the outside world, one sentence for each effect."""
    endings = {
        "done": "is done and stays done",
        "kept": "is done and stays done",
        "open": "may have happened; it was left open",
        "unknown": "may have happened; nobody has said yet",
        "intended": "may be happening now",
        "abandoned": "may have happened, and was done again by order",
    }
    final = ", it cannot be undone"
    return [
        f"{quoted([called(fate.effect.step)])} {endings['open' if fate.effect.left_open else fate.effect.status]}"
        + (final if fate.effect.irreversible and fate.effect.status in ("done", "kept") else "")
        for fate in fates(effects)
        if fate.effect.status in endings and not taken_back(fate.effect)
    ]


def taken_back(done: Done) -> bool:
    """Tell whether the effect is undone before the run ends."""
    return done.unsettled and done.status == "done" and bool(done.undo) and not done.irreversible


def undone_first(effects: Sequence[Done], called: Called = in_words) -> list[str]:
    """List, by what they are called, the effects that are undone before the run ends."""
    return [called(fate.effect.step) for fate in fates(effects) if taken_back(fate.effect)]


@dataclass(frozen=True, slots=True)
class Settling:
    """The effects that a run has left behind: those to undo, those that stay, and the button that does it now."""

    undone: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def commit(self) -> str:
        """Return the button's text."""
        if not self.undone:
            return "Settle now, leaving " + quoted(self.left)
        return f"Undo {quoted(self.undone)} now" if len(self.undone) == 1 else f"Undo {len(self.undone)} effects now"


def settling(effects: Sequence[Done], called: Called = in_words) -> Settling | None:
    """Return what has to be settled; None where nothing has."""
    open_ones = [fate.effect for fate in fates(effects) if fate.effect.unsettled]
    undone = tuple(called(done.step) for done in open_ones if not _stays(done))
    left = tuple(called(done.step) for done in open_ones if _stays(done))
    return Settling(undone, left) if open_ones else None


def _stays(done: Done) -> bool:
    return done.irreversible or not done.undo or bool(done.taken_from)
