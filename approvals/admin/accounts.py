"""Accounts of the people who sign in. Staff who are no superusers can switch them off, and raise nobody's rights.

Saving one, a new one and a new password take a confirmation of who one is (config.administration).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from approvals.accounts import factors, sign_ins
from approvals.presentation.names import normal_form
from checkpoints import actors
from checkpoints.access.permissions import is_superuser
from checkpoints.admin.base import TakesOrders
from checkpoints.events import event_log

from .teams import (
    EVERYWHERE,
    IN_TEAMS,
    AuditedAdmin,
    PermissionBoxes,
    describe_permissions,
    permission_names,
    ticked_boxes,
)

if TYPE_CHECKING:
    Accounts = UserAdmin[User]
    ChangeForm = UserChangeForm[User]
else:  # at run time Django's classes take no parameter
    Accounts, ChangeForm = UserAdmin, UserChangeForm
OFFERED = IN_TEAMS | EVERYWHERE

# Fields that raise somebody's rights; a new password is sent to the e-mail address.
RAISING = ("is_staff", "is_superuser", "may", "groups", "email")
# Fields by which others recognize somebody: an account with a colleague's name is taken for that colleague.
WHO = ("username", "first_name", "last_name")
admin.site.unregister(User)
for model in (Authenticator, SocialAccount, SocialApp, SocialToken):  # shown on their person's page, or settings
    admin.site.unregister(model)
admin.site.unregister(EmailAddress)  # an account has one address, edited on its own page, with an event


class ByTeam(admin.RelatedFieldListFilter):
    """A filter by team, as a group is called here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "team"


class AccountForm(ChangeForm):
    """The form of an account, with its permissions beside those of its teams."""

    may = PermissionBoxes(
        label="May also",
        choices=[("In their teams", list(IN_TEAMS.items())), ("Everywhere, as staff", list(EVERYWHERE.items()))],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "may" in self.fields:
            self.fields["may"].initial = ticked_boxes(permission_names(self.instance.user_permissions), OFFERED)

    def clean_first_name(self) -> str:
        return normal_form(self.cleaned_data["first_name"])

    def clean_last_name(self) -> str:
        return normal_form(self.cleaned_data["last_name"])


@admin.register(User)
class AccountAdmin(TakesOrders, AuditedAdmin, Accounts):
    """Accounts."""

    MEMBERSHIP, PERMISSIONS, OFFERED = "teams", "user_permissions", OFFERED
    list_display = ("username", "first_name", "last_name", "is_active", "is_staff", "is_superuser", "teams")
    list_filter = ("is_active", "is_staff", "is_superuser", ("groups", ByTeam))
    search_fields = ("username", "first_name", "last_name", "email")
    actions = None
    form = AccountForm
    filter_horizontal = ("groups",)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        ("Teams and extra permissions", {"fields": ("groups", "may")}),
        ("The administration", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Signing in", {"fields": ("factors", "last_login", "date_joined")}),
    )
    readonly_fields = ("factors", "last_login", "date_joined")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        """Let only a superuser say who somebody is and what they may do; others only switch accounts off."""
        fixed = super().get_readonly_fields(request, obj)
        if is_superuser(request.user):
            return tuple(fixed)
        off = () if obj is None or obj.is_active else ("is_active",)
        return (*fixed, *RAISING, *(WHO if obj else ()), *off)

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Let only a superuser change other staff: whoever controls an account may do what its owner may."""
        above = isinstance(obj, User) and (obj.is_staff or obj.is_superuser) and obj.pk != request.user.pk
        return (is_superuser(request.user) or not above) and bool(super().has_change_permission(request, obj))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Call a group a team, as everywhere."""
        if db_field.name == "groups":
            kwargs |= {"label": "Teams", "help_text": "Members inherit the team's permissions."}
            kwargs["widget"] = FilteredSelectMultiple("teams", is_stacked=False)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[User]:
        """Prefetch their teams."""
        found: models.QuerySet[User] = super().get_queryset(request)
        return found.prefetch_related("groups")

    @admin.display(description="Second factors")
    def factors(self, user: User) -> str:
        """Name what a person signs in with beside the password, and what of it cannot be read."""
        found = factors.list_factors(user)
        lines = [factor.word if factor.sound else f"{factor.word} (cannot be read)" for factor in found]
        return ", ".join(lines) or "none"

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Map the orders about one account to their views."""
        return {"<int:user>/factor-removals": _remove_factor, "<int:user>/session-ends": _end_sessions}

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Offer a superuser the orders about somebody else's account."""
        others = is_superuser(request.user) and object_id != str(request.user.pk)
        found = User.objects.filter(pk=object_id).first() if others and object_id.isdecimal() else None
        offered = {"takes_orders": found is not None, "factors": factors.list_factors(found) if found else []}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **offered})

    @admin.display(description="May also")
    def may(self, user: User) -> str:
        """Return an account's permissions beside those of its teams, in words."""
        return describe_permissions(permission_names(user.user_permissions), OFFERED)

    @admin.display(description="teams")
    def teams(self, user: User) -> str:
        return ", ".join(group.name for group in user.groups.all()) or "none"

    def state(self, obj: User) -> dict[str, Any]:
        """Return all columns but the last login, the teams, and the account's own permissions."""
        fresh = User.objects.get(pk=obj.pk)
        columns = {f.name: getattr(fresh, f.name) for f in User._meta.concrete_fields if f.name != "last_login"}
        teams = set(fresh.groups.values_list("pk", flat=True))
        return columns | {"teams": teams, "may": permission_names(fresh.user_permissions)}

    def tell(self, request: HttpRequest, obj: User, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Write the event with the names of the columns that changed, not their values, which are personal.

        The sessions of an account that was switched off end, or they would go on once it is on again.
        """
        fields = sorted(name for name in after if name not in ("teams", "may") and after[name] != before.get(name))
        data = {"fields": fields if before else ["created"], **self.exchanged(before, after)}
        event_log.record("user.changed", subject=f"user:{obj.pk}", by=actors.of_user(request.user), data=data)
        if before.get("is_active") and not after["is_active"]:
            sign_ins.end_all(obj, by=actors.of_user(request.user))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        """Show Django's page for somebody else's password, and write the event of a change.

        One's own password is changed on the page that asks for the old one: otherwise whoever sits at a session that
        somebody else opened could set a new one, and confirm everything with it.
        """
        if not (id := unquote(id)).isdecimal():
            raise Http404("No such account")
        if int(id) == request.user.pk:
            return redirect("account_change_password")
        if not is_superuser(request.user):
            raise PermissionDenied  # whoever sets somebody's password can decide in their name
        with transaction.atomic():
            user = User.objects.select_for_update().filter(pk=id).first()
            before = self.state(user) if user else {}
            response = super().user_change_password(request, id, form_url)
            if user and (after := self.state(user)) != before:
                self.tell(request, user, before, after)
        return response


def _remove_factor(request: HttpRequest, user: int) -> HttpResponse:
    """Remove one second factor of somebody who lost it, and end their sessions."""

    def order(person: User) -> None:
        number = request.POST.get("factor", "")
        by = actors.of_user(request.user)
        if not number.isdecimal() or not factors.remove(person, [int(number)], by=by):
            raise Http404("No such factor")
        sign_ins.end_all(person, by=by)

    return _ordered(request, user, order)


def _end_sessions(request: HttpRequest, user: int) -> HttpResponse:
    """End all sessions of somebody."""
    return _ordered(request, user, lambda person: sign_ins.end_all(person, by=actors.of_user(request.user)))


def _ordered(request: HttpRequest, user: int, order: Callable[[User], object]) -> HttpResponse:
    """Carry out an order about somebody else's account: a superuser's alone."""
    by = request.user
    if not isinstance(by, User) or not is_superuser(by) or user == by.pk:
        raise PermissionDenied
    with transaction.atomic():
        order(get_object_or_404(User, pk=user))
    return redirect("admin:auth_user_change", user)
