"""Starts runs: from an input, from a checkpoint of another run (a fork), or waiting for people from the start.

Of the last kind any number is started in a few statements. Their rows and events are those that a start, a claim and a
release would leave, one run after the other. Nobody can have such a run in between, so the claim and the release need
no guard, and are not made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from checkpoints.actors import Actor
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.events import event_log, event_proof
from checkpoints.events.event_log import Entry
from checkpoints.layout import payloads
from checkpoints.layout.rows import new_id
from checkpoints.layout.snapshot import CheckpointPlace, Header, RowDraft, Snapshot
from checkpoints.models import Checkpoint, Hold, Plan, Run
from checkpoints.models.run import NORMAL
from checkpoints.postgresql.prepared_rows import build_insertion
from checkpoints.postgresql.sql import Statement, run_sql
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import ListDigest
from checkpoints.values.ops import Write

from .loading import load_checkpoint
from .named_files import checked_draft
from .save_statements import first_rows, insert_chunks

# The digests of new runs are in a format that every process here knows.
_NUMBERS = """
SELECT nextval(pg_get_serial_sequence('checkpoints_run', 'id')), clock_timestamp(), public.checkpoints_new_codec()
FROM generate_series(1, $1::int)
"""


def start(
    *,
    plan: Plan,
    team: Group,
    title: str,
    values: Mapping[str, Any],
    first_step: str,
    by: Actor,
    started_by: Any = None,
    key: str | None = None,
    environment: Mapping[str, Any] | None = None,
    thread: str = "",
    within: timedelta | None = None,
    parent: Run | None = None,
    wait_reason: str = "",
    priority: int = NORMAL,
    number: int | None = None,
) -> Run:
    """Make a queued run with its first checkpoint, in one transaction.

    `environment` records what the run started with: {"config": {…}, "libraries": {name: version}}. `within`: the time
    until its deadline. `parent`: the run whose step starts it. `wait_reason`: why it waits for its turn and is not
    queued. `priority`: from 0, the most urgent, to 9. `number`: its own, where that was drawn before. Another call with
    the same `key` returns the run that the first one made. Raises ValueRefused before anything is written.
    """
    header = Header("input", "input", first_step)
    run = Run(
        id=number, plan=plan, team=team, title=title[:200], key=key, started_by=started_by, started_as=by.id,
        environment=encode_canonical(dict(environment or {})), thread=thread, parent=parent, priority=priority,
    )  # fmt: skip
    if wait_reason:
        run.begin_held(wait_reason)

    def make() -> Run:
        rows = _begin(run, header, None, values, within)
        started = Entry(kind="run.started", subject=f"run:{run.pk}", by=by, run=run, data={"agent": plan.agent})
        waits = [Entry(kind="run.waiting", subject=f"run:{run.pk}", by=by, run=run, version=1)] if wait_reason else []
        event_log.append_events([started, *waits], extras=rows)
        return run

    return _once(key, make)


def fork(
    checkpoint_id: UUID,
    *,
    by: Actor,
    team: Group | None = None,
    title: str = "",
    started_by: Any = None,
    writes: Mapping[str, Write] = MappingProxyType({}),
    plan: Plan | None = None,
    next_step: str | None = None,
    environment: Mapping[str, Any] | None = None,
    key: str | None = None,
    within: timedelta | None = None,
) -> Run:
    """Start another run of the same lineage from a checkpoint, and hold that checkpoint.

    Plan, next step, environment and team are those of the origin unless given; `writes` change its state. Another
    call with the same `key` returns the run that the first one made. Raises NoSuchCheckpoint, NotVerified, and
    ValueRefused before anything is written.
    """

    def make() -> Run:
        source, origin = _locked(checkpoint_id)
        run = Run(
            plan_id=plan.pk if plan else origin.plan_id, team=team or source.team, key=key,
            title=(title or source.title)[:200], started_by=started_by, started_as=by.id, lineage=origin.lineage,
            forked_from=origin.id, priority=source.priority,
            environment=source.environment if environment is None else encode_canonical(dict(environment)),
        )  # fmt: skip
        header = Header("fork", "fork", origin.next_step if next_step is None else next_step)
        rows = _begin(run, header, origin, writes, within)
        Hold.objects.make(
            run=source, checkpoint=origin.id, kind=Hold.Kind.FORK, subject=f"run:{run.pk}",
            reason=f"{run} was forked from here", by=by,
        )  # fmt: skip
        data = {"from": str(origin.id), "run": source.pk}
        event_log.append_events(
            [Entry(kind="run.forked", subject=f"run:{run.pk}", by=by, run=run, data=data)], extras=rows
        )
        return run

    return _once(key, make)


def _locked(checkpoint_id: UUID) -> tuple[Run, Snapshot]:
    """Lock the run of a checkpoint and read the checkpoint. Raises NoSuchCheckpoint and NotVerified."""
    # Lock before reading the state: a prune takes this lock too, and so cannot remove the state or its chunks.
    stands = Checkpoint.objects.filter(pk=checkpoint_id).values("run_id")
    locked = Run.objects.select_for_update(no_key=True, of=("self",)).select_related("team")
    source = locked.filter(pk__in=stands).first()
    if source is None:
        raise NoSuchCheckpoint
    return source, load_checkpoint(checkpoint_id)


def _once(key: str | None, make: Callable[[], Run]) -> Run:
    """Return the run that `make` makes, in one transaction, or the one that an earlier call with this key made."""
    if key is not None and (made := Run.objects.filter(key=key).first()):
        return made
    try:
        with transaction.atomic(savepoint=key is not None):
            return make()
    except IntegrityError:
        # Two concurrent calls with one key: the constraint lets one through, and the other returns its run.
        made = Run.objects.filter(key=key).first() if key is not None else None
        if made is None:
            raise
        return made


def _begin(
    run: Run, header: Header, origin: Snapshot | None, values: Mapping[str, Write], within: timedelta | None
) -> list[Statement]:
    """Return the statements that insert `run` and its first checkpoint, whose chunks are written here."""
    id = new_id()
    run.head, run.seq, run.next_step = id, 1, header.next_step
    [number], at, list_format = new_numbers(1)
    run.pk = run.pk or number
    run.lineage = run.lineage or run.pk
    run.deadline = None if within is None else at + within
    place = CheckpointPlace(run.pk, run.lineage, run.plan_id, 1, run.token, at)
    made = checked_draft(
        origin, values, header, place, list_format=origin.list_format if origin else list_format, id=id,
        team=run.team_id, lineage=run.parent.lineage if run.parent else run.lineage,
    )  # fmt: skip
    return first_rows(run, made)


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


def waiting_rows(runs: Sequence[Run], drafts: Sequence[RowDraft], reasons: Sequence[str]) -> list[Statement]:
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
