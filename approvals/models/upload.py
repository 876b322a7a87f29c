"""Records the files that people uploaded at a gate: an edit may bring in only those, and a prune spares them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.db import models, transaction
from django.db.models import Q, Sum
from django.db.models.functions import Greatest, Now

from approvals.errors import QuotaReached
from checkpoints.models import Run
from checkpoints.values import artifacts

from .gate import Gate

LEAST = 4096  # bytes that any file counts at least, since it takes a block of the disk and a row
NAME = 200  # characters of a file's name that are kept
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")


class UploadQuerySet(models.QuerySet["Upload"]):
    """Queries that keep files and find them."""

    def keep(self, gate: Gate, file: UploadedFile[bytes], *, by: Any) -> artifacts.Reference:
        """Keep a file for this gate; return its reference, with its name. No event, as it decides nothing.

        The row is written first: from then on no prune removes the content. Raises QuotaReached.
        """
        digest = artifacts.digest_of(file)
        with transaction.atomic():
            # Of two uploads by one person at once, the second counts the first.
            list(User.objects.select_for_update(no_key=True).filter(pk=by.pk).values_list("pk"))
            if not self.filter(gate=gate, digest=digest).exists():
                self._make_room(file.size or 0, by=by)
                self.get_or_create(gate=gate, digest=digest, defaults={"user": by, "size": file.size or 0})
        sort = str(file.content_type or "").lower()
        with artifacts.kept_for(gate.team_id):
            reference = artifacts.keep(file, sort if _MEDIA_TYPE.fullmatch(sort) else "application/octet-stream")
        return {**reference, "name": plain_name(file.name or "")}

    def _make_room(self, size: int, *, by: Any) -> None:
        most: int = settings.HOLDPOINT_UPLOAD_QUOTA
        mine = self.needed().filter(user=by).aggregate(bytes=Sum(Greatest("size", LEAST)))
        there = mine["bytes"] or 0
        if there + max(size, LEAST) > most:
            raise QuotaReached(there, size, most)

    def of(self, gate: Gate, digests: Collection[str]) -> set[str]:
        """Return those of the digests whose content was uploaded at this gate."""
        return set(self.filter(gate=gate, digest__in=digests).values_list("digest", flat=True))

    def of_team(self, team: int, digests: Collection[str]) -> set[str]:
        """Return those of the digests whose content was uploaded at a gate of this team."""
        return set(self.filter(gate__team=team, digest__in=digests).values_list("digest", flat=True))

    def needed(self) -> UploadQuerySet:
        """Select those of open gates, and those that runs may still write into their state."""
        return self.filter(Q(gate__closed_at=None) | Q(gate__run__in=Run.objects.live()))


class Upload(models.Model):
    """One file that somebody uploaded at a gate, by its content."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="uploads", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)  # SHA-256, hex
    size = models.BigIntegerField()  # bytes, by which a person's quota counts
    at = models.DateTimeField(db_default=Now())

    objects = UploadQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "digest"], name="one_upload_per_gate_and_content")]

    def __str__(self) -> str:
        return f"upload {self.digest[:8]} at gate {self.gate_id}"


def plain_name(name: str) -> str:
    """Clean a file's name to keep and hand out: visible characters only, and no path."""
    seen = "".join(char for char in name if char.isprintable() and char not in '/\\:*?"<>|')
    return seen.strip(" .")[-NAME:]
