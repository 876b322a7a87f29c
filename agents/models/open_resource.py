"""Descriptions of what steps hold open, from which it is reopened elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import models

from checkpoints.errors import NotVerified
from checkpoints.models import Checkpoint, Run
from checkpoints.runs.plans import spec_of
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical, encode_canonical


class OpenResourceQuerySet(models.QuerySet["OpenResource"]):
    """Queries about what steps hold open."""

    def keep(self, run_id: int, checkpoint: UUID, step: str, described: Mapping[str, bytes]) -> None:
        """Keep descriptions, canonical JSON by name, with the checkpoint that is being saved."""
        self.bulk_create(
            OpenResource(
                run_id=run_id, checkpoint=checkpoint, step=step, name=name, described=content,
                digest=_digest(checkpoint, step, name, content),
            )
            for name, content in described.items()
        )  # fmt: skip

    def newest(self, path: Iterable[UUID], names: Iterable[str]) -> dict[str, OpenResource]:
        """Return the newest description of each name on a path, root first, by name."""
        places = {id: number for number, id in enumerate(path)}
        found = self.filter(checkpoint__in=list(places), name__in=list(names))
        return {row.name: row for row in sorted(found, key=lambda row: places[row.checkpoint])}

    def described_at(self, checkpoint: Checkpoint) -> list[OpenResource]:
        """List what the checkpoint's step held open, by name. Needs its plan, which says whether it may."""
        steps = {step.name: step for step in spec_of(checkpoint.plan).steps}
        holds = checkpoint.step in steps and steps[checkpoint.step].holds
        return list(self.filter(checkpoint=checkpoint.pk).order_by("name")) if holds else []

    def copy(self, run_id: int, source: UUID, checkpoint: UUID) -> None:
        """Keep the descriptions of one checkpoint with another too, which reuses its output."""
        rows = list(self.filter(checkpoint=source))
        for row in rows:
            self.keep(run_id, checkpoint, row.step, {row.name: row.verified()})


class OpenResource(models.Model):
    """One thing that a step held open when it ended, or an environment variable that it depends on."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="open_resources", db_index=False)
    checkpoint = models.UUIDField()  # that the step saved
    step = models.CharField(max_length=100)
    name = models.CharField(max_length=100)
    described = models.BinaryField()  # canonical JSON, without secrets
    digest = models.BinaryField()
    at = models.DateTimeField(auto_now_add=True)

    objects = OpenResourceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["checkpoint", "name"], name="resource_is_described_once")]

    def __str__(self) -> str:
        return f"{self.name}, held open by {self.step} of run {self.run_id}"

    @property
    def content(self) -> object:
        """Return the description, decoded. Raises NotVerified where it is not what was kept."""
        return decode_canonical(self.verified())

    def verified(self) -> bytes:
        """Return the description as it is kept. Raises NotVerified where it is not what was kept."""
        described = bytes(self.described)
        if _digest(self.checkpoint, self.step, self.name, described) != bytes(self.digest):
            raise NotVerified(f"the description of {self.name} (run {self.run_id})", "it does not match its digest")
        return described


def _digest(checkpoint: UUID, step: str, name: str, described: bytes) -> bytes:
    """Return the digest of a description and of where it belongs, so that a row that was swapped shows too."""
    return digests.of_canonical(encode_canonical([str(checkpoint), step, name]) + described)
