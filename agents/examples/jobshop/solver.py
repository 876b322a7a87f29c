"""Plans everything that has not begun anew, with OR-tools' CP-SAT solver and a time limit.

First the schedule shall end as soon as possible, then, in the time that is left, as many operations as possible shall
keep their planned start without a later end. The right-shift is given to the solver as a hint and as the latest end, so
that there is always a schedule and never a worse one.

OR-tools is imported on first use: it costs some tenths of a second and many megabytes, and most processes that load
this module never plan.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .breakdown import Situation
from .local import shifted

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

if find_spec("ortools") is None:  # which is said at the start, and not in the middle of a run
    raise ModuleNotFoundError("No module named 'ortools'", name="ortools")

SHARE = 0.7  # of the time, for the end of the schedule
SEED = 1993


@dataclass(frozen=True)
class Solved:
    """The start of each operation, the earliest end that could not be ruled out, and whether it was reached."""

    starts: list[int]
    bound: int
    proven: bool


def load() -> None:
    """Import OR-tools, so that no measured time holds its import."""
    import_module("ortools.sat.python.cp_model")


def solved(situation: Situation, *, seconds: float, workers: int) -> Solved:
    """The best schedule that is found in `seconds` of wall time."""
    began = time.monotonic()
    hint = shifted(situation)
    if not situation.free:
        return Solved(hint, situation.makespan(hint), proven=True)
    model = _Model(situation, latest=situation.makespan(hint))
    starts, bound, proven = model.soonest(hint, seconds * SHARE, workers)
    model.hold(situation.makespan(starts))
    starts = model.steadiest(starts, max(seconds - (time.monotonic() - began), 0.05), workers)
    return Solved(starts, bound, proven)


class _Model:
    """The open operations as intervals that do not overlap on their machine nor with what is fixed there."""

    def __init__(self, situation: Situation, *, latest: int) -> None:
        from ortools.sat.python import cp_model

        self.situation, self.tools, self.model = situation, cp_model, cp_model.CpModel()
        plant, fixed = situation.plant, situation.fixed
        self.starts: dict[int, cp_model.IntVar] = {}
        lanes: list[list[cp_model.IntervalVar]] = [
            [self.model.new_fixed_size_interval_var(start, end - start, "") for start, end in blocks]
            for blocks in situation.blocks
        ]
        self.end = self.model.new_int_var(situation.down.since, max(latest, situation.down.since), "end")
        self.model.add(self.end >= max((end for _, end in fixed.values()), default=0))
        for op in situation.free:
            duration, before = plant.duration[op], plant.before(op)
            earliest = max(situation.down.since, fixed[before][1] if before in fixed else 0)
            start = self.starts[op] = self.model.new_int_var(earliest, latest, f"start {op}")
            if before >= 0 and before not in fixed:
                self.model.add(start >= self.starts[before] + plant.duration[before])
            if duration:
                lanes[plant.machine[op]].append(self.model.new_fixed_size_interval_var(start, duration, f"{op}"))
            if plant.after(op) < 0:
                self.model.add(self.end >= start + duration)
        for lane in lanes:
            self.model.add_no_overlap(lane)

    def soonest(self, hint: Sequence[int], seconds: float, workers: int) -> tuple[list[int], int, bool]:
        """Starts of a schedule that ends as soon as was found, the bound on that, and whether it was reached."""
        self.model.minimize(self.end)
        solver, status = self._solve(hint, seconds, workers)
        starts = self._starts(solver, status, hint)
        bound = max(round(solver.best_objective_bound), 0)
        return starts, bound, status == self.tools.OPTIMAL

    def hold(self, latest: int) -> None:
        """From now on no schedule may end later."""
        self.model.add(self.end <= latest)

    def steadiest(self, hint: Sequence[int], seconds: float, workers: int) -> list[int]:
        """Starts of a schedule in which as many operations keep their planned start as was found."""
        off = []
        for op, start in self.starts.items():
            kept = self.model.new_bool_var(f"kept {op}")
            self.model.add(start == self.situation.planned[op]).only_enforce_if(kept)
            off.append(1 - kept)
        self.model.minimize(sum(off))
        solver, status = self._solve(hint, seconds, workers)
        return self._starts(solver, status, hint)

    def _solve(
        self, hint: Sequence[int], seconds: float, workers: int
    ) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
        self.model.clear_hints()  # type: ignore[no-untyped-call]
        for op, start in self.starts.items():
            self.model.add_hint(start, hint[op])
        self.model.add_hint(self.end, self.situation.makespan(hint))
        solver = self.tools.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = workers
        solver.parameters.random_seed = SEED
        return solver, solver.solve(self.model)

    def _starts(self, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus, hint: Sequence[int]) -> list[int]:
        """Return the starts that the solver found, the hint if the time was too short to find anything."""
        if status not in (self.tools.OPTIMAL, self.tools.FEASIBLE):
            return list(hint)
        fixed = self.situation.fixed
        return [fixed[op][0] if op in fixed else solver.value(self.starts[op]) for op in range(len(hint))]
