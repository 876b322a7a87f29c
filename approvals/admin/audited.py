"""What the pages of teams and accounts share: every change is told of in the audit, and nothing is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest

if TYPE_CHECKING:
    Saving = admin.ModelAdmin[Any]
else:  # at run time Django's classes take no parameter
    Saving = object


class AuditedAdmin(Saving):
    """Tells of every change in the audit, in the transaction of the change."""

    def state(self, obj: Any) -> dict[str, Any]:
        """Return what it is about, as it is now."""
        raise NotImplementedError

    def tell(self, request: HttpRequest, obj: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Write the event of a change."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Keep how it was, for the event."""
        old = type(obj)._default_manager.select_for_update().filter(pk=obj.pk).first() if change else None
        request.before = self.state(old) if old else {}  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Tell of what changed, once all of it is written."""
        super().save_related(request, form, formsets, change)
        before, after = request.before, self.state(form.instance)  # type: ignore[attr-defined]
        if before != after:
            self.tell(request, form.instance, before, after)

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Nobody: runs and events name them. An account is switched off, a team emptied."""
        return False
