"""Seals, which reveal events that were altered, removed or inserted later."""

from __future__ import annotations

from django.db import models


class Seal(models.Model):
    """Covers a range of committed events, and the seal before it."""

    at = models.DateTimeField()  # the database's clock
    first_xid = models.BigIntegerField()
    first_id = models.BigIntegerField()
    last_xid = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.IntegerField()
    merkle_root = models.BinaryField()
    marks = models.BinaryField()  # one per event, so that a wrong event can be named; see seals.leaves
    heads = models.BinaryField()  # canonical JSON: run id -> [number, digest] of its head
    previous = models.BinaryField(null=True)
    digest = models.BinaryField()  # HMAC-SHA-256 where a key is set, else SHA-256

    class Meta:
        constraints = [models.UniqueConstraint(fields=["previous"], nulls_distinct=False, name="seals_form_one_chain")]
        indexes = [
            models.Index("last_xid", "last_id", name="seal_by_place"),
            models.Index("at", name="seal_by_time"),
        ]

    def __str__(self) -> str:
        return f"seal {self.pk}"
