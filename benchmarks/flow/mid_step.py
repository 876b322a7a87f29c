"""Measures a checkpoint inside a step against a save of a step that writes the same value, in turn, one run each."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.marks import mark
from benchmarks.parts.numbers import percentile
from benchmarks.parts.scratch import Scratch
from benchmarks.parts.workload import phrases, prose

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SIZES = {"100 B": 100, "10 KB": 10_000, "1 MB": 1_000_000}
LARGE, FEWER = 1_000_000, 5  # so many times fewer rounds of what is large
AIM = 1.0


def measure(scratch: Scratch, ann: User, rounds: int) -> None:
    """Print the two medians for each size, and their ratio."""
    rng, known = random.Random(7), phrases()
    for name, size in SIZES.items():
        texts = [prose(rng, known, size) for _ in range(max(2, rounds // (FEWER if size >= LARGE else 1)))]
        keep, save = _keeper(ann), _saver(ann)
        keep(texts[0])
        save(texts[0])
        scratch.analyze()
        kept, saved = zip(*((_took(keep, text), _took(save, text)) for text in texts[1:]), strict=True)
        ours, bare = percentile(kept, 50), percentile(saved, 50)
        beside = {"checkpoint": f"{ours:.3f} ms", "save": f"{bare:.3f} ms"}
        mark(f"checkpoint inside a step over a save, a value of {name}, p50", ours / bare, most=AIM, beside=beside)


def _took(act: Callable[[str], None], text: str) -> float:
    began = time.perf_counter_ns()
    act(text)
    return (time.perf_counter_ns() - began) / 1e6


def _keeper(ann: User) -> Callable[[str], None]:
    """Return a call that keeps a value as `self.checkpoint` does, in a run that is held."""
    from agents.models import StepCheckpoint
    from checkpoints.values.canonical_json import canonical

    claim, head = _held(ann)

    def keep(text: str) -> None:
        kept = StepCheckpoint.objects.keep(
            claim.run_id, token=claim.token, base=head.id, step="work", name="", value=canonical({"text": text})
        )
        assert kept

    return keep


def _saver(ann: User) -> Callable[[str], None]:
    """Return a call that saves the same value as a step's output."""
    from checkpoints import store
    from checkpoints.actors import of_agent

    claim, head = _held(ann)
    header = store.Header("step", "work", "work", input_digest=bytes(32), code_hash=bytes(32))
    heads, robo = [head], of_agent("flow_child")

    def save(text: str) -> None:
        heads[0] = store.save(heads[0], {"value": {"text": text}}, claim=claim, header=header, actor=robo)

    return save


def _held(ann: User) -> tuple[Any, Any]:
    """Return the claim of a new run, and its head."""
    from agents.definition import registry
    from benchmarks.parts.relays import start
    from checkpoints import store
    from checkpoints.models import Run
    from checkpoints.store import claims

    run = start(ann, "flow_child")
    claim = claims.claim(run, plan_ids=list(registry.plans()), worker="bench", lease=3600)
    assert claim is not None
    return claim, store.load(Run.objects.get(pk=run))
