"""load(save(x)) is x, over arbitrary states and writes; digests know values, and neither history nor encoding."""

from __future__ import annotations

import random
import re
from typing import Any, cast

import psycopg
import pytest
from django.db import connection, transaction
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import Fenced, StateTooLarge, ValueRefused
from checkpoints.layout import parts, rows
from checkpoints.models import Checkpoint, Chunk, Event, Hold, Note
from checkpoints.retention import anchors, reading
from checkpoints.store import Header, Snapshot, claims, executions
from checkpoints.values import digests
from checkpoints.values.canonical_json import canonical
from checkpoints.values.list_digests import ListDigest, of_field
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.arbitrary_states import after, states, writes
from tests.factories.arbitrary_states import lists as list_values
from tests.factories.stored_runs import FORMATS, REWIND, STEP, begin, make_plan, make_team, small_layout, starting, take
from tests.harness.examples import many

slow = settings(max_examples=many(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def reanchor(head: Snapshot) -> None:
    """Write a checkpoint anew as an anchor, as a prune does that removes those before it."""
    places = reading.history_of(head.run_id).places
    with transaction.atomic():
        anchors.write(head.run_id, head.lineage, anchors.prepared(head.run_id, head.lineage, places, [head.seq]))


def assert_same(loaded: Snapshot, saved: Snapshot, state: dict[str, Any]) -> None:
    """What was loaded is what was saved, to the type and the digest."""
    assert canonical(loaded.state) == canonical(saved.state) == canonical(state)
    expected = {name: of_field(value, loaded.list_format) for name, value in state.items()}
    assert loaded.fields == saved.fields == expected
    assert (loaded.id, loaded.seq, loaded.digest, loaded.size) == (saved.id, saved.seq, saved.digest, saved.size)
    assert loaded.state_digest == digests.of_state(loaded.fields)
    assert loaded.size == len(canonical(state)) + (1 if state else 0)


@given(st.data(), states, st.sampled_from(FORMATS), st.integers(1, 5))
@slow
def test_whatever_is_saved_is_loaded_again(
    data: st.DataObject, state: dict[str, Any], list_format: type[ListDigest], every: int
) -> None:
    with starting(list_format), small_layout(every):
        _whatever_is_saved_is_loaded_again(data, state)


def _whatever_is_saved_is_loaded_again(data: st.DataObject, state: dict[str, Any]) -> None:
    run, claim, head = begin(**{})
    head = store.save(head, state, claim=claim, header=STEP)
    states_by_id = {head.id: state}
    for _ in range(data.draw(st.integers(0, 6))):
        written = data.draw(writes(state))
        state = after(state, written)
        head = store.save(head, written, claim=claim, header=STEP)
        states_by_id[head.id] = state
        if data.draw(st.integers(0, 4)) == 0:
            target = store.load_checkpoint(data.draw(st.sampled_from(sorted(states_by_id))))
            state = states_by_id[target.id]
            head = store.move_head(target, {}, claim=claim, header=REWIND)
            states_by_id[head.id] = state
    assert_same(store.load(run), head, state)
    for id, expected in states_by_id.items():
        assert canonical(store.load_checkpoint(id).state) == canonical(expected)
    forked = store.load(store.fork(head.id, by=SYSTEM))
    assert canonical(forked.state) == canonical(state)
    assert verify_run(run) == []


@pytest.mark.parametrize("list_format", FORMATS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_run_of_growing_and_trimmed_lists_is_loaded_again(seed: int, list_format: type[ListDigest]) -> None:
    rng = random.Random(seed)
    with starting(list_format):
        run, claim, head = begin(messages=[], doc="d" * 9000)
    expected: dict[str, Any] = {"messages": [], "doc": "d" * 9000}
    for n in range(220):
        item = {"n": n, "text": "word " * rng.choice([1, 40, 900]), "wide": 2**70 if n % 50 == 7 else n}
        write: Any = Append([item] * rng.choice([0, 1, 3]))
        if rng.random() < 0.04:
            start = rng.randrange(len(expected["messages"]) + 1)
            write = Splice(start, rng.randrange(len(expected["messages"]) - start + 1), [item])
        written = {"messages": write, "cursor": n * 0.5}
        expected = after(expected, written)
        head = store.save(head, written, claim=claim, header=STEP)
        if n % 31 == 0:
            assert_same(store.load(run), head, expected)
            head = store.load(run)
    assert_same(store.load(run), head, expected)
    assert verify_run(run) == []


def test_anchors_share_what_was_sealed_before() -> None:
    run, claim, head = begin(messages=[], doc="d" * 50_000)
    rng = random.Random(5)
    for _ in range(300):
        head = store.save(head, {"messages": Append([rng.randbytes(500).hex()])}, claim=claim, header=STEP)
    stored = sum(len(chunk.payload) for chunk in Chunk.objects.filter(lineage=run.lineage))
    assert stored < 300 * 1000, "a stretch of the list, or the document, was stored twice"
    store.fork(head.id, by=SYSTEM)
    # The fork seals the tail since the last anchor, and nothing again.
    forked = sum(len(chunk.payload) for chunk in Chunk.objects.filter(lineage=run.lineage))
    assert forked - stored < 64 * 1000


def test_a_very_long_list_keeps_its_manifest_short() -> None:
    run, claim, head = begin(log=[])
    for n in range(40):
        head = store.save(
            head, {"log": Append([f"{n} {i} " + "x" * 500 for i in range(500)])}, claim=claim, header=STEP
        )
        if n % 2:
            head = store.move_head(head, {}, claim=claim, header=REWIND)
            head = store.move_head(store.load_checkpoint(head.id), {}, claim=claim, header=REWIND)
    forked = store.fork(head.id, by=SYSTEM)
    manifest = Checkpoint.objects.get(run=forked)
    assert len(manifest.payload) < 16_000
    assert len(store.load(forked).state["log"]) == 20_000
    assert verify_run(run) == verify_run(forked) == []


@given(st.data(), st.sampled_from(FORMATS))
@settings(max_examples=many(800), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_lists_digest_depends_on_its_items_alone(data: st.DataObject, list_format: type[ListDigest]) -> None:
    """Whatever was appended, spliced, sealed, removed and loaded in between."""
    with small_layout():
        part, value = parts.empty(list_format), list[Any]()
        for _ in range(data.draw(st.integers(1, 12))):
            items = data.draw(list_values)
            start = data.draw(st.integers(0, len(value)) | st.just(len(value)))
            delete = data.draw(st.integers(0, len(value) - start))
            lines = [parts.line_of(item) for item in items]
            at_end = start == len(value)
            part = parts.append(part, lines) if at_end else parts.splice(part, value, start, delete, lines)
            value[start : start + delete] = items
            if data.draw(st.booleans()):
                part, _ = parts.seal(part)
            assert part.digest == of_field(value, list_format)
            assert (part.length, part.size) == (len(value), len(canonical(value)))


@given(st.data(), states, st.sampled_from(FORMATS), st.integers(1, 5))
@slow
def test_digests_depend_on_the_value_and_not_on_how_it_came_about(
    data: st.DataObject, state: dict[str, Any], list_format: type[ListDigest], every: int
) -> None:
    with starting(list_format), small_layout(every):
        _digests_depend_on_the_value(data, state)


def _digests_depend_on_the_value(data: st.DataObject, state: dict[str, Any]) -> None:
    _, claim, head = begin()
    straight = store.save(head, state, claim=claim, header=STEP)
    _, claim, head = begin()
    for name in data.draw(st.permutations(sorted(state))):
        head = store.save(head, {name: "something else"}, claim=claim, header=STEP)
        value = state[name]
        if isinstance(value, list) and value:
            cut = data.draw(st.integers(0, len(value)))
            head = store.save(head, {name: value[cut:] or ["?"]}, claim=claim, header=STEP)
            front = Splice(0, 0 if value[cut:] else 1, value[:cut])
            head = store.save(head, {name: front}, claim=claim, header=STEP)
        else:
            head = store.save(head, {name: value}, claim=claim, header=STEP)
        if data.draw(st.booleans()):
            reanchor(head)
            head = store.load_checkpoint(head.id)
    head = data.draw(st.sampled_from([head, store.load(store.fork(head.id, by=SYSTEM))]))
    assert head.fields == straight.fields
    assert head.state_digest == straight.state_digest


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
