"""A process killed in the middle of its saves leaves whole checkpoints and nothing half."""

from __future__ import annotations

import sys
import time

from checkpoints import store
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Checkpoint, Event, Run
from tests.conftest import Starter
from tests.factories.stored_runs import STEP, begin, take

SAVER = """
import django; django.setup()
from checkpoints import store
from checkpoints.store import claims
from checkpoints.models import Run
from checkpoints.values.ops import Append
run = Run.objects.get(pk={run})
claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="doomed", lease=60)
head = store.load(run)
header = store.Header("step", "one", "one")
print("saving", flush=True)
while True:
    head = store.save(head, {{"log": Append(["x" * 3000, head.seq]), "n": head.seq}}, claim=claim, header=header)
"""


def test_a_process_killed_while_it_saves_leaves_nothing_half(start_service: Starter) -> None:
    for pause in (0.02, 0.1, 0.25):
        run, claim, head = begin(log=[], n=0)
        store.save(head, {}, claim=claim, header=STEP, status="queued")
        command = [sys.executable, "-c", SAVER.format(run=run.pk)]
        saver = start_service("saver", command, {"DJANGO_SETTINGS_MODULE": "config.settings"})
        saver.says("saving")
        while Run.objects.get(pk=run.pk).seq < 4:
            time.sleep(0.005)
        time.sleep(pause)
        saver.kill()
        seen = 0
        while seen != run.seq:  # the server may still commit what it was sent
            seen = run.seq
            time.sleep(0.1)
            run.refresh_from_db()
        loaded = store.load(run)
        assert (loaded.id, loaded.seq) == (run.head, run.seq)
        assert loaded.state["log"][1::2] == list(range(2, loaded.seq))
        assert Checkpoint.objects.filter(run=run).count() == loaded.seq
        assert Event.objects.filter(run_id=run.pk, kind="checkpoint.saved").count() == loaded.seq - 1
        assert verify_run(run) == []
        # The dead worker's lease has to run out before anybody goes on.
        Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
        fresh = take(run)
        assert store.save(loaded, {"n": -1}, claim=fresh, header=STEP).state["n"] == -1
