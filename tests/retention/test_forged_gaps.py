"""Verification accepts exactly the gaps that a prune wrote: none forged, widened, reordered, unchained or cut off."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import psycopg
import pytest

from checkpoints import ledger
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Gap, Hold, Run
from checkpoints.retention import batch, gaps, headers
from checkpoints.retention.gaps import Why
from checkpoints.verify import verify_run

from .pruning import begin, keep, more, pruned

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
    more(head, claim, 20)
    pruned()
    assert [(gap.first_seq, gap.last_seq) for gap in run.gaps.order_by("number")] == [(2, 29), (31, 41), (42, 61)]
    assert verify_run(run) == []
    return run


@pytest.fixture
def owner(run: Run) -> Iterator[psycopg.Connection]:
    """Somebody with the owner's role, who may change what the application may not; put back afterwards."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as made:
        for table in KEPT:
            made.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WHERE run_id = {run.pk}")
        yield made
        for table in KEPT:
            made.execute(f"DELETE FROM {table} WHERE run_id = {run.pk}")
            made.execute(f"INSERT INTO {table} TABLE kept_{table}")
        assert verify_run(run) == []


def said(run: Run) -> str:
    return "\n".join(map(str, verify_run(run)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("last_seq = last_seq + 1 WHERE number = 1", "gap 1 .*its columns do not match"),
        ("first_seq = first_seq + 1 WHERE number = 2", "gap 2 .*its columns do not match"),
        ("number = number + 1 WHERE number = 3", "gap 4 .*does not follow"),
        ("previous = NULL WHERE number = 2", "gap 2 .*does not follow"),
        ("removed = sha256(removed) WHERE number = 2", "not those of what was removed"),
        ("last_digest = sha256(last_digest) WHERE number = 3", "does not end at"),
        ("parent_digest = sha256(last_digest) WHERE number = 3", "does not begin after"),
        ("headers = '\\x00'::bytea || headers WHERE number = 1", "gap 1 .*cannot be read"),
        ("policy = 'another' WHERE number = 1", "its columns do not match"),
        ("by_name = 'somebody' WHERE number = 1", "its columns do not match"),
        ("at = at + interval '1 second' WHERE number = 1", "its columns do not match"),
        ("digest = sha256(digest) WHERE number = 3", "no event tells of it"),
    ],
)
def test_a_gap_that_was_altered_is_found(run: Run, owner: psycopg.Connection, change: str, words: str) -> None:
    what, _, where = change.partition(" WHERE ")
    owner.execute(f"UPDATE checkpoints_gap SET {what} WHERE run_id = {run.pk} AND {where}")
    assert re.search(words, said(run)), said(run)


@pytest.mark.parametrize(("number", "words"), [(1, "gap 2 .*does not follow"), (3, "what is between is gone")])
def test_a_gap_that_is_gone_is_found(run: Run, owner: psycopg.Connection, number: int, words: str) -> None:
    owner.execute(f"DELETE FROM checkpoints_gap WHERE run_id = {run.pk} AND number = {number}")
    assert re.search(words, said(run)), said(run)


def test_a_gap_made_for_rows_that_somebody_deleted_is_found_for_want_of_its_event(
    run: Run, owner: psycopg.Connection
) -> None:
    forge(owner, run, 62, 64)
    assert "no event tells of it" in said(run)


def test_a_gap_that_spans_rows_which_are_there_is_found(run: Run, owner: psycopg.Connection) -> None:
    forge(owner, run, 62, 64, delete=False, event=True)
    assert "a gap says that it was removed" in said(run)


def test_a_gap_whose_headers_tell_another_story_does_not_fit_what_follows(run: Run, owner: psycopg.Connection) -> None:
    forge(owner, run, 62, 64, event=True, step=b"never")
    assert "its parent is not the checkpoint it was saved on" in said(run)


def test_gaps_that_were_exchanged_are_found_even_with_digests_made_anew(run: Run, owner: psycopg.Connection) -> None:
    one, two, three = run.gaps.order_by("number")
    owner.execute(f"DELETE FROM checkpoints_gap WHERE run_id = {run.pk}")
    one.number, two.number = 2, 1
    before = None
    for gap in (two, one, three):
        gap.previous = None if before is None else before.digest
        gap.digest, before = gaps.digest_of(gap), gap
    Gap.objects.bulk_create([one, two, three])
    assert "no event tells of it" in said(run)


def forge(
    owner: psycopg.Connection,
    run: Run,
    first: int,
    last: int,
    *,
    delete: bool = True,
    event: bool = False,
    step: bytes | None = None,
) -> None:
    """What somebody who can write the database may make of it: rows deleted, and a gap with every digest right."""
    rows, _ = batch._headers(run.pk, [(first, last)])
    made = [list(header) for header, _ in rows]
    digests = [digest for _, digest in rows]
    if step is not None:
        made[-1][7] = step
        packed = headers.unpack(headers.pack(made), run_id=run.pk, first=first)
        digests = [each.digest for each in packed]
    if delete:
        owner.execute(f"DELETE FROM checkpoints_checkpoint WHERE run_id = {run.pk} AND seq BETWEEN {first} AND {last}")
    before = run.gaps.order_by("-number").first()
    assert before is not None
    gap = gaps.made(run.pk, first, made, digests, before, Why("x", 1, SYSTEM, before.at))
    gap.save()
    if event:
        data = {"gap": gap.number, "digest": gap.digest.hex()}
        ledger.record("retention.pruned", subject=f"run:{run.pk}", by=SYSTEM, run=run, data=data)
