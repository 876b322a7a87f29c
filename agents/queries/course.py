"""The path from a run's first checkpoint to its head, as ranges of checkpoint numbers.

Most runs go straight on, so only the points where they did not are kept: a run of a thousand checkpoints that was sent
back twice has three ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from approvals.engine_rules import effects


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
