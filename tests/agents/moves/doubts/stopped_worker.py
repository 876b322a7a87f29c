"""A worker in a process of its own, which a test can stop in the middle of an effect and continue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkpoints.models import Run
from tests.harness.services import Process, Service
from tests.harness.waiting import until

WORK = "import django; django.setup(); from agents.runner import engine; engine.advance({})"


@contextmanager
def working(run: Run, ledger: str) -> Iterator[Process]:
    """A worker of its own, from when its effect is under way; ended afterwards."""
    known = {"DJANGO_SETTINGS_MODULE": "config.settings", "HOLDPOINT_AGENTS": "tests.agents.moves.moved_agents"}
    command = [sys.executable, "-c", WORK.format(run.pk)]
    worker = Service("worker", command, Path(ledger).parent, known)
    try:
        until(lambda: Path(ledger).exists(), what="the effect is under way")
        yield worker.process
    finally:
        worker.kill()
