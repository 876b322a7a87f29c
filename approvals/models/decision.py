"""A decision of one reviewer about one version of a proposal."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from checkpoints.values import canonical_json


class DecisionQuerySet(models.QuerySet["Decision"]):
    """Decisions, by what they are to the proposal."""

    def approving(self) -> DecisionQuerySet:
        """Select those that approve what they are about, with or without changes."""
        return self.filter(verdict__in=Decision.APPROVING)


class Decision(models.Model):
    """One reviewer's decision. Never changed but for `counts`, which ends with the proposal or the authority."""

    class Verdict(models.TextChoices):
        APPROVE = "approve", "Approved"
        EDIT = "edit", "Approved with an edit"
        REJECT = "reject", "Rejected"
        ANSWER = "answer", "Answered"  # a recovery gate's question
        MIXED = "mixed", "Decided action by action"

    # What a verdict is to the proposal; the tally counts one that is neither for nothing.
    APPROVING = (Verdict.APPROVE, Verdict.EDIT, Verdict.ANSWER, Verdict.MIXED)
    REJECTING = (Verdict.REJECT,)

    class Then(models.TextChoices):
        STOP = "stop", "Stop the run"
        BACK = "back", "Send it back"

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="decisions", db_index=False)
    proposal = models.ForeignKey("approvals.Proposal", on_delete=models.CASCADE, related_name="decisions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    # Whose authority it uses, where that is not the voter's own: of a person who is away. No index: read with the gate.
    on_behalf_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_constraint=False,
        db_index=False,
    )  # fmt: skip
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    verdicts = models.BinaryField(default=b"{}")  # canonical JSON: action id -> verdict
    then = models.CharField(max_length=8, choices=Then.choices, default="", blank=True)
    back_to = models.CharField(max_length=100, default="", blank=True)
    answer = models.BinaryField(default=b"null")  # canonical JSON: a recovery gate's choice and value
    preconditions = models.BinaryField(default=b"[]", db_default=b"[]")  # canonical JSON: ids that the reviewer adds
    repeats = models.BinaryField(default=b"[]", db_default=b"[]")  # canonical JSON: effects that may be done again
    comment = models.BinaryField(default=b"")  # UTF-8
    seen = models.BinaryField()  # digest of the proposal that was on the reviewer's screen
    # The mark of the impact that was shown, see approvals.decisions.decision_impact; kept only for an undo window.
    shown = models.TextField(default="", db_default="")
    second_look = models.BooleanField(default=False, db_default=False)  # ticked, where a streak of approvals needs it
    counts = models.BooleanField(default=True)
    key = models.CharField(max_length=80)  # idempotency key: the same key gets the same answer
    request = models.BinaryField()  # digest of the submission: a key cannot be used for another one
    created_at = models.DateTimeField(db_default=Now())

    objects = DecisionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["gate", "user", "key"], name="decision_key_is_used_once"),
            models.UniqueConstraint(
                fields=["proposal", "user"],
                condition=models.Q(counts=True),
                name="one_decision_per_person_and_proposal",
            ),
            models.UniqueConstraint(
                fields=["proposal", "on_behalf_of"],
                condition=models.Q(counts=True, on_behalf_of__isnull=False),
                name="authority_is_lent_once_per_proposal",
            ),
        ]

        indexes = [models.Index(fields=["user", "-id"], name="decision_of_user")]

    def __str__(self) -> str:
        return f"{self.verdict} on gate {self.gate_id} by user {self.user_id}"

    @property
    def approves(self) -> bool:
        return self.verdict in self.APPROVING

    @property
    def rejects(self) -> bool:
        return self.verdict in self.REJECTING

    @property
    def authority(self) -> int:
        """Return the id of the person whose authority it uses: two of the same count once."""
        return self.on_behalf_of_id or self.user_id

    @property
    def words(self) -> str:
        """Return the comment, as text."""
        return bytes(self.comment).decode(errors="replace")

    @property
    def added(self) -> list[str]:
        """Return the ids of the preconditions that this decision adds."""
        ids: list[str] = canonical_json.decode_canonical(bytes(self.preconditions))
        return ids

    @property
    def confirmed(self) -> set[int]:
        """Return the ids of the effects that this decision allows to be repeated."""
        return set(canonical_json.decode_canonical(bytes(self.repeats)))

    @property
    def by_action(self) -> dict[str, str]:
        """Return action id -> approve, edit, reject or respond."""
        said: dict[str, str] = canonical_json.decode_canonical(bytes(self.verdicts))
        return said

    @property
    def answered(self) -> Any:
        """Return a recovery gate's answer, {"choice", "value"}, or None."""
        return canonical_json.decode_canonical(bytes(self.answer))
