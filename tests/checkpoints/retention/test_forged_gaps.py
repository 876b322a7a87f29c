"""Verification accepts exactly the gaps that a prune wrote: none forged, widened, reordered, unchained or cut off."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.test import override_settings

from checkpoints.actors import SYSTEM
from checkpoints.audit import database
from checkpoints.audit.covered_rows import UNPROVEN
from checkpoints.audit.verify_runs import verify_run
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Hold, RetentionPolicy, Run
from checkpoints.retention import delete_batch
from checkpoints.store import gaps
from checkpoints.store.gaps import RemovalReason, RemovedCheckpoint
from tests.checkpoints.audit.sealed_events import earlier, seal_all
from tests.factories import unique

from .pruned_runs import begin, keep, more, pruned

KEPT = ("checkpoints_gap", "checkpoints_checkpoint")


@pytest.fixture(scope="module")
def run() -> Run:
    """One pruned twice: two gaps that lie side by side, and one before a checkpoint that is named."""
    run, claim, head = begin(messages=[], n=0, doc="")
    head = more(head, claim, 60)
    third = Checkpoint.objects.values_list("id", flat=True).get(run=run, seq=30)
    Hold.objects.make(run=run, checkpoint=third, kind="name", subject="name:x", reason="x", by=SYSTEM)
    keep(run, keep_last=20)
    pruned()
    seal_all()
    head = more(head, claim, 3)
    event_log.record("test.said", subject=f"run:{run.pk}", by=SYSTEM, run=run, data={})
    seal_all()
    more(head, claim, 17)
    pruned()
    assert [(gap.first_seq, gap.last_seq) for gap in run.gaps.order_by("number")] == [(2, 29), (31, 41), (42, 61)]
    assert verify_run(run) == []
    assert heads_gone(run) == []
    return run


@pytest.fixture
def owner(run: Run) -> Iterator[psycopg.Connection]:
    """Somebody with the owner's role, who may change what the application may not; put back afterwards."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as made:
        for table in KEPT:
            made.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WHERE run_id = {run.pk}")
        yield made
        put_back(made, run)
        assert verify_run(run) == []


def put_back(owner: psycopg.Connection, run: Run) -> None:
    for table in KEPT:
        owner.execute(f"DELETE FROM {table} WHERE run_id = {run.pk}")
        owner.execute(f"INSERT INTO {table} TABLE kept_{table}")


def said(run: Run) -> str:
    return "\n".join(map(str, verify_run(run)))


def heads_gone(run: Run) -> list[str]:
    """What a verification of the seals says of the heads that this run had."""
    return [str(problem) for problem in database.verify(after=earlier()) if f"that run {run.pk} had" in problem.reason]


# By what is done to one of the three gaps, what is said of it.
ALTERED = [
    ("last_seq = last_seq + 1 WHERE number = 1", "gap 1 .*its columns do not match"),
    ("first_seq = first_seq + 1 WHERE number = 2", "gap 2 .*its columns do not match"),
    ("previous = NULL WHERE number = 2", "gap 2 .*does not follow"),
    ("removed = sha256(removed) WHERE number = 2", "not those of what was removed"),
    ("last_digest = sha256(last_digest) WHERE number = 3", "does not end at"),
    ("parent_digest = sha256(last_digest) WHERE number = 3", "does not begin after"),
    ("headers = '\\x00'::bytea || headers WHERE number = 1", "gap 1 .*cannot be read"),
    ("by_name = 'somebody' WHERE number = 1", "its columns do not match"),
    ("at = at + interval '1 second' WHERE number = 1", "its columns do not match"),
    ("digest = sha256(digest) WHERE number = 3", "no event recorded it"),
]


def test_a_gap_that_was_altered_or_is_gone_is_found(run: Run, owner: psycopg.Connection) -> None:
    for change, words in ALTERED:
        what, _, where = change.partition(" WHERE ")
        owner.execute(f"UPDATE checkpoints_gap SET {what} WHERE run_id = {run.pk} AND {where}")
        assert re.search(words, said(run)), (change, said(run))
        put_back(owner, run)
    for number, words in ((1, "gap 2 .*does not follow"), (3, "what is between is gone")):
        owner.execute(f"DELETE FROM checkpoints_gap WHERE run_id = {run.pk} AND number = {number}")
        assert re.search(words, said(run)), said(run)
        put_back(owner, run)


# How rows are deleted and a gap is made for them with every digest right, and what is said of it.
FORGED: list[tuple[dict[str, Any], str]] = [
    ({}, "no event recorded it"),
    ({"event": True}, "gap 4 (run {}): no order of a prune stands behind it"),
    ({"event": True, "delete": False}, "a gap says that it was removed"),
    ({"event": True, "step": b"never"}, "its parent is not the checkpoint it was saved on"),
]


def test_a_gap_that_was_forged_is_found(run: Run, owner: psycopg.Connection) -> None:
    for how, words in FORGED:
        forge(owner, run, 62, 64, **how)
        assert words.format(run.pk) in said(run), (how, said(run))
        put_back(owner, run)
    forge(owner, run, 62, 64, event=True)
    assert "no order of a prune stands behind it" in heads_gone(run)[0]


def test_a_gap_covers_no_head_without_its_event_and_its_digest(run: Run, owner: psycopg.Connection) -> None:
    forge(owner, run, 62, 64, why=RemovalReason("x", 1, SYSTEM, datetime.now(UTC)))
    [said] = heads_gone(run)
    assert "checkpoint 64, is gone; gap 4 no event recorded it" in said
    put_back(owner, run)
    forge(owner, run, 62, 64, event=True, why=ordered_as(run))
    assert heads_gone(run) == []
    owner.execute(f"UPDATE checkpoints_gap SET digest = sha256(digest) WHERE run_id = {run.pk} AND number = 4")
    [said] = heads_gone(run)
    assert "checkpoint 64, is gone; gap 4 was made with another key, or its columns do not" in said


def test_an_order_stands_behind_a_gap_by_its_person_and_policy_until_its_prune_is_over(
    run: Run, owner: psycopg.Connection
) -> None:
    forge(owner, run, 62, 64, event=True, why=ordered_as(run, done=True))
    assert "no order of a prune" in said(run)
    put_back(owner, run)
    why = ordered_as(run)
    forge(owner, run, 62, 64, event=True, why=why)
    assert "no order of a prune" not in said(run)
    put_back(owner, run)
    forge(owner, run, 62, 64, event=True, why=why._replace(version=why.version + 1))
    assert "no order of a prune" in said(run)


def test_gaps_from_before_the_key_was_set_or_changed_are_named_as_that(run: Run, owner: psycopg.Connection) -> None:
    plain = gaps.digest_of(run.gaps.get(number=3), b"").hex()
    with override_settings(HOLDPOINT_SEAL_KEY="j" * 40):
        other = "was made with another key, or its columns do not match its digest"
        assert {problem.reason for problem in verify_run(run)} == {other, UNPROVEN}
    with override_settings(HOLDPOINT_SEAL_KEY=""):
        unknown = "was made with a key that is not set here, or its columns do not match its digest"
        assert {problem.reason for problem in verify_run(run)} == {unknown}
    owner.execute(f"UPDATE checkpoints_gap SET digest = '\\x{plain}' WHERE run_id = {run.pk} AND number = 3")
    without = "was made without the key: whoever can write the database can have written it"
    assert f"gap 3 (run {run.pk}): {without}" in said(run)


def test_an_event_that_names_no_gap_is_a_fault_and_ends_no_verification() -> None:
    other, _, _ = begin(n=0)
    assert verify_run(other) == []
    nameless: list[dict[str, object]] = [{}, {"gap": 3}, {"digest": "00"}, {"gap": "3", "digest": 7}]
    for number, data in enumerate(nameless, 1):
        event_log.record("retention.pruned", subject=f"run:{other.pk}", by=SYSTEM, run=other, data=data)
        problems = verify_run(other)
        assert len(problems) == number, data
        assert problems[-1].subject.startswith("event ")
        assert problems[-1].reason == "tells of a removal without the gap that it left"


def ordered_as(run: Run, *, done: bool = False) -> RemovalReason:
    """The order of a prune under the run's policy, and what its gaps say of it."""
    policy = RetentionPolicy.objects.current().get(agent=run.plan.agent)
    subject = f"prune:{unique('x')}"
    data = {"policies": {policy.agent: policy.pk}}
    event_log.record("retention.ordered", subject=subject, by=SYSTEM, data=data)
    if done:
        event_log.record("retention.finished", subject=subject, by=SYSTEM, data={})
    return RemovalReason(policy.called, policy.version, SYSTEM, datetime.now(UTC))


def forge(
    owner: psycopg.Connection,
    run: Run,
    first: int,
    last: int,
    *,
    delete: bool = True,
    event: bool = False,
    step: bytes | None = None,
    why: RemovalReason | None = None,
) -> None:
    """What somebody who can write the database may make of it: rows deleted, and a gap with every digest right."""
    rows, _ = delete_batch._rows(run.pk, [(first, last)])
    if step is not None:
        header = [*rows[-1].header[:7], step, *rows[-1].header[8:]]
        changed = gaps.pack_headers([*rows[:-1], RemovedCheckpoint(header, b"")])
        rows = list(gaps.unpack_headers(changed, run_id=run.pk, first=first))
    if delete:
        owner.execute(f"DELETE FROM checkpoints_checkpoint WHERE run_id = {run.pk} AND seq BETWEEN {first} AND {last}")
    before = run.gaps.order_by("-number").first()
    assert before is not None
    gap = gaps.make_gap(run.pk, first, rows, before, why or RemovalReason("x", 1, SYSTEM, before.at))
    gap.save()
    if event:
        data = {"gap": gap.number, "digest": gap.digest.hex()}
        event_log.record("retention.pruned", subject=f"run:{run.pk}", by=SYSTEM, run=run, data=data)
