"""Killing workers: another process takes a run on and dies at a named point, and then the next worker comes."""

from __future__ import annotations

import signal
import sys

from django.db.models.functions import Now

from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest
from tests.harness.services import Talking


class KillableWorkers:
    """A process that forks a worker for each run it is told."""

    def __init__(self, agents: str) -> None:
        env = {"HOLDPOINT_AGENTS": agents, "HOLDPOINT_LOG_LEVEL": "ERROR"}
        self.process = Talking(sys.executable, "-m", "tests.harness.forked_worker", env=env)

    def kill(self, run: Run, place: str, hit: int = 1) -> None:
        """Let a worker take the run on and kill itself with SIGKILL at this point."""
        ended = self.tell(f"{run.pk} {place}:kill:{hit}")
        assert ended == -signal.SIGKILL, f"{place} was never reached"

    def tell(self, line: str) -> int:
        """How the worker ended."""
        return int(self.process.tell(line))

    def close(self) -> None:
        """End the process."""
        self.process.close()


def go_on(run: Run) -> Run:
    """Let the dead worker's lease run out, and take the run on."""
    Run.objects.filter(pk=run.pk, status="running").update(lease_until=Now())
    return advance_to_rest(run)
