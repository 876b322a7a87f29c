"""What each choice at a gate would do. Pure, over the plan, the path so far and the card.

Always in one order: run, keep, undo, cannot undo, people. A count first, then names. Nothing is promised that
the plan does not say: an effect that has run is named as staying done, never as taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.cards import Card
from checkpoints.plans import PlanSpec, StepSpec

DRAWN_BEFORE, DRAWN_AFTER = 8, 6  # nodes of a track


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line: `effect` picks icon and colour; `names` are steps, `said` is our sentence after them."""

    effect: str  # run, reuse, undo, oneway, people
    title: str
    names: tuple[str, ...] = ()
    said: str = ""

    @property
    def icon(self) -> str:
        return {"run": "play", "reuse": "same", "undo": "undo", "oneway": "oneway", "people": "people"}[self.effect]


@dataclass(frozen=True, kw_only=True)
class Impact:
    """What one choice does: a heading, a drawing of the steps, and the same again in words."""

    heading: str
    step: str = ""  # the step named in the heading
    rows: tuple[Row, ...] = ()
    marks: tuple[str, ...] = ()  # of the track: reused, undone, run, ahead, and "held" once

    @property
    def track(self) -> SafeString:
        return draw(self.marks, label=", ".join(f"{row.title} {' '.join(row.names)}".strip() for row in self.rows))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known when a gate is shown. `done`: names of the steps on the path, in order, without the gate."""

    plan: PlanSpec
    gate_step: str
    card: Card
    done: Sequence[str] = ()
    agreed: int = 0  # people who agreed to what stands now
    quorum: int = 1
    agreed_names: Sequence[str] = field(default_factory=tuple)

    def ahead(self) -> list[StepSpec]:
        """The steps from the gate to the next gate, or to the end."""
        names = [step.name for step in self.plan.steps]
        if self.gate_step not in names:
            return []
        found = []
        for step in self.plan.steps[names.index(self.gate_step) + 1 :]:
            found.append(step)
            if step.kind == "gate":
                break
        return found

    def effects_done(self) -> list[StepSpec]:
        known = {step.name: step for step in self.plan.steps}
        return [known[name] for name in self.done if name in known and known[name].kind == "effect"]


def approve(now: Situation, *, edited: bool = False) -> Impact:
    """Approve as proposed, or with the reader's edit."""
    ahead = now.ahead()
    run = [step for step in ahead if step.kind != "gate"]
    asks = next((step for step in ahead if step.kind == "gate"), None)
    left = now.quorum - (1 if edited else now.agreed + 1)
    rows = [
        Row(
            effect="run",
            title=f"Run {len(run)}" if left <= 0 else f"Run {len(run)}, later",
            names=names(run),
            said=f"then {asks.name} asks again" if asks else "",
        ),
        keep(now.done, said="nothing runs again"),
        oneway(step for step in run if step.irreversible or irreversible(now.card, step.name)),
        people(now, left=left, edited=edited),
    ]
    return Impact(
        heading="If you approve with your edit" if edited else "If you approve as proposed",
        rows=tuple(row for row in rows if row),
        marks=("reused",) * len(now.done) + ("held",) + ("run" if left <= 0 else "ahead",) * len(ahead),
    )


def stop(now: Situation) -> Impact:
    """Reject, and the run ends."""
    rows = [
        Row(effect="run", title="Run 0", said="the run ends as rejected"),
        stays(now.effects_done()),
        Row(effect="people", title="Closes now", said="one rejection is enough"),
    ]
    return Impact(
        heading="If you stop the run",
        rows=tuple(row for row in rows if row),
        marks=("reused",) * len(now.done) + ("held",) + ("ahead",) * len(now.ahead()),
    )


def back(now: Situation, step: str) -> Impact:
    """Reject, and the run goes back to `step` with feedback."""
    at = last_of(now.done, step)
    again = list(now.done[at:]) if at is not None else [step]
    kept = now.done[:at] if at is not None else now.done
    redone = [each for each in now.effects_done() if each.name in again]
    rows = [
        Row(effect="run", title=f"Run {len(again)}", names=tuple(again), said="then ask again"),
        keep(kept, said=""),
        stays(redone),
        Row(effect="people", title="Closes now", said="one rejection is enough; the agent reads your feedback"),
    ]
    return Impact(
        heading="If you send it back to",
        step=step,
        rows=tuple(row for row in rows if row),
        marks=("reused",) * len(kept) + ("run",) * len(again) + ("held",) + ("ahead",) * len(now.ahead()),
    )


def last_of(done: Sequence[str], step: str) -> int | None:
    """Where `step` ran last on the path."""
    return max((at for at, name in enumerate(done) if name == step), default=None)


def names(steps: Iterable[StepSpec]) -> tuple[str, ...]:
    return tuple(step.name for step in steps)


def irreversible(card: Card, effect: str) -> bool:
    return any(action.irreversible and action.effect == effect for action in card.actions)


def keep(done: Sequence[str], *, said: str) -> Row | None:
    return Row(effect="reuse", title=f"Keep {len(done)}", said=said or ", ".join(done)) if done else None


def oneway(steps: Iterable[StepSpec]) -> Row | None:
    found = names(steps)
    return Row(effect="oneway", title="Cannot undo", names=found, said="once done") if found else None


def stays(done: Sequence[StepSpec]) -> Row | None:
    """Effects that ran before this gate: nothing here takes them back."""
    if not done:
        return None
    return Row(effect="oneway", title=f"Stays done {len(done)}", names=names(done), said="this does not take it back")


def people(now: Situation, *, left: int, edited: bool) -> Row:
    if edited and now.agreed_names:
        who = " and ".join(now.agreed_names)
        return Row(effect="people", title="Ask again", said=f"{who} agreed to what it was, so that no longer counts")
    agreed = now.quorum - max(left, 0)
    title = f"{agreed} of {now.quorum}"
    if left <= 0:
        return Row(effect="people", title=title, said="agreed, runs at once")
    return Row(effect="people", title=title, said=f"then {left} more must agree before anything runs")


def draw(marks: Sequence[str], *, label: str) -> SafeString:
    """The track: what is done, the hold line, what comes. Each mark is repeated as a word beside it."""
    held = marks.index("held") if "held" in marks else len(marks)
    shown = [*marks[:held][-DRAWN_BEFORE:], "held", *marks[held + 1 :][:DRAWN_AFTER]]
    gap = 322 / max(len(shown) - 1, 1)
    at = [round(9 + gap * number, 1) for number in range(len(shown))]
    lines = [
        format_html('<path class="line" data-lane="{}" d="M{} 14H{}"/>', lane(shown[n + 1]), at[n], at[n + 1])
        for n in range(len(shown) - 1)
    ]
    parts = [*lines, *(node(mark, x) for mark, x in zip(shown, at, strict=True))]
    inside = format_html_join("", "{}", ((part,) for part in parts))
    return format_html('<svg class="track" viewBox="0 0 340 28" role="img" aria-label="{}">{}</svg>', label, inside)


def lane(mark: str) -> str:
    return "ahead" if mark == "ahead" else "main"


def node(mark: str, x: float) -> SafeString:
    if mark == "held":
        return format_html(
            '<rect x="{}" y="2" width="12" height="24" class="gap"/><path class="bars" d="M{} 3v22"/>'
            '<path class="bars" data-dash d="M{} 3v22"/>',
            round(x - 6, 1),
            round(x - 3.5, 1),
            round(x + 3.5, 1),
        )
    circle = format_html('<circle class="node" data-mark="{}" cx="{}" cy="14" r="5"/>', mark, x)
    if mark != "reused":
        return circle
    return format_html('{}<path class="glyph" d="M{} 12.8h4m-4 2.4h4" stroke-width="1"/>', circle, round(x - 2, 1))
