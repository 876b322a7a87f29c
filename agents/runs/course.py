"""The path from a run's first checkpoint to its head, as ranges of checkpoint numbers.

Most runs go straight on, so only the points where they did not are kept: a run of a thousand checkpoints that was sent
back twice has three ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import JSONField
from django.db.models.expressions import RawSQL

from approvals.engine_rules import effects
from checkpoints.models import Run
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader

# The checkpoints that do not follow the one before them, and the questions at the very end.
WAY_SQL = """
'turns', (
  SELECT coalesce(jsonb_agg(jsonb_build_array(t.seq, coalesce(p.run_id, 0), coalesce(p.seq, 0)) ORDER BY t.seq), '[]')
  FROM (SELECT seq, parent, lag(id) OVER (ORDER BY seq) AS previous FROM checkpoints_checkpoint
        WHERE run_id = checkpoints_run.id) t
  LEFT JOIN checkpoints_checkpoint p ON p.id = t.parent
  WHERE t.parent IS DISTINCT FROM t.previous),
'aside', (
  SELECT coalesce(jsonb_agg(jsonb_build_array(seq, step) ORDER BY seq), '[]') FROM checkpoints_checkpoint
  WHERE run_id = checkpoints_run.id AND seq > (
    SELECT seq FROM checkpoints_checkpoint WHERE run_id = checkpoints_run.id AND kind <> 'recovery'
    ORDER BY seq DESC LIMIT 1))
"""
WAY = RawSQL(f"(SELECT jsonb_build_object({WAY_SQL}))", (), output_field=JSONField())  # noqa: S611 - constants


class CourseTurn(NamedTuple):
    """A checkpoint that does not follow the one saved before it, and its parent: a number in a run."""

    seq: int
    run: int
    parent: int


@dataclass(frozen=True, slots=True)
class Course:
    """The path to a run's head.

    `turns` ascend; `aside` are the (number, step) of the questions after the newest checkpoint of another kind.
    """

    run: int
    head: int
    turns: tuple[CourseTurn, ...] = ()
    aside: tuple[tuple[int, str], ...] = ()

    def stretches(self) -> list[tuple[int, int]]:
        """List the first and the last number of each range of the path, oldest first."""
        seqs = [turn.seq for turn in self.turns]
        found: list[tuple[int, int]] = []
        at = self.head
        while at > 0:
            before = bisect_right(seqs, at)
            if not before:
                found.append((1, at))
                break
            turn = self.turns[before - 1]
            found.append((turn.seq, at))
            at = turn.parent if turn.run == self.run else 0
        return found[::-1]

    def on_path(self, seqs: Sequence[int]) -> set[int]:
        """Return those of these numbers that are on the path."""
        stretches = self.stretches()
        firsts = [first for first, _ in stretches]
        found = set()
        for seq in seqs:
            before = bisect_right(firsts, seq)
            if before and seq <= stretches[before - 1][1]:
                found.add(seq)
        return found

    def leads(self, seqs: Sequence[int], to: Sequence[int]) -> bool:
        """Tell whether one of these numbers is on the path to one of the numbers `to`."""
        return any(replace(self, head=seq).on_path(seqs) for seq in to)

    def awaits(self, base: int, step: str) -> bool:
        """Tell whether the run is still at `base`, where the effect `step` was started, and at most asks about it."""
        asked = [("recovery", about) for seq, about in self.aside if seq > base]
        return effects.awaited(step, asked if base and base + len(asked) >= self.head else None)


def read_course(run_id: int) -> Course:
    """Return the path to one run's head."""
    run: Any = Run.objects.annotate(whole=WAY).get(pk=run_id)
    return course_of(run, run.whole)


def course_of(run: Run, whole: Mapping[str, Any]) -> Course:
    """Return the path to the run's head, which is its newest checkpoint."""
    turns = [CourseTurn(*turn) for turn in whole["turns"] if turn[0] > 1]
    if run.head and any(not turn.run for turn in turns):
        turns = turns_in(run, executions.path(run.head))  # a parent was removed, and is known from the gaps
    return Course(run.pk, run.seq, tuple(turns), tuple((seq, step) for seq, step in whole["aside"]))


def turns_in(run: Run, path: Sequence[CheckpointHeader]) -> list[CourseTurn]:
    """List the points where a path leaves the order in which its run's checkpoints were saved."""
    own = [(before, here) for before, here in pairwise(path) if here.run_id == run.pk and here.seq > 1]
    return [
        CourseTurn(here.seq, before.run_id, before.seq)
        for before, here in own
        if (before.run_id, before.seq) != (run.pk, here.seq - 1)
    ]
