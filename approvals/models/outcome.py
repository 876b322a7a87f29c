"""Outcomes of gates, and the rights that they give."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models.functions import Now

from approvals.cards import verdicts
from approvals.cards.action import REJECT, Action, SettledAction
from approvals.cards.binding import Approved
from approvals.cards.likeness import Likeness
from checkpoints.values import canonical_json

BY_RULE = "policy:"  # begins the id of the actor of such an approval


class Outcome(models.Model):
    """The outcome of a gate, written in the transaction that closes it and read by the runner. Never changed."""

    class Kind(models.TextChoices):
        APPROVED = "approved", "Approved"
        EDITED = "edited", "Approved with an edit"
        REJECTED = "rejected", "Rejected"
        ANSWERED = "answered", "Answered"
        MIXED = "mixed", "Decided action by action"  # some actions were refused or answered; the others may run
        EXPIRED = "expired", "Expired: nobody answered in time"
        WITHDRAWN = "withdrawn", "Withdrawn"

    gate = models.OneToOneField("approvals.Gate", on_delete=models.PROTECT, related_name="outcome")
    proposal = models.ForeignKey("approvals.Proposal", on_delete=models.PROTECT, related_name="+")  # the final one
    kind = models.CharField(max_length=10, choices=Kind.choices)
    decisions = models.ManyToManyField("approvals.Decision", related_name="+")  # the decisions that counted
    arguments = models.BinaryField(default=b"{}")  # canonical JSON: action id -> final arguments
    patch = models.BinaryField(default=b"[]")  # canonical JSON: JSON Patch on the gate's state
    then = models.CharField(max_length=8, default="", blank=True)
    back_to = models.CharField(max_length=100, default="", blank=True)
    answer = models.BinaryField(default=b"null")
    feedback = models.BinaryField(default=b"")  # UTF-8, the agent reads it after a rejection
    seen = models.BinaryField()
    to_run = models.BinaryField(null=True)  # digest of what may run; null where nothing may
    bound = models.BinaryField(default=b"{}")  # canonical JSON: effect -> {field: hex digest} that to_run covers
    preconditions = models.BinaryField(default=b"[]", db_default=b"[]")  # canonical JSON: ids that count; in to_run
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.kind} of gate {self.gate_id}"

    @property
    def by_rule(self) -> bool:
        """Tell whether a rule of the policy approved, without people."""
        return self.by.startswith(BY_RULE)

    @property
    def step(self) -> str:
        """Return the step of its gate."""
        return self.gate.step

    @property
    def recovery(self) -> bool:
        """Tell whether its gate asked how to go on after a failure."""
        return self.gate.kind == self.gate.Kind.RECOVERY

    @property
    def lets_run(self) -> bool:
        """Tell whether it lets an effect run."""
        return self.to_run is not None

    @property
    def opened_at(self) -> datetime:
        """Return when its gate was opened."""
        return self.gate.opened_at

    @property
    def closed_at(self) -> datetime | None:
        """Return when its gate was closed."""
        return self.gate.closed_at

    @property
    def refusing(self) -> list[Action]:
        """List its actions that do not run although the run goes on."""
        return [action for action in self.proposal.card.actions if action.settled]

    @property
    def actions(self) -> frozenset[str]:
        """Return the ids of the actions on the final proposal."""
        return frozenset(action.id for action in self.proposal.card.actions)

    @property
    def words(self) -> str:
        """Return the feedback, as text."""
        return bytes(self.feedback).decode(errors="replace")

    @property
    def answered(self) -> Any:
        """Return a recovery gate's answer, {"choice", "value"}, or None."""
        return canonical_json.decode_canonical(bytes(self.answer))

    @property
    def state_patch(self) -> list[dict[str, Any]]:
        """Return the edit, as a JSON Patch on the gate's state; [] where nothing was edited."""
        patch: list[dict[str, Any]] = canonical_json.decode_canonical(bytes(self.patch))
        return patch

    @property
    def by_action(self) -> dict[str, str]:
        """Return action id -> approve, edit, reject or respond; {} where nobody decided, or by an answer."""
        if self.kind == self.Kind.REJECTED:
            return {action.id: REJECT for action in self.proposal.card.actions}
        if self.kind not in (self.Kind.APPROVED, self.Kind.EDITED, self.Kind.MIXED):
            return {}
        return verdicts.of_card(self.proposal.card, self.gate.asked)

    def refused(self, action: str) -> SettledAction | None:
        """Return why an action does not run although the run goes on; None where it may run, or does not exist."""
        if self.kind != self.Kind.MIXED:
            return None
        found = self.proposal.card.action(action)
        return found.settled if found else None

    @property
    def counted(self) -> list[str]:
        """Return the ids of the preconditions that count: the required ones and those that were added."""
        ids: list[str] = canonical_json.decode_canonical(bytes(self.preconditions))
        return ids

    def approved(self) -> Approved:
        """Build from the rows exactly what this outcome lets run.

        Its digest is `to_run`, unless a row was tampered with.
        """
        return Approved.of(
            self.proposal.content,
            gate=self.gate_id,
            bound=canonical_json.decode_canonical(bytes(self.bound)),
            arguments=canonical_json.decode_canonical(bytes(self.arguments)),
            preconditions=self.counted,
        )


class Grant(models.Model):
    """The right to perform one effect once; the effect's intent row consumes it."""

    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="grants", db_index=False)
    action = models.CharField(max_length=100, blank=True)  # empty where the card has no action
    effect = models.CharField(max_length=100)  # the effect step's name
    # By what the same is found again, see approvals.cards.likeness; only to warn, so no event covers them.
    same_arguments = models.CharField(max_length=32, default="", db_default="", editable=False)
    same_key = models.CharField(max_length=32, default="", db_default="", editable=False)
    same_resource = models.CharField(max_length=32, default="", db_default="", editable=False)
    end: str | None = None  # see approvals.audit.evidence.with_end

    class Meta:
        constraints = [models.UniqueConstraint(fields=["outcome", "action", "effect"], name="grant_is_given_once")]
        indexes = [
            models.Index(fields=[name, "-id"], name=f"grant_of_{how}", condition=~models.Q(**{name: ""}))
            for how in Likeness._fields
            for name in [f"same_{how}"]
        ]

    def __str__(self) -> str:
        return f"{self.effect} by outcome {self.outcome_id}"
