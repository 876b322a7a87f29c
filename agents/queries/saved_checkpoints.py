"""The checkpoints of a run's page as facts: who ordered each, whose output it reused, and which were removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from agents.presentation.timeline.facts import TimelineCheckpoint, TimelineGap
from checkpoints.models import Checkpoint, Event, Gap, Plan, Run
from checkpoints.values.canonical_json import decode_canonical

from .performed_effects import execution_of
from .run_row import RunRow

ORDERS = ("rewind", "edit", "fork")  # kinds of the checkpoints that a person ordered
ORDERED = ("run.rewound", "run.edited", "run.forked")  # their events
TWIN_RUNS = 20  # of a lineage in which twins are looked for: the run itself, the first, and the newest
TWINS = 500  # checkpoints of each, the newest
_TWINS = """
SELECT c.run_id, c.seq, c.step, c.input_digest, c.occurrence FROM (
  SELECT id FROM checkpoints_run WHERE id = %(root)s OR (lineage = %(root)s AND forked_from IS NOT NULL)
  ORDER BY (id = %(run)s) DESC, (id = %(root)s) DESC, id DESC LIMIT %(runs)s) r
CROSS JOIN LATERAL (
  SELECT run_id, seq, at, kind, step, input_digest, occurrence FROM checkpoints_checkpoint
  WHERE run_id = r.id AND seq < CASE WHEN r.id = %(run)s THEN %(below)s ELSE 2147483647 END
  ORDER BY seq DESC LIMIT %(most)s) c
WHERE c.kind IN ('step', 'gate') AND c.step = ANY(%(steps)s) AND c.input_digest = ANY(%(inputs)s)
ORDER BY c.at, c.run_id, c.seq
"""


def saved_of(read: RunRow, window: Sequence[Checkpoint], events: Sequence[Event]) -> Iterable[TimelineCheckpoint]:
    """Yield the checkpoints of the window, with the notes of their steps, or who ordered them and why."""
    run, by = read.run, orders_of(events)
    twins, versions, origins = twins_of(run, window), versions_of(run, window), origins_of(read)
    for checkpoint in window:
        execution = execution_of(checkpoint.step, checkpoint.input_digest, checkpoint.occurrence)
        ordered = checkpoint.kind in ORDERS
        words = tuple(bytes(text).decode(errors="replace") for text in getattr(checkpoint, "said", ()))
        yield TimelineCheckpoint(
            id=checkpoint.id.hex,
            seq=checkpoint.seq,
            parent=checkpoint.parent.hex if checkpoint.parent else "",
            kind=checkpoint.kind,
            step=checkpoint.step,
            at=checkpoint.at,
            took=timedelta(microseconds=checkpoint.took_us),
            attempt=checkpoint.attempt,
            words=() if ordered else words,
            execution=execution,
            twin=twins.get(execution, "") if checkpoint.kind == "reused" else "",
            next_step=checkpoint.next_step,
            by=by.get(checkpoint.seq, "") if ordered else "",
            why=" ".join(words) if ordered else "",
            origin=origins.get(checkpoint.seq, ""),
            version=versions.get(checkpoint.plan_id, "") if checkpoint.kind == "upcast" else "",
            name=getattr(checkpoint, "named", ""),
            noted=getattr(checkpoint, "noted", 0),
        )


def origins_of(read: RunRow) -> dict[int, str]:
    """Map the number of a checkpoint to its parent's place, if the parent is in another run."""
    turns = [turn for turn in read.course.turns if turn.run not in (0, read.run.pk)]
    return {turn.seq: _place(turn.parent, turn.run) for turn in turns}


def _place(number: int, run: int) -> str:
    return f"{number} of R-{run}"


def twins_of(run: Run, window: Sequence[Checkpoint]) -> dict[str, str]:
    """Map the executions that the window reused to the place where the output was recorded.

    Only the newest checkpoints of some runs of the lineage are searched; a place further off is left out,
    and the note of the checkpoint that reused it names it.
    """
    reused = [
        checkpoint for checkpoint in window if checkpoint.kind == "reused" and checkpoint.input_digest is not None
    ]
    if not reused:
        return {}
    asked: dict[str, Any] = {
        "run": run.pk, "root": run.lineage, "below": window[-1].seq, "runs": TWIN_RUNS, "most": TWINS,
        "steps": [checkpoint.step for checkpoint in reused],
        "inputs": [bytes(checkpoint.input_digest or b"") for checkpoint in reused],
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_TWINS, asked)
        found = cursor.fetchall()
    wanted = {execution_of(checkpoint.step, checkpoint.input_digest, checkpoint.occurrence) for checkpoint in reused}
    places = (
        (execution_of(step, digest, occurrence), str(seq) if of == run.pk else _place(seq, of))
        for of, seq, step, digest, occurrence in found
    )
    return {name: place for name, place in places if name in wanted}


def orders_of(events: Iterable[Event]) -> dict[int, str]:
    """Map the number of a checkpoint to who ordered that rewind, edit or fork."""
    found = [event for event in events if event.kind in ORDERED]
    return {int(decode_canonical(bytes(event.data)).get("seq", 1)): event.actor_name for event in found}


def versions_of(run: Run, window: Sequence[Checkpoint]) -> dict[int, str]:
    """Return the agent versions that saved the window's checkpoints, by plan."""
    plans = {checkpoint.plan_id for checkpoint in window}
    if plans <= {run.plan_id}:
        return {run.plan_id: run.plan.version}
    return dict(Plan.objects.filter(pk__in=plans).values_list("pk", "version"))


def states_of(window: Sequence[Checkpoint]) -> set[UUID]:
    """Return the ids at which failures and gates of the window can be: its checkpoints and their parents."""
    return {checkpoint.id for checkpoint in window} | {checkpoint.parent for checkpoint in window if checkpoint.parent}


def pruned_of(run: Run, window: Sequence[Checkpoint]) -> list[TimelineGap]:
    """List the checkpoints that retention removed before and between the window's, adjacent gaps joined."""
    upto = window[-1].seq if window else run.seq + 1
    gaps = list(Gap.objects.filter(run=run, first_seq__lt=upto).defer("headers").order_by("first_seq"))
    if not gaps:
        return []
    older = Checkpoint.objects.filter(run=run, seq__lt=window[0].seq if window else upto).order_by("-seq")
    since = older.values_list("seq", flat=True).first() or 0
    found: list[TimelineGap] = []
    for gap in gaps:
        if gap.last_seq <= since:
            continue
        if not found or gap.first_seq != found[-1].last + 1:
            found.append(TimelineGap(gap.first_seq, gap.last_seq, gap.at, gap.at, []))
        joined = found[-1]
        joined.last, joined.upto = gap.last_seq, gap.at
        joined.policies += [] if gap.policy in joined.policies else [gap.policy]
    return found
