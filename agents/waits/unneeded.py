"""Decides which signals and waits an ended run needs no more, whichever of its remaining checkpoints it goes back to.

A rewind to a checkpoint reads again what was read after it, and never what was read on the path to it. So a signal is
needed while a checkpoint remains that a step follows and before which it was not read: thus one that nobody read is
needed as long as the run can go on from anywhere. A wait that got such a signal says that it was read, as long as its
execution is on the path to such a checkpoint, or may be reused. And every wait is needed that its step would find
again: while the checkpoint from which that was sent on remains, as it is with the results of `once`.

A signal goes together with its waits: without them it would be read a second time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from agents.models import Signal, Wait
from checkpoints.models import Run
from checkpoints.retention.reading import ROW
from checkpoints.retention.unneeded_rows import Bundle, Row
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader

from .signals import SIZE, Execution, execution_of

MODELS = (Wait, Signal)
Item = int | Execution  # a signal, or an execution that read one


class KnownWait(NamedTuple):
    """A wait, as far as the rule reads it."""

    id: int
    base: UUID
    signal: int | None
    execution: Execution


def find(run: Run, remaining: Collection[UUID]) -> list[Bundle]:
    """Return the rows of a run that none of its remaining checkpoints needs."""
    waits = [
        KnownWait(id, base, signal, (step, bytes(digest), occurrence))
        for id, base, signal, step, digest, occurrence in Wait.objects.filter(run=run).values_list(
            "pk", "base", "signal", "step", "input_digest", "occurrence"
        )
    ]
    signals = dict(Signal.objects.filter(run=run).order_by("pk").values_list("pk", SIZE))
    if not (waits or signals):
        return []
    return _unneeded(run.pk, waits, signals, executions.of_lineage(run.lineage), remaining)


def _unneeded(
    run_id: int,
    waits: Sequence[KnownWait],
    signals: Mapping[int, int],
    places: Sequence[CheckpointHeader],
    remaining: Collection[UUID],
) -> list[Bundle]:
    """Return the rows. `signals`: the bytes of each one's value."""
    targets = {place.id for place in places if place.id in remaining and place.next_step}
    items: dict[Execution, set[Item]] = defaultdict(set)
    for wait in waits:
        if wait.signal is not None:
            items[wait.execution] |= {wait.signal, wait.execution}
    read = _targets_behind(places, targets, items)
    told = {
        execution
        for place in places
        if (execution := execution_of(place)) is not None
        and (read[execution] or (place.id in remaining if place.run_id == run_id else not place.removed))
    }
    found_again = {wait.signal for wait in waits if wait.base in remaining}
    going: dict[int, list[Row]] = {
        signal: [] for signal in signals if read[signal] == len(targets) and signal not in found_again
    }
    alone: list[Row] = []
    for wait in waits:
        if wait.signal in going:
            going[wait.signal].append(Row(Wait, wait.id, ROW))
        elif wait.base not in remaining and (wait.signal is None or wait.execution not in told):
            alone.append(Row(Wait, wait.id, ROW))
    for signal, rows in going.items():
        rows.append(Row(Signal, signal, ROW + signals[signal]))
    return [*going.values(), *([row] for row in alone)]


def _targets_behind(
    places: Sequence[CheckpointHeader], targets: Collection[UUID], items: Mapping[Execution, Collection[Item]]
) -> Counter[Item]:
    """Count for each item the targets that have it on the path to them; each place is visited once."""
    known = {place.id for place in places}
    after: dict[UUID | None, list[CheckpointHeader]] = defaultdict(list)
    for place in places:
        after[place.parent if place.parent in known else None].append(place)
    counts, entered, seen = Counter[Item](), dict[Item, int](), 0
    stack: list[CheckpointHeader | list[Item]] = [*after[None]]
    while stack:
        here = stack.pop()
        if isinstance(here, list):  # everything after these items was visited
            for item in here:
                counts[item] += seen - entered.pop(item)
            continue
        execution = execution_of(here)
        new = [item for item in (items.get(execution, ()) if execution else ()) if item not in entered]
        entered |= dict.fromkeys(new, seen)
        seen += here.id in targets
        stack += [new, *after[here.id]]
    return counts
