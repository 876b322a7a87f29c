"""What one save writes and costs, what it refuses, what a rewind and a fork make of it, and where two paths part."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection, transaction
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced, NoSuchCheckpoint, OtherLineage, StateTooLarge, ValueRefused
from checkpoints.layout import rows
from checkpoints.models import Checkpoint, Chunk, Event, Hold, Note
from checkpoints.store import Header, claims, executions
from checkpoints.store.executions import parting
from checkpoints.store.header import CheckpointHeader
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.stored_runs import REWIND, STEP, begin, make_plan, make_team, take


def test_a_step_that_keeps_its_value_cannot_change_what_was_saved() -> None:
    run, claim, head = begin(items=[])
    mine = {"a": [1]}
    head = store.save(head, {"items": Append([mine]), "one": mine}, claim=claim, header=STEP)
    mine["a"].append(2)
    assert head.state == store.load(run).state == {"items": [{"a": [1]}], "one": {"a": [1]}}


def test_a_plain_list_is_saved_as_what_changed_in_it() -> None:
    run, claim, head = begin(items=["x" * 1000 + str(n) for n in range(50)])
    head = store.save(head, {"items": [*head.state["items"], "new"]}, claim=claim, header=STEP)
    assert len(Checkpoint.objects.get(pk=head.id).payload) < 200
    changed = [*head.state["items"]]
    changed[10:12] = [1, True, 1.0]
    head = store.save(head, {"items": changed}, claim=claim, header=STEP)
    assert len(Checkpoint.objects.get(pk=head.id).payload) < 200
    assert repr(store.load(run).state["items"]) == repr(changed)


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0.0, -0.0), (False, 0)])
def test_an_equal_item_of_another_type_is_a_change(old: Any, new: Any) -> None:
    run, claim, head = begin(items=["a", old, "z"])
    head = store.save(head, {"items": ["a", new, "z"]}, claim=claim, header=STEP)
    assert repr(head.state) == repr(store.load(run).state) == repr({"items": ["a", new, "z"]})


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


def test_the_same_key_is_the_same_run() -> None:
    plan, team = make_plan(), make_team()
    runs = [
        store.start(plan=plan, team=team, title="t", values={}, first_step="one", by=SYSTEM, key=f"key-{plan.pk}")
        for _ in range(2)
    ]
    assert runs[0].pk == runs[1].pk
    assert Event.objects.filter(run_id=runs[0].pk, kind="run.started").count() == 1


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


@pytest.mark.parametrize("sql", [rows._TRAIL, rows._HEAD_TRAIL])
def test_a_load_reads_its_trail_alone_by_a_plan_from_when_tables_were_small(sql: str) -> None:
    """A connection that first loaded from a new database read every row of the run in each later load."""
    with transaction.atomic(), psycopg.RawCursor(cast(Any, connection.connection)) as cursor:
        for table in ("checkpoints_checkpoint", "checkpoints_run"):
            cursor.execute(f"CREATE TEMP TABLE {table} (LIKE public.{table} INCLUDING ALL) ON COMMIT DROP".encode())
        cursor.execute(b"EXPLAIN (GENERIC_PLAN) " + sql.encode())
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert re.match(r"Index Scan using \S+ on checkpoints_checkpoint c ", plan), plan
    assert re.search(r"Index Cond: .*run_id = .*seq >= .*seq <= ", plan.partition("CTE tip")[0]), plan


def record(number: int) -> CheckpointHeader:
    return CheckpointHeader(
        UUID(int=number), 1, 1, number, None, "step", "one", "", 0, 1, None, None, datetime(2026, 1, 1, tzinfo=UTC), 0
    )


def path(*numbers: int) -> list[CheckpointHeader]:
    return [record(number) for number in numbers]


def seqs(records: tuple[CheckpointHeader, ...]) -> list[int]:
    return [record.seq for record in records]


@pytest.mark.parametrize(
    ("a", "b", "ancestor", "to_a", "to_b"),
    [
        ([1, 2, 3], [1, 2, 4, 5], 2, [3], [4, 5]),
        ([1, 2, 3], [1, 2, 3], 3, [], []),
        ([1], [1, 2, 3], 1, [], [2, 3]),
        ([1, 2, 3], [1], 1, [2, 3], []),
        ([1, 2], [1, 3], 1, [2], [3]),
    ],
)
def test_two_paths_part_after_the_last_that_they_share(
    a: list[int], b: list[int], ancestor: int, to_a: list[int], to_b: list[int]
) -> None:
    found = parting(path(*a), path(*b))
    assert (found.ancestor.seq, seqs(found.to_a), seqs(found.to_b)) == (ancestor, to_a, to_b)


@pytest.mark.parametrize(("a", "b"), [([1, 2], [3, 4]), ([], [1]), ([], [])])
def test_paths_that_share_nothing_do_not_compare(a: list[int], b: list[int]) -> None:
    with pytest.raises(OtherLineage):
        parting(path(*a), path(*b))


@given(st.data())
def test_the_ways_lead_from_the_ancestor_to_each_in_any_tree(data: st.DataObject) -> None:
    paths = [[0]]
    for number in range(1, data.draw(st.integers(1, 15))):
        paths.append([*data.draw(st.sampled_from(paths)), number])
    a, b = data.draw(st.sampled_from(paths)), data.draw(st.sampled_from(paths))
    found = parting(path(*a), path(*b))
    top = a.index(found.ancestor.seq) + 1
    assert [*a[:top], *seqs(found.to_a)] == a
    assert [*b[:top], *seqs(found.to_b)] == b
    assert not set(seqs(found.to_a)) & set(seqs(found.to_b))
    assert parting(path(*b), path(*a)) == executions.CheckpointComparison(found.ancestor, found.to_b, found.to_a)


def test_checkpoints_of_two_branches_and_of_a_fork_compare() -> None:
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


def test_checkpoints_of_two_lineages_do_not_compare() -> None:
    _, _, ours = begin(n=0)
    _, _, theirs = begin(n=0)
    with pytest.raises(OtherLineage, match="common ancestor"):
        store.compare(ours.id, theirs.id)
    with pytest.raises(NoSuchCheckpoint):
        store.compare(ours.id, uuid4())
