"""Up to which event people were told: the one row that those who write messages move."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from checkpoints.events.commit_order import Cursor, newest_cursor


class NoticeCursor(models.Model):
    """The one row that says up to which event messages are written. It moves in the transaction that writes them."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    xid = models.BigIntegerField()
    event = models.BigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_notice_cursor")]

    def __str__(self) -> str:
        return f"{self.xid}.{self.event}"

    @classmethod
    def current(cls) -> Cursor:
        """Return the cursor. The first call of an installation starts at the newest event: nobody hears of the past."""
        row = cls.objects.first()
        if row is None:
            start = newest_cursor()
            row = cls.objects.get_or_create(id=1, defaults={"xid": start.xid, "event": start.id})[0]
        return Cursor(row.xid, row.event)

    @classmethod
    def move(cls, before: Cursor, after: Cursor) -> bool:
        """Move it, in the caller's transaction; False where somebody else has moved it."""
        known = cls.objects.filter(id=1, xid=before.xid, event=before.id)
        return bool(known.update(xid=after.xid, event=after.id))
