"""Admin pages of versioned rows: a save writes the next version, the newest is in force, older ones are read only."""

from __future__ import annotations

from typing import Any, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .base import ModelAdmin, ModelForm

Row = TypeVar("Row", bound=Model)


class VersionedForm(ModelForm[Row]):
    """The form of one version, which refuses to overwrite a version that the user has not seen."""

    OF: tuple[str, ...] = ("team", "name")  # rows with equal values in these columns are versions of one thing

    @classmethod
    def newest_of(cls, row: Row) -> Row:
        """Return the version in force of what `row` is a version of."""
        same = {name: row.serializable_value(name) for name in cls.OF}
        return type(row)._default_manager.filter(**same).order_by("-version")[0]

    def lock(self) -> None:
        """Take the lock that writers take: of two concurrent saves, the second is based on an outdated version."""
        Group.objects.select_for_update(no_key=True).get(pk=self.instance.serializable_value("team"))

    def clean(self) -> dict[str, Any]:
        """Refuse to overwrite a version that the user has not seen."""
        values: dict[str, Any] = super().clean() or {}
        if self.instance.pk:
            self.lock()
            newest: Any = self.newest_of(self.instance)
            if newest.pk != self.instance.pk:
                words = "Nothing was saved. Version {} was written since you opened this page: change {} instead."
                raise forms.ValidationError(format_html(words, newest.version, link_to(newest)))
        return values


class VersionedAdmin(ModelAdmin[Row]):
    """Pages on which saving the form stores the next version.

    That is a new row: whatever was read along with the old one (its groups, its cached properties) does not belong to
    it, and would hide from a many-to-many field that the new row has nothing yet.
    """

    ANEW = ("version", "created_at")  # columns that a version does not copy from the one before
    COUNTS = "The version in force is {}."
    form: type[VersionedForm[Row]]
    sortable_by = ()
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        """Fix the columns that say what a row is a version of."""
        return self.form.OF if obj else ()

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """Replace the form's row by a new, unsaved one with the same columns."""
        row = super().save_form(request, form, change)
        form.instance = type(row)(
            **{
                field.attname: getattr(row, field.attname)
                for field in self.opts.concrete_fields
                if not field.primary_key and field.name not in self.ANEW
            }
        )
        return form.instance

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Redirect "Save and continue editing" to the version that was just written."""
        answer = super().response_change(request, obj)
        return redirect(address_of(obj)) if "_continue" in request.POST else answer

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow changing only the newest version. The form refuses what is posted to an older one."""
        old = obj is not None and request.method != "POST" and self.form.newest_of(obj).pk != obj.pk
        return not old and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: records of what was done under a version refer to it."""
        return False

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show an older version with a message that links to the newest."""
        row: Any = self.get_object(request, object_id)
        if row is not None and request.method != "POST" and (newest := self.form.newest_of(row)).pk != row.pk:
            words = format_html("This is version {}, which is only kept for the record. ", row.version)
            messages.info(request, words + format_html(str(self.COUNTS), link_to(newest)))
        return super().change_view(request, object_id, form_url, extra_context)


class NewestVersionsFilter(admin.SimpleListFilter):
    """Filters to the newest versions, or shows all."""

    title = "versions"
    parameter_name = "versions"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the choices besides the default, the newest versions."""
        return [("all", "All")]

    def choices(self, changelist: Any) -> Any:
        """Label the default choice "Newest"."""
        first, *rest = super().choices(changelist)
        return [{**first, "display": "Newest"}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the versions of the choice."""
        newest = queryset.model._default_manager.current().values("pk")
        return queryset if self.value() == "all" else queryset.filter(pk__in=newest)


def link_to(row: Any) -> SafeString:
    """Link to a version's page."""
    return format_html('<a href="{}">version {}</a>', address_of(row), row.version)


def address_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
