"""Runs to save into; every call makes new rows, so that tests may commit and never meet."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import Group

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.layout import parts, snapshot
from checkpoints.models import Plan, Run
from checkpoints.runs import plans
from checkpoints.runs.plans import PlanSpec, StepSpec
from checkpoints.store import Header, Snapshot, claims, start_and_fork
from checkpoints.store.claims import Claim
from checkpoints.values.digests import ChainDigest, ListDigest, StretchDigest

STEP = Header("step", "one", "one")
REWIND = Header("rewind", "one", "one")
FORMATS: list[type[ListDigest]] = [ChainDigest, StretchDigest]


def make_plan() -> Plan:
    return plans.keep(PlanSpec(f"robo-{secrets.token_hex(6)}", "1", steps=(StepSpec("one"), StepSpec("two"))))


def make_team() -> Group:
    return Group.objects.create(name=f"Support-{secrets.token_hex(6)}")


def make_run(**values: Any) -> Run:
    return store.start(plan=make_plan(), team=make_team(), title="A run", values=values, first_step="one", by=SYSTEM)


def take(run: Run, *, lease: float = 60.0) -> Claim:
    made = claims.claim(run.pk, plan_ids=[run.plan_id], worker="robo", lease=lease)
    assert made is not None
    return made


def begin(**values: Any) -> tuple[Run, Claim, Snapshot]:
    run = make_run(**values)
    return run, take(run), store.load(run)


@contextmanager
def starting(lists: type[ListDigest]) -> Iterator[None]:
    statement = start_and_fork._NUMBERS.replace("public.checkpoints_new_codec()", str(lists.CODEC))
    with patch.object(start_and_fork, "_NUMBERS", statement):
        yield


@contextmanager
def small_layout(anchors: int = 64) -> Iterator[None]:
    """Stretches, sealed chunks and what folds them are so small that short lists have many of each."""
    with (
        patch.object(StretchDigest, "STRETCH", 3),
        patch.multiple(parts, INLINE=20, SEGMENT=60, FOLD=2),
        patch.object(snapshot, "ANCHOR_EVERY", anchors),
    ):
        yield
