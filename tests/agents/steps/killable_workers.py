"""Killing workers: another process takes a run on and dies at a named point, and then the next worker comes."""

from __future__ import annotations

import signal
import sys
from functools import cache

from django.db.models.functions import Now

from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest
from tests.harness.services import Talking


class KillableWorkers:
    """Workers that know these agents, one for each run that they are told."""

    def __init__(self, agents: str) -> None:
        self.agents = agents

    def kill(self, run: Run, place: str, hit: int = 1) -> None:
        """Let a worker take the run on and kill itself with SIGKILL at this point."""
        ended = self.tell(f"{run.pk} {place}:kill:{hit}")
        assert ended == -signal.SIGKILL, f"{place} was never reached"

    def tell(self, line: str) -> int:
        answer = _forking().tell(f"{self.agents} {line}")
        if not answer:
            _forking.cache_clear()
        return int(answer)


@cache
def _forking() -> Talking:
    """The process that forks them, once for all tests of this one: it takes seconds to start."""
    return Talking(sys.executable, "-m", "tests.harness.forked_worker", env={"HOLDPOINT_LOG_LEVEL": "ERROR"})


def go_on(run: Run) -> Run:
    """Let the dead worker's lease run out, and take the run on."""
    Run.objects.filter(pk=run.pk, status="running").update(lease_until=Now())
    return advance_to_rest(run)
