"""Measures the cost of a breakdown: by shifting only, by local repair, by planning anew all that has not begun.

The ten bundled shops, each with one breakdown drawn from a seed, and the Config's defaults. Every schedule is checked
by an independent implementation of the rules, over every unit of time and from the shop's file: it shares nothing with
the agent or with the agent's checker.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import django
from django.conf import settings

# The agent's modules read settings as they are imported; nothing here asks a server.
if not settings.configured:
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.checking", "HOLDPOINT_SECRET_KEY": "for benchmarks: " + "x" * 40}
    os.environ |= {"DATABASE_URL": "postgres://nobody@/none", "REDIS_URL": "redis://127.0.0.1:1/0"}
    django.setup()

from agents.examples.jobshop import local, planning, reading, schedules, solver
from agents.examples.jobshop.breakdown import Situation
from agents.examples.jobshop.state import Breakdown, Downtime, Effort, Instance, Repair, Schedule, Source

FOLDER = Path(__file__).resolve().parents[2] / "agents" / "examples" / "jobshop" / "instances"
Line = tuple[Schedule, Repair]


def main() -> int:
    """Print the table; return 1 if a schedule breaks a rule."""
    settings = Effort()
    solver.load()
    print(f"radius {settings.radius}, at most {settings.swaps:,} swaps tried, {settings.seconds:g} s of the solver")
    print(f"{'shop':<6}{'plan':>6}  {'down':<16}{'by':<8}{'ends':>6}{'change':>9}{'retimed':>9}{'resequ.':>9}{'ms':>8}")
    lines: dict[str, list[Line]] = {}
    wrong = 0
    for file in sorted(FOLDER.glob("*.txt")):
        plan, downtime, now = broken(file)
        for name, way in ways(settings).items():
            repair = mended(now, way)
            faults = broken_rules(file, plan, downtime, repair)
            wrong += bool(faults)
            lines.setdefault(name, []).append((plan, repair))
            print(line(file.stem, plan, downtime, name, repair), *faults[:3], flush=True)
    for name, found in lines.items():
        print(summary(name, found))
    print(f"{sum(map(len, lines.values())) - wrong} schedules keep every rule, {wrong} do not")
    return bool(wrong)


def ways(settings: Effort) -> dict[str, Callable[[Situation], list[int]]]:
    """Return, by name, the functions that compute the starts of a schedule after a breakdown."""

    def locally(now: Situation) -> list[int]:
        return local.repaired(now, radius=settings.radius, limit=settings.swaps).starts

    def globally(now: Situation) -> list[int]:
        return solver.solved(now, seconds=settings.seconds, workers=settings.workers).starts

    return {"shift": local.shifted, "local": locally, "global": globally}


def broken(file: Path) -> tuple[Schedule, Downtime, Situation]:
    """Make a shop's first schedule, and a breakdown between a tenth and three fifths of it, for 5 to 15 % of it."""
    [source] = Source.read(file)
    rng = random.Random(f"breakdown of {source.name}")
    instance = read(source)
    starts = planning.timed(instance.plant, planning.sequenced(instance.plant, Effort().rule))
    plan = schedules.planned(instance.plant, starts)
    since = rng.randrange(plan.makespan // 10, plan.makespan * 6 // 10)
    until = since + rng.randrange(plan.makespan // 20, plan.makespan * 15 // 100)
    breakdown = Breakdown(machine=rng.randrange(instance.machines), since=since, until=until)
    downtime = schedules.derived(breakdown, instance.plant, plan)
    return plan, downtime, schedules.situation(instance, plan, downtime, [])


def read(source: Source) -> Instance:
    """Read the shop as the agent does."""
    [shop] = reading.read(source.text)
    return Instance(machines=shop.machines, jobs=shop.jobs)


def mended(now: Situation, way: Callable[[Situation], list[int]]) -> Repair:
    """Find a schedule one way, and measure the time."""
    fresh = Situation(now.plant, now.planned, now.down)  # without cached results, so that each way is charged for them
    began = time.perf_counter()
    starts = way(fresh)
    return schedules.repair(fresh, starts, seconds=time.perf_counter() - began, how="")


def broken_rules(file: Path, plan: Schedule, downtime: Downtime, repair: Repair) -> list[str]:
    """Return the violations of a schedule, checked unit of time by unit of time."""
    lines = [text for text in file.read_text().splitlines() if text.strip() and not text.startswith("#")]
    numbers = [[int(word) for word in text.split()] for text in lines[1:]]
    need = {(job, at // 2): (row[at], row[at + 1]) for job, row in enumerate(numbers) for at in range(0, len(row), 2)}
    stop = range(downtime.since, downtime.until)
    began = {row[:2]: row[3] for row in plan.operations if row[3] < downtime.since}
    at_work: dict[tuple[str, int, int], tuple[int, int]] = {}  # by job or machine, and moment
    if sorted(need) != sorted(row[:2] for row in repair.operations):
        return ["not each operation once"]
    found = []
    for job, index, machine, start, end, _ in repair.operations:
        worked = [t for t in range(start, end) if not (machine == downtime.machine and t in stop)]
        cut = len(worked) < end - start
        if (machine, len(worked)) != need[job, index] or (cut and start >= downtime.since):
            found.append(f"{job}/{index} is not done as it has to be")
        if began.get((job, index), max(start, downtime.since)) != start:
            found.append(f"{job}/{index} changes the past")
        for moment in range(start, end):
            for what in (("job", job, moment), ("machine", machine, moment)):
                if at_work.setdefault(what, (job, index)) != (job, index):
                    found.append(f"{what[0]} {what[1]} is at two things at {moment}")
    for job, index in need:
        times = {row[1]: row for row in repair.operations if row[0] == job}
        if index and times[index][3] < times[index - 1][4]:
            found.append(f"{job}/{index} begins before the one before it is done")
    return found


def line(shop: str, plan: Schedule, downtime: Downtime, name: str, repair: Repair) -> str:
    """Format one line of the table."""
    down = f"{downtime.machine}: {downtime.since}-{downtime.until}"
    change = f"{change_of(plan, repair):+.1f} %"
    moved = f"{repair.retimed:>9}{repair.resequenced:>9}{repair.ms:>8,}"
    return f"{shop:<6}{plan.makespan:>6,}  {down:<16}{name:<8}{repair.makespan:>6,}{change:>9}{moved}"


def summary(name: str, lines: Sequence[Line]) -> str:
    """Format the means of one way over all shops."""
    change = f"{mean(change_of(plan, repair) for plan, repair in lines):+.1f} %"
    moved = (
        f"{mean(repair.retimed for _, repair in lines):>9.1f}{mean(repair.resequenced for _, repair in lines):>9.1f}"
    )
    return f"{'mean':<30}{name:<8}{'':>6}{change:>9}{moved}{mean(repair.ms for _, repair in lines):>8,.0f}"


def change_of(plan: Schedule, repair: Repair) -> float:
    """Compute by how many per cent of the plan's end the schedule ends later."""
    return (repair.makespan - plan.makespan) / plan.makespan * 100


if __name__ == "__main__":
    sys.exit(main())
