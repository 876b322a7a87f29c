"""The timeline of a run: every fact in its place, from the input at the top to the steps that are still ahead.

Rows stand in the order of their checkpoints. A gate that has no checkpoint of its own (open, or withdrawn)
and a fork stand under the checkpoint they belong to; a failed attempt stands in the row of its step,
and an output that a validator refused in a row of its own, on the branch that it ended.
After the head come the step under way and then, dotted, the plan's remaining steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from agents.effects.fates import fates_of
from agents.models import Failure
from agents.pages.run import marks, rows
from agents.pages.run.facts import Story, TimelineCheckpoint, TimelineFork, TimelineGate
from agents.pages.run.lanes import LaneNode, count_lanes, draw_sign, draw_slice, lay_out
from agents.pages.run.rows import TimelineRow
from approvals.english import count_of
from checkpoints.values.checkpoint_kinds import OUTCOMES, Kind

OVER = ("completed", "failed", "cancelled")
SHORT = 12  # rows that are seen at once
FEW = 6  # rows of abandoned branches that are not worth folding


class LegendSign(NamedTuple):
    """One mark of the legend, with its meaning."""

    svg: str
    word: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows with their slices drawn, the number of lanes, and the marks that occur, for the legend."""

    rows: list[TimelineRow]
    lanes: int
    legend: list[LegendSign]
    branches: int
    forks: int
    removed: int = 0  # checkpoints that retention removed, among the rows

    @property
    def now(self) -> TimelineRow | None:
        """Return the row where the run is, if it may be out of sight: an open gate, the step under way, or the head."""
        if len(self.rows) <= SHORT:
            return None
        there = [row for row in self.rows if row.on_hold] or [row for row in self.rows if row.key == "next"]
        return next(iter(there or [row for row in self.rows if row.head]), None)

    @property
    def abandoned(self) -> int:
        """Count the rows of abandoned branches that are folded away; 0 where there are few."""
        left = sum(row.abandoned for row in self.rows)
        return left if left > FEW and not any(row.abandoned and row.on_hold for row in self.rows) else 0

    @property
    def summary(self) -> str:
        """Return the number of branches and the like: "1 branch, 2 forks"; empty where the run went straight."""
        parts = []
        if self.branches:
            parts.append(count_of(self.branches, "branch", "branches"))
        if self.forks:
            parts.append(count_of(self.forks, "fork"))
        if self.removed:
            parts.append(f"{self.removed:,} removed")
        return ", ".join(parts)


def build(story: Story) -> Timeline:
    """Build the timeline of `story`."""
    pairs = list(_PathWalk(story).pairs())
    lines = [row for row, _ in pairs]
    refused = {row.key for row in lines if row.mark is marks.REFUSED}
    for row, piece in zip(lines, lay_out([node for _, node in pairs]), strict=True):
        row.piece = piece
        row.svg = draw_slice(piece, row.mark.shape)
    shapes = {row.mark.shape for row in lines}
    return Timeline(
        rows=lines,
        lanes=count_lanes([row.piece for row in lines]),
        legend=[
            LegendSign(draw_sign(shape), "did not run" if shape == "ahead" and story.run.status in OVER else word)
            for shape, word in marks.LEGEND.items()
            if shape in shapes
        ],
        branches=sum(bool(node.abandoned_tip) and node.abandoned_tip not in refused for _, node in pairs),
        forks=sum(node.kind == "fork" for _, node in pairs),
        removed=sum(gap.last - gap.first + 1 for gap in story.pruned),
    )


class _PathWalk:
    """A walk through the facts of one story, in the order of the rows."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.by_id = {saved.id: saved for saved in story.saved}
        self.gates: dict[str, list[TimelineGate]] = defaultdict(list)
        # Each checkpoint that holds an effect's result.
        effects = fates_of(story.effects, story.reused())
        self.fates = {landing.hex: fate for fate in effects for landing in fate.effect.landings}
        self.failures: dict[tuple[str, str], list[Failure]] = defaultdict(list)
        self.refusals: dict[int, list[Failure]] = defaultdict(list)
        self.gap: TimelineRow | None = None  # the newest gap above: children of a removed checkpoint follow it
        self.forks: dict[str, list[TimelineFork]] = defaultdict(list)
        for gate in story.gates:
            self.gates[gate.base].append(gate)
        for failure in story.failures:
            if failure.validator:
                self.refusals[failure.seq].append(failure)
            else:
                self.failures[failure.base.hex, failure.step].append(failure)
        for fork in story.forks:
            self.forks[fork.origin].append(fork)
        self.went_on: dict[int, str] = {}  # the checkpoint at which the run went on from a gate
        for saved in story.saved:
            if saved.kind == Kind.ASKED:
                self.went_on |= {gate.id: saved.id for gate in self.gates[saved.parent] if gate.step == saved.step}
        self.closed = {found.id: saved.id for saved in story.saved if (found := self._closed_by(saved)) is not None}

    def _closed_by(self, saved: TimelineCheckpoint) -> TimelineGate | None:
        """Return the gate whose outcome this checkpoint saves."""
        if saved.kind not in OUTCOMES:
            return None
        about = (saved.step, saved.kind == "recovery")
        base = self._asked_at(saved) if saved.kind == Kind.ANSWERED else saved.parent
        found = (gate for gate in self.gates[base] if (gate.step, gate.kind == "recovery") == about)
        return next((gate for gate in found if gate.status != "open"), None)

    def _asked_at(self, saved: TimelineCheckpoint) -> str:
        """Return the checkpoint on whose state the gate was opened from which the run went on; "" where unknown."""
        at: TimelineCheckpoint | None = saved
        while at is not None and (at.kind, at.step) != (Kind.ASKED, saved.step):
            at = self.by_id.get(at.parent)
        return at.parent if at else ""

    def pairs(self) -> Iterator[tuple[TimelineRow, LaneNode]]:
        """Yield each row with its node for the layout."""
        # The checkpoint saved before this one, the last row of its branch, and whether that is a refused output.
        before, tip, refused = "", "", False
        gaps = list(self.story.pruned)
        for saved in self.story.saved:
            while gaps and gaps[0].first < saved.seq:
                self.gap = rows.of_gap(gaps.pop(0))
                yield self.gap, LaneNode(self.gap.key, tip, "main")
                before, tip, refused = "", "", False
            left = tip if before and (saved.parent != before or refused) else ""
            yield self._checkpoint(saved, left)
            before, tip, refused = saved.id, saved.id, False
            for fork in self.forks[saved.id]:
                yield rows.of_fork(fork), LaneNode(f"run-{fork.run}", saved.id, "fork")
            for row, node in [*self._refused(saved), *self._loose_gates(saved)]:
                yield row, node
                tip, refused = row.key, row.mark is marks.REFUSED
        if self.story.newest:
            yield from self._remaining_rows()

    def _checkpoint(self, saved: TimelineCheckpoint, abandoned_tip: str) -> tuple[TimelineRow, LaneNode]:
        gate = next((gate for gate in self.story.gates if self._shown_at(gate) == saved.id), None)
        fate, parent = self.fates.get(saved.id), self.by_id.get(saved.parent)
        row = rows.of_checkpoint(saved, self.story, gate, fate, parent)
        row.failures = self.failures.pop((saved.parent, saved.step), [])
        row.head = saved.id == self.story.head
        on_path = saved.id in self.story.path
        if not on_path:
            row.abandoned, row.mark = True, marks.abandoned_mark(row.mark)
        above = saved.parent if parent or self.gap is None else self.gap.key
        return row, LaneNode(saved.id, above, "main" if on_path else "rejected", abandoned_tip)

    def _shown_at(self, gate: TimelineGate) -> str:
        """Return the checkpoint whose row shows a gate: with its outcome, or where the run went on from it."""
        return self.closed.get(gate.id) or self.went_on.get(gate.id, "")

    def _refused(self, saved: TimelineCheckpoint) -> Iterator[tuple[TimelineRow, LaneNode]]:
        """Yield the outputs that validators refused while `saved` was the newest checkpoint."""
        outputs: dict[tuple[str, int], list[Failure]] = defaultdict(list)
        for failure in self.refusals[saved.seq]:
            outputs[failure.base.hex, failure.attempt].append(failure)
        for (base, _), item in outputs.items():
            row = rows.of_refusal(item, self.story)
            row.abandoned = True
            yield row, LaneNode(row.key, base if base in self.by_id else saved.id, "rejected")

    def _loose_gates(self, saved: TimelineCheckpoint) -> Iterator[tuple[TimelineRow, LaneNode]]:
        """Yield the gates on the state of `saved` that no checkpoint answers."""
        parent = saved.id
        main = saved.id in self.story.path
        for gate in self.gates[saved.id]:
            if self._shown_at(gate):
                continue
            row = rows.of_gate(gate, self.story.called)
            row.abandoned = not main
            if gate.status == "open":
                row.failures = self.failures.pop((saved.id, gate.step), [])
            yield row, LaneNode(row.key, parent, "main" if main else "rejected", on_hold=row.on_hold)
            parent = row.key

    def _remaining_rows(self) -> Iterator[tuple[TimelineRow, LaneNode]]:
        """Yield the step under way, or at which the run ended, then the plan's later steps."""
        run = self.story.run
        parent, asked = self.story.head, False
        for gate in self.gates[self.story.head]:
            if not self._shown_at(gate):
                parent, asked = f"gate-{gate.id}", True
        head = self.by_id.get(self.story.head)
        ended_there = head is not None and head.step == run.next_step and run.status in OVER
        current = None if ended_there else rows.of_next(self.story)
        if current:
            current.failures = self.failures.pop((self.story.head, run.next_step), [])
            yield current, LaneNode(current.key, parent, "main" if run.status in ("running", "failed") else "ahead")
            parent = current.key
        if run.status == "completed":
            return
        cancelled = run.status == "cancelled" and not asked and not ended_there
        whole = cancelled or run.settling  # otherwise the next step has a row already
        for step in self.story.remaining_steps()[not whole :]:
            row = rows.of_planned(step, over=run.status in OVER or run.ending in OVER)
            yield row, LaneNode(row.key, parent, "ahead")
            parent = row.key
