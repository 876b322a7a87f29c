"""The path from the root to a run's head: what was executed on it, and which gates' outcomes are on it.

Read by one query a slice, on first need, and extended by what the slice saves. A branch that was left by a
rewind is no part of it; a fork's path begins in the run that it was forked from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from checkpoints.store import executions
from checkpoints.store.executions import Record

_PATH = """
WITH RECURSIVE path AS (
    SELECT id, parent, run_id, kind, step, input_digest, occurrence, next_step, 0 AS up
    FROM checkpoints_checkpoint WHERE id = %s
    UNION ALL
    SELECT c.id, c.parent, c.run_id, c.kind, c.step, c.input_digest, c.occurrence, c.next_step, up + 1
    FROM path JOIN checkpoints_checkpoint c ON c.id = path.parent
)
SELECT id, parent, run_id, kind, step, input_digest, occurrence, next_step FROM path ORDER BY up DESC
"""
SETTLED = ("gate", "recovery")  # kinds of the checkpoints that hold an outcome
EXECUTED = ("step", "reused")  # kinds of the checkpoints in which a step's output landed
FORCING = ("rewind", "repair")  # kinds after which the next step runs whatever is recorded
MOVED = ("rewind", "edit", "repair", "upcast")  # kinds that may leave behind what was under way, though nothing landed
ASIDE = ("recovery", "reopen", "upcast")  # kinds that change nothing about where the run was sent


class Place(NamedTuple):
    """One checkpoint of the path."""

    id: UUID
    parent: UUID | None
    run_id: int
    kind: str
    step: str
    input_digest: bytes | None
    occurrence: int = 0
    next_step: str = ""


@dataclass
class Path:
    """Root first, head last. Executions are counted as they come: a step must not cost more the longer the run is."""

    places: list[Place]
    counts: Counter[tuple[str, bytes | None]] = field(default_factory=Counter)
    ids: set[UUID] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ids = {place.id for place in self.places}
        self.counts = Counter((place.step, place.input_digest) for place in self.places)

    @classmethod
    def to(cls, head: UUID) -> Path:
        """Return the path that ends at `head`."""
        with connection.cursor() as cursor:
            cursor.execute(_PATH, [head])
            rows = [Place(*row) for row in cursor.fetchall()]
        if rows and rows[0].parent is not None:  # what is before it was removed, and is known from the gaps
            found = executions.path(head)
            return cls([Place(*(getattr(each, name) for name in Place._fields)) for each in found])
        return cls([row._replace(input_digest=row.input_digest and bytes(row.input_digest)) for row in rows])

    @classmethod
    def within(cls, head: UUID, known: Mapping[UUID, Record]) -> Path:
        """Return the path that ends at `head`, among records that are in hand."""
        return cls(
            [
                Place(r.id, r.parent, r.run_id, r.kind, r.step, r.input_digest, r.occurrence, r.next_step)
                for r in executions.way_to(head, known)
            ]
        )

    @property
    def head(self) -> Place:
        return self.places[-1]

    @property
    def runs(self) -> set[int]:
        """Return the runs that it leads through: a fork's begins in another."""
        return {place.run_id for place in self.places}

    def add(self, place: Place) -> None:
        """Extend the path by the checkpoint that was just saved on it."""
        self.places.append(place)
        self.ids.add(place.id)
        self.counts[place.step, place.input_digest] += 1

    def occurrences(self, step: str, input_digest: bytes) -> int:
        """Count how often this step was executed with this input."""
        return self.counts[step, input_digest]

    def executions(self, step: str) -> int:
        """Count how often this step was executed, on whatever input."""
        return sum(1 for place in self.places if place.step == step and place.kind in EXECUTED)

    def holds(self, checkpoints: Iterable[UUID]) -> bool:
        """Tell whether one of these is on the path."""
        return not self.ids.isdisjoint(checkpoints)

    def after(self, checkpoint: UUID) -> list[Place] | None:
        """Return the places that follow a checkpoint; None where it is not on the path."""
        for number, place in enumerate(self.places):
            if place.id == checkpoint:
                return self.places[number + 1 :]
        return None

    def forced(self, step: str) -> bool:
        """Tell whether a person, or a repair, sent the run to `step`, so that it runs whatever is recorded."""
        place = self.sent(step)
        return place is not None and place.kind in FORCING

    def sent(self, step: str) -> Place | None:
        """Return the checkpoint from which the run came to `step`, before anything went aside there.

        A question about another step, which went on with what was to come anyway, is aside too.
        """
        before = [*self.places[:1], *self.places]
        for earlier, place in zip(reversed(before[:-1]), reversed(self.places), strict=True):
            if place.kind not in ASIDE or (place.step != step and place.next_step != earlier.next_step):
                return place
        return None

    def branched(self, run_id: int, seq: int) -> bool:
        """Tell whether the run, whose newest checkpoint is `seq`, has executions beside this path."""
        return self.places[0].run_id != run_id or len(self.places) < seq

    def moved(self) -> bool:
        """Tell whether the run was ever sent elsewhere than its steps would have gone."""
        return any(place.kind in MOVED for place in self.places)

    def before_last(self, step: str) -> UUID | None:
        """Return the checkpoint from which `step` was last executed; None where it never was."""
        for place in reversed(self.places):
            if place.step == step and place.kind in EXECUTED:
                return place.parent
        return None

    def settled(self) -> list[UUID]:
        """Return the checkpoints at which a gate was opened whose outcome is on the path, newest first."""
        return [place.parent for place in reversed(self.places) if place.kind in SETTLED and place.parent]

    def __iter__(self) -> Iterator[Place]:
        return iter(self.places)
