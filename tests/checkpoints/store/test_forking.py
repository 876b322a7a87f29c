"""A fork is another run of the same lineage: with another state, plan, next step or environment, made whole or not.

A run that waits from its start on is the run that a start, a claim and a release leave.
"""

from __future__ import annotations

import secrets
import signal
import sys
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import transaction

from checkpoints import actors, store
from checkpoints.actors import SYSTEM
from checkpoints.audit import verify_runs
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced, NoSuchCheckpoint, ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Chunk, Event, Hold, Plan, Run
from checkpoints.store import Header, Snapshot, claims, executions, start_and_fork
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.stored_runs import STEP, begin, make_plan, make_run, make_team, take
from tests.harness import services
from tests.harness.racing_threads import meet_lock

from .test_claims import at_once

ENVIRONMENT = {"config": {"model": "large"}, "libraries": {"numpy": "2.3.1"}}
UPCAST = Header("upcast", "one", "two")


def origin(**values: Any) -> Snapshot:
    """A checkpoint to fork from, in the middle of its run."""
    _, claim, head = begin(**values)
    made = store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.save(made, {"n": 2}, claim=claim, header=STEP)
    return made


def environment_of(run: Run) -> Any:
    return decode_canonical(bytes(Run.objects.get(pk=run.pk).environment))


def test_a_run_is_started_in_an_environment_that_it_keeps() -> None:
    run = store.start(
        plan=make_plan(), team=make_team(), title="A run", values={}, first_step="one", by=SYSTEM,
        environment=ENVIRONMENT,
    )  # fmt: skip
    assert environment_of(run) == ENVIRONMENT
    assert environment_of(make_run()) == {}


def test_an_environment_that_cannot_be_saved_starts_nothing() -> None:
    team = make_team()
    with pytest.raises(ValueRefused) as refused:
        store.start(
            plan=make_plan(), team=team, title="A run", values={}, first_step="one", by=SYSTEM,
            environment={"config": {"rate": float("inf")}},
        )  # fmt: skip
    assert refused.value.pointer == "/config/rate"
    assert not Run.objects.filter(team=team).exists()


def test_a_fork_may_begin_with_other_values() -> None:
    start = origin(log=["hello"], gone=True, doc="d" * 50_000)
    forked = store.fork(start.id, by=SYSTEM, writes={"n": 7, "log": Append(["new"]), "gone": DROP})
    assert store.load(forked).state == {"n": 7, "log": ["hello", "new"], "doc": "d" * 50_000}
    assert [(row.kind, row.parent) for row in store.history(forked)] == [("fork", start.id)]
    assert store.load_checkpoint(start.id).state["log"] == ["hello"]
    assert Chunk.objects.filter(lineage=start.lineage).count() == 1
    assert verify_run(forked) == []


def test_a_fork_inherits_what_is_not_given_and_takes_what_is() -> None:
    source = store.start(
        plan=make_plan(), team=make_team(), title="A run", values={"n": 0}, first_step="one", by=SYSTEM,
        environment=ENVIRONMENT,
    )  # fmt: skip
    assert source.head is not None
    same = store.fork(source.head, by=SYSTEM)
    assert (same.plan_id, same.team_id, same.title, same.next_step) == (source.plan_id, source.team_id, "A run", "one")
    assert environment_of(same) == ENVIRONMENT
    plan, team = make_plan(), make_team()
    other = store.fork(
        source.head, by=SYSTEM, plan=plan, team=team, title="Again", next_step="two", environment={"config": {}}
    )
    assert (other.plan_id, other.team_id, other.title, other.next_step) == (plan.pk, team.pk, "Again", "two")
    assert environment_of(other) == {"config": {}}
    head = store.load(other)
    assert (head.plan_id, head.next_step) == (plan.pk, "two")
    assert verify_run(other) == []


@pytest.mark.parametrize(
    ("writes", "at"), [({"n": float("nan")}, "/n"), ({"l": Splice(5, 1)}, "/l"), ({"x": "\ud800"}, "/x")]
)
def test_a_fork_with_a_value_that_cannot_be_saved_makes_nothing(writes: dict[str, Any], at: str) -> None:
    start = origin(l=[])
    with pytest.raises(ValueRefused) as refused:
        store.fork(start.id, by=SYSTEM, writes=writes)
    assert refused.value.pointer == at
    assert_no_fork(start)


def assert_no_fork(start: Snapshot) -> None:
    assert not Run.objects.filter(forked_from=start.id).exists()
    assert not Checkpoint.objects.filter(parent=start.id, kind="fork").exists()
    assert not Hold.objects.filter(checkpoint=start.id).exists()
    forked = [decode_canonical(bytes(event.data))["from"] for event in Event.objects.filter(kind="run.forked")]
    assert str(start.id) not in forked


def test_a_fork_of_nothing_is_refused() -> None:
    with pytest.raises(NoSuchCheckpoint):
        store.fork(uuid4(), by=SYSTEM)


def test_of_many_forks_with_one_key_at_once_all_get_the_one_that_was_made() -> None:
    start, key = origin(), secrets.token_hex(8)
    got = at_once(8, lambda n: store.fork(start.id, by=SYSTEM, key=key, writes={"n": n}).pk)
    assert len(set(got)) == 1, got
    assert Checkpoint.objects.filter(parent=start.id, kind="fork").count() == 1
    assert Hold.objects.filter(checkpoint=start.id).count() == 1
    assert Event.objects.filter(run_id=got[0], kind="run.forked").count() == 1


def test_a_call_that_meets_one_with_its_key_not_committed_yet_answers_with_that_ones_run() -> None:
    start, key = origin(), secrets.token_hex(8)
    made: list[Run] = []
    late = meet_lock(
        lambda: made.append(store.fork(start.id, by=SYSTEM, key=key, writes={"n": 5})),
        lambda: store.fork(start.id, by=SYSTEM, key=key, writes={"n": 6}),
    )
    assert late == made[0] == store.fork(start.id, by=SYSTEM, key=key, writes={"n": 7})
    assert store.load(late).state["n"] == 5
    assert Run.objects.filter(forked_from=start.id).count() == Hold.objects.filter(checkpoint=start.id).count() == 1
    plan, team, other = make_plan(), make_team(), secrets.token_hex(8)

    def begin_with_key() -> Run:
        return store.start(plan=plan, team=team, title="A run", values={}, first_step="one", by=SYSTEM, key=other)

    late = meet_lock(lambda: made.append(begin_with_key()), begin_with_key)
    assert late == made[1]
    assert Run.objects.filter(team=team).count() == 1


def test_many_forks_at_once_share_the_chunks_that_they_all_write() -> None:
    start = origin(doc="d" * 50_000)
    got = at_once(6, lambda n: store.fork(start.id, by=SYSTEM, writes={"doc": "e" * 60_000, "n": n}))
    assert len({run.pk for run in got}) == 6
    for run in got:
        assert store.load(run).state["doc"] == "e" * 60_000
        assert verify_run(run) == []
    assert Chunk.objects.filter(lineage=start.lineage).count() == 2


class Crash(BaseException):
    """What no handler takes for an expected error."""


@pytest.mark.parametrize("step", ["first_rows", "event_log.append_events", "Hold.objects.make"])
def test_a_fork_that_breaks_off_in_the_middle_leaves_nothing(step: str) -> None:
    start = origin(doc="d" * 50_000)
    chunks = Chunk.objects.filter(lineage=start.lineage).count()
    with patch(f"checkpoints.store.start_and_fork.{step}", side_effect=Crash), pytest.raises(Crash):
        store.fork(start.id, by=SYSTEM, writes={"doc": "e" * 60_000}, key=secrets.token_hex(8))
    assert_no_fork(start)
    assert Chunk.objects.filter(lineage=start.lineage).count() == chunks
    assert [run.pk for run in Run.objects.filter(lineage=start.lineage)] == [start.run_id]


FORKER = """
import django; django.setup()
import os, signal, sys
from uuid import UUID
from checkpoints import store
from checkpoints.events import event_log
from checkpoints.actors import SYSTEM
event_log.append_events = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
store.fork(UUID(sys.argv[1]), by=SYSTEM, writes={"n": 9}, key=sys.argv[2])
"""


def test_a_process_killed_in_the_middle_of_a_fork_leaves_nothing_and_the_key_is_free() -> None:
    start, key = origin(), secrets.token_hex(8)
    command = [sys.executable, "-c", FORKER, str(start.id), key]
    killed = services.run(*command, env={"DJANGO_SETTINGS_MODULE": "config.settings"})
    assert killed.returncode == -signal.SIGKILL
    assert_no_fork(start)
    forked = store.fork(start.id, by=SYSTEM, writes={"n": 9}, key=key)
    assert store.load(forked).state["n"] == 9


def test_an_upcast_saves_the_state_and_the_run_goes_on_with_the_new_plan() -> None:
    run, claim, head = begin(total="5", old=1)
    plan = make_plan()
    made = store.save(head, {"amount": 5, "total": DROP}, claim=claim, header=UPCAST, plan=plan)
    assert (made.plan_id, made.state) == (plan.pk, {"amount": 5, "old": 1})
    run.refresh_from_db()
    assert (run.plan_id, run.next_step, run.head) == (plan.pk, "two", made.id)
    after = store.save(made, {"amount": 6}, claim=claim, header=STEP)
    assert after.plan_id == store.load(run).plan_id == plan.pk
    assert [row.plan_id for row in store.history(run)] == [plan.pk, plan.pk, head.plan_id]
    assert verify_run(run) == []


def test_a_fenced_upcast_changes_no_plan() -> None:
    run, claim, head = begin()
    store.save(head, {}, claim=claim, header=STEP)
    with pytest.raises(Fenced):
        store.save(head, {}, claim=claim, header=UPCAST, plan=make_plan())
    assert Run.objects.get(pk=run.pk).plan_id == head.plan_id


def test_a_plan_that_is_not_there_is_no_plan_to_go_on_with() -> None:
    run, claim, head = begin()
    gone = make_plan()
    Plan.objects.filter(pk=gone.pk).delete()
    gone.pk = 2**40
    with pytest.raises(Exception, match="plan_id"):
        store.save(head, {}, claim=claim, header=UPCAST, plan=gone)
    assert store.load(run).id == head.id


def test_a_rewind_to_before_an_upcast_goes_back_to_the_plan_of_then() -> None:
    """The checkpoint was of the older version, and the run's row of the newer one."""
    run, claim, head = begin(total="5")
    store.save(head, {"amount": 5, "total": DROP}, claim=claim, header=UPCAST, plan=make_plan())
    moved = store.move_head(store.load_checkpoint(head.id), {}, claim=claim, header=Header("rewind", "one", "one"))
    run.refresh_from_db()
    assert moved.plan_id == run.plan_id == head.plan_id
    newer = make_plan()
    moved = store.move_head(store.load_checkpoint(head.id), {}, claim=claim, header=UPCAST, plan=newer)
    run.refresh_from_db()
    assert moved.plan_id == run.plan_id == newer.pk


@pytest.mark.parametrize("kind", ["rewind", "edit", "repair"])
def test_the_head_is_moved_with_writes_of_every_form(kind: str) -> None:
    run, claim, head = begin(log=["a"], gone=1, doc={"deep": [1]})
    later = store.save(head, {"log": Append(["b"]), "n": 1}, claim=claim, header=STEP)
    written = {"gone": DROP, "log": Append(["c"]), "doc": {"deep": [1, 2]}, "never": DROP, "new": ["x"]}
    moved = store.move_head(head, written, claim=claim, header=Header(kind, "one", "two"))
    assert store.load(run).state == moved.state == {"log": ["a", "c"], "doc": {"deep": [1, 2]}, "new": ["x"]}
    assert [record.kind for record in executions.path(moved.id)] == ["input", kind]
    assert store.load_checkpoint(later.id).state["log"] == ["a", "b"]
    assert verify_run(run) == []


def test_a_fork_goes_back_to_where_its_origin_came_from_as_itself() -> None:
    """It was refused, and what moves a run over the point where it was forked had nowhere to go."""
    run, claim, first = begin(n=0, log=["a"])
    second = store.save(first, {"n": 1, "log": Append(["b"])}, claim=claim, header=STEP)
    forked = store.fork(second.id, by=SYSTEM)
    mine = take(forked)
    moved = store.move_head(first, {"n": 7}, claim=mine, header=Header("rewind", "one", "two"))
    forked.refresh_from_db()
    assert (moved.run_id, moved.seq, forked.head, forked.next_step) == (forked.pk, 2, moved.id, "two")
    assert store.load(forked).state == {"n": 7, "log": ["a"]}
    path = executions.path(moved.id)
    assert [(each.run_id, each.seq) for each in path] == [(run.pk, 1), (forked.pk, 2)]
    assert executions.path(moved.id, store.load_head(forked)[1]) == path
    later = store.save(moved, {"log": Append(["c"])}, claim=mine, header=STEP)
    assert store.load(forked).state == later.state == {"n": 7, "log": ["a", "c"]}
    assert verify_run(forked) == verify_run(run) == []
    assert store.load(run).state == {"n": 1, "log": ["a", "b"]}


def test_no_run_goes_to_a_checkpoint_that_it_does_not_stand_on() -> None:
    run, claim, first = begin(n=0)
    second = store.save(first, {"n": 1}, claim=claim, header=STEP)
    forked = store.fork(first.id, by=SYSTEM)
    mine, sibling = take(forked), store.load(store.fork(first.id, by=SYSTEM))
    _, _, stranger = begin(n=0)
    for target in (second, sibling, stranger):
        with pytest.raises(NoSuchCheckpoint):
            store.move_head(target, {}, claim=mine, header=Header("rewind", "one", "two"))
    with pytest.raises(NoSuchCheckpoint):
        store.move_head(store.load(forked), {}, claim=claim, header=Header("rewind", "one", "two"))
    assert Checkpoint.objects.filter(run=forked).count() == 1
    assert Run.objects.get(pk=run.pk).head == second.id


VALUES: dict[str, Any] = {"items": [{"n": n, "text": "x" * 90} for n in range(900)], "name": "Wire"}
ANN = actors.of_agent("payouts")


def row(run: Run) -> dict[str, Any]:
    own = ("id", "lineage", "head", "created_at")
    return {name: value for name, value in Run.objects.values().get(pk=run.pk).items() if name not in own}


def said(run: Run) -> list[tuple[Any, ...]]:
    events = Event.objects.filter(run_id=run.pk).order_by("id")
    names = ("kind", "version", "team_id", "actor", "actor_name", "data")
    return [(*found[:-1], bytes(found[-1])) for found in events.values_list(*names)]


def test_its_row_its_events_and_its_state_are_the_same() -> None:
    """The state is large enough for chunks of its own."""
    like = make_run()
    known: dict[str, Any] = {"plan": like.plan, "team": like.team, "title": "Wire", "thread": "t"}
    slow = store.start(**known, values=VALUES, first_step="ask", by=ANN)
    claim = claims.claim(slow.pk, plan_ids=[slow.plan_id], worker="box:81", lease=30, by=ANN)
    assert claim is not None
    claims.release(claim, status="waiting", reason="asks: Wire", by=ANN)
    runs = [Run(**known, started_as=ANN.id) for _ in range(3)]
    with transaction.atomic():
        numbers, at, list_format = start_and_fork.new_numbers(3)
        pairs = zip(runs, numbers, strict=True)
        drafts = [
            start_and_fork.first_checkpoint(run, n, VALUES, first_step="ask", at=at, list_format=list_format)
            for run, n in pairs
        ]
        rows = start_and_fork.waiting_rows(runs, drafts, ["asks: Wire"] * 3)
        events = [one for run in runs for one in (*start_and_fork.began(run, ANN), start_and_fork.waits(run, ANN))]
        event_log.append_events(events, extras=rows)
    for run in runs:
        assert row(run) == row(slow)
        assert said(run) == said(slow)
        assert store.load(run).state == VALUES
        assert run.checkpoints.get().digest != slow.checkpoints.get().digest  # it covers the run
        assert verify_runs.verify_run(run) == []
        assert run.wake(actors.SYSTEM)
        assert claims.claim(run.pk, plan_ids=[run.plan_id], worker="box:81", lease=30) is not None
