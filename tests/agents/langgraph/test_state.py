"""A reviewer's edit of the state is what the graph goes on with; a rewind is its time travel; a kill loses nothing."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from agents.moves import rewind
from checkpoints.models import Checkpoint
from tests.agents.steps.killable_workers import KillableWorkers, go_on
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate, state

from .test_approvals import HELLO, asking, heard
from .test_interrupts import answers, begun, lines, say


def test_what_had_finished_when_a_worker_was_killed_is_not_done_again(tmp_path: Path, workers: KillableWorkers) -> None:
    run = make_run("dying", folder=str(tmp_path))
    assert workers.tell(f"{run.pk} ") == -signal.SIGKILL
    run = go_on(run)
    assert run.status == "completed", run.reason
    assert sorted(state(run)["said"]) == ["survivor", "works"]
    done = (tmp_path / "did.txt").read_text().splitlines()
    assert done.count("works") == 1
    [victim], [survivor] = ([each for each in done if each.startswith(who)] for who in ("victim", "survivor"))
    assert victim.split()[1] == survivor.split()[1], "the key for the provider is the same"
