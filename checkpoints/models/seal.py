"""Seals: what makes a rewritten past show."""

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
    heads = models.BinaryField()  # canonical JSON: run id -> digest of its head
    previous = models.BinaryField(null=True)
    digest = models.BinaryField()  # HMAC-SHA-256 where a key is set, else SHA-256

    class Meta:
        constraints = [models.UniqueConstraint(fields=["previous"], nulls_distinct=False, name="seals_form_one_chain")]

    def __str__(self) -> str:
        return f"seal {self.pk}"
