"""Runs of the restock agent over the shelves that come with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group

from agents.examples.restock import Restock
from agents.runs.start import start_run
from checkpoints import actors
from checkpoints.models import Run
from tests.agents.examples.refunds.conftest import World
from tests.factories import make_team
from tests.factories.driven_runs import advance_to_rest
from tests.harness.session import ROOT

SHELVES: Path = ROOT / "agents" / "examples" / "restock" / "shelves"


def make_restock(number: int = 0, *, team: Group | None = None) -> Run:
    """A run over one of the shelves, taken as far as its gate."""
    input = Restock.inputs_from(SHELVES)[number]
    return advance_to_rest(start_run("restock", input, by=actors.SYSTEM, team=team or make_team()))


def made(world: World, kind: str, run: Run) -> list[dict[str, Any]]:
    """What the supplier ("orders") or the till ("prices") made of a run, oldest first."""
    keys = set(run.effects.values_list("key", flat=True))
    return [each for each in world.http.get(f"/{kind}").json()["items"] if each["key"] in keys]
