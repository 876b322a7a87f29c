"""Plans everything that has not begun anew, with OR-tools' CP-SAT solver and a time limit.

First the schedule shall end as soon as possible, then, in the time that is left, as many operations as possible shall
keep their planned start without a later end. The right-shift is given to the solver as a hint and as the latest end, so
that there is always a schedule and never a worse one.

OR-tools is imported on first use: it costs some tenths of a second and many megabytes, and most processes that load
this module never plan.
"""

from __future__ import annotations

import time
from importlib.util import find_spec

from .repair import Situation, shift_right

if find_spec("ortools") is None:  # which is said at the start, and not in the middle of a run
    raise ModuleNotFoundError("No module named 'ortools'", name="ortools")

SHARE = 0.7  # of the time, for the end of the schedule
SEED = 1993


def solve(situation: Situation, *, seconds: float, workers: int) -> tuple[list[int], int, bool]:
    """(starts, the earliest end that could not be ruled out, whether it was reached), in `seconds` of wall time."""
    from ortools.sat.python import cp_model

    began, shop, fixed, since = time.monotonic(), situation.shop, situation.fixed, situation.down.since
    best = shift_right(situation)
    if not situation.free:
        return best, situation.makespan(best), True
    model, latest = cp_model.CpModel(), situation.makespan(best)
    starts: dict[int, cp_model.IntVar] = {}
    lanes = [[model.new_fixed_size_interval_var(at, end - at, "") for at, end in lane] for lane in situation.blocks]
    makespan = model.new_int_var(max(end for _, end in [(0, since), *fixed.values()]), max(latest, since), "end")
    for op in situation.free:
        duration, before = shop.duration[op], shop.before(op)
        earliest = max(since, fixed[before][1] if before in fixed else 0)
        start = starts[op] = model.new_int_var(earliest, latest, f"start {op}")
        if before in starts:
            model.add(start >= starts[before] + shop.duration[before])
        if duration:
            lanes[shop.machine[op]].append(model.new_fixed_size_interval_var(start, duration, f"{op}"))
        model.add(makespan >= start + duration)
    for lane in lanes:
        model.add_no_overlap(lane)

    def improve(hint: list[int], limit: float) -> tuple[list[int], cp_model.CpSolver, bool]:
        """(starts, the solver, whether they are the best): the hint's where the time was too short to find any."""
        model.clear_hints()  # type: ignore[no-untyped-call]
        for op, start in starts.items():
            model.add_hint(start, hint[op])
        model.add_hint(makespan, situation.makespan(hint))
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = limit
        solver.parameters.num_workers = workers
        solver.parameters.random_seed = SEED
        status = solver.solve(model)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            hint = [solver.value(starts[op]) if op in starts else at for op, at in enumerate(hint)]
        return hint, solver, status == cp_model.OPTIMAL

    model.minimize(makespan)
    best, solver, proven = improve(best, seconds * SHARE)
    bound = max(round(solver.best_objective_bound), 0)
    model.add(makespan <= situation.makespan(best))
    moves = [model.new_bool_var(f"moves {op}") for op in starts]
    for (op, start), moved in zip(starts.items(), moves, strict=True):
        model.add(start == situation.planned[op]).only_enforce_if(moved.negated())
    model.minimize(sum(moves))
    best, _, _ = improve(best, max(seconds - (time.monotonic() - began), 0.05))
    return best, bound, proven
