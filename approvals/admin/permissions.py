"""Describes the few permissions that Holdpoint asks for, of the many that Django makes.

A box stands for one permission or for several that are of use only together. Permissions without a box stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.contrib.auth.models import Permission

from checkpoints.access import permissions as may
from checkpoints.access.missing_permission import IN_TEAMS as IN_TEAMS

# Permission -> what it allows staff to do for every team, in the administration.
EVERYWHERE: dict[str, str] = {
    may.VIEW_EVENT: "see the history and the audit of every team",
    "approvals.change_policy": "write policies",
    "approvals.change_tool": "register tools",
    "checkpoints.change_retentionpolicy": "write retention policies (with the history of every team)",
    may.PRUNE_CHECKPOINTS: "delete checkpoints by a retention policy (with the history of every team)",
    may.SET_LEGAL_HOLD: "set and free legal holds (with the history of every team)",
    may.CHANGE_TOKEN: "revoke anybody's tokens (with the history of every team)",
    "auth.change_user": "see accounts and switch them off",
}
TOGETHER = {
    "approvals.change_policy": ("approvals.add_policy",),
    "approvals.change_tool": ("approvals.add_tool",),
    "checkpoints.change_retentionpolicy": ("checkpoints.add_retentionpolicy",),
}


class PermissionBoxes(forms.MultipleChoiceField):
    """A checkbox for each permission on offer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.CheckboxSelectMultiple, required=False, **options)


def name_of_permission(permission: Permission) -> str:
    """Return "app.codename", as code asks for it."""
    return f"{permission.content_type.app_label}.{permission.codename}"


def permission_names(permissions: Any) -> set[str]:
    """Return the names of a team's or a person's own permissions, given their manager."""
    return {name_of_permission(row) for row in permissions.select_related("content_type")}


def ticked_boxes(names: set[str], offered: Iterable[str]) -> list[str]:
    """Return the boxes to tick: those whose permissions are all held."""
    return sorted(name for name in offered if {name, *TOGETHER.get(name, ())} <= names)


def grant_permissions(permissions: Any, wanted: Iterable[str], offered: Mapping[str, str]) -> None:
    """Grant what was ticked and revoke what was unticked; an unchanged box changes nothing."""
    before, after = set(ticked_boxes(permission_names(permissions), offered)), set(wanted)
    permissions.remove(*_rows(before - after))
    permissions.add(*_rows(after - before))


def _rows(names: Iterable[str]) -> list[Permission]:
    every = {item for name in names for item in (name, *TOGETHER.get(name, ()))}
    found = Permission.objects.filter(codename__in=[name.split(".")[1] for name in every])
    return [
        permission for permission in found.select_related("content_type") if name_of_permission(permission) in every
    ]


def describe_permissions(names: set[str], offered: Mapping[str, str]) -> str:
    """Describe the offered permissions that are held, as the end of a sentence."""
    return "; ".join(str(offered[name]) for name in offered if name in ticked_boxes(names, offered)) or "nothing"
