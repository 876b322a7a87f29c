"""Gaps: rows that replace the checkpoints that a prune removed.

A gap keeps the removed headers in compact form: so the chain of digests can be checked through it as if nothing were
missing, and a run still knows what it did and how often. States, notes and payloads are gone.
"""

from __future__ import annotations

from django.db import models


class Gap(models.Model):
    """A range of a run's numbers whose checkpoints were removed. The application's role may only insert and select."""

    run = models.ForeignKey("checkpoints.Run", on_delete=models.PROTECT, db_index=False, related_name="gaps")
    number = models.IntegerField()  # 1, 2, … within the run: gaps form a chain
    first_seq = models.IntegerField()
    last_seq = models.IntegerField()
    parent_digest = models.BinaryField(null=True)  # of the parent of the first that was removed
    removed = models.BinaryField()  # SHA-256 over the removed checkpoints' digests, in order
    last_digest = models.BinaryField()  # of the last that was removed
    headers = models.BinaryField()  # of what was removed, see checkpoints.store.gap_headers
    policy = models.CharField(max_length=120)  # "default" or an agent's name, as people read it
    policy_version = models.IntegerField()
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="", blank=True)
    at = models.DateTimeField()
    previous = models.BinaryField(null=True)  # the digest of the gap before it in this run
    digest = models.BinaryField()  # HMAC-SHA-256 where a seal key is set, else SHA-256

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="gaps_form_one_chain_a_run"),
            models.CheckConstraint(
                condition=models.Q(first_seq__gte=1, last_seq__gte=models.F("first_seq")), name="gap_is_a_range"
            ),
        ]

    def __str__(self) -> str:
        return f"gap {self.number} of R-{self.run_id}: {self.first_seq} to {self.last_seq}"
