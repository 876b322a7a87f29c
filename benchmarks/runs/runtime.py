"""Measures the runtime's cost of a step beyond the store's: trivial steps through the runner, and the same bare saves.

    python -m benchmarks.runs.runtime [STEPS [ROUNDS]]

Both write the same field of the same small state, in alternating rounds; medians over the rounds. One more round runs
under the profiler, which makes everything slower and leaves the shares about as they are.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.scratch import Scratch

AIM = 1.0  # ms
# The functions whose time is shown, children included; each is a part of the one above it.
PARTS = (
    ("the whole turn", "engine.py", "turn"),
    ("  reuse looked up", "reuse.py", "reused"),
    ("  the step called", "local_performer.py", "step"),
    ("    its inputs typed", "run_session.py", "inputs"),
    ("  its output checked", "outputs.py", "checked"),
    ("  the checkpoint saved", "run_session.py", "save"),
    ("    its header: digest, occurrence", "run_session.py", "_header"),
    ("    the store", "saving.py", "save"),
)


def main(steps: int = 500, rounds: int = 7) -> None:
    """Print the figures and the aim."""
    with Scratch("benchmarks.runs.stepping") as scratch, _lines_to(scratch.home / "lines.log"):
        from agents.ringing import doorbell

        doorbell.silence()
        team = _team()
        _ours(100, team)  # statements prepared, caches warm
        _bare(100, team)
        ours, bare = [], []
        for _ in range(rounds):
            ours.append(_ours(steps, team))
            bare.append(_bare(steps, team))
        profile = cProfile.Profile()
        profile.runcall(_ours, steps, team)
    _report(steps, ours, bare)
    _shares(profile)


@contextmanager
def _lines_to(path: Path) -> Iterator[None]:
    """Redirect this process's log to a file, as in a deployment: writing its two lines per step is part of the cost."""
    sys.stderr.flush()
    before, log = os.dup(2), os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(log)
        os.close(before)


def _report(steps: int, ours: list[list[float]], bare: list[list[float]]) -> None:
    def median(rounds: list[list[float]], percent: float) -> float:
        return statistics.median(percentile(each, percent) for each in rounds)

    print(f"{steps} trivial steps, {len(ours)} rounds in turn       p50        p99")
    for name, rounds in (("a step, from one's start to the next's", ours), ("a bare save of the same", bare)):
        print(f"  {name:<42} {median(rounds, 50):.3f} ms   {median(rounds, 99):.3f} ms")
    tenth = max(1, steps // 10)
    first, last = (statistics.median(percentile(cut, 50) for cut in cuts)
                   for cuts in ([each[:tenth] for each in ours], [each[-tenth:] for each in ours]))  # fmt: skip
    print(f"  first tenth of the steps {first:.3f} ms, last tenth {last:.3f} ms")
    over = median(ours, 50) - median(bare, 50)
    mark("the runtime over the store, p50", over, "ms", most=AIM, beside={"bare save": f"{median(bare, 50):.3f} ms"})


def _shares(profile: cProfile.Profile) -> None:
    """Print the shares of a turn, by the profiler."""
    stats: Any = pstats.Stats(profile)
    times: dict[tuple[str, str], float] = {}
    for (path, _, function), (_, _, _, cumulative, _) in stats.stats.items():
        place = (path.rsplit("/", 1)[-1], function)
        times[place] = max(times.get(place, 0.0), cumulative)
    whole = times.get(PARTS[0][1:], 0.0)
    print("  by profile, children included:")
    for name, file, function in PARTS:
        print(f"    {name:<36} {times.get((file, function), 0.0) / whole:6.1%}")


def _team() -> Any:
    from django.contrib.auth.models import Group

    return Group.objects.create(name="Bench")


def _ours(steps: int, team: Any) -> list[float]:
    """Measure the time from each step's first line to the next's, through the runner, in milliseconds."""
    from agents.runner import engine
    from agents.runs.start import start_run
    from benchmarks.runs.stepping import STARTED
    from checkpoints.actors import SYSTEM

    run = start_run("stepping", {"steps": steps}, by=SYSTEM, team=team)
    STARTED.clear()
    while run.status in run.LIVE:
        engine.advance(run.pk)
        run.refresh_from_db()
    assert run.status == "completed", run.reason
    return [(after - before) / 1e6 for before, after in pairwise(STARTED)]


def _bare(steps: int, team: Any) -> list[float]:
    """Measure each save of the same writes, without the runner, in milliseconds."""
    from agents.definition import registry
    from agents.runs.start import start_run
    from checkpoints import store
    from checkpoints.actors import SYSTEM, of_agent
    from checkpoints.store import claims

    run = start_run("stepping", {"steps": steps}, by=SYSTEM, team=team)
    claim = claims.claim(run.pk, plan_ids=list(registry.plans()), worker="bench", lease=600)
    assert claim is not None
    head, robo = store.load(run), of_agent("stepping")
    digest, times = bytes(32), []
    for number in range(steps):
        began = time.perf_counter_ns()
        header = store.Header("step", "go", "go", input_digest=digest, code_hash=digest)
        head = store.save(head, {"count": number + 1}, claim=claim, header=header, actor=robo)
        times.append((time.perf_counter_ns() - began) / 1e6)
    claims.release(claim, status="cancelled", by=SYSTEM)
    return times


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
