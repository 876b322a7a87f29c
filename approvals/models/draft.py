"""A draft: a reviewer's unsent entries at a gate. Private, and without events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models.functions import Now

from checkpoints.postgresql.sql import run_sql
from checkpoints.values import canonical_json

from .decision import Decision
from .gate import Gate

MOST_CHARACTERS = 1_000_000


class NotKept(Exception):
    """A draft was not kept; the message says why, to the person."""


# Raw SQL, as nothing refers to a draft, and the ORM looks for what does.
OF_GATE_OR_REPLACED = (
    "(gate_id = %s OR gate_id IN (SELECT to_gate_id FROM approvals_gate_replaces WHERE from_gate_id = %s))"
)
_DROP = f"DELETE FROM approvals_draft WHERE {OF_GATE_OR_REPLACED} AND user_id = $2 RETURNING id".replace("%s", "$1")  # noqa: S608 - constants


class DraftQuerySet(models.QuerySet["Draft"]):
    """Queries that keep and drop drafts."""

    def keep(
        self, gate: Gate, *, by: Any, proposal: int, fields: Mapping[str, str], key: str, seen: str | None = None
    ) -> datetime:
        """Keep the fields as this person's draft, replacing the one before; return the time.

        `seen`: the time of the draft that the page knows of, "" for none; None skips the check. Locks the gate's row,
        so that no draft is kept after its decision. Raises NotKept where the gate is closed, the form with this `key`
        was recorded meanwhile, or another page of theirs has kept a newer one.
        """
        with transaction.atomic():
            if not Gate.objects.select_for_update().open().filter(pk=gate.pk).exists():
                raise NotKept("The gate is closed; a draft can no longer be sent.")
            if Decision.objects.filter(gate=gate, user=by, key=key).exists():
                raise NotKept("This form was sent already.")
            stands = self.filter(gate=gate, user=by).first()
            known = stands is None or stands.kept_at.isoformat() == seen or stands.fields.get("key") == key
            if seen is not None and not known:
                raise NotKept("A newer draft exists in another tab. Reload to see it.")
            body = canonical_json.encode_canonical({**fields, "key": key})
            if stands is not None and (bytes(stands.body), stands.proposal) == (body, proposal):
                return (
                    stands.kept_at
                )  # a late request that a page made as it was left: the next page may have sent it too
            made, _ = self.update_or_create(
                gate=gate, user=by, defaults={"proposal": proposal, "kept_at": Now(), "body": body}
            )
        made.refresh_from_db(fields=["kept_at"])
        return made.kept_at

    def drop(self, gate: Gate, *, by: Any) -> int:
        """Delete this person's draft, and any of the gates that this one replaces; return how many there were."""
        return len(run_sql(_DROP, [gate.pk, by.pk]))

    def outlived(self, kept: timedelta) -> DraftQuerySet:
        """Select those of gates that closed longer ago than `kept`."""
        return self.filter(gate__closed_at__lt=Now() - kept)


class Draft(models.Model):
    """One reviewer's unsent form of one gate, as the browser would post it."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="drafts", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    proposal = models.IntegerField()  # the version that was on the screen
    body = models.BinaryField()  # canonical JSON: field name -> text, and the key of the form that was kept
    kept_at = models.DateTimeField(db_default=Now())

    objects = DraftQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "user"], name="one_draft_per_person_and_gate")]

    def __str__(self) -> str:
        return f"draft of user {self.user_id} at gate {self.gate_id}"

    @property
    def fields(self) -> dict[str, str]:
        """Return what was entered, by field name."""
        found: dict[str, str] = canonical_json.decode_canonical(bytes(self.body))
        return found

    @property
    def empty(self) -> bool:
        """Tell whether nothing is entered any more."""
        return not self.fields.keys() - {"key"}

    @property
    def sent(self) -> bool:
        """Tell whether the form was recorded as a decision, so that the draft is only left to be deleted."""
        return Decision.objects.filter(gate=self.gate_id, user=self.user_id, key=self.fields.get("key", "")).exists()
