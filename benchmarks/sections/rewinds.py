"""Counts what runs again after an edit of one input, for random agents of 10 to 200 steps, and times the edit.

The edit is made after completion, and the run goes on to its end. Beside it stands a restart from the checkpoint before
the first step that reads the input. A step's output depends only on what it reads; half of them have one of two values,
so that some changes do not spread. A fifth of the steps are effects.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from agents.definition import registry
from agents.moves import rewind
from agents.ringing import doorbell
from benchmarks.driving import make_ann, team_of
from benchmarks.figures import Figure
from benchmarks.measuring import compute_percentile
from benchmarks.scratch import Scratch
from checkpoints.models import Checkpoint
from tests.factories.driven_runs import advance_to_rest, make_run
from tests.factories.random_agents import Knobs, forget, load

SIZES = ((10, 50), (51, 100), (101, 200))  # steps
INPUTS, TURNS = ("x0", "x1", "x2"), 10_000


def measure_rewinds(scratch: Scratch, agents: int) -> Iterator[Figure]:
    """Edit an input of so many random agents."""
    doorbell.silence()
    ann, rng, counts, times = make_ann(), random.Random(11), Counter[str](), list[float]()
    for number in range(agents):
        size = rng.randint(*SIZES[number % len(SIZES)])
        times.append(_edit_input(scratch.home, number, size, ann, counts))
    for what in ("steps", "effects"):
        before = {"a restart from the checkpoint before": f"{counts[f'{what} since'] / counts[what]:.0%}"}
        name = f"{what} that run again after an edit, of all on the path"
        yield Figure(name, counts[f"{what} again"] / counts[what] * 100, "%", parts=before)
    yield Figure("an edit of a run's input, p50", compute_percentile(times, 50), "ms", parts={"edits": f"{agents}"})


def _edit_input(folder: Path, number: int, size: int, ann: User, counts: Counter[str]) -> float:
    """Run an agent to its end, edit an input that some step reads, and go on; return the edit's milliseconds."""
    knobs = Knobs(
        steps=(size, size), effects=0.2, guarded=0.0, irreversible=0.0, gates=0.0, jumps=0.0, loops=0.0, ends=0.0,
        world=0.0, keyed=0.0, range=(2, 1000),
    )  # fmt: skip
    agent = load(folder, number, knobs)
    settings.HOLDPOINT_AGENTS = [agent.__module__]
    registry.forget()
    steps = registry.agent_named(agent.name).spec.steps
    readers = {name: [at for at, step in enumerate(steps) if name in step.reads] for name in INPUTS}
    edited = random.Random(number).choice([name for name, at in readers.items() if at] or ["x0"])
    run = advance_to_rest(make_run(agent.name, team=team_of(ann), x0=1, x1=1, x2=1), turns=TURNS)
    end, began = run.seq, time.perf_counter()
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": f"/{edited}", "value": 7}], by=ann)
    took = (time.perf_counter() - began) * 1e3
    advance_to_rest(run, turns=TURNS)
    assert run.status == "completed", f"{run} is {run.status}: {run.reason}"
    forget(agent)
    again = Checkpoint.objects.filter(run=run, seq__gt=end + 1, kind="step").values_list("step", flat=True)
    effects = {step.name for step in steps if step.kind == "effect"}
    every = [step.name for step in steps]
    for what, names in (("", every), (" again", again), (" since", every[min(readers[edited], default=size) :])):
        counts[f"steps{what}"] += len(names)
        counts[f"effects{what}"] += sum(name in effects for name in names)
    return took
