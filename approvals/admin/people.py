"""Teams and accounts: who is in which, and what that lets them do. Every change is an event.

A team is a Django group. Its page shows what its members may do in plain words, and who they are; the rest of
Django's permissions are for the administration itself, and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkpoints import actors, ledger

MAY = {
    "checkpoints.view_run": "read the team's runs, their states and events",
    "checkpoints.start_run": "start runs",
    "checkpoints.rewind_run": "rewind, edit, fork and cancel runs, and undo what they left behind",
    "approvals.decide_gate": "decide at the gates of policies that name the team",
    "checkpoints.view_audit": "see the team's audit, have the seals verified, and export",
    "checkpoints.erase_text": "erase what people wrote from the audit",
}

if TYPE_CHECKING:
    TeamModelForm = forms.ModelForm[Group]
    AnyInline = admin.TabularInline[Any, Any]
    Accounts = UserAdmin[User]
    Saving = admin.ModelAdmin[Any]
else:  # at run time Django's classes take no parameter
    TeamModelForm = forms.ModelForm
    AnyInline = admin.TabularInline
    Accounts = UserAdmin
    Saving = object


class TeamForm(TeamModelForm):
    """A team's name and what its members may do."""

    may = forms.MultipleChoiceField(
        choices=list(MAY.items()), widget=forms.CheckboxSelectMultiple, required=False, label="Members may"
    )

    class Meta:
        model = Group
        fields = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields["may"].initial = sorted(may_of(self.instance) & MAY.keys())


class MemberInline(AnyInline):
    """The people of a team."""

    model = User.groups.through
    autocomplete_fields = ("user",)
    extra = 1
    verbose_name = "member"
    verbose_name_plural = "members"


class Told(Saving):
    """Tells of every change in the audit, in the transaction of the change."""

    def state(self, obj: Any) -> dict[str, Any]:
        """What is told of, as it is now."""
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


admin.site.unregister([Group, User])


@admin.register(Group)
class TeamAdmin(Told, GroupAdmin):
    """Teams: name, members, and what they may do."""

    form = TeamForm
    fields = ("name", "may")
    filter_horizontal = ()
    inlines = (MemberInline,)
    list_display = ("name", "people", "allowed", "runs")
    search_fields = ("name",)
    ordering = ("name",)
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only a superuser says what members may, and who is one: anybody else could make themselves a reviewer."""
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """The same."""
        return bool(request.user.is_superuser)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Group]:
        """With how many people are in each."""
        found: models.QuerySet[Group] = super().get_queryset(request)
        return found.annotate(people_count=Count("user")).prefetch_related("permissions__content_type")

    @admin.display(description="members")
    def people(self, team: Group) -> int:
        return int(getattr(team, "people_count", 0))

    @admin.display(description="members may")
    def allowed(self, team: Group) -> str:
        return "; ".join(words for name, words in MAY.items() if name in may_of(team)) or "nothing"

    @admin.display(description="runs")
    def runs(self, team: Group) -> SafeString:
        address = reverse("admin:checkpoints_run_changelist")
        return format_html('<a href="{}?team__id__exact={}">its runs</a>', address, team.pk)

    def state(self, obj: Group) -> dict[str, Any]:
        """Its name, what its members may do, and who they are."""
        fresh = Group.objects.get(pk=obj.pk)
        return {"name": fresh.name, "may": may_of(fresh), "members": set(fresh.user_set.values_list("pk", flat=True))}

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """With the permissions that were ticked; others that it has stay."""
        team, ticked = form.instance, set(form.cleaned_data["may"])
        ours = permissions(MAY)
        team.permissions.remove(*[ours[name] for name in MAY.keys() - ticked])
        team.permissions.add(*[ours[name] for name in ticked])
        super().save_related(request, form, formsets, change)

    def tell(self, request: HttpRequest, obj: Group, before: dict[str, Any], after: dict[str, Any]) -> None:
        was, now = before.get("members", set()), after["members"]
        could, can = before.get("may", set()), after["may"]
        data = {
            "name": after["name"],
            "joined": sorted(now - was), "left": sorted(was - now),
            "granted": sorted(can - could), "revoked": sorted(could - can),
        }  # fmt: skip
        ledger.record(
            "team.changed", subject=f"team:{obj.pk}", by=actors.of_user(request.user), team_id=obj.pk, data=data
        )  # fmt: skip


@admin.register(User)
class AccountAdmin(Told, Accounts):
    """Accounts."""

    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser", "teams")
    list_filter = ("is_active", "is_staff", "is_superuser", "groups")
    search_fields = ("username", "first_name", "last_name", "email")
    actions = None
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who it is", {"fields": ("first_name", "last_name", "email")}),
        ("Teams, and what this person may do in them besides", {"fields": ("groups", "user_permissions")}),
        ("The administration", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("When", {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Only a superuser makes anybody more than they are: what a team may do, its members may."""
        raising = () if request.user.is_superuser else (
            "is_staff", "is_superuser", "user_permissions", "groups", "email",  # to which a new password is sent
        )  # fmt: skip
        return (*super().get_readonly_fields(request, obj), *raising)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Only a superuser changes a superuser: whoever sets their password is one."""
        above = isinstance(obj, User) and obj.is_superuser and not request.user.is_superuser
        return not above and bool(super().has_change_permission(request, obj))

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[User]:
        """With their teams, read at once."""
        found: models.QuerySet[User] = super().get_queryset(request)
        return found.prefetch_related("groups")

    @admin.display(description="teams")
    def teams(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all()) or "none"

    def state(self, obj: User) -> dict[str, Any]:
        """All columns, the teams and the permissions of one's own."""
        fresh = User.objects.get(pk=obj.pk)
        columns = {f.name: getattr(fresh, f.name) for f in User._meta.concrete_fields if f.name != "last_login"}
        own = {named(each) for each in fresh.user_permissions.select_related("content_type")}
        return columns | {"teams": set(fresh.groups.values_list("pk", flat=True)), "may": own}

    def tell(self, request: HttpRequest, obj: User, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Which columns changed, by name alone: what is in them is personal."""
        was, now = before.get("teams", set()), after["teams"]
        could, can = before.get("may", set()), after["may"]
        fields = sorted(name for name in after if name not in ("teams", "may") and after[name] != before.get(name))
        data = {
            "fields": fields if before else ["created"],
            "joined": sorted(now - was), "left": sorted(was - now),
            "granted": sorted(can - could), "revoked": sorted(could - can),
        }  # fmt: skip
        ledger.record("user.changed", subject=f"user:{obj.pk}", by=actors.of_user(request.user), data=data)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Django's own page, and the event of a password that was changed."""
        if not request.user.is_superuser and id != str(request.user.pk):
            raise PermissionDenied  # whoever sets somebody's password decides in their name
        with transaction.atomic():
            user = User.objects.select_for_update().filter(pk=id).first() if id.isdigit() else None
            before = self.state(user) if user else {}
            response = super().user_change_password(request, id, form_url)
            if user and (after := self.state(user)) != before:
                self.tell(request, user, before, after)
        return response


def may_of(team: Group) -> set[str]:
    """The permissions of a team, "app.codename"."""
    return {named(each) for each in team.permissions.select_related("content_type")}


def named(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def permissions(names: Any) -> dict[str, Permission]:
    """The permissions of these "app.codename" names, by name."""
    wanted = [name.split(".")[1] for name in names]
    found = Permission.objects.filter(codename__in=wanted).select_related("content_type")
    return {named(each): each for each in found if named(each) in names}
