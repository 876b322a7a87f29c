"""The path from the root to a run's head: what was executed on it, and which gates' outcomes stand on it.

Read by one query a slice, on first need, and extended by what the slice saves. A branch that was left by a
rewind is no part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db import connection

_PATH = """
WITH RECURSIVE path AS (
    SELECT id, parent, run_id, kind, step, input_digest, 0 AS up FROM checkpoints_checkpoint WHERE id = %s
    UNION ALL
    SELECT c.id, c.parent, c.run_id, c.kind, c.step, c.input_digest, up + 1
    FROM path JOIN checkpoints_checkpoint c ON c.id = path.parent
)
SELECT id, parent, run_id, kind, step, input_digest FROM path ORDER BY up DESC
"""
SETTLED = ("gate", "recovery")  # kinds of the checkpoints that hold an outcome


class Place(NamedTuple):
    """One checkpoint of the path."""

    id: UUID
    parent: UUID | None
    run_id: int
    kind: str
    step: str
    input_digest: bytes | None


@dataclass
class Path:
    """Root first, head last."""

    places: list[Place]

    @classmethod
    def to(cls, head: UUID) -> Path:
        """The path that ends at `head`."""
        with connection.cursor() as cursor:
            cursor.execute(_PATH, [head])
            rows = [Place(*row) for row in cursor.fetchall()]
        return cls([row._replace(input_digest=row.input_digest and bytes(row.input_digest)) for row in rows])

    @property
    def head(self) -> Place:
        return self.places[-1]

    def add(self, place: Place) -> None:
        """Extend the path by the checkpoint that was just saved on it."""
        self.places.append(place)

    def occurrences(self, step: str, input_digest: bytes) -> int:
        """How often this step was executed with this input."""
        return sum(1 for place in self.places if place.step == step and place.input_digest == input_digest)

    def before_last(self, step: str) -> UUID | None:
        """The checkpoint from which `step` was last executed; None where it never was."""
        for place in reversed(self.places):
            if place.step == step and place.kind == "step":
                return place.parent
        return None

    def settled(self) -> list[UUID]:
        """The checkpoints at which a gate stood whose outcome is on the path, newest first."""
        return [place.parent for place in reversed(self.places) if place.kind in SETTLED and place.parent]
