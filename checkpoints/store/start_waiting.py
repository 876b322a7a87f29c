"""Starts runs that wait for people from their first checkpoint on, any number in a few statements.

Their rows and events are those that a start, a claim and a release would leave, one run after the other. Nobody can
have such a run in between, so the claim and the release need no guard, and are not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from checkpoints.actors import Actor
from checkpoints.events import event_proof
from checkpoints.events.event_log import Entry
from checkpoints.layout import payloads
from checkpoints.layout.rows import new_id
from checkpoints.layout.snapshot import CheckpointPlace, Header, RowDraft
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.insert_rows import build_insertion
from checkpoints.postgresql.sql import Statement, run_sql
from checkpoints.values.list_digests import ListDigest

from .named_files import checked_draft
from .save_statements import insert_chunks

# The digests of new runs are in a format that every process here knows.
_NUMBERS = """
SELECT nextval(pg_get_serial_sequence('checkpoints_run', 'id')), clock_timestamp(), public.checkpoints_new_codec()
FROM generate_series(1, $1::int)
"""


def new_numbers(many: int) -> tuple[list[int], datetime, type[ListDigest]]:
    """Return numbers for so many new runs, the database's time, and the format of their lists' digests."""
    found = run_sql(_NUMBERS, [many])
    return [number for number, *_ in found], found[0][1], payloads.list_format_of(found[0][2])


def first_checkpoint(
    run: Run, number: int, values: Mapping[str, Any], *, first_step: str, at: datetime, list_format: type[ListDigest]
) -> RowDraft:
    """Give a new run its number, and draft its first checkpoint. Raises ValueRefused."""
    run.pk = run.lineage = number
    run.head, run.seq, run.next_step = new_id(), 1, first_step
    place = CheckpointPlace(run.pk, run.lineage, run.plan_id, 1, run.token, at)
    header = Header("input", "input", first_step)
    return checked_draft(None, values, header, place, list_format=list_format, id=run.head, team=run.team_id)


def first_rows(runs: Sequence[Run], drafts: Sequence[RowDraft], reasons: Sequence[str]) -> list[Statement]:
    """Return the statements that write the runs, which wait for these reasons, and their checkpoints.

    The checkpoints' chunks are written here. The caller writes `began` and `waits` of each, too.
    """
    for run, reason in zip(runs, reasons, strict=True):
        run.begin_waiting(reason)
    for made in drafts:
        if made.changes.blobs:
            insert_chunks(made.lineage, made.changes.blobs)
    rows = [Checkpoint(**draft.row._asdict(), proof=event_proof.of_digest(draft.row.digest)) for draft in drafts]
    return [*build_insertion(runs), *build_insertion(rows)]


def began(run: Run, by: Actor) -> list[Entry]:
    """Return the events of the run's start and claim."""
    return [
        Entry(kind="run.started", subject=f"run:{run.pk}", by=by, run=run, data={"agent": run.plan.agent}),
        Entry(kind="run.running", subject=f"run:{run.pk}", by=by, run=run, version=1),
    ]


def waits(run: Run, by: Actor) -> Entry:
    """Return the event of the run's release."""
    return Entry(kind="run.waiting", subject=f"run:{run.pk}", by=by, run=run, version=2)
