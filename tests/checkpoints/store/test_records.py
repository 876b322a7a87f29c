"""What a step wrote is kept in the form in which it gave it, so that it can be replayed on another state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_run
from checkpoints.errors import NoSuchCheckpoint, NotVerified
from checkpoints.layout import snapshot
from checkpoints.layout.payloads import join, pack, row_checksum
from checkpoints.models import Checkpoint, Run
from checkpoints.store import Header, Snapshot, executions
from checkpoints.store.loading import COLUMNS
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


@contextmanager
def damaged(id: UUID, **columns: Any) -> Iterator[None]:
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


def test_a_plain_list_is_checked_by_the_digest_of_its_state_as_a_load_does() -> None:
    """A row whose checksum fits what was put there was taken at its word."""
    _, made = executed({"l": ["a", "b"]}, {"l": ["a", "b", "c"]}, l=["a"])
    row = Checkpoint.objects.get(pk=made[1].id)
    codec, payload = pack(join([["append", "l", "=", 1]], [b'"x"']), wide=False)
    codec |= made[1].list_format.CODEC
    checksum = row_checksum(bytes(row.digest), row.anchor_seq, codec, payload)
    with damaged(row.pk, codec=codec, payload=payload, checksum=checksum), pytest.raises(NotVerified, match="state"):
        executions.writes_of([made[2].id])


def test_executions_are_those_of_a_lineage_and_a_path_leaves_branches_out() -> None:
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


def take_again(run: Run) -> Any:
    Run.objects.filter(pk=run.pk).update(lease_until=run.created_at)
    return take(run)
