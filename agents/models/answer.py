"""Answers kept under an idempotency key: the same request again gets the same answer."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Answer(models.Model):
    """One request with an idempotency key and its answer; `status` is 0 until it was answered."""

    who = models.CharField(max_length=40)  # "token:5", "user:7"; an agent's tokens share their keys
    key = models.CharField(max_length=200)
    request = models.BinaryField()  # SHA-256 of the method, the address and the body
    binds = models.BinaryField(null=True)  # the same without what a repeat may word otherwise; null: nothing is such
    status = models.SmallIntegerField(default=0)
    body = models.BinaryField(default=b"")
    media_type = models.CharField(max_length=60, default="", blank=True)
    location = models.CharField(max_length=200, default="", blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["who", "key"], name="key_is_used_once")]
        indexes = [models.Index("at", name="answer_by_age")]

    def __str__(self) -> str:
        return f"{self.key} of {self.who}"
