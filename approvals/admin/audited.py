"""Shared by the pages of teams and accounts: permission boxes, an event for each change, and no deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import models
from django.http import HttpRequest

from checkpoints.admin.base import Mixed

from .permissions import grant_permissions


class AuditedAdmin(Mixed):
    """Writes an audit event for each change, in the transaction of the change.

    `MEMBERSHIP` and "may" are the parts of a state that are sets: of keys, and of permissions' names.
    """

    MEMBERSHIP: str
    PERMISSIONS: str  # the relation to the permissions
    OFFERED: Mapping[str, str]

    def state(self, obj: Any) -> dict[str, Any]:
        """Read the object's audited fields from the database."""
        raise NotImplementedError

    def tell(self, request: HttpRequest, obj: Any, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Write the event of a change."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Keep the state before the change, for the event."""
        old = type(obj)._default_manager.select_for_update().filter(pk=obj.pk).first() if change else None
        request.before = self.state(old) if old else {}  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Set the permissions that have a box, leave the others, and write the event once everything is saved."""
        if "may" in form.cleaned_data:
            grant_permissions(getattr(form.instance, self.PERMISSIONS), form.cleaned_data["may"], self.OFFERED)
        super().save_related(request, form, formsets, change)
        before, after = request.before, self.state(form.instance)  # type: ignore[attr-defined]
        if before != after:
            self.tell(request, form.instance, before, after)

    def exchanged(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
        """Return what a change added and took away, for its event."""
        was, now = before.get(self.MEMBERSHIP, set()), after[self.MEMBERSHIP]
        could, can = before.get("may", set()), after["may"]
        return {
            "joined": sorted(now - was), "left": sorted(was - now),
            "granted": sorted(can - could), "revoked": sorted(could - can),
        }  # fmt: skip

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Let nobody delete: runs and events name the rows. An account is switched off, a team emptied."""
        return False
