"""Checkpoints inside a step: values from which a long step goes on after a crash.

Also here: the kept results of `self.once` and `self.gather`.

Also here: a step's exception, kept with its traceback for the run's page.

Also here: the live text of a running step: shown while it runs, deleted when it ends, and no part of any checkpoint.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models import Subquery
from django.db.models.functions import Now
from psycopg.types.numeric import Int2, Int8

from checkpoints.errors import NotVerified
from checkpoints.layout import payloads
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical
from checkpoints.values.checkpoint_kinds import ASIDE

# Only whoever holds the run writes, under a lock that a claim waits for: a stale worker's value never comes late.
_KEEP = """
WITH held AS (SELECT id, token FROM checkpoints_run WHERE id = $1 AND token = $2 AND status = 'running' FOR SHARE)
INSERT INTO agents_stepcheckpoint (run_id, base, step, name, codec, value, digest, token, at)
SELECT id, $3, $4, $5, $6, $7, $8, token, statement_timestamp() FROM held
ON CONFLICT (run_id, base, step, name) DO UPDATE SET codec = excluded.codec, value = excluded.value,
  digest = excluded.digest, token = excluded.token, at = excluded.at
RETURNING 1
"""


class StepCheckpointQuerySet(models.QuerySet["StepCheckpoint"]):
    """Queries about checkpoints inside steps."""

    def keep(self, run_id: int, *, token: int, base: UUID, step: str, name: str, value: bytes) -> bool:
        """Keep a value, canonical JSON, in the place of the one before of that name.

        False where another worker holds the run by now.
        """
        digest = _digest(run_id, base, step, name, value)
        codec, stored = payloads.pack(value, wide=False)
        return bool(run_sql(_KEEP, [Int8(run_id), Int8(token), base, step, name, Int2(codec), stored, digest]))

    def newest(self, run_id: int, base: UUID, step: str) -> StepCheckpoint | None:
        """Return the newest one of an execution, whatever its name."""
        return self.filter(run=run_id, base=base, step=step).order_by("-at").first()

    def rename(self, step: str) -> None:
        """Give these the new name of their step, which their digests cover. Raises NotVerified."""
        for each in self:
            digest = _digest(each.run_id, each.base, step, each.name, each.verified())
            StepCheckpoint.objects.filter(pk=each.pk).update(step=step, digest=digest)

    def under_way(self, run: Run) -> StepCheckpointQuerySet:
        """Return those of the step that a run is at, without their values, newest first: at most 20.

        They are kept under the checkpoint from which the step was sent on: the head, or one before it that a person's
        answer to a failure followed.
        """
        since = Checkpoint.objects.filter(run=run).exclude(kind__in=ASIDE).order_by("-seq").values("at")[:1]
        found = self.filter(run=run, step=run.next_step, at__gte=Subquery(since))
        return found.defer("value", "digest").order_by("-at")[:20]


class StepCheckpoint(models.Model):
    """The newest value of one name that an execution of a step kept. Without a name there is one."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="step_checkpoints", db_index=False)
    base = models.UUIDField()  # the checkpoint that the step was sent on from
    step = models.CharField(max_length=100)
    name = models.CharField(max_length=100, default="", blank=True)
    codec = models.SmallIntegerField(default=0, db_default=0)  # how `value` is stored: see checkpoints.layout.payloads
    value = models.BinaryField()  # canonical JSON, compressed where that is worth it
    digest = models.BinaryField()  # of what it was before
    token = models.BigIntegerField()  # of the worker that kept it
    at = models.DateTimeField()

    objects = StepCheckpointQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "base", "step", "name"], name="step_checkpoint_is_newest")
        ]

    def __str__(self) -> str:
        return f"step checkpoint {self.pk} (run {self.run_id})"

    @property
    def content(self) -> object:
        """Return the value, decoded. Raises NotVerified where it is not what was kept."""
        return decode_canonical(self.verified())

    def verified(self) -> bytes:
        """Return the value, canonical JSON. Raises NotVerified where it is not what was kept."""
        try:
            value = payloads.unpack(self.codec, bytes(self.value))
        except ValueError:
            value = b""
        if _digest(self.run_id, self.base, self.step, self.name, value) != bytes(self.digest):
            raise NotVerified(str(self), "it does not match its digest")
        return value


def _digest(run_id: int, base: UUID, step: str, name: str, value: bytes) -> bytes:
    """Return the digest of a value and of where it belongs, so that a row that was swapped shows too."""
    return digests.of_canonical(encode_canonical([run_id, str(base), step, name]) + value)


class Memo(models.Model):
    """The result of one call in one execution of a step, kept however often that is tried."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="memos", db_index=False)
    base = models.UUIDField()  # the checkpoint that the step was sent on from; another one after "send back"
    step = models.CharField(max_length=100)
    name = models.CharField(max_length=100)
    digest = models.BinaryField()  # of the arguments and the salt
    result = models.BinaryField()  # canonical JSON
    token = models.BigIntegerField()  # of the worker that called it
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "base", "step", "name", "digest"], name="call_is_kept_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.step} of run {self.run_id}"


class Failure(models.Model):
    """One failed attempt of one step."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, related_name="failures", db_index=False)
    base = models.UUIDField()  # the head it started from
    step = models.CharField(max_length=100)
    attempt = models.SmallIntegerField()
    error = models.CharField(max_length=300)  # "ValueError: …", cut
    traceback = models.BinaryField(default=b"")  # UTF-8
    validator = models.CharField(max_length=100, default="", db_default="", blank=True)  # that refused the result
    ring = models.SmallIntegerField(default=0, db_default=0)  # how far back the refusal was taken
    seq = models.IntegerField(default=0, db_default=0)  # the run's newest checkpoint then
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["run", "-id"], name="failure_of_run")]

    def __str__(self) -> str:
        return f"{self.step} of run {self.run_id}: {self.error}"

    @property
    def told(self) -> str:
        """Return the traceback as text (untrusted)."""
        return bytes(self.traceback).decode(errors="replace")


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
