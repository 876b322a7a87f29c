"""The path that a worker keeps of a run is the one that the database has, and its heartbeat looks after each claim."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from agents.definition import registry
from agents.session.heartbeat import ClaimBeat, HeartbeatThread
from agents.session.run_path import RunPath
from agents.session.run_session import RunSession
from agents.steps.local_performer import LOCAL
from checkpoints import store
from checkpoints.layout.snapshot import ANCHOR_EVERY
from checkpoints.models import Checkpoint, Run
from checkpoints.store import claims, executions
from checkpoints.store.claims import Claim
from checkpoints.values.ops import Append
from tests.factories.driven_runs import make_run
from tests.factories.stored_runs import REWIND, STEP, begin
from tests.harness.altered_rows import altered
from tests.harness.sent_statements import sent
from tests.harness.waiting import until


@pytest.mark.parametrize("read", [True, False], ids=["read before the save", "read after it"])
def test_a_save_is_once_on_the_path(read: bool) -> None:
    """A checkpoint saved before anybody had read the path was on it twice, the second time as its own parent."""
    run = make_run("payer")
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=60)
    assert claim is not None
    session = RunSession(
        claim, Run.objects.get(pk=run.pk), registry.plans()[run.plan_id], store.load(run), ClaimBeat(claim), 1, LOCAL
    )
    assert not read or len(session.path.places) == 1
    spec = session.plan.step(session.snapshot.next_step)
    assert session.save("recovery", spec, {}, spec.name, slice_over=False)
    assert session.path.places == executions.path(session.snapshot.id)


@pytest.mark.parametrize(("length", "reads"), [(1, 0), (ANCHOR_EVERY, 0), (ANCHOR_EVERY + 5, 1)])
def test_the_path_of_a_head_is_what_was_loaded_and_what_came_before(length: int, reads: int) -> None:
    run, claim, head = begin(log=[])
    for number in range(length - 1):
        head = store.save(head, {"log": Append([number])}, claim=claim, header=STEP)
    loaded, trail = store.load_head(run)
    with sent() as statements:
        path = RunPath.to(loaded.id, trail)
    assert len(statements) == reads
    assert path.places == executions.path(head.id)
    assert len(path.places) == length


def test_a_branch_that_was_left_is_not_on_the_path_of_a_loaded_head() -> None:
    run, claim, first = begin(n=0)
    second = store.save(first, {"n": 1}, claim=claim, header=STEP)
    store.save(second, {"n": 2}, claim=claim, header=STEP)
    moved = store.move_head(second, {"n": 3}, claim=claim, header=REWIND)
    head = store.save(moved, {"n": 4}, claim=claim, header=STEP)
    path = RunPath.to(head.id, store.load_head(run)[1])
    assert [each.seq for each in path] == [1, 2, 4, 5]
    assert path.places == executions.path(head.id)


def test_headers_of_another_head_are_not_taken_for_the_path() -> None:
    """A session that had moved its head before anybody asked for the path would have had the one it came from."""
    run, claim, first = begin(n=0)
    second = store.save(first, {"n": 1}, claim=claim, header=STEP)
    trail = store.load_head(run)[1]
    moved = store.move_head(first, {"n": 2}, claim=claim, header=REWIND)
    assert RunPath.to(moved.id, trail).places == executions.path(moved.id)
    assert second.id not in RunPath.to(moved.id, trail).ids


def test_a_damaged_row_ends_the_path() -> None:
    """A first checkpoint whose parent is the head led from stretch to stretch for ever."""
    run, claim, head = begin(n=0)
    for number in range(3):
        head = store.save(head, {"n": number}, claim=claim, header=STEP)
    with altered(Checkpoint.objects.get(run=run, seq=1), parent=head.id):
        assert [each.seq for each in executions.path(head.id)] == [1, 2, 3, 4]


def claim(lease: float = 30.0) -> Claim:
    return Claim(1, 1, lease, None, 0, "", 1, datetime.now(UTC))


def test_a_claim_that_came_while_the_thread_slept_for_another_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[ClaimBeat] = []

    def look(beat: ClaimBeat) -> None:
        looked.append(beat)
        beat.asked = time.monotonic()

    monkeypatch.setattr(ClaimBeat, "look", look)
    heart = HeartbeatThread()
    with heart.watch(claim()):
        until(lambda: heart.wakes < float("inf"), what="the thread sleeps for this claim")
    with heart.watch(claim()) as beat:
        until(lambda: looked)
    assert looked == [beat]
