"""The sheets of a run's page: head, timeline, inspector, effects, events. Each view combines some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from agents.definition import registry
from agents.presentation import effects, family, page_head
from agents.presentation.timeline import timeline
from agents.presentation.timeline.effect_fates import fates_of
from agents.queries.run_row import RunRow
from agents.queries.run_story import RunScene
from agents.serving.missing_workers import Service
from approvals.gates import preflight_facts as preflights
from checkpoints.models import Run
from checkpoints.models.run import NORMAL

EFFECTS = 40
KIN = 8  # other runs of a lineage that the head names
RESTING = (Run.Status.WAITING, Run.Status.QUEUED)  # the run has yet to resume


@dataclass(frozen=True, slots=True)
class PickedCheckpoint:
    """The reader's choice: a checkpoint by its number (0: follow the head), and how it is shown."""

    at: int = 0
    view: str = "changes"
    to: int = 0
    before: int = 0
    all: int = 0  # 1: every effect, not only the newest

    def query(self, **more: object) -> str:
        """Return the choice as a query string, with `more` set over it; empty for the defaults."""
        view = "" if self.view == "changes" else self.view
        chosen = {"at": self.at, "view": view, "to": self.to, "before": self.before, "all": self.all} | more
        result = urlencode({name: value for name, value in chosen.items() if value})
        return f"?{result}" if result else ""


def head_context(scene: RunScene, figures: Sequence[page_head.HeadCell] = ()) -> dict[str, Any]:
    """Return the context of runs/run/header.html. `figures` are the agent's own."""
    run, story, gate = scene.run, scene.story, scene.gate
    asking = [gate for gate in story.gates if gate.status == "open"]
    return {
        "run": run,
        "status": page_head.status(run, [gate.step for gate in story.holding], story.called),
        "status_line": page_head.status_line(story, gate),
        "since": page_head.since(story, gate),
        "held_now": bool(gate),
        "reason": run.reason,
        "ended_by": story.ended_by,
        "starter": story.started_by,
        "priority": str(run.priority) if run.priority != NORMAL else "",
        "cells": [
            page_head.worked(scene.read.took, scene.read.time_at_gates, run.seq, scene.read.reused),
            page_head.outside(story.effects, by_tools=acts_by_tools(run)),
            *figures,
        ],
        "gate": next((gate for gate in reversed(asking) if gate.visible), None),
        "asking": len(asking),
        "wait": story.wait,
        "ends_by": page_head.ends_by(story),
        "frozen": run.frozen,
        "unserved": unserved(scene.read),
        "may_move": scene.read.may_move,
        "may_cancel": run.status in Run.LIVE and scene.read.may_move,
        "stays": effects.stays(story.effects, story.called),
        "effects_told": bool(story.effects),
        "undone_first": effects.undone_first(story.effects, story.called),
        "lineage": [kin.run for kin in scene.read.kin[:KIN]],
        "preflight": preflights.of_run(run) if run.status in RESTING or story.gone else None,
    }


def acts_by_tools(run: Run) -> bool:
    """Tell whether the run's steps call tools, as a graph's do: no effect is recorded of what those change."""
    known = registry.agents().get((run.plan.agent, run.plan.version))  # an external agent's code is elsewhere
    return known is not None and bool(known.agent.calls_at)


def children_context(scene: RunScene) -> dict[str, Any]:
    """Return the context of runs/run/children.html, and the run's position among those who started it."""
    run, read = scene.run, scene.read
    live = run.next_step if run.status in Run.LIVE else ""
    kept = next((checkpoint.name for checkpoint in scene.story.step_checkpoints if checkpoint.name), "")
    place = family.position(read.above, run.plan.agent, live, read.turn, scene.story.called, kept)
    forked = partial(read.course.leads, to=read.forked_at)
    more = sum(read.child_counts.values()) - len(read.children)
    return {
        "children": family.rows(read.children, read.course.on_path, forked),
        "children_more": more,
        "children_among": read.among if more else None,
        "children_live": sum(read.child_counts.get(status, 0) for status in Run.LIVE),
        "children_counted": family.counted(read.child_counts),
        "position": place if live or read.above else (),
    }


def unserved(read: RunRow) -> Service | None:
    """Return the service of a run that needs a worker of this server and has none; else None."""
    mine = read.run.status in Run.LIVE and not read.run.plan.external
    return read.served if mine and not read.served.has_worker else None


def timeline_context(scene: RunScene, picked: PickedCheckpoint) -> dict[str, Any]:
    """Return the context of runs/timeline/timeline.html."""
    drawn = timeline.build(scene.story)
    selected = picked.at or (scene.run.seq if scene.story.newest else 0)
    return {
        "run": scene.run,
        "timeline": drawn,
        "selected": selected,
        "unfolded": any(row.abandoned and row.seq == selected for row in drawn.rows),
        "picked": picked,
        "live_query": picked.query(still=1) if picked.at or picked.before else picked.query(),
        "earlier": PickedCheckpoint(before=scene.first_seq).query()
        if scene.first_seq > 1 and not scene.first_left
        else "",
        "later": not scene.story.newest,
    }


def effects_context(scene: RunScene, *, everything: bool = False) -> dict[str, Any]:
    """Return the context of runs/run/effects.html: the newest effects, or everything."""
    steps = scene.story.remaining_steps() if scene.run.status in Run.LIVE else ()
    under_way = {done.step for done in scene.story.effects if done.base == scene.story.head}
    known = fates_of(scene.story.effects, scene.story.reused())
    drawn = known if everything else known[-EFFECTS:]
    # The checkpoint that first saved a step; those that reused its result later are listed beside it.
    landed = {(row.base, row.step): row.landed[0] for row in scene.story.effects if row.landed}
    called = scene.story.called
    ahead = [step for step in steps if step.kind == "effect" and step.name not in under_way]
    rows = effects.table(drawn, landed, ahead, called)
    settling = effects.settling(scene.story.effects, called)
    return {
        "run": scene.run, "effects": rows, "effects_cut": len(known) if len(drawn) < len(known) else 0,
        "by_tools": acts_by_tools(scene.run),
        "settling": settling, "may_settle": settling is not None and scene.read.may_move,
    }  # fmt: skip
