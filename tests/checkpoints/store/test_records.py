"""What a step wrote is kept in the form in which it gave it, so that it can be replayed on another state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import Mock, patch
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import NoSuchCheckpoint, NotRecorded, NotVerified
from checkpoints.layout import assembly, rows, snapshot
from checkpoints.layout.payloads import join, pack, row_checksum, split, unpack
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql import sql
from checkpoints.store import Header, Snapshot, executions
from checkpoints.store.header import COLUMNS
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.ops import DROP, Append, Splice
from tests.factories.arbitrary_states import after, states, writes
from tests.factories.stored_runs import REWIND, begin, take
from tests.harness.examples import many

EXECUTED = Header("step", "one", "one", input_digest=b"i" * 32, code_hash=b"c" * 32)
slow = settings(max_examples=many(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def form(write: Any) -> Any:
    """A write to compare by, exact to the type and the form it has."""
    if write is DROP:
        return "drop"
    if isinstance(write, Append):
        return "append", encode_canonical(list(write.items))
    if isinstance(write, Splice):
        return "splice", write.start, write.delete, encode_canonical(list(write.items))
    return "value", encode_canonical(write)


def forms(written: dict[str, Any]) -> dict[str, Any]:
    return {name: form(write) for name, write in written.items()}


@contextmanager
def anchors_every(count: int) -> Iterator[None]:
    with patch.object(snapshot, "ANCHOR_EVERY", count):
        yield


def executed(*written: dict[str, Any], **values: Any) -> tuple[Run, list[Snapshot]]:
    """A run whose steps wrote this, and its checkpoints from the input on."""
    run, claim, head = begin(**values)
    made = [head]
    for each in written:
        made.append(store.save(made[-1], each, claim=claim, header=EXECUTED))
    return run, made


@given(st.data(), states, st.integers(1, 4))
@slow
def test_replaying_what_was_written_on_its_base_gives_what_was_saved(
    data: st.DataObject, state: dict[str, Any], every: int
) -> None:
    with anchors_every(every):
        run, claim, head = begin()
        steps: list[tuple[UUID, dict[str, Any], dict[str, Any]]] = []
        written = state
        state = {}
        for _ in range(data.draw(st.integers(1, 7))):
            head = store.save(head, written, claim=claim, header=EXECUTED)
            steps.append((head.id, state, written))
            state = after(state, written)
            if data.draw(st.integers(0, 5)) == 0:
                head = store.move_head(store.load_checkpoint(steps[0][0]), {}, claim=claim, header=REWIND)
                state = after(steps[0][1], steps[0][2])
            written = data.draw(writes(state))
    found = executions.writes_of(id for id, _, _ in steps)
    assert list(found) == [id for id, _, _ in steps]
    for id, base, given_writes in steps:
        assert forms(found[id]) == forms(given_writes)
        assert encode_canonical(after(base, found[id])) == encode_canonical(store.load_checkpoint(id).state)
    assert verify_run(run) == []


@pytest.mark.parametrize("every", [1, 64])
@pytest.mark.parametrize(
    "write",
    [
        Append(["new"]),
        Append([]),
        Splice(1, 1, ["x" * 3000, "y"]),
        Splice(2, 0, ["at the end"]),
        Splice(1, 0, []),
        ["a", "b"],
        ["a", "b", "more"],
        ["a", 2**70],
        [],
        "a word",
        {"deep": ["x" * 3000]},
        None,
        DROP,
    ],
)
def test_every_form_of_a_write_is_told_from_the_others(write: Any, every: int) -> None:
    with anchors_every(every):
        _, made = executed({"l": write}, {"other": 1}, l=["a", "b"])
    assert forms(executions.writes_of([made[1].id])[made[1].id]) == forms({"l": write})


@pytest.mark.parametrize("every", [1, 64])
@pytest.mark.parametrize("write", [Append(["new"]), Append([]), Splice(0, 0, ["new"]), ["new"], [], DROP, None])
def test_the_form_is_kept_on_a_field_that_nobody_wrote_yet(write: Any, every: int) -> None:
    with anchors_every(every):
        _, made = executed({"l": write})
    assert forms(executions.writes_of([made[1].id])[made[1].id]) == forms({"l": write})


@pytest.mark.parametrize("every", [1, 64])
def test_on_another_base_an_append_stays_an_append_and_a_plain_list_is_written_whole(every: int) -> None:
    with anchors_every(every):
        written = {"log": Append(["said"]), "found": ["a", "b"], "gone": DROP, "n": 2}
        _, made = executed(written, log=["hello"], found=["a"], n=1)
        found = executions.writes_of([made[1].id])[made[1].id]
        _, again = executed(found, log=["another", "talk"], found=["z", "y"], gone=True)
    assert again[1].state == {"log": ["another", "talk", "said"], "found": ["a", "b"], "n": 2}
    assert forms(executions.writes_of([again[1].id])[again[1].id]) == forms(written)


def test_digests_do_not_know_in_which_form_a_value_was_written() -> None:
    _, made = executed({"l": Append([2])}, l=[1])
    _, plain = executed({"l": [1, 2]}, l=[1])
    with anchors_every(1):
        _, anchored = executed({"l": [1, 2]}, l=[1])
    assert made[1].state_digest == plain[1].state_digest == anchored[1].state_digest


@pytest.mark.parametrize("every", [1, 64])
def test_an_integer_of_many_digits_stays_one_where_the_anchor_seals_what_was_appended(every: int) -> None:
    """The state is in chunks then, so that nothing else in the row has such an integer."""
    write = Append([2**70, *["word " * 100] * 10])
    with anchors_every(every):
        _, made = executed({"l": write}, l=["a"])
    assert forms(executions.writes_of([made[1].id])[made[1].id]) == forms({"l": write})


def test_long_lists_and_large_values_are_read_back_from_their_chunks() -> None:
    long = [f"{n} " + "word " * 20 for n in range(2000)]
    written: list[dict[str, Any]] = [
        {"l": long},
        {"l": [*long, "x" * 5000]},
        {"m": Append(long)},
        {"big": "y" * 9000, "l": Append(["z"])},
    ]
    for every in (1, 64):
        with anchors_every(every):
            _, made = executed(*written)
        found = executions.writes_of(head.id for head in made[1:])
        assert [forms(each) for each in found.values()] == [forms(each) for each in written]


@contextmanager
def statements() -> Iterator[Mock]:
    """Counts what goes to the database past Django's cursor."""
    counted = Mock(wraps=sql.run_sql)
    with ExitStack() as stack:
        for module in (rows, assembly, executions):
            stack.enter_context(patch.object(module, "run_sql", counted))
        yield counted


def test_many_records_cost_a_few_queries() -> None:
    _, claim, head = begin(l=[], doc="d" * 5000)
    ids = []
    for n in range(150):
        written = {"l": [*head.state["l"], n] if n % 2 else Append([n]), "doc": f"{n}" + "d" * 3000}
        head = store.save(head, written, claim=claim, header=EXECUTED)
        ids.append(head.id)
    with statements() as run_sql:
        found = executions.writes_of(ids)
    assert run_sql.call_count <= 4
    assert [len(found[id]["l"]) if n % 2 else found[id]["l"].items for n, id in enumerate(ids)] == [
        n + 1 if n % 2 else [n] for n in range(150)
    ]
    assert found[ids[7]]["doc"] == "7" + "d" * 3000


def test_what_made_no_checkpoint_by_executing_has_no_writes() -> None:
    _, claim, head = begin(n=0)
    moved = store.move_head(head, {"n": 1}, claim=claim, header=REWIND)
    for id in (head.id, moved.id):
        with pytest.raises(NotRecorded):
            executions.writes_of([id])
    with pytest.raises(NoSuchCheckpoint):
        executions.writes_of([uuid4()])
    assert executions.writes_of([]) == {}


@contextmanager
def damaged(id: UUID, **columns: Any) -> Iterator[None]:
    """A checkpoint's row with these columns, and put back."""
    with transaction.atomic():
        assert Checkpoint.objects.filter(pk=id).update(**columns) == 1
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("column", ["payload", "checksum", "next_step", "codec"])
def test_a_record_that_was_tampered_with_is_not_replayed(column: str) -> None:
    for write in (Append(["b"]), ["a", "b"], "b"):
        _, made = executed({"l": write}, l=["a"])
        value = Checkpoint.objects.values_list(column, flat=True).get(pk=made[1].id)
        changed = {"one": "two"}.get(value) or (bytes([value[0] ^ 1]) + value[1:] if column != "codec" else value ^ 1)
        with damaged(made[1].id, **{column: changed}), pytest.raises(NotVerified):
            executions.writes_of([made[1].id])


def test_a_plain_list_is_not_replayed_when_the_rows_it_builds_on_are_damaged() -> None:
    _, made = executed({"l": ["a", "b"]}, {"l": ["a", "b", "c"]}, l=["a"])
    with damaged(made[1].id, checksum=bytes(16)), pytest.raises(NotVerified):
        executions.writes_of([made[2].id])


def test_a_plain_list_is_checked_by_the_digest_of_its_state_as_a_load_does() -> None:
    """A row whose checksum fits what was put there was taken at its word."""
    _, made = executed({"l": ["a", "b"]}, {"l": ["a", "b", "c"]}, l=["a"])
    row = Checkpoint.objects.get(pk=made[1].id)
    codec, payload = pack(join([["append", "l", "=", 1]], [b'"x"']), wide=False)
    codec |= made[1].list_format.CODEC
    checksum = row_checksum(bytes(row.digest), row.anchor_seq, codec, payload)
    with damaged(row.pk, codec=codec, payload=payload, checksum=checksum), pytest.raises(NotVerified, match="state"):
        executions.writes_of([made[2].id])


def test_an_execution_s_anchor_without_its_writes_is_not_replayed() -> None:
    with anchors_every(1):
        run, made = executed({"n": 1}, n=0)
    row = Checkpoint.objects.get(pk=made[1].id)
    ops, lines = split(unpack(row.codec, bytes(row.payload)))
    assert ops == [["set", "n"], ["wrote", [["set", "n"]], 1]]
    codec, payload = pack(join(ops[:1], lines[:1]), wide=False)
    codec |= made[1].list_format.CODEC
    checksum = row_checksum(bytes(row.digest), row.anchor_seq, codec, payload)
    Checkpoint.objects.filter(pk=row.pk).update(codec=codec, payload=payload, checksum=checksum)
    assert store.load(run).state == {"n": 1}
    with pytest.raises(NotVerified, match="its ops do not fit"):
        executions.writes_of([row.pk])


def test_the_executions_of_a_lineage_are_those_of_all_its_runs_and_branches() -> None:
    run, made = executed({"n": 1}, {"n": 2}, n=0)
    claim = take_again(run)
    moved = store.move_head(made[1], {}, claim=claim, header=REWIND)
    reused = store.save(moved, {"n": 3}, claim=claim, header=EXECUTED._replace(kind="reused"))
    forked = store.fork(made[2].id, by=SYSTEM)
    theirs = take(forked)
    in_fork = store.save(store.load(forked), {"n": 4}, claim=theirs, header=EXECUTED)
    executed({"n": 9})
    found = executions.executions(run.lineage)
    assert [record.id for record in found] == [made[1].id, made[2].id, reused.id, in_fork.id]
    assert [(record.run_id, record.seq) for record in found] == [
        (run.pk, 2), (run.pk, 3), (run.pk, 5), (forked.pk, 2),
    ]  # fmt: skip
    row = Checkpoint.objects.get(pk=reused.id)
    for name in COLUMNS:
        column = getattr(row, name)
        assert getattr(found[2], name) == (bytes(column) if isinstance(column, memoryview) else column), name


def take_again(run: Run) -> Any:
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    return take(run)


def test_a_path_crosses_into_the_run_that_was_forked_and_leaves_branches_out() -> None:
    run, made = executed({"n": 1}, {"n": 2}, n=0)
    claim = take_again(run)
    moved = store.move_head(made[1], {}, claim=claim, header=REWIND)
    forked = store.fork(moved.id, by=SYSTEM)
    assert forked.head is not None
    found = executions.path(forked.head)
    assert [record.id for record in found] == [made[0].id, made[1].id, moved.id, forked.head]
    assert [record.kind for record in found] == ["input", "step", "rewind", "fork"]
    assert [record.id for record in executions.path(made[2].id)] == [each.id for each in made]
    with pytest.raises(NoSuchCheckpoint):
        executions.path(uuid4())
