"""What one save writes, costs and refuses, what a rewind and a fork make of it, and where two paths part."""

from __future__ import annotations

import secrets
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test import override_settings

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced, NoSuchCheckpoint, OtherLineage, StateTooLarge, ValueRefused
from checkpoints.models import Checkpoint, Chunk, Event, Hold, Note, Run
from checkpoints.store import Header, Snapshot, claims, executions
from checkpoints.values.canonical_json import decode_canonical
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.stored_runs import REWIND, STEP, begin, make_plan, make_team, take
from tests.harness.racing_threads import meet_lock

ENVIRONMENT = {"config": {"model": "large"}, "libraries": {"numpy": "2.3.1"}}
UPCAST = Header("upcast", "one", "two")


def test_a_list_is_saved_as_what_changed_in_it_whatever_a_step_does_with_its_value() -> None:
    run, claim, head = begin(items=[])
    mine = {"a": [1]}
    head = store.save(head, {"items": Append([mine]), "one": mine}, claim=claim, header=STEP)
    mine["a"].append(2)
    assert head.state == store.load(run).state == {"items": [{"a": [1]}], "one": {"a": [1]}}
    run, claim, head = begin(items=["x" * 1000 + str(n) for n in range(50)])
    head = store.save(head, {"items": [*head.state["items"], "new"]}, claim=claim, header=STEP)
    assert len(Checkpoint.objects.get(pk=head.id).payload) < 200
    changed = [*head.state["items"]]
    changed[10:12] = [1, True, 1.0]
    head = store.save(head, {"items": changed}, claim=claim, header=STEP)
    assert len(Checkpoint.objects.get(pk=head.id).payload) < 200
    assert repr(store.load(run).state["items"]) == repr(changed)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"a": float("nan")}, "/a"),
    ({"fine": 1, "l": Append([1, {"x": "\ud800"}])}, "/l/1/x"),
    ({"l": Splice(1, 1, [])}, "/l"),
    ({"l": Splice(-1, 0, [])}, "/l"),
    ({"n": Append([1])}, "/n"),
    ({"l": Append("text")}, "/l"),
    ({"when": object()}, "/when"),
]


@pytest.mark.parametrize(("written", "pointer"), REFUSED)
def test_a_refused_write_saves_nothing(written: dict[str, Any], pointer: str) -> None:
    run, claim, head = begin(l=[0], n=1)
    with pytest.raises(ValueRefused) as refused:
        store.save(head, written, claim=claim, header=STEP)
    assert refused.value.pointer == pointer
    assert store.load(run).id == head.id
    assert Checkpoint.objects.filter(run=run).count() == 1


def test_a_state_over_its_limit_is_refused_by_its_largest_field() -> None:
    run, claim, head = begin(big="", small="x")
    with pytest.raises(StateTooLarge) as refused:
        store.save(head, {"small": "y", "big": "x" * (16 * 1024 * 1024)}, claim=claim, header=STEP)
    assert refused.value.pointer == "/big"
    head = store.save(head, {"big": "x" * (10 * 1024 * 1024)}, claim=claim, header=STEP)
    assert len(store.load(run).state["big"]) == 10 * 1024 * 1024
    with pytest.raises(StateTooLarge):
        store.save(head, {"list": ["x" * 1024] * 7000}, claim=claim, header=STEP)
    # A state that is over a limit lowered since may still shrink.
    with override_settings(HOLDPOINT_STATE_LIMIT=1000):
        head = store.save(head, {"big": "x" * 5000}, claim=claim, header=STEP)
        with pytest.raises(StateTooLarge):
            store.save(head, {"small": "more than before"}, claim=claim, header=STEP)


def test_a_save_in_a_transaction_lands_with_it_or_not_at_all() -> None:
    run, claim, head = begin(n=0)
    with transaction.atomic():
        made = store.save(head, {"n": 1}, claim=claim, header=STEP)
        transaction.set_rollback(True)
    assert store.load(run).id == head.id
    assert not Event.objects.filter(run_id=run.pk, kind="checkpoint.saved").exists()
    with transaction.atomic():
        made = store.save(head, {"n": 1}, claim=claim, header=STEP)
        made = store.save(made, {"n": 2, "big": "x" * 5000}, claim=claim, header=STEP)
    assert store.load(run).state["n"] == 2
    # Whatever psycopg prepared is gone after a rollback; a save by itself goes on.
    assert connection.get_autocommit()
    assert store.save(made, {"n": 3}, claim=claim, header=STEP).seq == 4


def test_a_save_without_a_transaction_is_there_for_others_at_once() -> None:
    run, claim, head = begin(n=0)
    made = store.save(head, {"n": 1}, claim=claim, header=Header("step", "one", "two", 3, 2, b"i" * 32, b"c" * 32, 77))
    row = Checkpoint.objects.get(pk=made.id)
    assert (row.step, row.next_step, row.occurrence, row.attempt, row.took_us) == ("one", "two", 3, 2, 77)
    assert (bytes(row.input_digest or b""), row.parent, row.kind) == (b"i" * 32, head.id, "step")
    event = Event.objects.get(run_id=run.pk, kind="checkpoint.saved")
    assert (event.subject, event.version, event.team_id) == (f"run:{run.pk}", 2, run.team_id)
    run.refresh_from_db()
    assert (run.head, run.seq, run.next_step, run.attempts) == (made.id, 2, "two", 1)


def test_a_save_may_end_the_run_with_a_note_and_a_reason() -> None:
    run, claim, head = begin(n=0)
    made = store.save(
        head, {"n": 1}, claim=claim, header=Header("step", "one", ""), status="completed", reason="done\0",
        notes=["why\0", "lone \ud800"],
    )  # fmt: skip
    run.refresh_from_db()
    assert (run.status, run.reason, run.attempts, run.lease_until) == ("completed", "done\ufffd", 0, None)
    assert run.finished_at is not None
    assert [bytes(note.text) for note in Note.objects.filter(checkpoint=made.id)] == [b"why\0", b"lone ?"]
    kinds = Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["run.started", "run.running", "checkpoint.saved", "run.completed"]
    with pytest.raises(Fenced):
        store.save(made, {"n": 2}, claim=claim, header=STEP)


def test_a_rewind_keeps_the_old_head_as_a_branch() -> None:
    run, claim, head = begin(n=0)
    first = store.save(head, {"n": 1}, claim=claim, header=STEP)
    old = store.save(first, {"n": 2, "extra": 1}, claim=claim, header=STEP)
    moved = store.move_head(first, {"why": "no"}, claim=claim, header=REWIND)
    assert store.load(run).state == moved.state == {"n": 1, "why": "no"}
    assert Checkpoint.objects.get(pk=moved.id).parent == first.id
    assert store.load_checkpoint(old.id).state == {"n": 2, "extra": 1}
    assert [each.seq for each in executions.path(moved.id)] == [1, 2, 4]
    assert [row.seq for row in store.history(run)] == [4, 3, 2, 1]
    assert [row.seq for row in store.history(run, before_seq=3, limit=1)] == [2]


def test_a_fork_shares_its_origins_chunks_and_holds_it() -> None:
    run, claim, head = begin(doc="d" * 50_000, n=0)
    origin = store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.save(origin, {"n": 2}, claim=claim, header=STEP)
    forked = store.fork(origin.id, by=SYSTEM, title="Again")
    assert forked.lineage == run.lineage
    assert forked.forked_from == origin.id
    assert Chunk.objects.filter(lineage=run.lineage).count() == 1
    assert store.load(forked).state == origin.state
    assert Hold.objects.get(subject=f"run:{forked.pk}").checkpoint == origin.id
    assert Hold.objects.free(run=run.pk, subject=f"run:{forked.pk}", by=SYSTEM) == 1
    assert not Hold.objects.standing().filter(run=run).exists()
    assert verify_run(forked) == []
    again = take(forked)
    assert store.save(store.load(forked), {"n": DROP}, claim=again, header=STEP).state == {"doc": "d" * 50_000}


def test_a_saved_checkpoint_costs_one_statement() -> None:
    _, claim, head = begin(n=0)
    head = store.save(head, {"n": 1}, claim=claim, header=STEP)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text::bigint")
        before = cursor.fetchone()[0]
        for n in range(10):
            head = store.save(head, {"n": n}, claim=claim, header=STEP)
        cursor.execute("SELECT count(DISTINCT xid) FROM checkpoints_event WHERE run_id = %s AND xid > %s",
                       [head.run_id, before])  # fmt: skip
        assert cursor.fetchone()[0] == 10
    assert claims.renew(claim)


def test_checkpoints_of_two_branches_and_of_a_fork_compare_and_of_two_lineages_do_not() -> None:
    _, claim, head = begin(n=0)
    first = store.save(head, {"n": 1}, claim=claim, header=STEP)
    left = store.save(first, {"n": 2}, claim=claim, header=STEP)
    moved = store.move_head(first, {}, claim=claim, header=REWIND)
    right = store.save(moved, {"n": 3}, claim=claim, header=STEP)
    found = store.compare(left.id, right.id)
    assert found.ancestor.id == first.id
    assert [each.id for each in found.to_a] == [left.id]
    assert [(each.id, each.kind) for each in found.to_b] == [(moved.id, "rewind"), (right.id, "step")]
    fork = store.fork(left.id, by=SYSTEM)
    forked = store.save(store.load(fork), {"n": 4}, claim=take(fork), header=STEP)
    found = store.compare(right.id, forked.id)
    assert found.ancestor.id == first.id
    assert [(each.run_id, each.kind) for each in found.to_b] == [
        (left.run_id, "step"), (fork.pk, "fork"), (fork.pk, "step"),
    ]  # fmt: skip
    assert store.compare(forked.id, forked.id).ancestor.id == forked.id
    _, _, ours = begin(n=0)
    _, _, theirs = begin(n=0)
    with pytest.raises(OtherLineage, match="common ancestor"):
        store.compare(ours.id, theirs.id)
    with pytest.raises(NoSuchCheckpoint):
        store.compare(ours.id, uuid4())


def origin(**values: Any) -> Snapshot:
    """A checkpoint to fork from, in the middle of its run."""
    _, claim, head = begin(**values)
    made = store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.save(made, {"n": 2}, claim=claim, header=STEP)
    return made


def environment_of(run: Run) -> Any:
    return decode_canonical(bytes(Run.objects.get(pk=run.pk).environment))


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
    assert Event.objects.filter(run_id=late.pk, kind="run.forked").count() == 1
    plan, team, other = make_plan(), make_team(), secrets.token_hex(8)

    def begin_with_key() -> Run:
        return store.start(plan=plan, team=team, title="A run", values={}, first_step="one", by=SYSTEM, key=other)

    late = meet_lock(lambda: made.append(begin_with_key()), begin_with_key)
    assert late == made[1]
    assert Run.objects.filter(team=team).count() == 1


class Crash(BaseException):
    """What no handler takes for an expected error."""


def test_a_fork_with_what_cannot_be_saved_or_that_dies_makes_nothing() -> None:
    start = origin(doc="d" * 50_000)
    chunks = Chunk.objects.filter(lineage=start.lineage).count()
    for writes, at in (({"n": float("nan")}, "/n"), ({"doc": Splice(5, 1)}, "/doc"), ({"x": "\ud800"}, "/x")):
        with pytest.raises(ValueRefused) as refused:
            store.fork(start.id, by=SYSTEM, writes=writes)
        assert refused.value.pointer == at
    for step in ("first_rows", "event_log.append_events", "Hold.objects.make"):
        with patch(f"checkpoints.store.start_and_fork.{step}", side_effect=Crash), pytest.raises(Crash):
            store.fork(start.id, by=SYSTEM, writes={"doc": "e" * 60_000}, key=secrets.token_hex(8))
    assert not Checkpoint.objects.filter(parent=start.id, kind="fork").exists()
    assert not Hold.objects.filter(checkpoint=start.id).exists()
    forked = [decode_canonical(bytes(event.data))["from"] for event in Event.objects.filter(kind="run.forked")]
    assert str(start.id) not in forked
    assert Chunk.objects.filter(lineage=start.lineage).count() == chunks
    assert [run.pk for run in Run.objects.filter(lineage=start.lineage)] == [start.run_id]


def test_an_upcast_goes_on_with_the_new_plan_and_a_rewind_to_before_it_with_the_old() -> None:
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
    # The checkpoint was of the older version, and the run's row of the newer one.
    run, claim, head = begin(total="5")
    store.save(head, {"amount": 5, "total": DROP}, claim=claim, header=UPCAST, plan=make_plan())
    moved = store.move_head(store.load_checkpoint(head.id), {}, claim=claim, header=Header("rewind", "one", "one"))
    run.refresh_from_db()
    assert moved.plan_id == run.plan_id == head.plan_id
    newer = make_plan()
    moved = store.move_head(store.load_checkpoint(head.id), {}, claim=claim, header=UPCAST, plan=newer)
    run.refresh_from_db()
    assert moved.plan_id == run.plan_id == newer.pk


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
    with pytest.raises(NoSuchCheckpoint):
        store.fork(uuid4(), by=SYSTEM)
    for target in (second, sibling, stranger):
        with pytest.raises(NoSuchCheckpoint):
            store.move_head(target, {}, claim=mine, header=Header("rewind", "one", "two"))
    with pytest.raises(NoSuchCheckpoint):
        store.move_head(store.load(forked), {}, claim=claim, header=Header("rewind", "one", "two"))
    assert Checkpoint.objects.filter(run=forked).count() == 1
    assert Run.objects.get(pk=run.pk).head == second.id
