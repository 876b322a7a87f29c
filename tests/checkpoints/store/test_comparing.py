"""Any two checkpoints of a lineage compare: where they parted, and what led to each."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.errors import NoSuchCheckpoint, OtherLineage
from checkpoints.store import executions
from checkpoints.store.executions import parting
from checkpoints.store.header import CheckpointHeader
from tests.factories.stored_runs import REWIND, STEP, begin, take


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
