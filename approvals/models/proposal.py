"""A proposal: one version of what a gate asks. A decision binds one proposal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from approvals.cards.card import Card, card_of
from checkpoints import actors
from checkpoints.values import canonical_json


class Proposal(models.Model):
    """One version of what a gate asks. An edit makes the next; approvals count for one version only."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="proposals", db_index=False)
    number = models.IntegerField()
    body = models.BinaryField()  # canonical JSON of everything that the gate presents for a decision
    digest = models.BinaryField()  # of `body`, see approvals.cards.binding: what a decision binds
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    patch = models.BinaryField(default=b"[]")  # JSON Patch from version 1, on the state
    # What it needs by the policy's rules, see approvals.policy.requirements; empty: what the policy asks of all.
    requirements = models.TextField(default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "number"], name="proposal_number_is_taken_once")]

    def __str__(self) -> str:
        return f"proposal {self.number} of gate {self.gate_id}"

    @property
    def content(self) -> dict[str, Any]:
        """Return the body, as a JSON object."""
        body: dict[str, Any] = canonical_json.decode_canonical(bytes(self.body))
        return body

    @property
    def card(self) -> Card:
        """Return the card that this version shows, with its arguments."""
        return card_of(bytes(self.body), external=lambda: self.gate.run.plan.external)

    @property
    def state_patch(self) -> list[dict[str, Any]]:
        """Return the JSON Patch from the gate's saved state to the state that this version asks for."""
        patch: list[dict[str, Any]] = canonical_json.decode_canonical(bytes(self.patch))
        return patch

    @property
    def by_name(self) -> str:
        """Return the name of its author; "" for the agent's own proposal."""
        return actors.of_user(self.by).name if self.by else ""
