"""Killing workers: another process takes a run on and dies at a named point, and then the next worker comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from subprocess import PIPE

from django.db.models.functions import Now

from checkpoints.models import Run
from tests.factories.driven_runs import advance_to_rest
from tests.harness.session import ROOT


class KillableWorkers:
    """A process that forks a worker for each run it is told."""

    def __init__(self, agents: str) -> None:
        env = os.environ | {"HOLDPOINT_AGENTS": agents, "HOLDPOINT_LOG_LEVEL": "ERROR"}
        command = [sys.executable, "-m", "tests.harness.forked_worker"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdin=PIPE, stdout=PIPE)

    def kill(self, run: Run, place: str, hit: int = 1) -> None:
        """Let a worker take the run on and kill itself with SIGKILL at this point."""
        ended = self.tell(f"{run.pk} {place}:kill:{hit}")
        assert ended == -signal.SIGKILL, f"{place} was never reached"

    def tell(self, line: str) -> int:
        """How the worker ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        if self.process.stdout is not None:
            self.process.stdout.close()


def go_on(run: Run) -> Run:
    """Let the dead worker's lease run out, and take the run on."""
    Run.objects.filter(pk=run.pk, status="running").update(lease_until=Now())
    return advance_to_rest(run)
