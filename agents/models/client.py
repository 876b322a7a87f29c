"""The external program that works on a run: when it was last heard of, and whether it announced a pause."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from psycopg.types.numeric import Int8

from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

from .token import Token

LEASE = 60.0  # seconds, where it asked for none
HEARD = timedelta(seconds=5)  # how exactly it is kept when it was last heard: it may call a hundred times a second
_CAME = """
INSERT INTO agents_client (run_id, token_id, owner_id, name, lease, heard_at, deferred)
VALUES ($1, $2, $3, $4, $5::float8, statement_timestamp(), $6)
ON CONFLICT (run_id) DO UPDATE SET token_id = excluded.token_id, owner_id = excluded.owner_id, name = excluded.name,
  lease = excluded.lease, heard_at = excluded.heard_at, missed_at = NULL, deferred = excluded.deferred
"""
_HEARD = """
UPDATE agents_client SET heard_at = statement_timestamp()
WHERE run_id = $1 AND heard_at < statement_timestamp() - $2::interval RETURNING run_id
"""


class ClientQuerySet(models.QuerySet["Client"]):
    """Queries about clients."""

    def heard(self, run_id: int) -> int:
        """Note that the run's program was heard now; return how many rows that changed."""
        return len(run_sql(_HEARD, [Int8(run_id), HEARD]))

    def missed(self) -> ClientQuerySet:
        """Return the clients not heard of lately; few, since those of runs that ended are deleted."""
        return self.filter(missed_at__isnull=False, deferred=False)


class Client(models.Model):
    """The client of one run. It is a row of its own, since presence gives no authority over the run."""

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="client")
    token = models.ForeignKey("agents.Token", null=True, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")  # who answers for it
    name = models.CharField(max_length=120, default="", blank=True)  # what it calls itself: host and process
    lease = models.FloatField(default=LEASE)  # seconds that it asked for
    heard_at = models.DateTimeField(db_default=Now())
    missed_at = models.DateTimeField(null=True)  # since when it is known that nothing is heard of it
    deferred = models.BooleanField(default=False, db_default=False)  # it said that it comes back

    objects = ClientQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("heard_at", name="client_heard", condition=Q(deferred=False, missed_at=None)),
            models.Index("missed_at", name="client_missed", condition=Q(missed_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"client of run {self.run_id}"

    @classmethod
    def came(
        cls,
        run: Run,
        *,
        token: Token | None,
        owner: int,
        name: str = "",
        lease: float = LEASE,
        deferred: bool = False,
    ) -> None:
        """Record the program that works on the run from now on."""
        run_sql(_CAME, [run.pk, token.pk if token else None, owner, name, lease, deferred])
