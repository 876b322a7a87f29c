"""The timeline of a run: every fact in its place, from the input at the top to the steps that are still ahead.

Rows stand in the order of their checkpoints. A gate that has no checkpoint of its own (open, or withdrawn)
and a fork stand under the checkpoint they belong to; a failed attempt stands in the row of the step that it
was an attempt of. After the head come the step under way and then, dotted, the plan's remaining steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from . import marks, rows
from .facts import Asked, Done, Failed, Forked, Planned, Saved, Story
from .lanes import Node, lay_out, width
from .rows import Row
from .words import counted

OVER = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Rows with their slices drawn, the number of lanes, and the marks that occur, for the legend."""

    rows: list[Row]
    lanes: int
    legend: list[tuple[str, str]]
    branches: int
    forks: int

    @property
    def summary(self) -> str:
        """What lies beside the straight line: "1 branch, 2 forks"; empty where it is straight."""
        parts = [counted(self.branches, "branch", "branches")] if self.branches else []
        return ", ".join(parts + ([counted(self.forks, "fork")] if self.forks else []))


def build(story: Story) -> Timeline:
    """Lay `story` out."""
    teller = _Teller(story)
    pairs = list(teller.pairs())
    told = [row for row, _ in pairs]
    for row, piece in zip(told, lay_out([node for _, node in pairs]), strict=True):
        row.piece = piece
    shapes = {row.mark.shape.removesuffix("-ran") if row.left else row.mark.shape for row in told}
    return Timeline(
        rows=told,
        lanes=width([row.piece for row in told]),
        legend=[
            (shape, "did not run" if shape == "ahead" and story.run.status in OVER else word)
            for shape, word in marks.LEGEND.items()
            if shape in shapes
        ],
        branches=sum(bool(node.left) for _, node in pairs),
        forks=sum(node.kind == "fork" for _, node in pairs),
    )


class _Teller:
    """Walks the facts of one story in the order of the rows."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.by_id = {saved.id: saved for saved in story.saved}
        self.gates: dict[str, list[Asked]] = defaultdict(list)
        landed = story.landed()
        self.effects: dict[str, Done] = {
            landed[done.base, done.step].id: done for done in story.effects if (done.base, done.step) in landed
        }
        self.failures: dict[tuple[str, str], list[Failed]] = defaultdict(list)
        self.forks: dict[str, list[Forked]] = defaultdict(list)
        for gate in story.gates:
            self.gates[gate.base].append(gate)
        for failure in story.failures:
            self.failures[failure.base, failure.step].append(failure)
        for fork in story.forks:
            self.forks[fork.origin].append(fork)
        self.closed = {
            gate.id
            for saved in story.saved
            if saved.kind in ("gate", "recovery")
            for gate in self.gates[saved.parent]
            if gate.status != "open"
        }

    def pairs(self) -> Iterator[tuple[Row, Node]]:
        """Each row with what the layout needs to know of it."""
        before, tip = "", ""  # the checkpoint saved before this one, and the last row of its branch
        for saved in self.story.saved:
            yield self._checkpoint(saved, tip if before and saved.parent != before else "")
            before = tip = saved.id
            for fork in self.forks[saved.id]:
                yield rows.of_fork(fork), Node(f"run-{fork.run}", saved.id, "fork")
            for row, node in self._loose_gates(saved):
                yield row, node
                tip = row.key
        if self.story.newest:
            yield from self._ahead()

    def _checkpoint(self, saved: Saved, left: str) -> tuple[Row, Node]:
        gate = next((gate for gate in self.gates[saved.parent] if gate.id in self.closed), None)
        row = rows.of_checkpoint(saved, self.story, gate, self.effects.get(saved.id), self.by_id.get(saved.parent))
        row.failures = self.failures.pop((saved.parent, saved.step), [])
        row.head = saved.id == self.story.run.head
        on_path = saved.id in self.story.path
        if not on_path:
            row.left, row.mark = True, marks.beside(row.mark)
        return row, Node(saved.id, saved.parent, "main" if on_path else "rejected", left)

    def _loose_gates(self, saved: Saved) -> Iterator[tuple[Row, Node]]:
        """The gates on the state of `saved` that no checkpoint answers."""
        parent = saved.id
        main = saved.id in self.story.path
        for gate in self.gates[saved.id]:
            if gate.id in self.closed:
                continue
            row = rows.of_gate(gate, self.story)
            row.left = not main
            if gate.status == "open":
                row.failures = self.failures.pop((saved.id, gate.step), [])
            yield row, Node(row.key, parent, "main" if main else "rejected", held=row.held)
            parent = row.key

    def _ahead(self) -> Iterator[tuple[Row, Node]]:
        """The step under way or ended at, then what the plan has after it."""
        run = self.story.run
        parent, asked = run.head, False
        for gate in self.gates[run.head]:
            if gate.id not in self.closed:
                parent, asked = f"gate-{gate.id}", True
        head = self.by_id.get(run.head)
        ended_there = head is not None and head.step == run.next_step and run.status in OVER
        current = None if ended_there else rows.of_next(self.story)
        if current:
            current.failures = self.failures.pop((run.head, run.next_step), [])
            yield current, Node(current.key, parent, "main" if run.status in ("running", "failed") else "ahead")
            parent = current.key
        if run.status == "completed":
            return
        for step in self._remaining(whole=run.status == "cancelled" and not asked and not ended_there):
            row = rows.of_planned(step, over=run.status in OVER)
            yield row, Node(row.key, parent, "ahead")
            parent = row.key

    def _remaining(self, *, whole: bool) -> list[Planned]:
        """The plan's steps after the one that is next, or from it on."""
        names = [step.name for step in self.story.plan]
        if self.story.run.next_step not in names:
            return []
        return list(self.story.plan[names.index(self.story.run.next_step) + (not whole) :])
