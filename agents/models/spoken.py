"""The live text of a running step: shown while it runs, deleted when it ends, and no part of any checkpoint."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

STAYS = timedelta(hours=1)  # what a killed worker left behind

# Only whoever holds the run may speak for it. A step's text takes the place of what was there, so it is one row a run.
_SAY = """
INSERT INTO agents_spoken AS spoken (run_id, token, base, step, attempt, text, at)
SELECT id, token, $3, $4, $5, $6, statement_timestamp() FROM checkpoints_run
WHERE id = $1 AND token = $2 AND status = 'running'
ON CONFLICT (run_id) DO UPDATE SET token = excluded.token, base = excluded.base, step = excluded.step,
  attempt = excluded.attempt, text = excluded.text, at = excluded.at
WHERE spoken.token <= excluded.token
RETURNING 1
"""


class SpokenQuerySet(models.QuerySet["Spoken"]):
    """Queries and updates of live texts."""

    def say(self, run_id: int, *, token: int, base: UUID, step: str, attempt: int, text: str) -> bool:
        """Replace the run's live text; False where another worker holds the run by now."""
        return bool(run_sql(_SAY, (run_id, token, base, step, attempt, text)))

    def forget(self, run_id: int, *, token: int) -> None:
        """Delete the live text of this worker."""
        run_sql("DELETE FROM agents_spoken WHERE run_id = $1 AND token = $2", (run_id, token))

    def of(self, run: Run) -> Spoken | None:
        """Return the live text of the step that runs now; None where none runs, or it has none.

        A text from before another checkpoint, or of a worker that was fenced, no longer counts.
        """
        if run.status != Run.Status.RUNNING or run.head is None:
            return None
        return self.filter(run=run, token=run.token, base=run.head).first()

    def left(self) -> SpokenQuerySet:
        """Return the live texts that killed workers left behind."""
        return self.filter(at__lt=Now() - STAYS)


class Spoken(models.Model):
    """The live text of one run. The table is unlogged, so no commit waits for the disk: a crash empties it."""

    run = models.OneToOneField(Run, models.CASCADE, primary_key=True, related_name="+", db_constraint=False)
    token = models.BigIntegerField()  # of the worker that says it
    base = models.UUIDField()  # the checkpoint that the step runs from
    step = models.CharField(max_length=100)
    attempt = models.PositiveIntegerField()
    text = models.TextField()
    at = models.DateTimeField()

    objects = SpokenQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.step} of run {self.run_id}"
