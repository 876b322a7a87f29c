"""Teams: their members, and what members may do.

A team is a Django group. Its page shows what its members may do in plain words, and who they are; the rest of Django's
permissions are for the administration itself, and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkpoints import actors
from checkpoints.access.permissions import is_superuser
from checkpoints.admin.base import ModelForm
from checkpoints.events import event_log

from .audited import AuditedAdmin
from .permissions import (
    IN_TEAMS,
    PermissionBoxes,
    describe_permissions,
    name_of_permission,
    permission_names,
    ticked_boxes,
)

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

    @admin.display(description="runs")
    def runs(self, team: Group) -> SafeString:
        address = reverse("admin:checkpoints_run_changelist")
        return format_html('<a href="{}?team__id__exact={}">its runs</a>', address, team.pk)

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
