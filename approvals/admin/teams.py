"""Teams: their members, and what members may do.

A team is a Django group. Its page shows what its members may do in plain words, and who they are; the rest of Django's
permissions are for the administration itself, and stay as they are. A box stands for one permission or for several that
are of use only together. Permissions without a box stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db import models
from django.db.models import Count
from django.http import HttpRequest

from checkpoints import actors
from checkpoints.access import permissions as may
from checkpoints.access.permissions import IN_TEAMS as IN_TEAMS
from checkpoints.access.permissions import is_superuser
from checkpoints.admin.base import Mixed, ModelForm, make_list_link
from checkpoints.events import event_log

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
    return "; ".join(offered[name] for name in offered if name in ticked_boxes(names, offered)) or "nothing"


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


if TYPE_CHECKING:
    AnyInline = admin.TabularInline[Any, Any]
else:  # at run time Django's classes take no parameter
    AnyInline = admin.TabularInline

# The administration says "team" in every list, link and message. Set outside of Meta, this makes no migration.
Group._meta.verbose_name, Group._meta.verbose_name_plural = "team", "teams"
admin.site.unregister(Group)


class TeamForm(ModelForm[Group]):
    """A team's name and what its members may do."""

    may = PermissionBoxes(choices=list(IN_TEAMS.items()), label="Members may")

    class Meta:
        model = Group
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["may"].initial = ticked_boxes(permission_names(self.instance.permissions), IN_TEAMS)


class MemberInline(AnyInline):
    """A team's members."""

    model = User.groups.through
    autocomplete_fields = ("user",)
    extra = 1
    verbose_name = "member"
    verbose_name_plural = "members"


@admin.register(Group)
class TeamAdmin(AuditedAdmin, GroupAdmin):
    """Teams: name, members, and what they may do."""

    MEMBERSHIP, PERMISSIONS, OFFERED = "members", "permissions", IN_TEAMS
    form = TeamForm
    fields = ("name", "may")
    filter_horizontal = ()
    inlines = (MemberInline,)
    list_display = ("name", "people", "allowed", "runs")
    search_fields = ("name",)
    ordering = ("name",)
    actions = None
    runs = make_list_link("checkpoints_run", "its runs", team__id__exact="pk")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Let only a superuser make a team: others could make themselves reviewers."""
        return is_superuser(request.user)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Let only a superuser change a team."""
        return is_superuser(request.user)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Group]:
        """Count the members of each team."""
        found: models.QuerySet[Group] = super().get_queryset(request)
        return found.annotate(people_count=Count("user")).prefetch_related("permissions__content_type")

    @admin.display(description="members")
    def people(self, team: Group) -> int:
        return int(getattr(team, "people_count", 0))

    @admin.display(description="members may")
    def allowed(self, team: Group) -> str:
        there = {name_of_permission(permission) for permission in team.permissions.all()}  # read with the list
        return describe_permissions(there, IN_TEAMS)

    def state(self, obj: Group) -> dict[str, Any]:
        """Return its name, what its members may do, and who they are."""
        fresh = Group.objects.get(pk=obj.pk)
        return {
            "name": fresh.name,
            "may": permission_names(fresh.permissions),
            "members": set(fresh.user_set.values_list("pk", flat=True)),
        }

    def tell(self, request: HttpRequest, obj: Group, before: dict[str, Any], after: dict[str, Any]) -> None:
        data = {"name": after["name"], **self.exchanged(before, after)}
        event_log.record(
            "team.changed", subject=f"team:{obj.pk}", by=actors.of_user(request.user), team_id=obj.pk, data=data
        )  # fmt: skip
