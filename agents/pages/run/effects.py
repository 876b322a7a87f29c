"""The table of effects: first those in the ledger, then those still ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agents.definition import registry
from agents.definition.agent import Agent
from agents.effects.fates import Remark, TimelineMark, fates_of
from agents.effects.ledger import LedgerRow
from agents.pages.run.facts import Called
from agents.pages.run.story import RunScene
from approvals.english import quote_titles
from checkpoints.models import Run
from checkpoints.runs.plans import in_words

EFFECTS = 40  # the newest, drawn at once


@dataclass(frozen=True, slots=True)
class EffectLine:
    """One effect: its title, the number of the checkpoint that records it (0: none yet), its fate, its key (hex)."""

    step: str
    mark: TimelineMark
    seq: int = 0
    key: str = ""
    data_status: str = "done"
    remarks: tuple[Remark, ...] = ()


def list_staying(effects: Sequence[LedgerRow], called: Called = in_words) -> list[str]:
    """Return a sentence for each effect that stays in the outside world if the run ends now."""
    endings = {
        "done": "is done and will not be undone",
        "kept": "is done and will not be undone",
        "final": "is done and cannot be undone",
        "open": "may have happened; it was left open",
        "unknown": "may have happened; nobody has confirmed it yet",
        "intended": "may be happening now",
        "abandoned": "may have happened, and was ordered again",
    }
    return [
        f"{quote_titles([called(fate.effect.step)])} {endings[_ending(fate.effect)]}"
        for fate in fates_of(effects)
        if fate.effect.status in endings and not taken_back(fate.effect)
    ]


def _ending(done: LedgerRow) -> str:
    if done.left_open:
        return "open"
    return "final" if done.irreversible and done.status in ("done", "kept") else done.status


def taken_back(done: LedgerRow) -> bool:
    """Tell whether the effect is undone before the run ends."""
    return done.unsettled and done.status == "done" and bool(done.undo) and not done.irreversible


def undone_first(effects: Sequence[LedgerRow], called: Called = in_words) -> list[str]:
    """List the titles of the effects that are undone before the run ends."""
    return [called(fate.effect.step) for fate in fates_of(effects) if taken_back(fate.effect)]


@dataclass(frozen=True, slots=True)
class EffectsToSettle:
    """The effects that a run has left behind: those to undo and those that stay, with the text of the button."""

    undone: tuple[str, ...]
    staying: tuple[str, ...]

    @property
    def commit(self) -> str:
        """Return the button's text."""
        if not self.undone:
            return f"Keep {quote_titles(self.staying)}, undo nothing"
        if len(self.undone) == 1:
            return f"Undo {quote_titles(self.undone)} now"
        return f"Undo {len(self.undone)} effects now"


def settling(effects: Sequence[LedgerRow], called: Called = in_words) -> EffectsToSettle | None:
    """Return the effects to settle; None where there are none."""
    open_ones = [fate.effect for fate in fates_of(effects) if fate.effect.unsettled]
    undone = tuple(called(done.step) for done in open_ones if not _stays(done))
    left = tuple(called(done.step) for done in open_ones if _stays(done))
    return EffectsToSettle(undone, left) if open_ones else None


def _stays(done: LedgerRow) -> bool:
    return done.irreversible or not done.undo or bool(done.taken_from)


def acts_by_tools(run: Run) -> bool:
    """Tell whether the run's steps call tools, as a graph's do: no effect is recorded of what those change."""
    agent = agent_of(run)
    return agent is not None and bool(agent.calls_at)


def agent_of(run: Run) -> type[Agent] | None:
    """Return the code of the run's agent; None where it is elsewhere."""
    known = registry.agents().get((run.plan.agent, run.plan.version))
    return known.agent if known else None


def effects_context(scene: RunScene, *, everything: bool = False) -> dict[str, Any]:
    """Return the context of runs/run/effects.html: the newest effects, or everything."""
    steps = scene.story.remaining_steps() if scene.run.status in Run.LIVE else ()
    under_way = {done.step for done in scene.story.effects if done.base == scene.story.head}
    known = fates_of(scene.story.effects, scene.story.reused())
    drawn = known if everything else known[-EFFECTS:]
    called = scene.story.called
    # The checkpoint that first saved a step; those that reused its result later are listed beside it.
    rows = [
        EffectLine(
            called(fate.effect.step), fate.mark, next(iter(fate.effect.landed), 0), fate.effect.key, fate.effect.status,
            tuple(fate.remarks()),
        ) for fate in drawn
    ]  # fmt: skip
    for step in steps:
        if step.kind == "effect" and step.name not in under_way:
            waits = "waits for the gate" if step.guarded else "not yet"
            rows.append(EffectLine(called(step.name), TimelineMark("", "ahead", "clock", waits), data_status="ahead"))
    to_settle = settling(scene.story.effects, called)
    return {
        "run": scene.run, "effects": rows, "effects_cut": len(known) if len(drawn) < len(known) else 0,
        "by_tools": acts_by_tools(scene.run),
        "settling": to_settle, "may_settle": to_settle is not None and scene.read.may_move,
    }  # fmt: skip
