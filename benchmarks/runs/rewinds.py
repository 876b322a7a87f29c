"""Counts, for random agents of 10 to 200 steps, the steps and effects repeated after an edit of one input.

    python -m benchmarks.runs.rewinds [GRAPHS]

The edit is made after completion. Three ways to continue are counted on the same graphs: Holdpoint's edit (really made,
and run to the end), a restart from the checkpoint before the first step that reads the input, and a restart from
scratch (really run, with the edited input: both have to end in the same state). A step's output depends only on what
it reads; half of them have one of two values, so that some changes do not spread. A fifth of the steps are effects.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.parts.numbers import percentile
from benchmarks.parts.people import make_person, make_team
from benchmarks.parts.scratch import Scratch

SIZES = ((10, 50), (51, 100), (101, 200))
SEED = 11


class Shares(NamedTuple):
    """The counts of one graph: its steps and effects, and those that each way repeats after the edit."""

    size: int
    steps: int  # of the path, effects included
    effects: int
    ours: int
    ours_effects: int
    undone: int
    checkpoint: int
    checkpoint_effects: int


def main(graphs: int = 90) -> None:
    """Print the table."""
    rng = random.Random(SEED)
    os.environ.setdefault("HOLDPOINT_LOG_LEVEL", "WARNING")
    with Scratch(), tempfile.TemporaryDirectory() as folder:
        from agents.ringing import doorbell

        doorbell.silence()
        user = make_person("ann", make_team())
        found = []
        for number in range(graphs):
            low, high = SIZES[number % len(SIZES)]
            found.append(_measured(Path(folder), number, rng.randint(low, high), user))
            if sys.stderr.isatty():
                print(f"\r  {number + 1} of {graphs}", end="", file=sys.stderr, flush=True)
    _report(found)


def _report(found: Sequence[Shares]) -> None:
    print(f"{len(found)} graphs; of the steps on the path, and of the effects: mean (p10, p50, p90)")
    print(f"{'steps':>9} {'graphs':>7}  {'steps: ours':<22} {'checkpoint before':<22} {'scratch':<8}"
          f"{'effects: ours':<22} {'checkpoint before':<22} scratch")  # fmt: skip
    for low, high in (*SIZES, (SIZES[0][0], SIZES[-1][1])):
        rows = [row for row in found if low <= row.size <= high]
        print(
            f"{f'{low}-{high}':>9} {len(rows):>7}  "
            f"{_spread([row.ours / row.steps for row in rows])} "
            f"{_spread([row.checkpoint / row.steps for row in rows])} {'100%':<8}"
            f"{_spread([row.ours_effects / row.effects for row in rows if row.effects])} "
            f"{_spread([row.checkpoint_effects / row.effects for row in rows if row.effects])} 100%"
        )
    ours, before = sum(row.ours for row in found), sum(row.checkpoint for row in found)
    print(f"steps run: ours over the checkpoint before {ours / before:.2f}, "
          f"over scratch {ours / sum(row.steps for row in found):.2f}")  # fmt: skip
    done, again = sum(row.ours_effects for row in found), sum(row.checkpoint_effects for row in found)
    print(f"effects performed: ours over the checkpoint before {done / again:.2f}, "
          f"over scratch {done / sum(row.effects for row in found):.2f}; "
          f"{sum(row.undone for row in found)} of the old ones undone")  # fmt: skip


def _spread(shares: Sequence[float]) -> str:
    quantiles = ", ".join(f"{percentile(shares, percent):.0%}" for percent in (10, 50, 90))
    return f"{f'{statistics.mean(shares):.0%} ({quantiles})':<22}"


def _measured(folder: Path, number: int, size: int, user: Any) -> Shares:
    """Run one graph to its end, edit an input that some step reads, and compare with a run from scratch."""
    from django.conf import settings

    from agents.definition import registry
    from agents.moves import rewind
    from checkpoints import store
    from tests.factories.random_agents import Knobs, forget, load

    knobs = Knobs(
        steps=(size, size), effects=0.2, guarded=0.0, irreversible=0.0, gates=0.0, jumps=0.0, loops=0.0, ends=0.0,
        world=0.0, keyed=0.0, range=(2, 1000),
    )  # fmt: skip
    agent = load(folder, number, knobs)
    settings.HOLDPOINT_AGENTS = [agent.__module__]
    registry.forget()
    rng = random.Random(number)
    steps = registry.named(agent.name).spec.steps
    readers = {name: [n for n, step in enumerate(steps) if name in step.reads] for name in ("x0", "x1", "x2")}
    edited = rng.choice([name for name, at in readers.items() if at] or ["x0"])
    run = _completed(agent, dict.fromkeys(readers, 1), user)
    before = run.seq
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": f"/{edited}", "value": 7}], by=user)
    _to_the_end(run)
    fresh = _completed(agent, {name: 7 if name == edited else 1 for name in readers}, user)
    assert store.load(run).state == store.load(fresh).state, f"graph {number}: the ends differ"
    forget(agent)
    return _counted(run, before, size, steps, readers[edited][0] if readers[edited] else len(steps))


def _counted(run: Any, before: int, size: int, steps: Sequence[Any], first: int) -> Shares:
    from agents.models import Effect
    from checkpoints.models import Checkpoint

    ran = Checkpoint.objects.filter(run=run, seq__gt=before + 1, kind="step").values_list("step", flat=True)
    effects = {step.name for step in steps if step.kind == "effect"}
    return Shares(
        size=size,
        steps=len(steps),
        effects=len(effects),
        ours=len(ran),
        ours_effects=sum(1 for name in ran if name in effects),
        undone=Effect.objects.filter(run=run, undoes=None, status="undone").count(),
        checkpoint=len(steps) - first,
        checkpoint_effects=sum(1 for step in steps[first:] if step.kind == "effect"),
    )


def _completed(agent: Any, values: dict[str, int], user: Any) -> Any:
    from agents.runs.start import start_run
    from checkpoints.actors import SYSTEM

    run = start_run(agent.name, values, by=SYSTEM, team=user.groups.get())
    _to_the_end(run)
    return run


def _to_the_end(run: Any) -> None:
    from agents.runner import engine

    while run.status in run.LIVE:
        engine.advance(run.pk)
        run.refresh_from_db()
    assert run.status == "completed", f"{run} is {run.status}: {run.reason}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
