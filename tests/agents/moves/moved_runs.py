"""Moving runs in the tests: by ann of the run's team, to the checkpoint of a step."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now

from agents.models import Effect
from agents.moves import rewind as rewinds
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.models import Checkpoint, Run
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest


def lines(ledger: str, *, words: int = 2) -> list[str]:
    """The external ledger, each line's first words."""
    path = Path(ledger)
    return [" ".join(line.split()[:words]) for line in path.read_text().splitlines()] if path.exists() else []


def after(run: Run, step: str, *, last: bool = True) -> int:
    """The number of a checkpoint that `step` led to."""
    found = Checkpoint.objects.filter(run=run, step=step, kind__in=("step", "reused", "gate", "input"))
    return int(found.order_by("-seq" if last else "seq").values_list("seq", flat=True)[0])


def before(run: Run, step: str) -> int:
    """The number of the checkpoint that `step` last started from."""
    parent = Checkpoint.objects.get(run=run, seq=after(run, step)).parent
    assert parent is not None
    return int(Checkpoint.objects.values_list("seq", flat=True).get(pk=parent))


def edit(run: Run, at: int, **said: Any) -> Run:
    """Change the named fields of a checkpoint's state."""
    changes = {name: value for name, value in said.items() if name not in ("feedback", "seen")}
    rest = {name: value for name, value in said.items() if name not in changes}
    patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in changes.items()]
    return rewinds.edit(run, at=at, patch=patch, by=ann(run.team), **rest)


def rewind(run: Run, to: int, **said: Any) -> Run:
    """Go back to a checkpoint."""
    return rewinds.rewind(run, to=to, by=ann(run.team), **said)


def since(run: Run, seq: int) -> list[tuple[str, str]]:
    """(kind, step) of what was saved after a checkpoint."""
    return list(Checkpoint.objects.filter(run=run, seq__gt=seq).order_by("seq").values_list("kind", "step"))


def fates(run: Run) -> list[tuple[str, str]]:
    """(step, status) of the run's effects, oldest first; undos are told by "undo of"."""
    rows = Effect.objects.filter(run=run).order_by("pk")
    return [(("undo of " if row.undoes_id else "") + row.step, row.status) for row in rows]


def choices(gate: Gate) -> list[str]:
    """The answers that a question offers."""
    question = gate.asked.question
    return [each["id"] for each in question["choices"]] if question else []


def lease_over(run: Run) -> None:
    """As if the lease had run out."""
    Run.objects.filter(pk=run.pk).update(lease_until=Now() - dt.timedelta(seconds=1))


def die(run: Run, point: str) -> None:
    """Take the run on until its worker dies at this crash point; the next may take it at once."""
    with mock.patch.dict(os.environ, {"HOLDPOINT_CRASH": f"{point}:raise"}), pytest.raises(crash_points.Crashed):
        advance_to_rest(run)
    lease_over(run)
