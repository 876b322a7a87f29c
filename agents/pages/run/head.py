"""The head of a run's page: one word for its status, and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from agents.definition import fields
from agents.definition.agent import Agent
from agents.effects.fates import TimelineMark, fates_of
from agents.effects.ledger import LedgerRow
from agents.pages.run.effects import acts_by_tools, agent_of, list_staying, undone_first
from agents.pages.run.facts import Called, Story, TimelineGate
from agents.pages.run.marks import format_duration
from agents.pages.run.rows import after_settling
from agents.pages.run.story import RunScene
from approvals.english import count_of, quote_titles
from approvals.gates import preflight_facts as preflights
from approvals.preflight import RemoteProgram
from approvals.presentation.drawing.times import lasting
from approvals.schema import redact
from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Run
from checkpoints.models.run import NORMAL
from checkpoints.runs.plans import in_words

STATUS = {
    "queued": TimelineMark("", "ahead", "clock", "Queued"),
    "running": TimelineMark("", "running", "play", "Running"),
    "waiting": TimelineMark("", "waiting", "clock", "Waiting"),
    "completed": TimelineMark("", "completed", "check", "Completed"),
    "failed": TimelineMark("", "failed", "warn", "Failed"),
    "cancelled": TimelineMark("", "cancelled", "x", "Cancelled"),
}
# The groups under the figure, in this order; "final" is done or kept, and cannot be undone.
OUTSIDE: tuple[tuple[str, str], ...] = (
    ("done", "done"),
    ("unknown", "unknown"),
    ("unsettled", "to be settled"),
    ("undone", "undone"),
    ("kept", "kept"),
    ("final", "cannot be undone"),
    ("abandoned", "ordered again"),
)
MOST = 8  # figures
KIN = 8  # other runs of a lineage that the head names
RESTING = (Run.Status.WAITING, Run.Status.QUEUED)  # the run has yet to resume
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HeadCell:
    """One cell of the head: its label, the fact, a line below it, and a link to more."""

    label: str
    fact: str
    line: str = ""
    place: str = ""  # the fragment of the page with more


def status(run: Run, asking: Sequence[str] = (), called: Called = in_words) -> TimelineMark:
    """Return the word for the run as a whole: "Held at “Review”", "Running “Propose”", "Frozen".

    `asking`: the steps of the gates that hold it.
    """
    plain = STATUS[run.status]
    if asking and run.status == "waiting":
        return TimelineMark("", "waiting", "hold", f"Held at {quote_titles(map(called, asking))}")
    if run.frozen:
        return TimelineMark("", "failed", "warn", "Frozen")
    if run.settling:
        return TimelineMark("", "running", "undo", "Settling its effects")
    if run.status in ("running", "failed") and run.next_step:
        verb = "Failed at" if run.status == "failed" else "Running"
        return TimelineMark("", plain.status, plain.icon, f"{verb} {quote_titles([called(run.next_step)])}")
    return plain


def status_line(story: Story, gate: TimelineGate | None) -> str:
    """Return the line under the status word, after its duration."""
    run, now, called = story.run, story.now, story.called
    if gate and run.status == "waiting":
        parts = []
        if gate.quorum > 1:
            parts.append(f"{gate.agreed} of {gate.quorum} approved")
        if gate.deadline:
            parts.append("past its deadline" if gate.deadline <= now else f"{lasting(gate.deadline - now)} left")
        return ", ".join([*parts, *(["settling its effects"] if run.settling else [])])
    if run.settling:
        return after_settling(run.ending, run.next_step, called)
    if run.halt and run.status == "running":
        return "will stop after this step, as a person asked"
    if run.status == "queued":
        step = quote_titles([called(run.next_step)])
        if run.wake_at is not None and run.wake_at > now:
            return f"tries {step} again soon"
        return f"{step} is next" if run.next_step else ""
    if story.wait is not None:
        return f"at {quote_titles([called(run.next_step)])}"
    if run.status == "running":
        attempt = f"attempt {run.attempts}" if run.attempts > 1 else ""
        return ", ".join(filter(None, [attempt, _held_by(story.program) if story.program else ""]))
    return ""


def _held_by(program: RemoteProgram) -> str:
    """Name the external program that has the run, and tell if it is silent."""
    claimed = f"claimed by {quote_titles([program.name]) if program.name else 'its program'}"
    return f"{claimed}, which has sent nothing for {program.heard}" if program.missed else claimed


def since(story: Story, gate: TimelineGate | None) -> datetime | None:
    """Return the time since which the status word is true, if that is worth showing."""
    if gate and story.run.status == "waiting":
        return gate.opened_at
    return story.changed_at if story.run.status in ("completed", "failed", "cancelled") else None


def worked(took: timedelta, time_at_gates: timedelta, checkpoints: int, reused: int = 0) -> HeadCell:
    """Return how long the steps took, how long the run was held, and how many steps were reused."""
    saved = count_of(checkpoints, "checkpoint")
    waited = f"held for {format_duration(time_at_gates)}" if time_at_gates else ""
    spared = f"{count_of(reused, 'step')} reused"
    return HeadCell("Worked", format_duration(took), ", ".join(filter(None, [saved, waited, spared if reused else ""])))


def outside(effects: Sequence[LedgerRow], *, by_tools: bool = False) -> HeadCell:
    """Return what the run did in the outside world. An undo is counted with its effect, never by itself.

    `by_tools`: its steps call tools, whose effects are not recorded.
    """
    performed = [fate.effect for fate in fates_of(effects) if fate.effect.status != "failed"]
    if not performed and by_tools:
        return HeadCell("External effects", "Not recorded", "its tools act unrecorded")
    if not performed:
        return HeadCell("External effects", "No effects", "no external changes recorded")
    counts = Counter(_counted_as(done) for done in performed)
    parts = [f"{counts[name]} {word}" for name, word in OUTSIDE if counts[name]]
    return HeadCell("External effects", count_of(len(performed), "effect"), ", ".join(parts), "effects")


def _counted_as(done: LedgerRow) -> str:
    """Return the one group in which an effect is counted: the most important one."""
    if done.status in ("done", "kept") and done.irreversible:
        return "final"
    if done.status == "intended":
        return "unknown"
    return "unsettled" if done.status == "done" and done.unsettled else done.status


def read_figures(run: Run) -> tuple[Sequence[HeadCell], str]:
    """Return the agent's figures and result; nothing if it has none, or its version is not deployed here.

    The agent's code is its author's, and may read the state of an older version: if it fails, the page is
    drawn without it.
    """
    agent = agent_of(run)
    ended = run.status not in Run.LIVE
    metered, ends = _tells(agent, "meters"), ended and _tells(agent, "result")
    if agent is None or run.head is None or not (metered or ends):
        return (), ""
    try:
        saved = store.load_checkpoint(run.head).state
        state = agent.State.model_validate(saved, by_name=True, by_alias=False)
        veil = fields.veil(agent.State)
        secrets = veil.words(saved) if veil else []

        def clean(text: object) -> str:
            return str(redact.scrubbed(str(text), secrets))

        cells = [HeadCell(*map(clean, meter[:3])) for meter in agent.meters(state)][:MOST] if metered else []
        return cells, clean(agent.result(state)) if ends else ""
    except CheckpointError:
        return (), ""  # another part of the page reports it
    except Exception:
        log.exception("run.not_told", run=run.pk)
        return (), ""


def _tells(agent: type[Agent] | None, name: str) -> bool:
    """Tell whether the agent overrides this method: otherwise the state is not read for it."""
    return agent is not None and getattr(agent, name).__func__ is not getattr(Agent, name).__func__


def head_context(scene: RunScene, figures: Sequence[HeadCell] = ()) -> dict[str, Any]:
    """Return the context of runs/run/header.html. `figures` are the agent's own."""
    run, story, gate = scene.run, scene.story, scene.gate
    asking = [gate for gate in story.gates if gate.status == "open"]
    needs_worker = run.status in Run.LIVE and not run.plan.external  # of this server
    return {
        "run": run,
        "status": status(run, [gate.step for gate in story.holding], story.called),
        "status_line": status_line(story, gate),
        "since": since(story, gate),
        "held_now": bool(gate),
        "reason": run.reason,
        "ended_by": story.ended_by,
        "starter": story.started_by,
        "priority": str(run.priority) if run.priority != NORMAL else "",
        "cells": [
            worked(scene.read.took, scene.read.time_at_gates, run.seq, scene.read.reused),
            outside(story.effects, by_tools=acts_by_tools(run)),
            *figures,
        ],
        "gate": next((gate for gate in reversed(asking) if gate.visible), None),
        "asking": len(asking),
        "wait": story.wait,
        "ends_by": run.deadline if run.status in Run.LIVE else None,
        "frozen": run.frozen,
        "unserved": scene.read.served if needs_worker and not scene.read.served.has_worker else None,
        "may_move": scene.read.may_move,
        "may_cancel": run.status in Run.LIVE and scene.read.may_move,
        "stays": list_staying(story.effects, story.called),
        "effects_told": bool(story.effects),
        "undone_first": undone_first(story.effects, story.called),
        "lineage": [kin.run for kin in scene.read.kin[:KIN]],
        "preflight": preflights.of_run(run) if run.status in RESTING or story.gone else None,
    }
